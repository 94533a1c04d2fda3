"""Decide when a run ends early: if the next rows would fail too, or if a created record differs from its row."""

from escrowctl.batch.claimants import RunState, note_ended
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import outcome_of
from escrowctl.client.http import THROTTLED_STATUSES, Fault
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.model import KEY_REFUSED_STATUSES, Entry

_RUN_ENDING_CODES = (ErrorCode.CAPPED, ErrorCode.NOT_AUTHENTICATED, ErrorCode.FORBIDDEN, ErrorCode.DEFECT)
"""Codes of errors that keep all the next rows from being sent."""

_ROW_ONLY_CODES = (
    ErrorCode.ALREADY_DONE,
    ErrorCode.CONFLICT,
    ErrorCode.EARLIER_UNKNOWN,
    ErrorCode.EXPECTATION_FAILED,
    ErrorCode.REFERENCE_REUSED,
)
"""Codes of errors that concern only one row. They never end a run: the next rows may succeed."""


class HaltRules:
    """Decides after each row whether the run goes on. `reason` says why the run must end; empty: it goes on.

    `canary_passed`: a row is done. Until then, rows are sent one at a time. `ended` has the rows that have ended since
    `known`, the state of the run, was stored: pairs of the kind of failure ("": done) and its detail.
    """

    def __init__(self, pace: Pace, known: RunState) -> None:
        self._pace = pace
        self.known = known
        self.canary_passed = known.first_sender is None
        self.ended: list[tuple[str, str]] = []
        self.reason = ""

    def check_reply(self, line: int, entry: Entry, fault: Fault | None = None) -> None:
        """Set `reason` if the reply to the row on `line`, as judged in `entry`, must end the run at once."""
        settlement = entry.settlement
        if fault is Fault.MISDIRECTED:
            self.halt(f"line {line}: {settlement.detail}")
        elif settlement.http_status in KEY_REFUSED_STATUSES:
            self.halt(f"the service refused the API key: {settlement.detail}")
        elif settlement.remark is not None and entry.intent.has_no_id:
            self.halt(f"line {line}: {settlement.result_id} was created, but {settlement.remark}")

    def check_outcome(self, line: int, entry: Entry) -> None:
        """Set `reason` if the final outcome of the row on `line`, recorded in `entry`, must end the run."""
        settlement, outcome = entry.settlement, outcome_of(entry)
        self.check_reply(line, entry)
        if outcome is Outcome.DONE:
            self.canary_passed = True
            self._note_ended("", "")
        elif not self.canary_passed:
            self.halt(f"the first row of this run (line {line}) is {outcome.label}: {settlement.detail}")
        elif self._pace.must_give_up:
            asked = self._pace.too_long_wait
            wish = f"asks to wait {asked:.0f} s" if asked is not None else "refuses every row for now"
            self.halt(f"the service {wish}: {settlement.detail}")
        elif settlement.http_status not in THROTTLED_STATUSES:
            self._note_ended(f"{outcome} {settlement.http_status}", settlement.detail)

    def check_unsent(self, line: int, error: EscrowctlError) -> None:
        """Set `reason` if `error`, which kept the row on `line` from being sent, must end the run."""
        why = error.message.rstrip(".")
        if error.code in _RUN_ENDING_CODES:
            self.halt(f"line {line}: {why}")
        elif error.code not in _ROW_ONLY_CODES:
            self._note_ended(error.code.value, why)

    def halt(self, why: str) -> None:
        """Set the reason to end the run, unless there is one already."""
        self.reason = self.reason or why

    def _note_ended(self, kind: str, detail: str) -> None:
        self.ended.append((kind, detail))
        self.halt(note_ended(self.known, self.ended).halted)
