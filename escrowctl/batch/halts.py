"""Decide when a run ends early: the other rows would fail too, or the service created something else."""

from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import outcome_of
from escrowctl.client.http import THROTTLED
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.model import KEY_REFUSED, Entry

EQUAL_FAILURES = 5
"""After so many consecutive rows with the same failure, the run ends: the others would fail too."""

_ENDS_ALL = (ErrorCode.CAPPED, ErrorCode.NOT_AUTHENTICATED, ErrorCode.FORBIDDEN, ErrorCode.DEFECT)
"""Reasons not to send a row that also apply to all others."""

_OF_ONE_ROW = (
    ErrorCode.ALREADY_DONE,
    ErrorCode.CONFLICT,
    ErrorCode.EARLIER_UNKNOWN,
    ErrorCode.EXPECTATION_FAILED,
    ErrorCode.REFERENCE_REUSED,
)
"""Reasons that say nothing about later rows: a run that they ended could never get past such rows."""


class Halts:
    """Watches how rows end. `why`: the reason to end the run, empty while it goes on.

    The first row goes alone: until one is done, `canary_passed` is False.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._alike: tuple[object, int] = (None, 0)
        self.canary_passed = False
        self.why = ""

    def weigh(self, line: int, entry: Entry) -> None:
        """Decide whether the run goes on after a row that has ended."""
        settlement, outcome = entry.settlement, outcome_of(entry)
        if outcome is Outcome.DONE:
            self.canary_passed, self._alike = True, (None, 0)
            if settlement.remark is not None and entry.intent.has_no_id:
                self.halt(f"line {line}: {settlement.result_id} was created, but {settlement.remark}")
        elif settlement.http_status in KEY_REFUSED:
            self.halt(f"the service refused the API key: {settlement.detail}")
        elif not self.canary_passed:
            self.halt(f"the first row of this run (line {line}) is {outcome.words}: {settlement.detail}")
        elif self._pace.is_hopeless:
            asked = self._pace.asked_too_much
            wish = f"asks to wait {asked:.0f} s" if asked is not None else "refuses every row for now"
            self.halt(f"the service {wish}: {settlement.detail}")
        elif settlement.http_status not in THROTTLED:
            self._count_alike((outcome, settlement.http_status), settlement.detail)

    def weigh_unsent(self, line: int, error: EscrowctlError) -> None:
        """Decide whether the run goes on after a row that cannot be sent."""
        why = error.message.rstrip(".")
        if error.code in _ENDS_ALL:
            self.halt(f"line {line}: {why}")
        elif error.code not in _OF_ONE_ROW:
            self._count_alike(error.code, why)

    def halt(self, why: str) -> None:
        """End the run, unless it ends already."""
        self.why = self.why or why

    def _count_alike(self, kind: object, detail: str) -> None:
        self._alike = (kind, self._alike[1] + 1 if self._alike[0] == kind else 1)
        if self._alike[1] >= EQUAL_FAILURES:
            self.halt(f"the last {EQUAL_FAILURES} rows ended alike: {detail}")
