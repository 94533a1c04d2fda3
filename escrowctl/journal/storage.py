"""The ports of a journal: where its records are stored, and what says which process is alive.

An adapter implements all three; `tests/storage` holds the suite that each must pass. Every method may
raise EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`; then nothing may be sent. One thread calls a storage:
the one that opened it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import NamedTuple, Protocol

from escrowctl.errors import ErrorCode, command, not_sent
from escrowctl.journal.chain import EMPTY, Head, Kind, Link
from escrowctl.journal.fields import Facts
from escrowctl.journal.model import Entry, PlanRow, Selection, State

LockKey = int | str
"""What a lock is about: an entry by its number, anything else by a name."""


class TotalKey(NamedTuple):
    """What a running total adds up: writes of one operation and currency at one service, counted on one UTC day."""

    operation: str
    currency: str
    day: str
    service: str
    site: str


class Total(NamedTuple):
    """A running total; `amount` is exact."""

    key: TotalKey
    amount: Decimal


class BatchSum(NamedTuple):
    """How many rows of a batch have entries in one stored state, in one currency (None: unknown).

    `amount` is their exact sum. Of refusals, `http_status` and `may_repeat` are those of the settlement;
    `has_remark`: they are done, but not as asked. `is_unread`: no reading has confirmed what is done only once.
    """

    state: State
    currency: str | None
    http_status: int | None
    may_repeat: bool
    has_remark: bool
    is_unread: bool
    rows: int
    amount: Decimal


class Locks(Protocol):
    """Locks between processes that end with their holder, however it ends."""

    def hold(self, key: LockKey) -> bool:
        """Take a lock without waiting; False where another process, or another thread, has it."""

    def free(self, key: LockKey) -> None:
        """Give a lock back."""

    def is_held(self, key: LockKey) -> bool:
        """Whether anyone alive has it."""

    def close(self) -> None:
        """Give everything back."""


class Transaction(Protocol):
    """Everything inside one durable commit; no other process writes meanwhile."""

    @property
    def head(self) -> Head:
        """Where the chain ends."""

    def check(self) -> None:
        """Raise where the last records are damaged, or the journal is older than it was."""

    def find(self, number: int) -> Entry | None:
        """Return an entry with its history; raises where it is not what its records make of it."""

    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """Return the entries under any of these duplicate keys (`fold.duplicate_keys`), newest first.

        Raises where an entry may be missing.
        """

    def totals(self, operation: str, currency: str, *, since: str) -> list[Total]:
        """Return the running totals from a UTC day on."""

    def next_number(self) -> int:
        """Return the number of the next new entry."""

    def append(self, number: int, kind: Kind, facts: Facts, *, at: str) -> Entry:
        """Append a record to the chain, and return the entry that its records now make."""

    @property
    def successor(self) -> str | None:
        """The id of the journal that a closing record names; None: this journal is not closed."""

    def note(self, kind: Kind, facts: Mapping[str, str], *, at: str) -> None:
        """Append a record about the journal itself, one of `chain.JOURNAL_KINDS`. A closing one moves no saved head."""

    def plan(self, rows: Iterable[PlanRow]) -> None:
        """Store rows of a batch that are not sent yet; a row that is stored already is replaced."""

    def unplan(self, batch: str, row: int) -> None:
        """Remove a row of a batch's plan."""


class Storage(Protocol):
    """One journal. What is read inside a transaction shows what the transaction has written."""

    @property
    def journal_id(self) -> str:
        """The journal's own id."""

    @property
    def where(self) -> str:
        """Where it is stored, for messages."""

    @property
    def is_there(self) -> bool:
        """Whether it exists; the first write creates it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commit what the block does, durably, before the next line runs; or nothing of it.

        After a commit that failed for another reason than a lock, no further one succeeds.
        """

    def last(self) -> Link | None:
        """Return the last record; raises where it is damaged."""

    def last_note(self) -> Kind | None:
        """Return the kind of the last record about the journal itself."""

    def records(self, *, after: int, limit: int) -> list[Link]:
        """Return up to `limit` records in order, those after a sequence."""

    def entries(self, numbers: Collection[int]) -> list[Entry]:
        """Return these entries with their history, by number; those that do not exist are left out."""

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """Return the newest entries of a selection, newest first; `before`: only those with a lower number."""

    def planned(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """Return up to `limit` rows of a batch's plan in order, those after a row."""

    def batches(self) -> list[PlanRow]:
        """Return row 0 of each batch, oldest first; of one whose plan was lost, an empty row."""

    def in_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """Return up to `limit` entries of a batch by line, those after a line; imported ones are left out."""

    def created(self, result_ids: Collection[str]) -> list[Entry]:
        """Return the entries with one of these ids as their result; imported ones are among them."""

    def add_up(self, batch: str) -> list[BatchSum]:
        """Return how many entries of a batch are stored in each state, and what they add up to."""

    def reopened(self) -> AbstractContextManager["Storage"]:
        """Open the journal anew, to read: what is stored after a commit that failed."""

    def snapshot(self) -> AbstractContextManager["Storage"]:
        """Copy the journal at one moment, damage included, to be checked."""

    def contradiction(self, head: Head) -> str | None:
        """Return in what the chain contradicts one of its earlier heads; None where it contains it."""

    def find_lost(self) -> str | None:
        """Return in what the chain contradicts the head that was saved apart from it; None where it does not."""

    def require_complete(self) -> None:
        """Raise where the journal is gone, or contradicts its saved head: what it lists is not everything."""

    def find_damage(self) -> str | None:
        """Return what is wrong with the storage itself and with what it derives from the records."""

    def close(self) -> None:
        """Close it."""


@contextmanager
def writing(storage: Storage) -> Iterator[Transaction]:
    """Do as `Storage.transaction`; raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the journal is closed."""
    with storage.transaction() as transaction:
        if transaction.successor is not None:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"the journal {storage.where} is closed: journal {transaction.successor} took its place.",
                hint=command("journal init --from NEWEST_EXPORT --yes", "if that journal was not put in its place"),
            )
        yield transaction


def head_of(storage: Storage) -> Head:
    """Return where a storage's chain ends."""
    last = storage.last()
    return last.head if last else EMPTY
