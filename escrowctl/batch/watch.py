"""The reports of a run: its progress, and how it ended."""

from typing import NamedTuple, Protocol

from escrowctl.batch.plan import Outcomes
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.model import Entry


class Tally(NamedTuple):
    """The number of rows of this run so far, by outcome."""

    done: int = 0
    failed: int = 0
    unknown: int = 0
    not_sent: int = 0

    @property
    def ended(self) -> int:
        """How many rows have an outcome."""
        return self.done + self.failed + self.unknown + self.not_sent


class Watch(Protocol):
    """Receives the reports of a run."""

    def show_canary(self, line: int, entry: Entry, *, goes_on: bool) -> None:
        """The first row of the run is done; `goes_on`: others follow."""

    def show_progress(self, tally: Tally) -> None:
        """Some time has passed."""

    def show_stopping(self, sending: int) -> None:
        """A signal came: no more rows are sent; escrowctl waits for the `sending` rows in progress."""

    def note_unsent(self, line: int, error: EscrowctlError, outcome: Outcomes) -> None:
        """A row was not sent now, because of the journal or its record; `outcome` may be that of an earlier attempt."""

    def note_unrecorded(self, line: int, error: EscrowctlError) -> None:
        """The outcome of a row that was begun could not be recorded."""

    def note_remark(self, line: int, entry: Entry, remark: str) -> None:
        """A row is done, with a remark: for example, its record differs from the request or does not confirm it."""

    def note_defect(self, name: str, frames: str) -> None:
        """An internal error at a row, whose outcome is still recorded: the error's name, and its traceback."""


class Ending(NamedTuple):
    """How a run ended: by itself, by a signal (`stopped`), or because the rest would fail too (`halted`)."""

    stopped: ErrorCode | None = None
    halted: str = ""
