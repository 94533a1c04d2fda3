"""The journal as one SQLite file with a rollback journal. Every commit is durable, and every read is checked.

In PERSIST mode, the rollback journal keeps its size, so that a commit waits less for the disk. `journal.sqlite.schema`
has the tables.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl import sqlite
from escrowctl.errors import Reason
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, ChainRecord, Head, Kind
from escrowctl.journal.model import Entry, Selection
from escrowctl.journal.sqlite.errors import damaged, require_not_lost, translate_errors, translating_errors, unusable
from escrowctl.journal.sqlite.files import (
    FORMAT_VERSION,
    HeadFile,
    UnreadableHeadError,
    connect,
    connect_to_read,
    find_changed_layout,
)
from escrowctl.journal.sqlite.reading import (
    find_created,
    find_digest,
    read_batch,
    read_entries,
    read_records,
    read_tail,
    select_entries,
)
from escrowctl.journal.sqlite.transaction import SqliteTransaction
from escrowctl.runtime import Clock

if TYPE_CHECKING:
    from escrowctl.journal.storage import BatchSum, PlanRow


class SqliteStorage:
    """One open journal file; see `storage.Storage`.

    The connection belongs to the thread that opened it: sqlite3 itself refuses other threads.
    """

    def __init__(self, path: Path, database: sqlite3.Connection, now: Clock) -> None:
        self.path = path
        self._now = now
        self._head_file = HeadFile(path.with_suffix(".head"))
        self._db = database
        self._commit_failed = False
        self._last_transaction: SqliteTransaction | None = None
        self._open_transaction: SqliteTransaction | None = None

    @classmethod
    def open(cls, path: Path, *, now: Clock, reading: bool = False) -> SqliteStorage:
        """Open the journal's file. If the file is missing, it is created.

        `now` is the clock that dates records. `reading`: a missing file looks like an empty journal, and the file
        may be read-only.
        """
        with translating_errors(path):
            if not reading:
                require_not_lost(path)
            storage = cls(path, connect_to_read(path) if reading else connect(path), now)
            storage._prepare()
            if not reading:
                if why := find_changed_layout(storage._db):
                    raise damaged(path, why)
                storage._create_head_file()
        return storage

    @property
    def location(self) -> str:
        """The path of the file, for messages."""
        return str(self.path)

    @property
    def exists(self) -> bool:
        """See `storage.Storage`."""
        return self.path.exists()

    @cached_property
    def journal_id(self) -> str:
        """The journal's id, a UUID that was created with the file."""
        with translating_errors(self.path):
            return str(self._db.execute("SELECT id FROM journal").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """See `storage.Storage`."""
        if self._commit_failed:
            # After a failed sync, the next sync may succeed although pages never reached the disk.
            raise unusable(self.path, "an earlier commit of this process failed", reason=Reason.DISK_FAILED)
        with translating_errors(self.path):
            sqlite.begin_writing(self._db)
        try:
            with translating_errors(self.path):
                transaction = SqliteTransaction(
                    self.path, self._db, self._now, self.find_head_problem, self._last_transaction
                )
                if not transaction.is_checked and sqlite.read_version(self._db) != FORMAT_VERSION:
                    raise unusable(self.path, "the format of the file has changed since it was opened", reason="")
            self._last_transaction, self._open_transaction = None, transaction
            yield transaction
            with translating_errors(self.path):
                self._commit(transaction)
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._open_transaction = None
        self._last_transaction = transaction
        if transaction.must_save_head:
            self._head_file.update(self.journal_id, transaction.head)

    @translate_errors
    def read_last(self) -> ChainRecord | None:
        """See `storage.Storage`."""
        tail = read_tail(self._flushed_database)
        if tail.damage:
            raise damaged(self.path, tail.damage)
        return tail.records[0] if tail.records else None

    @translate_errors
    def read_last_journal_kind(self) -> str | None:
        """See `storage.Storage`."""
        query = "SELECT kind FROM records WHERE entry = ? ORDER BY sequence DESC LIMIT 1"
        row = self._db.execute(query, (NO_ENTRY,)).fetchone()
        return row[0] if row else None

    @translate_errors
    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        """See `storage.Storage`."""
        return read_records(self._flushed_database, after=after, limit=limit)

    @translate_errors
    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        """See `storage.Storage`."""
        return [folded.entry for folded in read_entries(self._flushed_database, numbers).values()]

    @translate_errors
    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """See `storage.Storage`."""
        return select_entries(self._flushed_database, selection, before=before)

    @translate_errors
    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """See `storage.Storage`."""
        from escrowctl.journal.sqlite import batches  # noqa: PLC0415 - a write that is not in a batch does not need it

        return batches.read_plan(self._db, batch, after=after, limit=limit)

    @translate_errors
    def list_batches(self) -> list[PlanRow]:
        """See `storage.Storage`."""
        from escrowctl.journal.sqlite import batches  # noqa: PLC0415 - as above

        return batches.list_batches(self._db)

    @translate_errors
    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """See `storage.Storage`."""
        return read_batch(self._flushed_database, batch, after=after, limit=limit)

    @translate_errors
    def find_created(self, result_ids: Collection[str]) -> list[Entry]:
        """See `storage.Storage`."""
        return find_created(self._flushed_database, result_ids)

    @translate_errors
    def sum_batch(self, batch: str) -> list[BatchSum]:
        """See `storage.Storage`."""
        from escrowctl.journal.sqlite import batches  # noqa: PLC0415 - as above

        return batches.add_up(self._flushed_database, batch)

    @contextlib.contextmanager
    def reopen(self) -> Iterator[SqliteStorage]:
        """See `storage.Storage`."""
        with contextlib.closing(SqliteStorage.open(self.path, now=self._now, reading=True)) as storage:
            yield storage

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[SqliteStorage]:
        """See `storage.Storage`: a temporary database, copied page by page."""
        with contextlib.closing(sqlite3.connect("", isolation_level=None)) as database:
            with translating_errors(self.path):
                self._db.backup(database)
            yield SqliteStorage(self.path, database, self._now)

    @translate_errors
    def find_mismatch(self, head: Head) -> str | None:
        """See `storage.Storage`."""
        if head != EMPTY_HEAD and find_digest(self._db, head.sequence) == head.digest:
            return None
        return self._compare_heads(head, self._read_head())

    @translate_errors
    def find_head_problem(self, head: Head | None = None) -> str | None:
        """See `storage.Storage`. `head` is the head of the chain, if the caller knows it."""
        name = self._head_file.path.name
        try:
            # Read the saved head before the chain: a commit in between then only puts the chain ahead of it.
            saved, last = self._head_file.read(), head or self._read_head()
            if saved is None and last != EMPTY_HEAD:
                # Another process may have just created both files.
                saved = self._head_file.read()
        except UnreadableHeadError:
            return f"{name} is damaged, or escrowctl did not write it"
        if saved is None:
            return None if last == EMPTY_HEAD else f"{name} is missing"
        journal_id, saved_head = saved
        if journal_id != self.journal_id:
            return f"{name} belongs to journal {journal_id}, not to this one"
        return self._compare_heads(saved_head, last)

    def require_complete(self) -> None:
        """See `storage.Storage`."""
        require_not_lost(self.path)
        if (why := self.find_head_problem()) is not None:
            raise unusable(self.path, why, reason=Reason.DAMAGED)
        self.read_last()

    @translate_errors
    def count_records(self) -> int:
        """Return the number of records, including damaged ones, but without the closing record."""
        query = "SELECT coalesce(max(sequence), 0) FROM records WHERE kind != ?"
        return int(self._db.execute(query, (Kind.CLOSING,)).fetchone()[0])

    @translate_errors
    def find_damage(self) -> str | None:
        """See `storage.Storage`."""
        from escrowctl.journal.sqlite.check import find_damage  # noqa: PLC0415 - for `journal verify` alone

        return find_changed_layout(self._db) or find_damage(self._db)

    @property
    def _flushed_database(self) -> sqlite3.Connection:
        """The connection for reads. An open transaction first writes its records, so that the reads see them."""
        if self._open_transaction is not None:
            self._open_transaction.flush()
        return self._db

    def _read_head(self) -> Head:
        return read_tail(self._db).head

    def _compare_heads(self, head: Head, last: Head) -> str | None:
        found, expected = last.sequence, head.sequence
        if expected > found:
            return (
                f"the journal has {found} records but had {expected}: an older copy was restored or the file was "
                "truncated"
            )
        if head == EMPTY_HEAD:
            return None
        digest = last.digest if head.sequence == last.sequence else find_digest(self._db, head.sequence)
        return None if digest == head.digest else f"record {head.sequence} was changed"

    def _prepare(self) -> None:
        sqlite.sync_every_commit(self._db)
        version = sqlite.create_tables_once(self._db, FORMAT_VERSION, _create_tables)
        if version > FORMAT_VERSION:
            problem = f"it was written by a newer escrowctl (format {version}): upgrade escrowctl"
            raise unusable(self.path, problem, reason="")
        if version < FORMAT_VERSION:
            fix = "export it with the version that wrote it, then import the export"
            problem = f"it was written by an older escrowctl (format {version}): {fix}"
            raise unusable(self.path, problem, reason=Reason.OLDER_FORMAT)

    def _create_head_file(self) -> None:
        """Create the head file of a journal without records. With records, a missing head file is an error."""
        if not os.path.lexists(self._head_file.path):
            # In a transaction, so that no record is written in between.
            with self.transaction() as transaction:
                if transaction.head == EMPTY_HEAD:
                    self._head_file.replace(self.journal_id, EMPTY_HEAD)

    def _commit(self, transaction: SqliteTransaction | None = None) -> None:
        try:
            if transaction is not None:
                transaction.flush()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._commit_failed = error.sqlite_errorcode != sqlite3.SQLITE_BUSY
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # A failed COMMIT may already have rolled back; the first error is the one to report.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")


def _create_tables(database: sqlite3.Connection) -> None:
    from escrowctl.journal.sqlite.schema import create_tables  # noqa: PLC0415 - for a new journal alone

    create_tables(database)
