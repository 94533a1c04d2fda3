"""Show the progress of a run to the operator."""

from collections import Counter

from escrowctl.batch.check import count_rows
from escrowctl.batch.claimants import SharedRun
from escrowctl.contract.json import read_value
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.contract.record import make_record
from escrowctl.errors import EscrowctlError, Outcome
from escrowctl.journal.model import Entry
from escrowctl.output.console import Console
from escrowctl.runtime import describe_duration

_REDRAWN_SECONDS, _LINE_SECONDS = 0.2, 30.0
_MEASURED_SECONDS = 10.0
_BAR_WIDTH = 16
_MAX_REASONS = 10_000
_MAX_ROW_NOTES = 10
_MIN_WHOLE_RATE = 10.0


class Progress:
    """A bar on a terminal (if `draws`), else a line every 30 seconds. Important events get a line at once."""

    def __init__(self, console: Console, shared: SharedRun, *, rows: int, size: int, draws: bool) -> None:
        self._console = console
        self._batch, self._service, self._now = shared.batch, shared.service, shared.runtime.monotonic
        state = shared.read()
        ended = state.ended.total()
        self._rows = ended + rows
        self._size = size
        self._draws = draws
        self._last = self._now()
        self._samples: list[tuple[float, int]] = [(self._last, ended)]
        self._is_first = shared.is_first(state)
        self._notes = 0
        self.reasons: dict[int, str] = {}
        """Line -> the reason why its row was not sent."""

    def show_done(self, line: int, entry: Entry, *, goes_on: bool) -> None:
        """Report the first done row, and whether more rows follow (`goes_on`). Later, report only remarks."""
        settlement = entry.settlement
        if not self._is_first:
            if settlement.remark is not None:
                self.note_about_row("remark", f"line {line} ({entry.name}): {settlement.remark}")
            return
        self._is_first = False
        status = f"HTTP {settlement.http_status}" if settlement.http_status is not None else settlement.detail
        pointers, noun = self._service.pointers, CREATE_TRANSACTION.noun
        replied = make_record(read_value(settlement.reply), pointers=pointers, noun=noun).known
        named = (f"{name} {value}" for name, value in (("id", entry.record_id), ("status", replied.status)) if value)
        outcome_text = ", ".join(filter(None, (status, *named, settlement.remark)))
        at_once = min(self._size, self._rows - 1)
        follows = f". Continuing, {at_once} at a time" if at_once and goes_on else ""
        is_important = settlement.remark is not None
        self._console.note("canary", f"line {line}: {outcome_text}{follows}", label="canary", important=is_important)

    def show_progress(self, counts: Counter[Outcome]) -> None:
        """Redraw the bar, or write a line, if the interval has passed. `counts`: all ended rows of the run."""
        now = self._now()
        if now - self._last < (_REDRAWN_SECONDS if self._draws else _LINE_SECONDS):
            return
        self._last = now
        # A row that another claimant has taken over is counted twice.
        ended = min(counts.total(), self._rows)
        self._samples.append((now, ended))
        while len(self._samples) > 2 and self._samples[1][0] < now - _MEASURED_SECONDS:
            self._samples.pop(0)
        text = self._format_progress(counts)
        if self._draws:
            filled = _BAR_WIDTH * ended // max(1, self._rows)
            self._console.draw(f"[{'#' * filled}{'-' * (_BAR_WIDTH - filled)}]  {text}")
        else:
            self._console.note("progress", f"{self._batch.name}: {text}")

    def show_stopping(self, sending: int) -> None:
        """Report after the first signal that `sending` rows still finish, and what a second signal does."""
        rows = count_rows(sending)
        text = f"finishing {rows} in flight; press Ctrl-C again to stop now and leave the outcomes unknown"
        self._console.note("stopping", text, label="stopping", important=True)

    def note_unsent(self, line: int, error: EscrowctlError, outcome: Outcome) -> None:
        """Report why a row is not sent, and add the reason to `reasons`."""
        if len(self.reasons) < _MAX_REASONS:
            self.reasons[line] = error.message
        was_not = "is unknown, and was not sent again" if outcome is Outcome.UNKNOWN else "was not sent"
        self.note_about_row("unsent", f"line {line} {was_not}: {error.message}")

    def note_about_row(self, code: str, text: str) -> None:
        """Print a note about a row, unless there were many."""
        self._notes += 1
        if self._notes <= _MAX_ROW_NOTES:
            self._console.note(code, text, important=True)
        elif self._notes == _MAX_ROW_NOTES + 1:
            self._console.note(code, "more notes on rows are not shown", important=True)

    def _format_progress(self, counts: Counter[Outcome]) -> str:
        (start, then), (now, ended) = self._samples[0], self._samples[-1]
        rate = (ended - then) / (now - start) if now > start else 0.0
        left = f"   {describe_duration((self._rows - ended) / rate)} left" if rate else ""
        shown = f"refused {counts[Outcome.REFUSED]:,}   unknown {counts[Outcome.UNKNOWN]:,}"
        shown += f"   not sent {counts[Outcome.NOT_SENT]:,}" if counts[Outcome.NOT_SENT] else ""
        speed = f"{rate:,.0f}" if rate >= _MIN_WHOLE_RATE else f"{rate:.1f}"
        return f"{ended:,}/{self._rows:,}   {speed}/s{left}   {shown}"
