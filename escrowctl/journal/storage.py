"""The ports of a journal: its stored records, transactions on them, and locks that show which process is alive.

An adapter implements all three and must pass the suite in `tests/storage`. Every method may raise
EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`; then nothing may be sent. Only the thread that opened a
storage may call it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import NamedTuple, Protocol

from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.chain import EMPTY, Head, Kind, Link
from escrowctl.journal.fields import Facts
from escrowctl.journal.model import Entry, PlanRow, Selection, State
from escrowctl.journal.reasons import Reason

LockKey = int | str
"""The key of a lock: an entry's number, or a name for anything else."""


class TotalKey(NamedTuple):
    """The writes in a running total: of one operation and currency, at one service, counted on one UTC day."""

    operation: str
    currency: str
    day: str
    service: str
    site: str


class BatchSum(NamedTuple):
    """The number of a batch's rows with entries in one stored state and one currency (None: unknown).

    `amount` is their exact sum. For refusals, `http_status` and `may_repeat` come from the settlement.
    `has_remark`: done, but not as requested. `is_unread`: a once-only write is done, but no reading has confirmed it.
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
    """Locks between processes. A lock ends with its process, however the process ends."""

    def hold(self, key: LockKey) -> bool:
        """Take a lock without waiting. Return False if another process or another thread has it."""

    def free(self, key: LockKey) -> None:
        """Free a lock."""

    def is_held(self, key: LockKey) -> bool:
        """Whether a running process has the lock."""

    def close(self) -> None:
        """Free all locks."""


class Transaction(Protocol):
    """One durable commit. No other process writes until it ends."""

    @property
    def head(self) -> Head:
        """The end of the chain."""

    def check(self) -> None:
        """Raise `ErrorCode.JOURNAL_UNUSABLE` if the last records are damaged or `Storage.find_lost` finds a problem."""

    def find(self, number: int) -> Entry | None:
        """Return an entry with its history. Raises `ErrorCode.JOURNAL_UNUSABLE` if it does not match its records."""

    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """Return the entries under any of these duplicate keys (`fold.duplicate_keys`), newest first.

        Raises `ErrorCode.JOURNAL_UNUSABLE` if an entry may be missing.
        """

    def totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """Return the exact running totals of an operation and currency from a UTC day on."""

    def next_number(self) -> int:
        """Return the number of the next new entry."""

    def append(self, number: int, kind: Kind, facts: Facts, *, at: str) -> Entry:
        """Append a record to the chain, and return the updated entry."""

    @property
    def successor(self) -> str | None:
        """The id of the journal that replaced this one, from the closing record. None: this journal is not closed."""

    def note(self, kind: Kind, facts: Mapping[str, str], *, at: str) -> None:
        """Append a record about the journal itself (`chain.JOURNAL_KINDS`). A closing one is not saved as the head."""

    def plan(self, rows: Iterable[PlanRow]) -> None:
        """Store rows of a batch that are not sent yet. Replaces rows that are already stored."""

    def unplan(self, batch: str, row: int) -> None:
        """Remove a row of a batch's plan."""


class Storage(Protocol):
    """One journal. Reads inside a transaction see the transaction's own writes."""

    @property
    def journal_id(self) -> str:
        """The journal's own id."""

    @property
    def where(self) -> str:
        """Its location, for messages."""

    @property
    def is_there(self) -> bool:
        """Whether it exists; the first write creates it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commit the block's writes, all or none. They are durable before the next line runs.

        If a commit fails for any reason other than a lock, all later commits fail too.
        """

    def last(self) -> Link | None:
        """Return the last record. Raises `ErrorCode.JOURNAL_UNUSABLE` if it is damaged."""

    def last_note(self) -> Kind | None:
        """Return the kind of the last record about the journal itself."""

    def records(self, *, after: int, limit: int) -> list[Link]:
        """Return up to `limit` records after a sequence number, in order."""

    def entries(self, numbers: Collection[int]) -> list[Entry]:
        """Return the existing entries among these numbers, in order, with their history."""

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """Return the newest entries of a selection, newest first. `before`: only entries with a lower number."""

    def planned(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """Return up to `limit` rows of a batch's plan after a row, in order."""

    def batches(self) -> list[PlanRow]:
        """Return row 0 of each batch, oldest batch first. The row is empty if the batch's plan was lost."""

    def in_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """Return up to `limit` entries of a batch after a line, by line, without imported entries."""

    def created(self, result_ids: Collection[str]) -> list[Entry]:
        """Return the entries with one of these ids as their result, including imported entries."""

    def add_up(self, batch: str) -> list[BatchSum]:
        """Return the counts and sums of a batch's entries, grouped by the fields of `BatchSum`."""

    def reopened(self) -> AbstractContextManager["Storage"]:
        """Open the journal again to read, for example to find out if a failed commit was stored."""

    def snapshot(self) -> AbstractContextManager["Storage"]:
        """Copy the journal at one moment, including any damage, to check the copy."""

    def contradiction(self, head: Head) -> str | None:
        """Return how the chain contradicts one of its earlier heads. None: the chain contains it."""

    def find_lost(self) -> str | None:
        """Return how the chain contradicts the separately saved head, or why that head is unusable. None: neither."""

    def require_complete(self) -> None:
        """Raise `ErrorCode.JOURNAL_UNUSABLE` if the journal is gone or contradicts its saved head: it is incomplete."""

    def find_damage(self) -> str | None:
        """Return the first problem of the storage itself or of the data derived from the records. None: no problem."""

    def close(self) -> None:
        """Close it."""


@contextmanager
def writing(storage: Storage) -> Iterator[Transaction]:
    """Open a transaction to write. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the journal is closed."""
    with storage.transaction() as transaction:
        if transaction.successor is not None:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"the journal {storage.where} is closed: journal {transaction.successor} took its place.",
                reason=Reason.CLOSED,
            )
        yield transaction


def head_of(storage: Storage) -> Head:
    """Return the end of a storage's chain."""
    last = storage.last()
    return last.head if last else EMPTY
