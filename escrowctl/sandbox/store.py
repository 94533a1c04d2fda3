"""The sandbox's one SQLite file: open it, write single transactions or group commits.

A server is the only user of its store. One thread answers all requests that have arrived. Their
transactions share one commit, and so one fsync. Each runs in its own savepoint, and no request is
answered before its commit. (Threads that pass the commit to each other were measured: with eight
they are ten times slower, because each waits for the interpreter's lock.)
"""

import contextlib
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from escrowctl.errors import command
from escrowctl.sandbox.ownership import require_private_file, unusable
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.schema import FORMAT, TABLES
from escrowctl.sandbox.seed import draw_letters
from escrowctl.sqlite import BUSY_SECONDS, connect, prepare, primary_code, sync_every_commit, transaction

FILE_NAME = "sandbox.db"

_RESET = command("sandbox reset --yes", "to delete it and make a new one", bare=True)


class Store:
    """One connection to the store; transactions of a store with one user can share a commit.

    Shared with other processes: rollback journal (TRUNCATE), synchronous EXTRA, any number of
    threads. Alone: write-ahead log, synchronous FULL, group commit by one thread. Committed data
    survives a crash in both. `identity` and `key` were drawn when the file was created.

    The sandbox's time is this machine's (`now`, an aware datetime) plus the distance by which `sandbox clock advance`
    has moved it ahead. The distance is in the store, so that commands and a server see the same time. It only grows.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        folder: Path,
        *,
        now: Callable[[], datetime],
        identity: str,
        key: str,
        alone: bool,
    ) -> None:
        self._connection = connection
        self.folder = folder
        self._alone = alone
        self._turn = threading.RLock()
        self._grouped = False
        self.machine_time = now
        self.identity = identity
        self.key = key

    def time(self, connection: sqlite3.Connection) -> str:
        """Return the sandbox's time as a timestamp; call it inside a transaction."""
        return timestamp(self.machine_time() + self.ahead(connection))

    def ahead(self, connection: sqlite3.Connection) -> timedelta:
        """Return how far the sandbox's time is ahead of this machine's."""
        (milliseconds,) = connection.execute("SELECT clock_ahead_ms FROM sandbox").fetchone()
        return timedelta(milliseconds=milliseconds)

    def advance_to(self, moment: str) -> None:
        """Move the sandbox's time ahead to a moment; a moment in the past changes nothing."""
        with self.writing() as connection:
            missing = datetime.fromisoformat(moment) - self.machine_time() - self.ahead(connection)
            # Rounded up: timers for exactly this moment must be due.
            milliseconds = max(0, -(-missing // timedelta(milliseconds=1)))
            connection.execute("UPDATE sandbox SET clock_ahead_ms = clock_ahead_ms + ?", (milliseconds,))

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """One write transaction, rolled back when the block raises.

        It is durable after the block, or inside a group after the group. Raises
        sqlite3.OperationalError (SQLITE_BUSY), with nothing changed, if other processes lock
        the store for longer than its timeout.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """One read transaction: all queries in the block see the same state."""
        return self._transaction("BEGIN DEFERRED")

    @contextmanager
    def group(self) -> Iterator[None]:
        """Make all transactions of the block durable at its end. Transactions of other threads wait for it.

        Raises sqlite3.Error if that fails; then none of them has changed anything.
        """
        with self._turn:
            self._grouped = True
            try:
                with transaction(self._connection, "BEGIN IMMEDIATE"):
                    yield
                    self._require_group()
            finally:
                self._grouped = False

    def close(self) -> None:
        """Close the file, once no thread uses it; a second call does nothing."""
        if self._alone:
            with contextlib.suppress(sqlite3.Error):
                # Commands share the store without a write-ahead log; if this fails, they remove it.
                self._connection.execute("PRAGMA journal_mode = TRUNCATE")
        self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._turn, self._member() if self._grouped else transaction(self._connection, begin):
            yield self._connection

    @contextmanager
    def _member(self) -> Iterator[None]:
        self._require_group()
        self._connection.execute("SAVEPOINT member")
        try:
            yield
            self._connection.execute("RELEASE member")
        except BaseException:
            # On a full disk SQLite rolls back the group by itself, with all its savepoints.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO member")
                self._connection.execute("RELEASE member")
            raise

    def _require_group(self) -> None:
        if not self._connection.in_transaction:
            raise sqlite3.OperationalError("the database rolled back the transaction")


def open_store(
    folder: Path, *, now: Callable[[], datetime], timeout: float = BUSY_SECONDS, alone: bool = False
) -> Store:
    """Open `sandbox.db` in the folder; create both, private to this user, if they are missing.

    `alone`: the caller guarantees that no other process opens the store (ownership.py). `timeout` is
    how many seconds to wait for other processes. Raises `ErrorCode.STATE_UNUSABLE` if the folder or
    the file is not private to this user, if the file is read-only, damaged, not a sandbox store, or
    of another format, or if the disk is full.
    """
    path = folder / FILE_NAME
    require_private_file(path)
    try:
        connection = connect(path, seconds=timeout, any_thread=True)
        try:
            return _open(connection, path, now=now, alone=alone)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        is_damaged = primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
        raise unusable(path, str(error), hint=_RESET if is_damaged else ()) from error


def _open(connection: sqlite3.Connection, path: Path, *, now: Callable[[], datetime], alone: bool) -> Store:
    connection.row_factory = sqlite3.Row
    if alone:
        # One connection, and no shared memory: SQLite before 3.51.3 can reset a log that two share.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    else:
        sync_every_commit(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    version = prepare(connection, FORMAT, lambda new: _create(new, at=timestamp(now())))
    if version != FORMAT:
        raise unusable(path, f"its format is {version}, this escrowctl reads {FORMAT}", hint=_RESET)
    identity, key = connection.execute("SELECT identity, api_key FROM sandbox").fetchone()
    return Store(connection, path.parent, now=now, identity=identity, key=key, alone=alone)


def _create(connection: sqlite3.Connection, *, at: str) -> None:
    for statement in TABLES.split("\n\n"):
        connection.execute(statement)
    values = (f"sbx_{draw_letters(connection)}", f"sk_sandbox_{secrets.token_hex(16)}", at)
    connection.execute("INSERT INTO sandbox (only_row, identity, api_key, created_at) VALUES (1, ?, ?, ?)", values)
