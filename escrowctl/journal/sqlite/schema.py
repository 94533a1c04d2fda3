"""The journal file's tables, and how a file of an earlier format gets them.

`records` is append-only and hash-chained; everything else is derived from it in the same transaction
and can be rebuilt. `entries` holds the fields that are queried, `keys` the duplicate keys of
entries, `totals` what caps count. The last two exist twice, and both copies are read: a damaged page
in one is noticed, and cannot make the journal forget a write. (Two indexes of one table would not
do: SQLite reads the one that its planner prefers.) `plans` alone is not derived: rows of a batch that
are not sent yet.
"""

import sqlite3
import uuid
from collections.abc import Iterator

from escrowctl.journal.chain import EMPTY, ChainRecord, Link
from escrowctl.journal.fields import FIELDS

VERSION = 13
"""A change of the tables, or of what `journal.fold` derives from the records, is a new one."""
FIRST_WITH_HEAD = 3
"""Journals of earlier formats may have no head file."""

GUARDS = ("keys", "keys_copy")
"""No names of formats before 7: a version of then that is still running fails, where it would find nothing."""
_EARLIER_GUARDS = ("guards", "guards_again", "guards_copy")
TOTALS = ("totals", "totals_copy")

_RECORDS = """
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest BLOB NOT NULL
) STRICT;
"""
_COLUMNS = "".join(
    f"  {one.name} {'TEXT' if one.type is str else 'INTEGER'}{'' if one.nullable else ' NOT NULL'},\n"
    for one in FIELDS
    if one.queried
)
_GUARDS = """
CREATE TABLE %s (key INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (key, entry)) STRICT, WITHOUT ROWID;
"""
_TOTALS = """
CREATE TABLE %s (
  operation TEXT NOT NULL,
  currency TEXT NOT NULL,
  day TEXT NOT NULL,
  service TEXT NOT NULL,
  site TEXT NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY (operation, currency, day, service, site)
) STRICT, WITHOUT ROWID;
"""
_DERIVED = f"""
CREATE INDEX records_of_entry ON records (entry);
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
{_COLUMNS}  records INTEGER NOT NULL,
  counted_on TEXT NOT NULL,
  latest TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_origin ON entries (origin) WHERE origin IS NOT NULL;
CREATE INDEX entries_by_batch ON entries (batch, line) WHERE batch IS NOT NULL;
CREATE INDEX entries_by_result ON entries (result_id) WHERE result_id IS NOT NULL;
{"".join(_GUARDS % name for name in GUARDS)}
{"".join(_TOTALS % name for name in TOTALS)}
CREATE TABLE IF NOT EXISTS plans (
  batch TEXT NOT NULL,
  row INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (batch, row)
) STRICT, WITHOUT ROWID;
"""
_IDENTITY = "CREATE TABLE journal (id TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;"
_DROPPED = "".join(f"DROP TABLE IF EXISTS {name};" for name in ("entries", *GUARDS, *_EARLIER_GUARDS, *TOTALS))


def version_of(database: sqlite3.Connection) -> int:
    """Return the file's format: 0 for an empty file."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def create_tables(database: sqlite3.Connection, *, made_at: str) -> None:
    """Create the tables in an empty file, with a new id; only inside a transaction."""
    _execute_all(database, _IDENTITY + _RECORDS + _DERIVED)
    database.execute("INSERT INTO journal VALUES (?, ?)", (str(uuid.uuid4()), made_at))
    _mark(database)


def take_out_records(database: sqlite3.Connection) -> list[Link]:
    """Return the records of a file of an earlier format, and leave today's tables without records; as above."""
    links = list(_read_old(database))
    _execute_all(database, f"{_DROPPED} DROP TABLE records; {_RECORDS} {_DERIVED}")
    _mark(database)
    return links


def _read_old(database: sqlite3.Connection) -> Iterator[Link]:
    """Yield the records of formats 1 to 10; raises ValueError where one is not what was written."""
    head = EMPTY
    for *columns, digest in database.execute(
        "SELECT sequence, entry, kind, at, facts, digest FROM records ORDER BY sequence"
    ):
        link = Link(ChainRecord(*columns), digest.hex() if isinstance(digest, bytes) else digest)
        if not link.follows(head):
            raise ValueError(link.record.sequence)
        head = link.head
        yield link


def _execute_all(database: sqlite3.Connection, statements: str) -> None:
    # executescript would commit first.
    for statement in filter(str.strip, statements.split(";")):
        database.execute(statement)


def _mark(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA user_version = {VERSION}")
