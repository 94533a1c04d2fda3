"""Read the journal's tables. Each entry is checked against its records when it is read."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from escrowctl.journal.chain import EMPTY_HEAD, GENESIS, ChainRecord, Head, canonical_json
from escrowctl.journal.fields import QUERIED_FIELDS
from escrowctl.journal.fold import StoredEntry, rebuild_entry
from escrowctl.journal.model import Entry, Selection
from escrowctl.journal.tables.database import Database, placeholders

_MAX_PER_QUERY = 500
_SEARCH_STEP = 1000
_COLUMNS = ", ".join(f"e.{name}" for name in QUERIED_FIELDS)
_END = 1 + len(QUERIED_FIELDS) + 3
"""In a row of the next statement: where the entry's columns end. Then come a record's, and the digest before it."""

_RECORD_COLUMNS = "r.sequence, r.entry, r.kind, r.at, r.facts, r.digest"
_SELECT_ENTRIES = f"""
SELECT e.number, {_COLUMNS}, e.records, e.counted_on, e.latest, {_RECORD_COLUMNS}, p.digest
FROM main.entries e LEFT JOIN main.records r ON r.entry = e.number
LEFT JOIN main.records p ON p.sequence = r.sequence - 1
WHERE e.number IN (%s) ORDER BY e.number, r.sequence"""
# The recursion steps back from the newest record, until the records before it are all older than the date.
_HAS_FINGERPRINT = f"""NOT (batch IS NOT NULL AND reference IS NOT NULL)
AND number IN (SELECT entry FROM main.records WHERE replace(facts, ?, '') <> facts AND sequence > (
  WITH RECURSIVE step(edge) AS (
    SELECT max(sequence) FROM main.records UNION ALL
    SELECT edge - {_SEARCH_STEP} FROM step WHERE EXISTS (
      SELECT 1 FROM main.records WHERE sequence > edge - {_SEARCH_STEP} AND sequence <= edge AND at >= ?))
  SELECT min(edge) FROM step))"""
SELECT_RECORDS = f"SELECT {_RECORD_COLUMNS} FROM main.records r WHERE sequence > {{}} ORDER BY sequence LIMIT {{}}"
SELECT_TAIL = f"""
SELECT (SELECT max(number) FROM main.entries), (SELECT max(entry) FROM main.records),
  (SELECT latest FROM main.entries WHERE number = r.entry), {_RECORD_COLUMNS}
