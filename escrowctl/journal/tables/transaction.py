"""One transaction on the journal's tables: append records, and update the data derived from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property
from itertools import islice

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import compute_total_changes
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, ChainRecord, Head, Kind
from escrowctl.journal.fields import QUERIED_FIELDS, Facts
from escrowctl.journal.fold import StoredEntry, TotalKey, add_record, next_record
from escrowctl.journal.model import Entry
from escrowctl.journal.storage import Closing, PlanRow, damaged
from escrowctl.journal.tables.database import Database, placeholders, translate_errors
from escrowctl.journal.tables.reading import Tail, read_entries, read_records
from escrowctl.runtime import Clock, timestamp

_COLUMNS = (*QUERIED_FIELDS, "records", "counted_on", "latest")
_STORE_RECORDS = "INSERT INTO main.records VALUES {}"
_STORE_ENTRIES = (
    "INSERT INTO main.entries VALUES {} ON CONFLICT (number) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}"
)
_STORE_KEYS, _REMOVE_KEYS = "INSERT INTO main.keys VALUES {}", "DELETE FROM main.keys WHERE (key, entry) IN (VALUES {})"
_REMOVE_PLAN_ROWS = "DELETE FROM main.plans WHERE (batch, row) IN (VALUES {})"
_STORE_PLAN_ROWS = (
    "INSERT INTO main.plans (batch, row, content) VALUES {} "
    "ON CONFLICT (batch, row) DO UPDATE SET content = excluded.content, sender = NULL"
)
_STORE_TOTALS = (
    "INSERT INTO main.totals VALUES {} "
    "ON CONFLICT (operation, currency, day, service, site) DO UPDATE SET amount = excluded.amount"
)
SELECT_KEYS = "SELECT key, entry FROM main.keys WHERE key IN ({})"
_MAX_ROWS, _MAX_VALUES = 40, 900
"""The most rows and values in one statement: SQLite may take no more than 999 values (sqlite.org/limits.html, 9)."""
_IS_TOTAL = "operation = ? AND currency = ? AND day = ? AND service = ? AND site = ?"
MAX_CACHED = 2000
"""The most cached entries. After as many records of other processes, a new transaction begins without the cache."""


class TableTransaction:
    """One transaction on a database; see `storage.Transaction`. `tail` is the end of the journal, `now` the clock.

    It caches the entries that it has read or written: no other process can change them meanwhile. It reuses the
    cache of `previous`, the last transaction of this storage, without the entries that others have changed since.
    `since` has up to `MAX_CACHED` records from its head on; None: they are not read yet.
    """

    def __init__(
        self,
        database: Database,
        tail: Tail,
        now: Clock,
        previous: TableTransaction | None = None,
        since: Sequence[ChainRecord] | None = None,
    ) -> None:
        self._db = database
        self.now = cache(now)
        """See `storage.Reading`."""
        self._tail = tail
        self.head, self.latest = self._tail.head, self._tail.latest
        self.continues = previous is not None and previous.head == self.head
        self._contained = {EMPTY_HEAD, self.head}
        """Heads that the chain is known to have had."""
        self.cached = self._find_unchanged(previous, since) if previous is not None else dict[int, StoredEntry]()
        self._records: list[ChainRecord] = []
        self._changed: set[int] = set()
        self._index: dict[int, list[int]] = {}
        self._removed_keys: set[tuple[int, int]] = set()
        self._added_keys: set[tuple[int, int]] = set()
        self._total_changes = dict[TotalKey, Decimal]()
        self._totals = dict[tuple[str, str, str], dict[TotalKey, Decimal]]()
        self._unplanned: list[tuple[str, int]] = []
        self._last_entry = self._tail.last_entry
        self.begun: set[int] = set()
        """The entries with an intent that it records: their writes are then sent."""
        self.plans_rows = False
        """Whether it stores rows of a plan: others may have sent those of a process whose locks have lapsed."""

    def _find_unchanged(
        self, previous: TableTransaction, since: Sequence[ChainRecord] | None
    ) -> dict[int, StoredEntry]:
        """Return the cached entries of an earlier transaction that have no record since."""
        if self.continues:
            return previous.cached
        if since is None:
            since = read_records(self._db, after=previous.head.sequence - 1, limit=MAX_CACHED)
        self._contained |= {record.head for record in since}
        if len(since) == MAX_CACHED or not since or since[0].head != previous.head:
            return {}
        changed = {record.entry for record in since[1:]}
        return {number: entry for number, entry in previous.cached.items() if number not in changed}

    @translate_errors
    def contains(self, head: Head) -> bool:
        """See `storage.Reading`."""
        if head in self._contained:
            return True
        self.flush()
        return [one.head for one in read_records(self._db, after=head.sequence - 1, limit=1)] == [head]

    @cached_property
    def _timestamp(self) -> str:
        return timestamp(self.now())

    @translate_errors
    def check(self) -> None:
        """See `storage.Transaction`."""
        if damage := self._tail.damage:
            raise damaged(self._db.location, damage)

    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        """See `storage.Storage`."""
        return [found.entry for _, found in sorted(self._read_stored_entries(numbers).items())]

    @translate_errors
    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """See `storage.Transaction`. An entry that the index lists under a key must have that key."""
        added = {(key, number) for key, number in self._added_keys if key in keys}
        pairs = (self._read_index(keys) - self._removed_keys) | added
        found = self._read_stored_entries({number for _, number in pairs})
        for key, number in pairs:
            if number not in found or key not in found[number].keys:
                problem = f"its duplicate index lists entry j{number}, which is missing or different"
                raise damaged(self._db.location, problem)
        return [found[number].entry for number in sorted(found, reverse=True)]

    @translate_errors
    def read_totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """See `storage.Transaction`."""
        wanted = operation, currency, since
        if wanted not in self._totals:
            self.flush()
            self._totals[wanted] = self._read_totals("operation = ? AND currency = ? AND day >= ?", wanted)
        changes = {key: one for key, one in self._total_changes.items() if key[:2] == wanted[:2] and key[2] >= since}
        return _add(self._totals[wanted], changes)

    @translate_errors
    def append(self, number: int | None, kind: str, facts: Facts) -> Entry:
        """See `storage.Transaction`."""
        number = number or self._last_entry + 1
        if kind == Kind.INTENT:
            self.begun.add(number)
        else:
            self.begun.discard(number)
        record = next_record(self.head, number, kind, facts, at=self._timestamp)
        before = self._read_stored_entries([number]).get(number)
        after = add_record(before, record, latest=self.latest, facts=facts)
        self._records.append(record)
        self._changed.add(number)
        old = before.keys if before else frozenset()
        lost = {(key, number) for key in old - after.keys}
        new = {(key, number) for key in after.keys - old}
        self._removed_keys |= lost - self._added_keys
        self._added_keys -= lost
        self._added_keys |= new - self._removed_keys
        self._removed_keys -= new
        self._total_changes = _add(self._total_changes, compute_total_changes(before, after))
        self.cached[number] = after
        if len(self.cached) > MAX_CACHED:
            self.flush()
            self.cached.clear()
        self.head, self.latest = record.head, after.latest
        self._last_entry = max(self._last_entry, number)
        if len(self._records) >= _MAX_ROWS:  # an engine may store these while the next are made
            self._store_records()
        return after.entry

    @property
    @translate_errors
    def closing(self) -> Closing | None:
        """See `storage.Reading`."""
        return Closing.from_last(self._tail.records[0] if self._tail.records else None)

    @translate_errors
    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        """See `storage.Transaction`."""
        record = next_record(self.head, NO_ENTRY, kind, dict(facts), at=max(self.latest, self._timestamp))
        self._records.append(record)
        self.head, self.latest = record.head, record.at

    @translate_errors
    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        """See `storage.Transaction`."""
        self.flush()
        self.plans_rows = True
        self._send_all(_for_all(_STORE_PLAN_ROWS, rows))

    @translate_errors
    def remove_plan_row(self, batch: str, row: int) -> None:
        """See `storage.Transaction`."""
        self._unplanned.append((batch, row))

    @property
    def has_records(self) -> bool:
        """Whether it appends records."""
        return self.head != self._tail.head

    @translate_errors
    def flush(self) -> None:
        """Write all pending changes together: many records then cost little more than one.

        What fails stays pending: then the transaction cannot end, even if the error was ignored.
        """
        old = {key: self._read_totals(_IS_TOTAL, key).values() for key in self._total_changes}
        totals = [(*key, str(sum_exactly((*old[key], change)))) for key, change in self._total_changes.items()]
        self._send_all(_for_all(_REMOVE_PLAN_ROWS, self._unplanned))
        self._store_records()
        self._send_all(_for_all(_REMOVE_KEYS, sorted(self._removed_keys)))
        self._send_all(_for_all(_STORE_KEYS, sorted(self._added_keys)))
        self._send_all(_for_all(_STORE_TOTALS, totals))
        if self._removed_keys or self._added_keys:
            self._index.clear()
        if self._total_changes:
            self._totals.clear()
        for pending in (self._unplanned, self._removed_keys, self._added_keys, self._total_changes):
            pending.clear()

    def _store_records(self) -> None:
        """Write the pending records and their entries."""
        records = [(*one[:-1], bytes.fromhex(one.digest)) for one in self._records]
        self._send_all(_for_all(_STORE_RECORDS, records))
        entries = [(number, *self.cached[number].row) for number in sorted(self._changed)]
        self._send_all(_for_all(_STORE_ENTRIES, entries))
        self._records.clear()
        self._changed.clear()

    def _send_all(self, statements: Iterable[tuple[str, Sequence[object]]]) -> None:
        for statement, values in statements:
            self._db.send(statement, values)

    def _read_stored_entries(self, numbers: Collection[int]) -> dict[int, StoredEntry]:
        missing = [number for number in numbers if number not in self.cached and number <= self._last_entry]
        if missing:
            self.cached |= read_entries(self._db, missing)
        return {number: self.cached[number] for number in numbers if number in self.cached}

    def _read_index(self, keys: Collection[int]) -> set[tuple[int, int]]:
        """Return what the stored index has under these keys. What this transaction changed is added by the caller."""
        missing = [key for key in keys if key not in self._index]
        for start in range(0, len(missing), _MAX_VALUES):
            some = missing[start : start + _MAX_VALUES]
            self.note_index(some, self._db.execute(SELECT_KEYS.format(placeholders(some)), some).fetchall())
        return {(key, number) for key in keys for number in self._index[key]}

    def note_index(self, keys: Iterable[int], rows: Iterable[tuple[int, int]]) -> None:
        """Remember what the stored index has under these keys: `rows` of key and entry number."""
        self._index |= {key: [] for key in keys}
        for key, number in rows:
            self._index[key].append(number)

    def _read_totals(self, condition: str, values: tuple[str, ...]) -> dict[TotalKey, Decimal]:
        rows = self._db.execute(f"SELECT * FROM main.totals WHERE {condition}", values).fetchall()
        return {row[:5]: Decimal(row[5]) for row in rows}


def _add(totals: dict[TotalKey, Decimal], changes: Mapping[TotalKey, Decimal]) -> dict[TotalKey, Decimal]:
    return totals | {key: sum_exactly((totals.get(key, Decimal(0)), change)) for key, change in changes.items()}


def _for_all(statement: str, rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield a statement for many rows at once, with its values: with one for each, threads would wait for others."""
    left = iter(rows)
    while some := list(islice(left, _MAX_ROWS)):
        row = f"({', '.join('?' * len(some[0]))})"
        yield statement.format(", ".join([row] * len(some))), [value for one in some for value in one]
