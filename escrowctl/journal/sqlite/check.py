"""Check that the derived tables of the journal's file match its records."""

import json
import sqlite3
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import total_key, weigh
from escrowctl.journal.chain import JOURNAL, Kind, Link
from escrowctl.journal.fields import UNDECODABLE
from escrowctl.journal.fold import Folded
from escrowctl.journal.sqlite.reading import places, read_entries, read_links
from escrowctl.journal.storage import TotalKey

_PAGE = 500


def find_damage(database: sqlite3.Connection) -> str | None:
    """Return the first problem of a file whose chain is valid; None: no problem.

    Raises sqlite3.Error if it cannot be read.
    """
    problem = _compare_derived(database)
    if problem is not None:
        return problem
    said = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    return None if said == "ok" else said


def _compare_derived(database: sqlite3.Connection) -> str | None:
    dates = _dates(database)
    numbers = [number for (number,) in database.execute("SELECT number FROM entries ORDER BY number")]
    if numbers != sorted(dates):
        return 'the tables "entries" and "records" list different writes'
    totals: dict[TotalKey, Decimal] = {}
    keys = 0
    for start in range(0, len(numbers), _PAGE):
        for number, folded in _read(database, numbers[start : start + _PAGE]):
            if folded is None or folded.row[2:] != dates[number]:
                return f"entry j{number} does not match its records"
            if not _guards(database, number, folded.keys):
                return f"the duplicate index has no entry for j{number}"
            keys += len(folded.keys)
            if amount := weigh(folded.entry):
                key = total_key(folded.entry)
                totals[key] = sum_exactly((totals.get(key, Decimal(0)), amount))
    if database.execute("SELECT count(*) FROM keys").fetchone()[0] != keys:
        return "the duplicate index lists keys that no entry has"
    if _stored_totals(database) != totals:
        return "the stored totals for caps do not match the entries"
    return None


def _dates(database: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    """Return for each entry of the chain the day on which caps count it, and the latest date up to its last record."""
    latest, dates = "", dict[int, tuple[str, str]]()
    for link in _links(database):
        record = link.record
        latest = max(latest, record.at)
        if record.entry == JOURNAL:
            continue
        counted_on = dates[record.entry][0] if record.entry in dates else ""
        if record.kind == Kind.INTENT:
            counted_on = latest[:10]
        elif record.kind == Kind.IMPORT:
            counted_on = max(counted_on, json.loads(record.facts)["sent_at"][:10])
        dates[record.entry] = (counted_on, latest)
    return dates


def _links(database: sqlite3.Connection) -> Iterator[Link]:
    after = 0
    while page := read_links(database, after=after, limit=_PAGE):
        yield from page
        after = page[-1].record.sequence


def _read(database: sqlite3.Connection, numbers: list[int]) -> Iterator[tuple[int, Folded | None]]:
    """Yield entries by number, None for a damaged entry."""
    try:
        yield from read_entries(database, numbers).items()
    except UNDECODABLE:
        for number in numbers:
            try:
                yield number, read_entries(database, [number])[number]
            except UNDECODABLE:
                yield number, None


def _guards(database: sqlite3.Connection, number: int, keys: frozenset[int]) -> bool:
    query = f"SELECT count(*) FROM keys WHERE entry = ? AND key IN ({places(keys)})"
    return bool(database.execute(query, (number, *keys)).fetchone()[0] == len(keys))


def _stored_totals(database: sqlite3.Connection) -> dict[TotalKey, Decimal] | None:
    """Return the totals other than 0. None: one of them is not a number."""
    try:
        found = {TotalKey(*key): Decimal(amount) for *key, amount in database.execute("SELECT * FROM totals")}
    except InvalidOperation:
        return None
    return {key: amount for key, amount in found.items() if amount}
