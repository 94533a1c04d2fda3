"""The ports of a journal: where it is, its stored records, transactions on them, and locks between processes.

An adapter implements all of them and must pass the suite in `tests/storage`. Every method may raise
EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`; then nothing may be sent. Only the thread that opened a
storage may call it.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Protocol

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.journal.chain import ChainRecord, Head, Kind
from escrowctl.journal.fields import Facts
from escrowctl.journal.fold import TotalKey
from escrowctl.journal.model import Entry, Selection, State
from escrowctl.runtime import Clock


class CommitUnknownError(EscrowctlError):
    """`ErrorCode.JOURNAL_UNUSABLE`: a commit failed, and it is not known whether it is stored all the same."""

    def __init__(self, cause: EscrowctlError) -> None:
        outcome, facts, reason = cause.outcome, cause.facts, cause.reason
        super().__init__(cause.code, cause.message, outcome=outcome, effect=cause.effect, facts=facts, reason=reason)


class PlanRow(NamedTuple):
    """A row of a batch that is not sent yet. Row 0 describes the batch. `batch.plan` encodes the `content`."""

    batch: str
    row: int
    content: str


class Closing(NamedTuple):
    """What a closing record says: the id of the journal that took the place of this one, and where that is.

    `where` None: at the same place as this one.
    """

    successor: str
    where: str | None = None

    @classmethod
    def from_last(cls, record: ChainRecord | None) -> "Closing | None":
        """Return what the last record of a journal says if it closes the journal; else None."""
        if record is None or record.kind != Kind.CLOSING:
            return None
        facts = json.loads(record.facts)
        return cls(facts.get("successor", ""), facts.get("where"))

    @property
    def facts(self) -> dict[str, str]:
        """The facts of the closing record."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        """Return text for messages that begins with "journal"."""
        return f"journal {self.successor}{f' ({self.where})' if self.where else ''} took its place"


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
    """Locks between processes, by name. A lock ends with its process, however the process ends.

    A lock belongs to the object that took it: a second `hold`, here or elsewhere, fails until it is freed. Two names
    may share one lock (an adapter may hash them): one process then only waits for the other. Any thread may call the
    methods. Locks may also lapse while the process runs, for example if it was suspended, all at once and for good:
    `may_send` is then False. What was in flight is unknown to the others from then on, and they never send it again.
    """

    def hold(self, *names: str) -> bool:
        """Take all of these locks without waiting, or none: return False if one is held, here or by another process."""

    def free(self, *names: str) -> None:
        """Free locks that this object holds."""

    def is_held(self, name: str) -> bool:
        """Whether a running process has the lock."""

    def seconds_to_wait(self, name: str) -> float:
        """The seconds in which bytes may still arrive from the process that has, or last had, the lock. 0: none."""

    def may_send(self) -> bool:
        """Whether the locks have certainly not lapsed. It is asked just before the first byte of each write."""

    def close(self) -> None:
        """Free all locks."""


class Reading(Protocol):
    """A view of the journal at one moment. Until it ends, other processes may have to wait with their commits."""

    @property
    def head(self) -> Head:
        """The head of the chain, with the records of this transaction."""

    @property
    def closing(self) -> Closing | None:
        """The closing record, which is always the last one. None: the journal is open."""

    def contains(self, head: Head) -> bool:
        """Whether the chain had this head, or has it now."""

    def now(self) -> datetime:
        """Return the time in UTC by the storage's clock: the same at each call. It dates records and decides caps."""

    def check(self) -> None:
        """Raise `JOURNAL_UNUSABLE` if the last records are damaged."""

    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """Return the entries that have any of these duplicate keys (`fold.duplicate_keys`), newest first.

        The result is remembered: later questions about some of the keys are free.

        Raises `ErrorCode.JOURNAL_UNUSABLE` if the index of the keys does not match the entries.
        """

    def read_totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """Return the exact running totals of an operation and currency for the UTC day `since` and later days."""


class Transaction(Reading, Protocol):
    """One durable commit. No other process writes until it ends."""

    def append(self, number: int | None, kind: str, facts: Facts) -> Entry:
        """Append a record about an entry (None: a new one) to the chain, dated `now`, and return the updated entry."""

    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        """Append a record about the journal itself, dated `now`."""

    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        """Store rows of a batch's plan, without a mark. A stored row with the same number is replaced."""

    def remove_plan_row(self, batch: str, row: int) -> None:
        """Remove a row from a batch's plan."""


