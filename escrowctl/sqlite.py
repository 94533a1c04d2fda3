"""Functions for all SQLite files of escrowctl: connections, durable commits, transactions, creation of tables."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY_SECONDS = 10.0
"""How long a statement waits for the locks of other processes."""


def connect(path: Path, *, seconds: float = BUSY_SECONDS, any_thread: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode, so that no transaction is open by accident. Raises sqlite3.Error.

    The file must exist. Statements wait `seconds` for locks. `any_thread`: any thread may use the connection.
    """
    return sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=not any_thread)


def sync_every_commit(database: sqlite3.Connection) -> None:
    """Use a rollback journal and sync each commit: safe for several processes with every version of SQLite.

    Before SQLite 3.51.3, two users of a write-ahead log can damage a file (sqlite.org/wal.html, section 11).
    """
    database.execute("PRAGMA journal_mode = PERSIST").fetchall()
    database.execute("PRAGMA synchronous = EXTRA")


@contextmanager
def transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Run the block in a transaction. Commit at its end; roll back if the block or the commit fails."""
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        # On a full disk SQLite may have rolled back by itself.
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def read_version(database: sqlite3.Connection) -> int:
    """Return the version of a file's format (`user_version`). A new file has 0."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def create_tables_once(database: sqlite3.Connection, version: int, create: Callable[[sqlite3.Connection], None]) -> int:
    """If the file is new, call `create` and store `version`, in one transaction. Return the file's version."""
    if (found := read_version(database)) == 0:
        with transaction(database):
            # Read again: another process may have created them.
            if read_version(database) == 0:
                create(database)
                database.execute(f"PRAGMA user_version = {version}")
    return found or read_version(database)


def run_script(database: sqlite3.Connection, script: str) -> None:
    """Run statements inside the open transaction; sqlite3's own executescript would commit first."""
    for statement in filter(str.strip, script.split(";")):
        database.execute(statement)


def primary_code(error: BaseException | None) -> int:
    """Return the primary result code of an error, the low byte (sqlite.org/rescode.html); 0 if it has no code."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)) & 0xFF
