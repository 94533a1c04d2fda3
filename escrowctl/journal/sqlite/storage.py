"""The journal as one SQLite file in rollback mode, every commit durable.

TRUNCATE mode with synchronous=EXTRA costs under a millisecond a commit. `journal.sqlite.schema` has the tables. Every
read is checked: a damaged file raises an error.
"""

import contextlib
import os
import sqlite3
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path

from escrowctl import sqlite
from escrowctl.journal.chain import EMPTY, JOURNAL, Head, Kind, Link
from escrowctl.journal.model import Entry, PlanRow, Selection
from escrowctl.journal.reasons import Reason
from escrowctl.journal.sqlite import schema
from escrowctl.journal.sqlite.connection import connect, connect_to_read
from escrowctl.journal.sqlite.errors import damaged, require_not_lost, translated, translating, unusable
from escrowctl.journal.sqlite.head import HeadFile, UnreadableHeadError
from escrowctl.journal.sqlite.reading import (
    add_up,
    find_created,
    find_digest,
    read_batch,
    read_entries,
    read_links,
    read_tail,
    select_entries,
)
from escrowctl.journal.sqlite.transaction import SqliteTransaction
from escrowctl.journal.storage import BatchSum

_BATCHES = """
SELECT batch, 0, max(content) FROM (
  SELECT batch, content FROM plans WHERE row = 0
  UNION ALL SELECT DISTINCT batch, '' FROM entries WHERE batch IS NOT NULL AND origin IS NULL
) GROUP BY batch ORDER BY length(batch), batch"""


