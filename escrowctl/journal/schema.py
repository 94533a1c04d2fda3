"""The journal file's tables, and how an older file becomes one of today.

`records` is append-only and hash-chained; everything else is derived from it, in the same
transaction. `entries` holds where each write stands now, each row under a seal over its columns.
`guards` names the entries that stand against new writes, and `guards_again` names them once more;
both are asked: a page that is damaged in one is noticed, and cannot make the journal forget. (Two
indexes of one table would not do: SQLite asks the one that it likes better, whatever it is told.)
"""

import sqlite3
import uuid

VERSION = 4
FIRST_WITH_HEAD = 3
"""Journals of earlier formats may have no head file."""

_TABLES = """
CREATE TABLE journal (id TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest TEXT NOT NULL
) STRICT;
CREATE INDEX records_of_entry ON records (entry);
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
  operation TEXT NOT NULL,
  service TEXT NOT NULL,
  profile TEXT NOT NULL,
  method TEXT NOT NULL,
  url TEXT NOT NULL,
  body TEXT,
  idempotency_key TEXT NOT NULL,
  likeness TEXT NOT NULL,
  resource_id TEXT,
  amount TEXT,
  currency TEXT,
  reference TEXT,
  reason TEXT,
  despite TEXT NOT NULL,
  operator TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  sent_at TEXT NOT NULL,
  state TEXT NOT NULL,
  detail TEXT NOT NULL,
  http_status INTEGER,
  result_id TEXT,
  reply TEXT,
  may_repeat INTEGER NOT NULL,
  settled_at TEXT
) STRICT;
CREATE UNIQUE INDEX entries_by_key ON entries (service, idempotency_key);
CREATE INDEX entries_by_state ON entries (state) WHERE state IN ('in_flight', 'unknown');
"""

_SINCE_FORMAT_2 = """
ALTER TABLE entries ADD COLUMN site TEXT;
ALTER TABLE entries ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN origin TEXT;
ALTER TABLE entries ADD COLUMN seal TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_by_money ON entries (operation, currency, sent_at) WHERE amount IS NOT NULL;
CREATE TABLE guards (token INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (token, entry)) STRICT, WITHOUT ROWID;
CREATE TABLE guards_again (token INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (token, entry))
  STRICT, WITHOUT ROWID;
"""

_SINCE_FORMAT_3 = """
DROP INDEX entries_by_key;
CREATE INDEX entries_by_origin ON entries (origin) WHERE origin IS NOT NULL;
"""
"""Two journals may have used one key: both their entries stand where one was imported into the other."""

_SINCE_FORMAT_4 = """
ALTER TABLE entries ADD COLUMN account TEXT;
ALTER TABLE entries ADD COLUMN key_fingerprint TEXT;
CREATE INDEX entries_by_result ON entries (result_id) WHERE result_id IS NOT NULL;
"""

_FORGET_DERIVED = """
UPDATE entries SET seal = '';
DELETE FROM guards;
DELETE FROM guards_again;
"""
"""Seals cover the new columns, and since format 4 ids and references are compared without case and form."""


def version_of(database: sqlite3.Connection) -> int:
    """Return the file's format: 0 for an empty file."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def make_tables(database: sqlite3.Connection, *, made_at: str) -> None:
    """Make today's tables in an empty file, with an identity of its own; only inside a transaction."""
    _execute_all(database, _TABLES + _SINCE_FORMAT_2 + _SINCE_FORMAT_3 + _SINCE_FORMAT_4)
    database.execute("INSERT INTO journal VALUES (?, ?)", (str(uuid.uuid4()), made_at))
    _mark(database)


def extend_tables(database: sqlite3.Connection, *, version: int) -> None:
    """Bring a file of an earlier format to today's tables; every seal and guard is the caller's to write anew."""
    steps = ((1, _SINCE_FORMAT_2), (2, _SINCE_FORMAT_3), (3, _SINCE_FORMAT_4))
    _execute_all(database, "".join(step for last, step in steps if version <= last) + _FORGET_DERIVED)
    _mark(database)


def _execute_all(database: sqlite3.Connection, statements: str) -> None:
    # executescript would commit first.
    for statement in filter(str.strip, statements.split(";")):
        database.execute(statement)


def _mark(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA user_version = {VERSION}")
