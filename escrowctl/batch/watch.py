"""What a run tells while it goes on, and how it ended."""

from typing import NamedTuple, Protocol

from escrowctl.batch.plan import Outcomes
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.model import Entry


class Tally(NamedTuple):
    """What this run has come to so far."""

    done: int = 0
    failed: int = 0
    unknown: int = 0
    not_sent: int = 0

    @property
    def ended(self) -> int:
        """How many rows have an outcome."""
        return self.done + self.failed + self.unknown + self.not_sent


class Watch(Protocol):
    """What a run reports to."""

    def show_canary(self, line: int, entry: Entry, *, goes_on: bool) -> None:
        """The first row of the run is done; `goes_on`: others follow."""

    def show_progress(self, tally: Tally) -> None:
        """Some time has passed."""

    def show_stopping(self, sending: int) -> None:
        """A signal came: no more rows go out, and these are waited for."""

    def note_unsent(self, line: int, error: EscrowctlError, outcome: Outcomes) -> None:
        """A row was not sent now, because of what is known here or was read of it; what it is nevertheless."""

    def note_unrecorded(self, line: int, error: EscrowctlError) -> None:
        """What became of a row that was begun could not be recorded."""

    def note_remark(self, line: int, entry: Entry, remark: str) -> None:
        """A row is done, but not quite what was asked for."""

    def note_defect(self, name: str, frames: str) -> None:
        """Escrowctl itself failed at a row, which is accounted for: the error's name, and where it was raised."""


class Ending(NamedTuple):
    """How a run ended: by itself, by a signal (`stopped`), or because the rest would fail too (`halted`)."""

    stopped: ErrorCode | None = None
    halted: str = ""
