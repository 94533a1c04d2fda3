"""A check of a journal file without escrowctl: its SQLite structure, its chain, its head."""

import hashlib
import json
import sqlite3
from pathlib import Path

GENESIS = "0" * 64


def find_fault(path: Path) -> str | None:
    """Return what is wrong with a journal file and the head next to it; None where nothing is."""
    database = sqlite3.connect(path)
    try:
        found = database.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            return f"integrity_check: {found}"
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'records'").fetchone():
            return None
        records = database.execute(
            "SELECT sequence, entry, kind, at, facts, lower(hex(digest)) FROM records ORDER BY sequence"
        ).fetchall()
        entries = {number for (number,) in database.execute("SELECT number FROM entries")}
    finally:
        database.close()
    if entries != {record[1] for record in records}:
        return "entries and records are not of the same writes"
    return _fault_of_chain(records) or _fault_of_head(path.with_suffix(".head"), records)


def _fault_of_chain(records: list[tuple[int, int, str, str, str, str]]) -> str | None:
    previous = GENESIS
    for place, (*covered, digest) in enumerate(records, start=1):
        if covered[0] != place or hashlib.sha256(json.dumps([previous, *covered]).encode()).hexdigest() != digest:
            return f"record {covered[0]} does not follow"
        previous = digest
    return None


def _fault_of_head(path: Path, records: list[tuple[int, int, str, str, str, str]]) -> str | None:
    """The head exists from before the first record on; it may lag, and never runs ahead."""
    if not path.exists():
        return "it has records and no head" if records else None
    _, _, sequence, digest = path.read_text().split()
    if int(sequence) > len(records):
        return f"its head is record {int(sequence)}, and there are {len(records)}"
    held = records[int(sequence) - 1][5] if int(sequence) else GENESIS
    return None if held == digest else f"its head is another record {int(sequence)}"
