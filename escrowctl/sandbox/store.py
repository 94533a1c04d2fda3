"""The sandbox's one SQLite file: open it, and run single transactions or groups with a shared commit.

A server is the only user of its store. One thread handles all requests that have arrived. Their transactions share
one commit, and so one fsync. Each transaction has its own savepoint, and no answer is sent before the commit.
(Measured: eight threads that pass on the commit are ten times slower, as each waits for the interpreter's lock.)
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
from escrowctl.sandbox.ownership import require_private_file, unusable_file
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.schema import FORMAT, TABLES
from escrowctl.sandbox.seed import draw_letters
from escrowctl.sqlite import BUSY_SECONDS, connect, create_tables_once, primary_code, sync_every_commit, transaction

FILE_NAME = "sandbox.db"

_RESET = command("sandbox reset --yes", "to delete the sandbox and create a new one", bare=True)


class Store:
    """One connection to the store, safe for several threads.

    If `alone`, no other process uses the store: it has a write-ahead log and synchronous FULL, and one thread can
    group transactions into one commit. If not `alone`, it has a rollback journal (PERSIST) and synchronous EXTRA.
    Committed data survives a crash in both modes. `identity` and `key` were drawn when the file was created.

    The sandbox's time is this machine's time (`now()`, an aware datetime) plus an offset, which
    `sandbox clock advance` increases. The offset is in the store, so commands and a server see the same time.
    """

    def __init__(
        self, connection: sqlite3.Connection, folder: Path, *, now: Callable[[], datetime], alone: bool
    ) -> None:
        self._connection = connection
        self.folder = folder
        self._alone = alone
        self._lock = threading.RLock()
        self._is_grouped = False
        self.machine_time = now
        self.identity, self.key = map(str, connection.execute("SELECT identity, api_key FROM sandbox").fetchone())

    def sandbox_time(self, connection: sqlite3.Connection) -> str:
        """Return the sandbox's time as a timestamp. Call it inside a transaction."""
        return timestamp(self.machine_time() + self.clock_offset(connection))

    def clock_offset(self, connection: sqlite3.Connection) -> timedelta:
        """Return how far the sandbox's time is ahead of this machine's."""
        (milliseconds,) = connection.execute("SELECT clock_ahead_ms FROM sandbox").fetchone()
        return timedelta(milliseconds=milliseconds)

    def advance_to(self, moment: str) -> None:
        """Advance the sandbox's time to a moment. A moment in the past changes nothing."""
        with self.writing() as connection:
            missing = datetime.fromisoformat(moment) - self.machine_time() - self.clock_offset(connection)
            # Rounded up: timers for exactly this moment must be due.
            milliseconds = max(0, -(-missing // timedelta(milliseconds=1)))
            connection.execute("UPDATE sandbox SET clock_ahead_ms = clock_ahead_ms + ?", (milliseconds,))

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Run the block in one write transaction. If the block raises, the transaction is rolled back.

        The changes are durable after the block, or after the `group` around the block. Raises
        sqlite3.OperationalError (SQLITE_BUSY) if other processes lock the store for too long; nothing is changed.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Run the block in one read transaction: all its queries see the same state."""
        return self._transaction("BEGIN DEFERRED")

    @contextmanager
    def group(self) -> Iterator[None]:
        """Commit all transactions of the block together at its end. Transactions of other threads wait for the end.

        Raises sqlite3.Error if the commit fails; then nothing is changed.
        """
        with self._lock:
            self._is_grouped = True
            try:
                with transaction(self._connection, "BEGIN IMMEDIATE"):
                    yield
                    self._require_open_group()
            finally:
                self._is_grouped = False

    def close(self) -> None:
        """Close the file. No thread may be using it. A second call does nothing."""
        if self._alone:
            with contextlib.suppress(sqlite3.Error):
                # Commands share the store without a write-ahead log. If this fails, the next command removes it.
                self._connection.execute("PRAGMA journal_mode = PERSIST")
        self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if not self._is_grouped:
                with transaction(self._connection, begin):
                    yield self._connection
                return
            self._require_open_group()
            self._connection.execute("SAVEPOINT member")
            try:
                yield self._connection
                self._connection.execute("RELEASE member")
            except BaseException:
                # On a full disk SQLite rolls back the group by itself, with all its savepoints.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK TO member")
                    self._connection.execute("RELEASE member")
                raise

    def _require_open_group(self) -> None:
        if not self._connection.in_transaction:
            raise sqlite3.OperationalError("the database rolled back the transaction")


def open_store(folder: Path, *, now: Callable[[], datetime], alone: bool = False) -> Store:
    """Open `sandbox.db` in the folder. Create both, private to this user, if they are missing.

    With `alone` the caller guarantees that no other process opens the store (ownership.py). Raises
    `ErrorCode.STATE_UNUSABLE` if the folder or the file is not private to this user, if the file is read-only,
    damaged, not a sandbox store, or of another format, or if the disk is full.
    """
    path = folder / FILE_NAME
    require_private_file(path)
    try:
        connection = connect(path, seconds=BUSY_SECONDS, any_thread=True)
        try:
            return _set_up(connection, path, now=now, alone=alone)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        is_damaged = primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
        raise unusable_file(path, str(error), hint=_RESET if is_damaged else ()) from error


def _set_up(connection: sqlite3.Connection, path: Path, *, now: Callable[[], datetime], alone: bool) -> Store:
    connection.row_factory = sqlite3.Row
    if alone:
        # Exclusive, without shared memory: SQLite before 3.51.3 can reset a log that two connections share.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    else:
        sync_every_commit(connection)
    connection.execute("PRAGMA foreign_keys = ON")

    def create(new: sqlite3.Connection) -> None:
        for statement in TABLES.split("\n\n"):
            new.execute(statement)
        values = (f"sbx_{draw_letters(new)}", f"sk_sandbox_{secrets.token_hex(16)}", timestamp(now()))
        new.execute("INSERT INTO sandbox (only_row, identity, api_key, created_at) VALUES (1, ?, ?, ?)", values)

    version = create_tables_once(connection, FORMAT, create)
    if version != FORMAT:
        raise unusable_file(path, f"its format is {version}, but this escrowctl reads format {FORMAT}", hint=_RESET)
    return Store(connection, path.parent, now=now, alone=alone)
