"""One transaction on the journal's file: append records, and update the data derived from them."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import change_totals
from escrowctl.journal.chain import JOURNAL, Head, Kind, Link
from escrowctl.journal.fields import QUERIED, Facts
from escrowctl.journal.fold import Folded, extend, next_link
from escrowctl.journal.model import Entry, PlanRow
from escrowctl.journal.reasons import Reason
from escrowctl.journal.sqlite.errors import damaged, translated, unusable
from escrowctl.journal.sqlite.reading import places, read_entries, read_tail
from escrowctl.journal.storage import TotalKey

_COLUMNS = (*QUERIED, "records", "counted_on", "latest")
_PUT_ENTRY = (
    f"INSERT INTO entries VALUES (?, {', '.join('?' * len(_COLUMNS))}) ON CONFLICT (number) DO UPDATE SET "
    f"{', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)}"
)
_OF_KEY = " AND ".join(f"{name} = ?" for name in TotalKey._fields)
_MOST_REMEMBERED = 2000


class SqliteTransaction:
    """One transaction of `SqliteStorage`; see `storage.Transaction`.

    It caches the entries that it has read or written: no other process can change them meanwhile. It reuses the
    cache of `known`, the previous transaction here, if the chain still ends where `known` left it.
    """

    def __init__(
        self,
        path: Path,
        database: sqlite3.Connection,
        find_lost: Callable[[Head], str | None],
        known: "SqliteTransaction | None" = None,
    ) -> None:
        self.path = path
        self._db = database
        self._find_lost = find_lost
        self._tail = read_tail(database)
        self.head, self.latest = self._tail.head, self._tail.latest
        self.folded: dict[int, Folded] = known.folded if known and known.head == self.head else {}
        self._links: list[Link] = []
        self._changed: set[int] = set()
        self._gone: set[tuple[int, int]] = set()
        self._new: set[tuple[int, int]] = set()
        self._changes: dict[TotalKey, Decimal] = {}
        self._unplanned: list[tuple[str, int]] = []
        self.appended = False
        self._last_entry = self._tail.last_entry

    @translated
    def check(self) -> None:
        """See `storage.Transaction`."""
        if damage := self._tail.damage:
            raise damaged(self.path, damage)
        if why := self._find_lost(self._tail.head):
            raise unusable(self.path, why, reason=Reason.DAMAGED)

    @translated
    def find(self, number: int) -> Entry | None:
        """See `storage.Transaction`."""
        found = self._read([number]).get(number)
        return found.entry if found else None

    @translated
    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        """See `storage.Transaction`. Each entry that the index names must have the index's key."""
        pairs = (self._guarding(keys) - self._gone) | {(key, number) for key, number in self._new if key in keys}
        found = self._read({number for _, number in pairs})
        for key, number in pairs:
            if number not in found or key not in found[number].keys:
                why = f"its duplicate index lists entry j{number}, which is missing or different"
                raise damaged(self.path, why)
        return [found[number].entry for number in sorted(found, reverse=True)]

    @translated
    def totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        """See `storage.Transaction`."""
        self.flush()
        return self._totals("operation = ? AND currency = ? AND day >= ?", (operation, currency, since))

    def next_number(self) -> int:
        """See `storage.Transaction`."""
        return self._last_entry + 1

    @translated
    def append(self, number: int, kind: Kind, facts: Facts, *, at: str) -> Entry:
        """See `storage.Transaction`."""
        return self.add_link(next_link(self.head, number, kind, facts, at=at), facts).entry

    @property
    @translated
    def successor(self) -> str | None:
        """See `storage.Transaction`."""
        last = self._tail.links[0].record if self._tail.links else None
        return json.loads(last.facts)["successor"] if last is not None and last.kind == Kind.CLOSING else None

    @translated
    def note(self, kind: Kind, facts: Mapping[str, str], *, at: str) -> None:
        """See `storage.Transaction`."""
        link = next_link(self.head, JOURNAL, kind, dict(facts), at=max(self.latest, at))
        self._links.append(link)
        self.head, self.latest = link.head, link.record.at
        self.appended = kind is not Kind.CLOSING

    @translated
    def plan(self, rows: Iterable[PlanRow]) -> None:
        """See `storage.Transaction`."""
        self._db.executemany("INSERT OR REPLACE INTO plans VALUES (?, ?, ?)", rows)

    @translated
    def unplan(self, batch: str, row: int) -> None:
        """See `storage.Transaction`."""
        self._unplanned.append((batch, row))

    def add_link(self, link: Link, facts: Facts | None = None) -> Folded:
        """Append a record that continues the chain, and update the data derived from it."""
        record = link.record
        before = self._read([record.entry]).get(record.entry)
        after = extend(before, link, latest=self.latest, facts=facts)
        self._links.append(link)
        self._changed.add(record.entry)
        old = before.keys if before else frozenset()
        self._change_duplicate_keys(record.entry, gone=old - after.keys, new=after.keys - old)
        for key, change in change_totals(before, after).items():
            self._changes[key] = sum_exactly((self._changes.get(key, Decimal(0)), change))
        self.folded[record.entry] = after
        if len(self.folded) > _MOST_REMEMBERED:
            self.flush()
            self.folded.clear()
        self.head, self.latest, self.appended = link.head, after.row.latest, True
        self._last_entry = max(self._last_entry, record.entry)
        return after

    @translated
    def flush(self) -> None:
        """Write the appended records together: many cost little more than one."""
        self._db.executemany("DELETE FROM plans WHERE batch = ? AND row = ?", self._unplanned)
        self._unplanned.clear()
        if not self._links:
            return
        rows = [(number, self.folded[number].row) for number in sorted(self._changed)]
        records = [(*link.record, bytes.fromhex(link.digest)) for link in self._links]
        self._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", records)
        self._db.executemany(_PUT_ENTRY, [(number, *row.values, *row[1:]) for number, row in rows])
        self._db.executemany("DELETE FROM keys WHERE key = ? AND entry = ?", self._gone)
        self._db.executemany("INSERT INTO keys VALUES (?, ?)", self._new)
        for key, change in self._changes.items():
            amount = sum_exactly((*self._totals(_OF_KEY, key).values(), change))
            self._db.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?, ?, ?)", (*key, str(amount)))
        for pending in (self._links, self._changed, self._gone, self._new, self._changes):
            pending.clear()

    def _read(self, numbers: Collection[int]) -> dict[int, Folded]:
        missing = [number for number in numbers if number not in self.folded and number <= self._last_entry]
        if missing:
            self.folded |= read_entries(self._db, missing)
        return {number: self.folded[number] for number in numbers if number in self.folded}

    def _guarding(self, keys: Collection[int]) -> set[tuple[int, int]]:
        query = f"SELECT key, entry FROM keys WHERE key IN ({places(keys)})"
        return {(key, number) for key, number in self._db.execute(query, tuple(keys)).fetchall()}

    def _change_duplicate_keys(self, number: int, *, gone: frozenset[int], new: frozenset[int]) -> None:
        went, came = {(key, number) for key in gone}, {(key, number) for key in new}
        self._gone |= went - self._new
        self._new = (self._new - went) | (came - self._gone)
        self._gone -= came

    def _totals(self, condition: str, values: tuple[str, ...]) -> dict[TotalKey, Decimal]:
        rows = self._db.execute(f"SELECT * FROM totals WHERE {condition}", values).fetchall()
        return {TotalKey(*key): Decimal(amount) for *key, amount in rows}