class SqliteStorage:
    """One open journal file; see `storage.Storage`.

    The connection belongs to the thread that opened it: sqlite3 itself refuses other threads.
    """

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._saved = HeadFile(path.with_suffix(".head"))
        self._db = database
        self._failed = False
        self._last_transaction: SqliteTransaction | None = None
        self._open_transaction: SqliteTransaction | None = None

    @classmethod
    def open(cls, path: Path, *, reading: bool = False) -> "SqliteStorage":
        """Open the file. Creates it if it is missing.

        `reading`: a missing file reads as an empty journal, and a file that cannot be written is read too.
        """
        with translating(path):
            if not reading:
                require_not_lost(path)
            storage = cls(path, connect_to_read(path) if reading else connect(path))
            storage._prepare()
            if not reading:
                if why := schema.find_flaw(storage._db):
                    raise damaged(path, why)
                storage._create_head()
        return storage

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self.path)

    @property
    def is_there(self) -> bool:
        """See `storage.Storage`."""
        return self.path.exists()

    @cached_property
    def journal_id(self) -> str:
        """The journal's own id, created with the file."""
        with translating(self.path):
            return str(self._db.execute("SELECT id FROM journal").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """See `storage.Storage`."""
        if self._failed:
            # After a failed sync, the next sync may succeed although pages never reached the disk.
            raise unusable(self.path, "an earlier commit of this process failed", reason=Reason.DISK_FAILED)
        with translating(self.path):
            self._db.execute("BEGIN IMMEDIATE")
        try:
            with translating(self.path):
                if sqlite.version_of(self._db) != schema.VERSION:
                    raise unusable(self.path, "its format has changed since it was opened", reason="")
                transaction = SqliteTransaction(self.path, self._db, self.find_lost, self._last_transaction)
            self._last_transaction, self._open_transaction = None, transaction
            yield transaction
            with translating(self.path):
                self._commit(transaction)
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._open_transaction = None
        self._last_transaction = transaction
        if transaction.appended:
            self._saved.update(self.journal_id, transaction.head)

    @translated
    def last(self) -> Link | None:
        """See `storage.Storage`."""
        tail = read_tail(self._flushed)
        if tail.damage:
            raise damaged(self.path, tail.damage)
        return tail.links[0] if tail.links else None

    @translated
    def last_note(self) -> Kind | None:
        """See `storage.Storage`."""
        query = "SELECT kind FROM records WHERE entry = ? ORDER BY sequence DESC LIMIT 1"
        row = self._db.execute(query, (JOURNAL,)).fetchone()
        return Kind(row[0]) if row else None

    @translated
    def records(self, *, after: int, limit: int) -> list[Link]:
        """See `storage.Storage`."""
        return read_links(self._flushed, after=after, limit=limit)

    @translated
    def entries(self, numbers: Collection[int]) -> list[Entry]:
        """See `storage.Storage`."""
        return [folded.entry for folded in read_entries(self._flushed, numbers).values()]

    @translated
    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """See `storage.Storage`."""
        return select_entries(self._flushed, selection, before=before)

    @translated
    def planned(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """See `storage.Storage`."""
        query = "SELECT * FROM plans WHERE batch = ? AND row > ? ORDER BY row LIMIT ?"
        return [PlanRow(*row) for row in self._db.execute(query, (batch, after, limit)).fetchall()]

    @translated
    def batches(self) -> list[PlanRow]:
        """See `storage.Storage`."""
        return [PlanRow(*row) for row in self._db.execute(_BATCHES).fetchall()]

    @translated
    def in_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """See `storage.Storage`."""
        return read_batch(self._flushed, batch, after=after, limit=limit)

    @translated
    def created(self, result_ids: Collection[str]) -> list[Entry]:
        """See `storage.Storage`."""
        return find_created(self._flushed, result_ids)

    @translated
    def add_up(self, batch: str) -> list[BatchSum]:
        """See `storage.Storage`."""
        return add_up(self._flushed, batch)

    @contextlib.contextmanager
    def reopened(self) -> Iterator["SqliteStorage"]:
        """See `storage.Storage`."""
        with contextlib.closing(SqliteStorage.open(self.path, reading=True)) as storage:
            yield storage

    @contextlib.contextmanager
    def snapshot(self) -> Iterator["SqliteStorage"]:
        """See `storage.Storage`: a temporary database, copied page by page."""
        with contextlib.closing(sqlite3.connect("", isolation_level=None)) as database:
            with translating(self.path):
                self._db.backup(database)
            yield SqliteStorage(self.path, database)

    @translated
    def contradiction(self, head: Head) -> str | None:
        """See `storage.Storage`."""
        if head != EMPTY and find_digest(self._db, head.sequence) == head.digest:
            return None
        return self._contradiction(head, self._head())

    @translated
    def find_lost(self, head: Head | None = None) -> str | None:
        """See `storage.Storage`. `head` is the end of the chain, if the caller knows it."""
        name = self._saved.path.name
        try:
            # Read the saved head before the chain: a commit in between then only puts the chain ahead of it.
            saved, last = self._saved.read(), head or self._head()
            if saved is None and last != EMPTY:
                # Both may have just been created.
                saved = self._saved.read()
        except UnreadableHeadError:
            return f"{name} is damaged, or escrowctl did not write it"
        if saved is None:
            return None if last == EMPTY else f"{name} is missing"
        if saved.journal_id != self.journal_id:
            return f"{name} belongs to journal {saved.journal_id}, not to this one"
        return self._contradiction(saved.head, last)

    def require_complete(self) -> None:
        """See `storage.Storage`."""
        require_not_lost(self.path)
        if (why := self.find_lost()) is not None:
            raise unusable(self.path, why, reason=Reason.DAMAGED)
        self.last()

    @translated
    def count_records(self) -> int:
        """Return the number of records, including damaged ones, without a closing record at the end."""
        query = "SELECT coalesce(max(sequence), 0) FROM records WHERE kind != ?"
        return int(self._db.execute(query, (Kind.CLOSING,)).fetchone()[0])

    @translated
    def find_damage(self) -> str | None:
        """See `storage.Storage`."""
        from escrowctl.journal.sqlite.check import find_damage  # noqa: PLC0415 - for `journal verify` alone

        return schema.find_flaw(self._db) or find_damage(self._db)

    @property
    def _flushed(self) -> sqlite3.Connection:
        """The connection. A read through it sees the records that an open transaction has appended."""
        if self._open_transaction is not None:
            self._open_transaction.flush()
        return self._db

    def _head(self) -> Head:
        return read_tail(self._db).head

    def _contradiction(self, head: Head, last: Head) -> str | None:
        if head.sequence > last.sequence:
            older = "an older copy was restored or the file was truncated"
            return f"the journal has {last.sequence} records but had {head.sequence}: {older}"
        if head == EMPTY:
            return None
        digest = last.digest if head.sequence == last.sequence else find_digest(self._db, head.sequence)
        return None if digest == head.digest else f"record {head.sequence} was changed"

    def _prepare(self) -> None:
        sqlite.sync_every_commit(self._db)
        version = sqlite.prepare(self._db, schema.VERSION, schema.create_tables)
        if version > schema.VERSION:
            why = f"it was written by a newer escrowctl (format {version}): upgrade escrowctl"
            raise unusable(self.path, why, reason="")
        if version < schema.VERSION:
            way_on = "export it with the version that wrote it, then import the export"
            why = f"it was written by an older escrowctl (format {version}): {way_on}"
            raise unusable(self.path, why, reason=Reason.OLDER_FORMAT)

    def _create_head(self) -> None:
        """Create the head file if the journal has no records. If it has records, a missing head file shows a loss."""
        if not os.path.lexists(self._saved.path):
            # In a transaction, so that no record is written in between.
            with self.transaction() as transaction:
                if transaction.head == EMPTY:
                    self._saved.replace(self.journal_id, EMPTY)

    def _commit(self, transaction: SqliteTransaction | None = None) -> None:
        try:
            if transaction is not None:
                transaction.flush()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._failed = error.sqlite_errorcode != sqlite3.SQLITE_BUSY
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # A failed COMMIT may already have rolled back; the first error is the one to report.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")
