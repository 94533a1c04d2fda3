"""The journal as one SQLite file with a rollback journal. Every commit is durable, and every read is checked.

In PERSIST mode, the rollback journal keeps its size, so that a commit waits less for the disk. `journal.sqlite.schema`
has the tables.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from escrowctl import sqlite
from escrowctl.errors import Reason
from escrowctl.journal.sqlite.errors import to_journal_error, translating_errors
from escrowctl.journal.sqlite.files import (
    FORMAT_VERSION,
    JournalConnection,
    connect,
    connect_to_copy,
    connect_to_read,
    read_identity,
)
from escrowctl.journal.sqlite.schema import create_tables
from escrowctl.journal.storage import CommitUnknownError, PlanRow, damaged, unusable
from escrowctl.journal.tables.database import translate_errors
from escrowctl.journal.tables.reading import read_tail
from escrowctl.journal.tables.storage import TableStorage
from escrowctl.journal.tables.transaction import TableTransaction
from escrowctl.runtime import Clock


class SqliteStorage(TableStorage):
    """One open journal file; see `storage.Storage`.

    The connection belongs to the thread that opened it: sqlite3 itself refuses other threads.
    """

    def __init__(self, path: Path, database: JournalConnection, now: Clock) -> None:
        super().__init__(database)
        self.path = path
        self._now = now
        self._db: JournalConnection = database

    @classmethod
    def open(cls, path: Path, *, now: Clock, reading: bool = False) -> SqliteStorage:
        """Open the journal's file. If the file is missing, it is created.

        `now` is the clock that dates records. `reading`: a missing file looks like an empty journal, and the file
        may be read-only.
        """
        with translating_errors(path):
            database = connect_to_read(path) if reading else connect(path)
            storage = cls(path, database, now)
            storage._prepare()
            if not reading:
                # First, while SQLite waits by itself: it may not know tables yet that another process has just created.
                storage.journal_id, problem = read_identity(database)
                database.execute("PRAGMA busy_timeout = 0")  # from now on, `PatientConnection` waits
                if problem is not None:
                    raise damaged(str(path), problem)
        return storage

    @contextlib.contextmanager
    def reading(self) -> Iterator[TableTransaction]:
        """See `storage.Storage`. Inside a transaction, the transaction itself is the view."""
        if self._open_transaction is not None:
            yield self._open_transaction
            return
        with translating_errors(self.path):
            self._db.execute("BEGIN")
        with self._ending() as view:
            yield view

    @contextlib.contextmanager
    def transaction(self, _keys: Collection[int] = ()) -> Iterator[TableTransaction]:
        """See `storage.Storage`."""
        if self._commit_failed:
            # After a failed sync, the next sync may succeed although pages never reached the disk.
            raise unusable(str(self.path), "an earlier commit of this process failed", reason=Reason.DISK_FAILED)
        with translating_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
        with self._ending() as transaction:
            yield transaction

    @translate_errors
    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        """See `storage.Storage`."""
        from escrowctl.journal.tables.batches import claim  # noqa: PLC0415 - for batches alone

        with self.transaction():
            return claim(self._db, batch, sender, limit, is_alive)

    @contextlib.contextmanager
    def _ending(self) -> Iterator[TableTransaction]:
        """Commit what has begun if the block succeeds, else roll it back."""
        try:
            with translating_errors(self.path):
                transaction = TableTransaction(self._db, read_tail(self._db), self._now, self._last_transaction)
                if not transaction.continues and sqlite.read_version(self._db) != FORMAT_VERSION:
                    raise unusable(str(self.path), "the format of the file has changed since it was opened", reason="")
            self._last_transaction = None
            with self._inside(transaction):
                yield transaction
                with translating_errors(self.path):
                    self._commit(transaction)
        except BaseException:
            self._roll_back()
            raise
        self._last_transaction = transaction

    @contextlib.contextmanager
    def reopen(self) -> Iterator[SqliteStorage]:
        """See `storage.Storage`."""
        with contextlib.closing(SqliteStorage.open(self.path, now=self._now, reading=True)) as storage:
            yield storage

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[SqliteStorage]:
        """See `storage.Storage`: a temporary database, copied page by page."""
        with contextlib.closing(connect_to_copy(str(self.path))) as database:
            with translating_errors(self.path):
                self._db.backup(database)
            yield SqliteStorage(self.path, database, self._now)

    @translate_errors
    def find_damage(self) -> str | None:
        """See `storage.Storage`."""
        from escrowctl.journal.tables.check import compare_derived_tables  # noqa: PLC0415 - for `verify` and `doctor`

        if problem := read_identity(self._db)[1] or compare_derived_tables(self._db):
            return problem
        result = str(self._db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        return None if result == "ok" else result

    def _prepare(self) -> None:
        sqlite.sync_every_commit(self._db)
        version = sqlite.create_tables_once(self._db, FORMAT_VERSION, create_tables)
        if version > FORMAT_VERSION:
            problem = f"it was written by a newer escrowctl (format {version}): upgrade escrowctl"
            raise unusable(str(self.path), problem, reason="")
        if version < FORMAT_VERSION:
            fix = "export it with the version that wrote it, then import the export"
            problem = f"it was written by an older escrowctl (format {version}): {fix}"
            raise unusable(str(self.path), problem, reason=Reason.OLDER_FORMAT)

    def _commit(self, transaction: TableTransaction) -> None:
        try:
            transaction.flush()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise
            self._commit_failed = True
            raise CommitUnknownError(to_journal_error(str(self.path), error)) from error

    def _roll_back(self) -> None:
        # A failed COMMIT may already have rolled back; the first error is the one to report.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")
