"""The journal file's tables.

`records` is append-only and hash-chained. The other tables are derived from it in the same transaction
and can be rebuilt; `journal verify` compares them with `records`. `entries` has the fields that are queried, `keys`
the duplicate keys of entries, `totals` the sums for caps. Only `plans` is not derived: it has the rows of
batches that are not sent yet, with the sender that has taken a row.
"""

import sqlite3
import uuid

from escrowctl.journal.fields import FIELDS
from escrowctl.journal.sqlite.files import layout_of
from escrowctl.sqlite import run_script

_QUERIED_COLUMNS = "".join(
    f"  {one.name} {'TEXT' if one.type is str else 'INTEGER'}{'' if one.nullable else ' NOT NULL'},\n"
    for one in FIELDS
    if one.queried
)
_TABLES = f"""
CREATE TABLE journal (id TEXT NOT NULL, layout TEXT NOT NULL) STRICT;
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at TEXT NOT NULL,
  facts TEXT NOT NULL,
  digest BLOB NOT NULL
) STRICT;
CREATE INDEX records_of_entry ON records (entry);
CREATE TABLE entries (
  number INTEGER PRIMARY KEY,
{_QUERIED_COLUMNS}  records INTEGER NOT NULL,
  counted_on TEXT NOT NULL,
  latest TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_origin ON entries (origin) WHERE origin IS NOT NULL;
CREATE INDEX entries_by_batch ON entries (batch, line) WHERE batch IS NOT NULL;
CREATE INDEX entries_by_result ON entries (result_id) WHERE result_id IS NOT NULL;
CREATE TABLE keys (key INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (key, entry)) STRICT, WITHOUT ROWID;
CREATE TABLE totals (
  operation TEXT NOT NULL,
  currency TEXT NOT NULL,
  day TEXT NOT NULL,
  service TEXT NOT NULL,
  site TEXT NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY (operation, currency, day, service, site)
) STRICT, WITHOUT ROWID;
CREATE TABLE plans (
  batch TEXT NOT NULL,
  row INTEGER NOT NULL,
  content TEXT NOT NULL,
  sender TEXT,
  PRIMARY KEY (batch, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX plans_by_sender ON plans (batch, sender) WHERE sender IS NOT NULL;
"""


def create_tables(database: sqlite3.Connection) -> None:
    """Create the tables and the journal's id in an empty file. The caller has opened a transaction."""
    run_script(database, _TABLES)
    database.execute("INSERT INTO journal VALUES (?, ?)", (str(uuid.uuid4()), layout_of(database)))