class Storage(Protocol):
    """One stored journal. Reads inside a transaction see the transaction's own writes."""

    @property
    def journal_id(self) -> str:
        """The journal's id, a UUID."""

    def reading(self) -> AbstractContextManager[Reading]:
        """Read at one moment during the `with` block. Nothing is written."""

    def transaction(self, keys: Collection[int] = ()) -> AbstractContextManager[Transaction]:
        """Commit the writes of the `with` block when it ends, all or none. They are then durable.

        `keys` are those that `Reading.find_by_keys` will be asked for: a storage may read them at once.
        Raises `CommitUnknownError` if the commit fails for any reason other than a lock. If it stays unknown whether
        it happened, all later commits of this object fail too.
        """

    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        """Mark up to `limit` rows of a plan with their sender, in a separate commit, and return them, in order.

        First, the marks of all senders that are not alive are removed. A row that is still marked is not taken.
        """

    def read_last_journal_kind(self) -> str | None:
        """Return the kind of the last record about the journal itself, or None if there is none."""

    def count_records(self) -> int:
        """Return the number of records, including damaged ones, but without the closing record."""

    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        """Return up to `limit` records, in order, with sequence numbers above `after`."""

    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        """Return the existing entries among these numbers, in order, with their history.

        Raises `JOURNAL_UNUSABLE` if the records do not match.
        """

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """Return the selected entries, newest first. `before`: only entries with a lower number than this."""

    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """Return up to `limit` rows of a batch's plan, in order, with row numbers above `after`."""

    def list_batches(self, *, imported: bool = False) -> list[PlanRow]:
        """Return row 0 of each batch, oldest batch first. Its content is "" if the batch's plan was lost.

        `imported`: the batches of other journals too, as far as their entries were imported.
        """

    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """Return up to `limit` entries of a batch, in order, with lines above `after`, without imported entries."""

    def sum_batch(self, batch: str) -> list[BatchSum]:
        """Return the counts and sums of a batch's entries, grouped by the fields of `BatchSum`."""

    def reopen(self) -> AbstractContextManager["Storage"]:
        """Open the journal a second time: for example to see whether a failed commit was stored."""

    def snapshot(self) -> AbstractContextManager["Storage"]:
        """Return a copy of the journal, taken at one moment, including any damage, for checks."""

    def find_damage(self) -> str | None:
        """Return the first problem of the storage or of the data derived from the records. None: no problem."""

    def close(self) -> None:
        """Close the journal."""


class JournalPlace(Protocol):
    """Where a journal is. `folder` has what stays on this machine, such as signing secrets. `is_shared`: other machines
    use the journal too, so it may have records although this machine has no saved head yet.
    """

    folder: Path
    is_shared: bool

    @property
    def head_path(self) -> Path:
        """The file on this machine with the saved head."""

    @property
    def location(self) -> str:
        """The location of the journal, for messages."""

    @property
    def exists(self) -> bool:
        """Whether the journal exists."""

    def find_id(self) -> str | None:
        """Return the id of the journal, in any format. None: there is no journal."""

    def open(self, *, now: Clock, reading: bool) -> tuple[Storage, Locks]:
        """Open the journal. If it is missing, it is created.

        `now` is the clock of a storage that has none. `reading`: a missing journal looks like an empty one, and
        nothing may be written.
        """

    def warn_of_locks(self) -> str | None:
        """Return a warning if locks may not be seen by all who use the journal. None: no problem is known."""


def describe_missing(place: JournalPlace) -> str:
    """Return that there is no journal at a place, for messages. A shared one is not created by writing to it."""
    if place.is_shared:
        return f"there is no journal {place.location} yet"
    return f"there is no journal yet: the first write creates {place.location}"


def head_of(storage: Storage) -> Head:
    """Return the head of a storage's chain. Raises `JOURNAL_UNUSABLE` if the last records are damaged."""
    with storage.reading() as view:
        view.check()
        return view.head


def unusable(location: str, problem: str, *, reason: str = Reason.FILE_UNUSABLE) -> EscrowctlError:
    """Return the error for a journal that cannot be used. `problem` ends the message."""
    message = f"the journal {location} cannot be used: {problem}."
    facts = {"folder": str(Path(location).parent)} if Path(location).is_absolute() else {}
    return not_sent(ErrorCode.JOURNAL_UNUSABLE, message, effect=Effect.NOTHING_SENT_NOW, facts=facts, reason=reason)


def damaged(location: str, problem: str) -> EscrowctlError:
    """Return the error for a damaged journal. `problem` ends the message."""
    return unusable(location, f"it is damaged: {problem}", reason=Reason.DAMAGED)
