"""Show the progress of a run to the operator."""

from collections.abc import Callable

from escrowctl.batch.plan import Batch, Outcomes
from escrowctl.batch.watch import Tally
from escrowctl.commands.times import describe_duration
from escrowctl.contract.json import Document, read_reply
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.contract.record import make_record
from escrowctl.errors import EscrowctlError
from escrowctl.journal.model import Entry
from escrowctl.session import Session

_REDRAWN_SECONDS, _TOLD_SECONDS = 0.2, 30.0
_SPAN = 10.0
_BAR = 16
_MOST_REASONS = 10_000
_MOST_NOTES = 10
_SLOW = 10.0


class Progress:
    """A bar on a terminal, elsewhere a line every 30 seconds. Important events get a line at once."""

    def __init__(self, session: Session, batch: Batch, *, rows: int, size: int) -> None:
        self._session = session
        self._console = session.console
        self._batch = batch
        self._rows = rows
        self._size = size
        self._now: Callable[[], float] = session.runtime.monotonic
        # With -v, another process prints lines between two drawings.
        self._is_drawn = session.console.can_draw and not (session.options.verbose or session.options.debug)
        self._last = self._now()
        self._seen: list[tuple[float, int]] = [(self._last, 0)]
        self._notes = 0
        self.reasons: dict[int, str] = {}
        """Line -> the reason why its row was not sent."""

    def show_canary(self, line: int, entry: Entry, *, goes_on: bool) -> None:
        """Report the outcome of the first row, and whether the others follow."""
        settlement = entry.settlement
        status = f"HTTP {settlement.http_status}" if settlement.http_status is not None else settlement.detail
        what = ", ".join(filter(None, (status, _describe(self._session, entry), settlement.remark)))
        left = self._rows - 1
        follows = f". Continuing, {min(self._size, left)} at a time" if left and goes_on else ""
        self._say("canary", f"line {line}: {what}{follows}", word="canary", important=settlement.remark is not None)

    def show_progress(self, tally: Tally) -> None:
        """Redraw the bar, or write a line, if the interval has passed."""
        now = self._now()
        if now - self._last < (_REDRAWN_SECONDS if self._is_drawn else _TOLD_SECONDS):
            return
        self._last = now
        self._seen.append((now, tally.ended))
        while len(self._seen) > 2 and self._seen[1][0] < now - _SPAN:
            self._seen.pop(0)
        text = self._text(tally)
        if self._is_drawn:
            filled = _BAR * tally.ended // max(1, self._rows)
            self._console.draw(f"[{'#' * filled}{'-' * (_BAR - filled)}]  {text}")
        else:
            self._console.note("progress", f"{self._batch.name}: {text}")

    def show_stopping(self, sending: int) -> None:
        """Report the effect of the first signal, and of a second one."""
        rows = "row" if sending == 1 else "rows"
        again = f"press Ctrl-C again to stop now and leave {'it' if sending == 1 else 'them'} unknown"
        self._say("stopping", f"finishing {sending} {rows} in flight; {again}", word="stopping")

    def note_unsent(self, line: int, error: EscrowctlError, outcome: Outcomes) -> None:
        """Report why a row is not sent, and store the reason."""
        if len(self.reasons) < _MOST_REASONS:
            self.reasons[line] = error.message
        was_not = "is unknown, and was not sent again" if outcome is Outcomes.UNKNOWN else "was not sent"
        self._note("unsent", f"line {line} {was_not}: {error.message}")

    def note_unrecorded(self, line: int, error: EscrowctlError) -> None:
        """Report why the outcome of a row could not be recorded."""
        self._note("unrecorded", f"line {line}: what became of it could not be recorded: {error.message}")

    def note_remark(self, line: int, entry: Entry, remark: str) -> None:
        """Report the difference of a done row."""
        self._note("remark", f"line {line} ({entry.name}): {remark}")

    def note_defect(self, name: str, frames: str) -> None:
        """Add the first defect to the report at the end. Under --debug, show its frames now."""
        if self._session.options.debug:
            self._console.report(frames.rstrip())
        if not self._session.defects:
            self._session.defects.append(RuntimeError(f"{name} in the process that sends"))

    def end(self) -> None:
        """Erase the bar, with the `^C` that the terminal echoes."""
        self._console.erase()

    def _note(self, code: str, text: str) -> None:
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self._say(code, text)
        elif self._notes == _MOST_NOTES + 1:
            self._say(code, "more notes on rows are not shown")

    def _say(self, code: str, text: str, *, word: str = "note", important: bool = True) -> None:
        self._console.note(code, text, word=word, important=important)

    def _text(self, tally: Tally) -> str:
        (start, then), (now, ended) = self._seen[0], self._seen[-1]
        rate = (ended - then) / (now - start) if now > start else 0.0
        left = f"   {describe_duration((self._rows - ended) / rate)} left" if rate else ""
        put_off = f"   not sent {tally.not_sent:,}" if tally.not_sent else ""
        counts = f"failed {tally.failed:,}   unknown {tally.unknown:,}{put_off}"
        speed = f"{rate:,.0f}" if rate >= _SLOW else f"{rate:.1f}"
        return f"{ended:,}/{self._rows:,}   {speed}/s{left}   {counts}"


def _describe(session: Session, entry: Entry) -> str:
    """Return the id and status in the reply, as text."""
    reply = read_reply((entry.settlement.reply or "").encode())
    pointers = session.service.pointers
    record = (
        make_record(reply.value, pointers=pointers, noun=CREATE_TRANSACTION.noun)
        if isinstance(reply, Document)
        else None
    )
    found = entry.record_id
    status = record.located.status if record else None
    return ", ".join(filter(None, (f"id {found}" if found else None, f"status {status}" if status else None)))