FROM main.records r ORDER BY r.sequence DESC LIMIT 2"""

_COUNT_IF_NO_RECORDS = "SELECT count(*) FROM main.entries WHERE NOT EXISTS (SELECT 1 FROM main.records)"


def read_entries(database: Database, numbers: Collection[int]) -> dict[int, StoredEntry]:
    """Return the existing entries among these numbers. Raises one of `DECODING_ERRORS` if one is damaged."""
    found: dict[int, list[tuple[object, ...]]] = {}
    wanted = sorted(numbers)
    for start in range(0, len(wanted), _MAX_PER_QUERY):
        some = wanted[start : start + _MAX_PER_QUERY]
        for row in database.execute(_SELECT_ENTRIES % placeholders(some), some):
            found.setdefault(row[0], []).append(row)
    return {number: _build_entry(rows) for number, rows in found.items()}


def _build_entry(rows: list[tuple[object, ...]]) -> StoredEntry:
    records = [(record_of(row[_END:-1]), GENESIS if row[-1] is None else _digest(row[-1])) for row in rows]
    return rebuild_entry(rows[0][1:_END], records)


def record_of(row: tuple[object, ...]) -> ChainRecord:
    """Return a record from its columns. Raises TypeError if a damaged page has a value of the wrong type."""
    sequence, entry, kind, at, facts, digest = row
    if not (isinstance(sequence, int) and isinstance(entry, int)):
        raise TypeError(sequence)
    if not (isinstance(kind, str) and isinstance(at, str) and isinstance(facts, str)):
        raise TypeError(sequence)
    return ChainRecord(sequence, entry, kind, at, facts, _digest(digest))


def _digest(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value.hex()


def read_records(database: Database, *, after: int, limit: int) -> list[ChainRecord]:
    """Return up to `limit` records, in order, with sequence numbers above `after`."""
    rows = database.execute(SELECT_RECORDS.format("?", "?"), (after, limit)).fetchall()
    return [record_of(row) for row in rows]


class Tail(NamedTuple):
    """The end of a journal: its last two records, newest first, the latest date, and the last entry's number.

    `tables_match`: the tables "entries" and "records" end with the same entry.
    """

    records: list[ChainRecord]
    latest: str
    last_entry: int
    tables_match: bool

    @property
    def head(self) -> Head:
        """The head of the chain."""
        return self.records[0].head if self.records else EMPTY_HEAD

    @property
    def damage(self) -> str | None:
        """The problem at the end of the journal. None: no problem."""
        if self.records and not self.records[0].follows(self.records[1].head if len(self.records) > 1 else EMPTY_HEAD):
            return f"record {self.head.sequence} does not match the record before it"
        return None if self.tables_match else 'the tables "entries" and "records" have different last entries'


def read_tail(database: Database) -> Tail:
    """Return the end of a journal. Raises TypeError if a damaged page has a value of the wrong type."""
    if rows := database.execute(SELECT_TAIL).fetchall():
        return tail_of(rows)
    # Another process may have written the first record since the statement above: then there is no problem.
    (count,) = database.execute(_COUNT_IF_NO_RECORDS).fetchone()
    return Tail([], "", 0, tables_match=not count)


def tail_of(rows: Sequence[Sequence[Any]]) -> Tail:
    """Return the end of a journal from the rows, at least one, of `SELECT_TAIL`. Raises TypeError as `read_tail`."""
    last_entry, last_recorded, latest = rows[0][:3]
    if not isinstance(last_entry, int | None):
        raise TypeError(last_entry)
    records = [record_of(tuple(row[3:])) for row in rows]
    latest = latest if isinstance(latest, str) else records[0].at
    last_entry = last_entry or 0
    return Tail(records, latest, last_entry, tables_match=last_entry == last_recorded)


def select_entries(database: Database, selection: Selection, *, before: int | None) -> list[Entry]:
    """Return the selected entries, newest first. `before`: only entries with a lower number than this."""
    condition, values = _build_condition(selection, before)
    condition += " ORDER BY number DESC"
    if selection.limit is not None:
        condition, values = f"{condition} LIMIT ?", [*values, selection.limit]
    return read_where(database, condition, *values)


def read_where(database: Database, condition: str, *values: object) -> list[Entry]:
    """Return the entries that an SQL condition selects, in the order that the condition sets."""
    query = f"SELECT number FROM main.entries WHERE {condition}"
    numbers = [number for (number,) in database.execute(query, values).fetchall()]
    found = read_entries(database, numbers)
    return [found[number].entry for number in numbers]


def _build_condition(selection: Selection, before: int | None) -> tuple[str, list[object]]:
    parts: list[tuple[str, Iterable[object]]] = [("TRUE", ())]
    for column, allowed in (
        ("state", selection.states),
        ("operation", selection.operations),
        ("result_id", selection.result_ids),
    ):
        parts += [(f"{column} IN ({placeholders(allowed)})", [str(one) for one in allowed])] if allowed else []
    for condition, value in (
        ("profile = ?", selection.profile),
        ("sent_at >= ?", selection.since),
        ("sent_at < ?", selection.until),
        ("reference = ?", selection.reference),
        ("? IN (resource_id, result_id)", selection.resource_id),
        ("origin = ?", selection.origin),
        ("origin IS NULL AND batch = ?", selection.batch),
        ("number < ?", before),
    ):
        parts += [(condition, (value,))] if value is not None else []
    parts += [("reference IS NULL", ())] if selection.without_reference else []
    if selection.fingerprint is not None:
        stored = canonical_json({"likeness": selection.fingerprint})[1:-1]
        parts.append((_HAS_FINGERPRINT, (stored, selection.since or "")))
    return " AND ".join(condition for condition, _ in parts), [value for _, values in parts for value in values]
