"""Check that the derived tables match the records."""

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import compute_total_changes
from escrowctl.journal.chain import NO_ENTRY, Kind
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.fold import StoredEntry, TotalKey
from escrowctl.journal.tables.database import Database, placeholders
from escrowctl.journal.tables.reading import read_entries, read_records

_PAGE_SIZE = 500


def compare_derived_tables(database: Database) -> str | None:
    """Return the first problem of the tables, or None. The caller has checked the chain. Raises the engine's errors."""
    dates = _compute_dates(database)
    numbers = [number for (number,) in database.execute("SELECT number FROM main.entries ORDER BY number")]
    if numbers != sorted(dates):
        return 'the tables "entries" and "records" list different writes'
    totals: dict[TotalKey, Decimal] = {}
    keys = 0
    for start in range(0, len(numbers), _PAGE_SIZE):
        for number, folded in _read_stored_entries(database, numbers[start : start + _PAGE_SIZE]):
            if folded is None or folded.row[-2:] != dates[number]:
                return f"entry j{number} does not match its records"
            query = f"SELECT count(*) FROM main.keys WHERE entry = ? AND key IN ({placeholders(folded.keys)})"
            if database.execute(query, (number, *folded.keys)).fetchone()[0] != len(folded.keys):
                return f"the duplicate index has no entry for j{number}"
            keys += len(folded.keys)
            for key, amount in compute_total_changes(None, folded).items():
                totals[key] = sum_exactly((totals.get(key, Decimal(0)), amount))
    if database.execute("SELECT count(*) FROM main.keys").fetchone()[0] != keys:
        return "the duplicate index lists keys that no entry has"
    return "the stored totals for caps do not match the entries" if _read_totals(database) != totals else None


def _compute_dates(database: Database) -> dict[int, tuple[str, str]]:
    """Return entry number -> (`counted_on`, `latest`), computed from the chain."""
    latest, dates, after = "", dict[int, tuple[str, str]](), 0
    while page := read_records(database, after=after, limit=_PAGE_SIZE):
        after = page[-1].sequence
        for record in page:
            latest = max(latest, record.at)
            if record.entry == NO_ENTRY:
                continue
            counted_on = dates[record.entry][0] if record.entry in dates else ""
            if record.kind == Kind.INTENT:
                counted_on = latest[:10]
            elif record.kind == Kind.IMPORT:
                counted_on = max(counted_on, json.loads(record.facts)["sent_at"][:10])
            dates[record.entry] = (counted_on, latest)
    return dates


def _read_stored_entries(database: Database, numbers: list[int]) -> Iterator[tuple[int, StoredEntry | None]]:
    """Yield each number with the entry, or with None if the entry is damaged."""
    try:
        yield from read_entries(database, numbers).items()
    except DECODING_ERRORS:
        for number in numbers:
            try:
                yield number, read_entries(database, [number])[number]
            except DECODING_ERRORS:
                yield number, None


def _read_totals(database: Database) -> dict[TotalKey, Decimal] | None:
    """Return the stored totals other than 0. None: a stored total is not a number."""
    try:
        found = {row[:5]: Decimal(row[5]) for row in database.execute("SELECT * FROM main.totals")}
    except InvalidOperation:
        return None
    return {key: amount for key, amount in found.items() if amount}
