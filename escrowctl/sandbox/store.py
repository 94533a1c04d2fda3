"""The sandbox's one SQLite file: open it, write single transactions or group commits.

A server is the only user of its store. One thread answers all requests that have arrived. Their
transactions share one commit, and so one fsync. Each runs in its own savepoint, and no request is
answered before its commit. (Threads that pass the commit to each other were measured: with eight
they are ten times slower, because each waits for the interpreter's lock.)
"""

import contextlib
import secrets
import shlex
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from escrowctl.errors import EscrowctlError, command
from escrowctl.sandbox.ownership import private_file, private_folder, unusable
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.schema import APPLICATION_ID, FORMAT, TABLES
from escrowctl.sandbox.seed import draw_id
from escrowctl.sqlite import connect, prepare, primary_code, sync_every_commit, transaction

FILE_NAME = "sandbox.db"
TIMEOUT_SECONDS = 10.0

REASONS: Mapping[int, str] = MappingProxyType(
    {
        sqlite3.SQLITE_BUSY: "another program has locked it",
        sqlite3.SQLITE_LOCKED: "another program has locked it",
        sqlite3.SQLITE_READONLY: "it is read-only",
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_IOERR: "reading or writing it failed",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
        sqlite3.SQLITE_CORRUPT: "it is damaged",
        sqlite3.SQLITE_NOTADB: "it is not a sandbox store",
    }
)

BEYOND_REPAIR = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Store:
    """One connection to the store; transactions of a store with one user can share a commit.

    Shared with other processes: rollback journal (TRUNCATE), synchronous EXTRA, any number of
    threads. Alone: write-ahead log, synchronous FULL, group commit by one thread. Committed data
    survives a crash in both. `identity` and `key` were drawn when the file was created.
    """

    def __init__(self, connection: sqlite3.Connection, *, identity: str, key: str, alone: bool) -> None:
        self._connection = connection
        self._alone = alone
        self._turn = threading.RLock()
        self._grouped = False
        self.identity = identity
        self.key = key

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
    folder: Path, *, now: Callable[[], datetime], timeout: float = TIMEOUT_SECONDS, alone: bool = False
) -> Store:
    """Open `sandbox.db` in the folder; create both, private to this user, if they are missing.

    `alone`: the caller guarantees that no other process opens the store (ownership.py). `timeout` is
    how many seconds to wait for other processes. Raises `ErrorCode.STATE_UNUSABLE` if the folder or
    the file is not private to this user, if the file is read-only, damaged, not a sandbox store, or
    of a newer version, or if the disk is full.
    """
    private_folder(folder)
    path = folder / FILE_NAME
    private_file(path)
    try:
        return _connect(path, now=now, timeout=timeout, alone=alone)
    except sqlite3.Error as error:
        raise _unusable(path, error) from error


def has_write_ahead_log(folder: Path) -> bool:
    """Whether a server left its write-ahead log. Only an exclusive owner can remove it."""
    return (folder / f"{FILE_NAME}-wal").exists()


def _connect(path: Path, *, now: Callable[[], datetime], timeout: float, alone: bool) -> Store:
    connection = connect(path, seconds=timeout, any_thread=True)
    try:
        connection.row_factory = sqlite3.Row
        if alone:
            # One connection, and no shared memory: SQLite before 3.51.3 can reset a log that two share.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        else:
            sync_every_commit(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        _require_format(connection, path, prepare(connection, FORMAT, lambda new: _create(new, path, at=now())))
        row = connection.execute("SELECT identity, api_key FROM sandbox").fetchone()
        if row is None:
            raise unusable(path, "it is damaged (its service id is missing)", hint=_set_aside(path))
        return Store(connection, identity=row["identity"], key=row["api_key"], alone=alone)
    except BaseException:
        connection.close()
        raise


def _create(connection: sqlite3.Connection, path: Path, *, at: datetime) -> None:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables:
        raise unusable(path, REASONS[sqlite3.SQLITE_NOTADB])
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    key = f"sk_sandbox_{secrets.token_hex(16)}"
    values = (draw_id(connection, "sbx"), key, timestamp(at))
    connection.execute("INSERT INTO sandbox (only_row, identity, api_key, created_at) VALUES (1, ?, ?, ?)", values)


def _require_format(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Raise `ErrorCode.STATE_UNUSABLE` for a file of another program or of another format."""
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID:
        raise unusable(path, REASONS[sqlite3.SQLITE_NOTADB])
    if version > FORMAT:
        raise unusable(path, f"a newer escrowctl created it (its format is {version}, this escrowctl reads {FORMAT})")
    if version < FORMAT:
        reset = command("sandbox reset --yes", "to delete it and make a new one", bare=True)
        raise unusable(path, f"its format is {version}, this escrowctl reads {FORMAT}", hint=reset)


def _unusable(path: Path, error: sqlite3.Error) -> EscrowctlError:
    code = primary_code(error)
    hint = () if code in REASONS and code not in BEYOND_REPAIR else _set_aside(path)
    return unusable(path, REASONS.get(code, f"it is damaged ({error})"), hint=hint)


def _set_aside(path: Path) -> str:
    quoted = shlex.quote(str(path))
    return f"mv {quoted} {quoted}.damaged"
