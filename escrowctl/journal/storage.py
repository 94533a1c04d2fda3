"""The ports of a journal: its stored records, transactions on them, and locks that show whether a process runs.

An adapter implements all three and must pass the suite in `tests/storage`. Every method may raise
EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`; then nothing may be sent. Only the thread that opened a
storage may call it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from escrowctl.journal.chain import EMPTY_HEAD, ChainRecord, Head
from escrowctl.journal.fields import Facts
from escrowctl.journal.fold import TotalKey
from escrowctl.journal.model import Entry, Selection, State


class PlanRow(NamedTuple):
    """A row of a batch that is not sent yet. Row 0 describes the batch. `batch.plan` encodes the `content`."""

    batch: str
    row: int
    content: str


class BatchSum(NamedTuple):
    """The number (`rows`) and exact sum of a batch's rows that have the same values in all other fields.

    `state` is the stored state. `currency` None: not known. `http_status` and `may_repeat` are set only for refused
    writes. `has_remark`: done, but not as requested. `is_unread`: done and once-only, but no read has confirmed it.
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
    """Locks between processes, by name. A lock ends with its process, however the process ends."""

    def hold(self, name: str) -> bool:
        """Take a lock without waiting. Return False if it is held already, here or by another process."""

    def free(self, name: str) -> None:
        """Free a lock that this object holds."""

    def is_held(self, name: str) -> bool:
        """Whether a running process has the lock."""

    def close(self) -> None:
        """Free all locks."""


class Transaction(Protocol):
    """One durable commit. No other process writes until it ends."""

    @property
    def head(self) -> Head:
        """The head of the chain, with the records of this transaction."""

    def now(self) -> datetime:
        """Return the time in UTC by the storage's clock. It dates records and decides on which day caps count them."""

    def check(self) -> None:
        """Raise `JOURNAL_UNUSABLE` if the last records are damaged or `Storage.find_head_problem` finds a problem."""

    def find(self, number: int) -> Entry | None:
        """Return an entry with its history, or None. Raises `JOURNAL_UNUSABLE` if the records do not match."""

    def expect_keys(self, keys: Collection[int]) -> None:
        """Read together what `find_by_keys` will need for these keys: one question costs less than many."""

    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """Return the entries that have any of these duplicate keys (`fold.duplicate_keys`), newest first.

        Raises `ErrorCode.JOURNAL_UNUSABLE` if the index of the keys does not match the entries.
        """

    def read_totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """Return the exact running totals of an operation and currency for the UTC day `since` and later days."""

    def next_number(self) -> int:
        """Return the number of the next new entry."""

    def append(self, number: int, kind: str, facts: Facts) -> Entry:
        """Append a record about an entry to the chain, dated `now`, and return the updated entry."""

    @property
    def successor_id(self) -> str | None:
        """The id of the journal that replaced this one, from the closing record. None: no closing record."""

    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        """Append a record about the journal itself, dated `now`. A closing record does not change the saved head."""

    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        """Store rows of a batch's plan. A stored row with the same number gets the new content, and keeps its mark."""

    def remove_plan_row(self, batch: str, row: int) -> None:
        """Remove a row from a batch's plan."""

    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        """Mark up to `limit` rows of a plan with their sender, and return them, in order. A marked row is not taken.

        First, the marks of all senders that are not alive are removed.
        """


class Storage(Protocol):
    """One stored journal. Reads inside a transaction see the transaction's own writes."""

    @property
    def journal_id(self) -> str:
        """The journal's id, a UUID."""

    @property
    def location(self) -> str:
        """The location of the journal, for messages."""

    @property
    def exists(self) -> bool:
        """Whether the journal exists. The first write creates it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Commit the writes of the `with` block when it ends, all or none. They are then durable.

        If a commit fails for any reason other than a lock, all later commits of this object fail too.
        """

    def read_last(self) -> ChainRecord | None:
        """Return the last record, or None. Raises `ErrorCode.JOURNAL_UNUSABLE` if it is damaged."""

    def read_last_journal_kind(self) -> str | None:
        """Return the kind of the last record about the journal itself, or None if there is none."""

    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        """Return up to `limit` records, in order, with sequence numbers above `after`."""

    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        """Return the existing entries among these numbers, in order, with their history."""

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """Return the selected entries, newest first. `before`: only entries with a lower number than this."""

    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """Return up to `limit` rows of a batch's plan, in order, with row numbers above `after`."""

    def list_batches(self) -> list[PlanRow]:
        """Return row 0 of each batch, oldest batch first. Its content is "" if the batch's plan was lost."""

    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """Return up to `limit` entries of a batch, in order, with lines above `after`, without imported entries."""

    def find_created(self, result_ids: Collection[str]) -> list[Entry]:
        """Return the entries whose result id is one of these ids, including imported entries."""

    def sum_batch(self, batch: str) -> list[BatchSum]:
        """Return the counts and sums of a batch's entries, grouped by the fields of `BatchSum`."""

    def reopen(self) -> AbstractContextManager["Storage"]:
        """Open the journal a second time, for reading: for example to see whether a failed commit was stored."""

    def snapshot(self) -> AbstractContextManager["Storage"]:
        """Return a copy of the journal, taken at one moment, including any damage, for checks."""

    def find_mismatch(self, head: Head) -> str | None:
        """Return the problem if the chain does not contain `head`, which it should contain. None: no problem."""

    def find_head_problem(self) -> str | None:
        """Return the problem if the saved head is unusable or the chain contradicts it. None: no problem."""

    def require_complete(self) -> None:
        """Raise `JOURNAL_UNUSABLE` if the journal is missing, contradicts its saved head, or has a damaged end."""

    def find_damage(self) -> str | None:
        """Return the first problem of the storage or of the data derived from the records. None: no problem."""

    def close(self) -> None:
        """Close the journal."""


def head_of(storage: Storage) -> Head:
    """Return the head of a storage's chain."""
    last = storage.read_last()
    return last.head if last else EMPTY_HEAD
