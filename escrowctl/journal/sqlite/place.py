"""A journal in a folder: one SQLite file, with a lock file next to it."""

import contextlib
from pathlib import Path

from escrowctl import sqlite
from escrowctl.journal.sqlite.errors import translating_errors
from escrowctl.journal.sqlite.files import connect_to_read
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.runtime import Clock


class SqlitePlace:
    """The folder of a journal; see `storage.JournalPlace`."""

    is_shared = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "journal.db"
        self.head_path = folder / "journal.head"

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def exists(self) -> bool:
        """See `storage.JournalPlace`."""
        with translating_errors(self.path):
            return self.path.exists()

    def find_id(self) -> str | None:
        """See `storage.JournalPlace`."""
        with translating_errors(self.path), contextlib.closing(connect_to_read(self.path)) as database:
            return database.execute("SELECT id FROM journal").fetchone()[0] if sqlite.read_version(database) else None

    def open(self, *, now: Clock, reading: bool) -> tuple[SqliteStorage, LockFile]:
        """See `storage.JournalPlace`."""
        storage = SqliteStorage.open(self.path, now=now, reading=reading)
        return storage, (ReadLockFile if reading else LockFile)(self.folder / "journal.lock")

    def warn_of_locks(self) -> str | None:
        """See `storage.JournalPlace`."""
        from escrowctl.journal.sqlite.mounts import warn_of_unshared_locks  # noqa: PLC0415 - for live writes and doctor

        return warn_of_unshared_locks(self.folder)
