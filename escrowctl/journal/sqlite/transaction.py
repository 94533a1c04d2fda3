"""One transaction on the journal's file: append records, and update the data derived from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from escrowctl.contract.money import sum_exactly
from escrowctl.errors import Reason
from escrowctl.journal.caps import compute_total_changes
from escrowctl.journal.chain import NO_ENTRY, ChainRecord, Head, Kind
from escrowctl.journal.fields import QUERIED_FIELDS, Facts
from escrowctl.journal.fold import StoredEntry, TotalKey, add_record, next_record
from escrowctl.journal.model import Entry
from escrowctl.journal.sqlite.errors import damaged, translate_errors, unusable
from escrowctl.journal.sqlite.reading import placeholders, read_entries, read_tail
from escrowctl.journal.storage import PlanRow
from escrowctl.runtime import Clock, timestamp

_COLUMNS = (*QUERIED_FIELDS, "records", "counted_on", "latest")
_STORE_RECORDS = "INSERT INTO records VALUES {}"
_STORE_ENTRIES = (
    "INSERT INTO entries VALUES {} ON CONFLICT (number) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}"
)
_STORE_KEYS, _REMOVE_KEYS = "INSERT INTO keys VALUES {}", "DELETE FROM keys WHERE (key, entry) IN (VALUES {})"
_REMOVE_PLAN_ROWS = "DELETE FROM plans WHERE (batch, row) IN (VALUES {})"
_STORE_PLAN_ROW = (
    "INSERT INTO plans (batch, row, content) VALUES (?, ?, ?) "
    "ON CONFLICT (batch, row) DO UPDATE SET content = excluded.content"
)
_CLAIMABLE = "FROM plans WHERE batch = ? AND row > 0 AND sender IS NULL ORDER BY row LIMIT ?"
_MAX_VALUES = 900
"""The most values in one statement: below the smallest limit that SQLite has (sqlite.org/limits.html, section 9)."""
_IS_TOTAL = "operation = ? AND currency = ? AND day = ? AND service = ? AND site = ?"
_MAX_CACHED = 2000


class SqliteTransaction:
    """One transaction of `SqliteStorage`; see `storage.Transaction`.

    It caches the entries that it has read or written: no other process can change them meanwhile. It reuses the
    cache of `previous`, the last transaction of this storage, if the chain still ends as that transaction left it.
    """

    def __init__(
        self,
        path: Path,
        database: sqlite3.Connection,
        now: Clock,
        find_lost: Callable[[Head], str | None],
        previous: SqliteTransaction | None = None,
    ) -> None:
        self.path = path
        self._db = database
        self.now = now
        self._find_lost = find_lost
        self._tail = read_tail(database)
        self.head, self.latest = self._tail.head, self._tail.latest
        continued = previous if previous and previous.head == self.head else None
        self.cached: dict[int, StoredEntry] = continued.cached if continued else {}
        self.is_checked: bool = continued is not None and continued.is_checked
        self._records: list[ChainRecord] = []
        self._changed: set[int] = set()
        self._index: dict[int, list[int]] = {}
        self._removed_keys: set[tuple[int, int]] = set()
        self._added_keys: set[tuple[int, int]] = set()
        self._total_changes: dict[TotalKey, Decimal] = {}
        self._unplanned: list[tuple[str, int]] = []
        self.must_save_head = False
        self._last_entry = self._tail.last_entry

    @translate_errors
    def check(self) -> None:
        """See `storage.Transaction`."""
        if damage := self._tail.damage:
            raise damaged(self.path, damage)
        # A chain that ends as a checked transaction of this storage left it is not an older copy.
        if not self.is_checked and (why := self._find_lost(self._tail.head)):
            raise unusable(self.path, why, reason=Reason.DAMAGED)
        self.is_checked = True

    @translate_errors
    def find(self, number: int) -> Entry | None:
        """See `storage.Transaction`."""
        found = self._read_stored_entries([number]).get(number)
        return found.entry if found else None

    @translate_errors
    def expect_keys(self, keys: Collection[int]) -> None:
        """See `storage.Transaction`."""
        self._read_index(keys)

    @translate_errors
    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """See `storage.Transaction`. An entry that the index lists under a key must have that key."""
        added = {(key, number) for key, number in self._added_keys if key in keys}
        pairs = (self._read_index(keys) - self._removed_keys) | added
        found = self._read_stored_entries({number for _, number in pairs})
        for key, number in pairs:
            if number not in found or key not in found[number].keys:
                problem = f"its duplicate index lists entry j{number}, which is missing or different"
                raise damaged(self.path, problem)
        return [found[number].entry for number in sorted(found, reverse=True)]

    @translate_errors
    def read_totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """See `storage.Transaction`."""
        self.flush()
        return self._read_totals("operation = ? AND currency = ? AND day >= ?", (operation, currency, since))

    def next_number(self) -> int:
        """See `storage.Transaction`."""
        return self._last_entry + 1

    @translate_errors
    def append(self, number: int, kind: str, facts: Facts) -> Entry:
        """See `storage.Transaction`."""
        return self.append_record(next_record(self.head, number, kind, facts, at=timestamp(self.now())), facts).entry

    @property
    @translate_errors
    def successor_id(self) -> str | None:
        """See `storage.Transaction`."""
        last = self._tail.records[0] if self._tail.records else None
        return json.loads(last.facts)["successor"] if last is not None and last.kind == Kind.CLOSING else None

    @translate_errors
    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        """See `storage.Transaction`."""
        record = next_record(self.head, NO_ENTRY, kind, dict(facts), at=max(self.latest, timestamp(self.now())))
        self._records.append(record)
        self.head, self.latest = record.head, record.at
        self.must_save_head = kind != Kind.CLOSING

    @translate_errors
    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        """See `storage.Transaction`."""
        self._db.executemany(_STORE_PLAN_ROW, rows)

    @translate_errors
    def remove_plan_row(self, batch: str, row: int) -> None:
        """See `storage.Transaction`."""
        self._unplanned.append((batch, row))

    @translate_errors
    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        """See `storage.Transaction`."""
        self.flush()
        known = "SELECT DISTINCT sender FROM plans WHERE batch = ? AND sender IS NOT NULL AND sender != ?"
        for (other,) in self._db.execute(known, (batch, sender)).fetchall():
            if not is_alive(other):
                self._db.execute("UPDATE plans SET sender = NULL WHERE batch = ? AND sender = ?", (batch, other))
        rows = self._db.execute(f"SELECT batch, row, content {_CLAIMABLE}", (batch, limit)).fetchall()
        mark = f"UPDATE plans SET sender = ? WHERE batch = ? AND row IN (SELECT row {_CLAIMABLE})"
        self._db.execute(mark, (sender, batch, batch, limit))
        return [PlanRow(*row) for row in rows]

    def append_record(self, record: ChainRecord, facts: Facts | None = None) -> StoredEntry:
        """Append a record that continues the chain, and update the data derived from it."""
        before = self._read_stored_entries([record.entry]).get(record.entry)
        after = add_record(before, record, latest=self.latest, facts=facts)
        self._records.append(record)
        self._changed.add(record.entry)
        old = before.keys if before else frozenset()
        self._change_duplicate_keys(record.entry, lost=old - after.keys, new=after.keys - old)
        for key, change in compute_total_changes(before, after).items():
            self._total_changes[key] = sum_exactly((self._total_changes.get(key, Decimal(0)), change))
        self.cached[record.entry] = after
        if len(self.cached) > _MAX_CACHED:
            self.flush()
            self.cached.clear()
        self.head, self.latest, self.must_save_head = record.head, after.latest, True
        self._last_entry = max(self._last_entry, record.entry)
        return after

    @translate_errors
    def flush(self) -> None:
        """Write all pending changes to the file together: many records then cost little more than one."""
        self._execute_for_all(_REMOVE_PLAN_ROWS, self._unplanned)
        self._unplanned.clear()
        if not self._records:
            return
        records = [(*record[:-1], bytes.fromhex(record.digest)) for record in self._records]
        self._execute_for_all(_STORE_RECORDS, records)
        self._execute_for_all(_STORE_ENTRIES, [(number, *self.cached[number].row) for number in sorted(self._changed)])
        self._execute_for_all(_REMOVE_KEYS, sorted(self._removed_keys))
        self._execute_for_all(_STORE_KEYS, sorted(self._added_keys))
        for key, change in self._total_changes.items():
            amount = sum_exactly((*self._read_totals(_IS_TOTAL, key).values(), change))
            self._db.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?, ?, ?)", (*key, str(amount)))
        self._index.clear()
        for pending in (self._records, self._changed, self._removed_keys, self._added_keys, self._total_changes):
            pending.clear()

    def _execute_for_all(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Execute a statement for all rows at once. With a statement for each, threads would wait for each other."""
        at_once = _MAX_VALUES // max(1, len(rows[0]) if rows else 1)
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            row = f"({', '.join('?' * len(some[0]))})"
            values = [value for one in some for value in one]
            self._db.execute(statement.format(", ".join([row] * len(some))), values)

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
            self._index |= {key: [] for key in some}
            query = f"SELECT key, entry FROM keys WHERE key IN ({placeholders(some)})"
            for key, number in self._db.execute(query, some).fetchall():
                self._index[key].append(number)
        return {(key, number) for key in keys for number in self._index[key]}

    def _change_duplicate_keys(self, number: int, *, lost: frozenset[int], new: frozenset[int]) -> None:
        removed, added = {(key, number) for key in lost}, {(key, number) for key in new}
        self._removed_keys |= removed - self._added_keys
        self._added_keys = (self._added_keys - removed) | (added - self._removed_keys)
        self._removed_keys -= added

    def _read_totals(self, condition: str, values: tuple[str, ...]) -> dict[TotalKey, Decimal]:
        rows = self._db.execute(f"SELECT * FROM totals WHERE {condition}", values).fetchall()
        return {row[:5]: Decimal(row[5]) for row in rows}
