"""A journal in a folder: one SQLite file, with a lock file next to it."""

from pathlib import Path

from escrowctl.journal.sqlite.files import FORMAT_VERSION, find_journal_id
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.runtime import Clock


class SqlitePlace:
    """The folder of a journal; see `storage.JournalPlace`."""

    format_version = FORMAT_VERSION

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "journal.db"

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def exists(self) -> bool:
        """See `storage.JournalPlace`."""
        return self.path.exists()

    def find_id(self) -> str | None:
        """See `storage.JournalPlace`."""
        return find_journal_id(self.path)

    def open(self, *, now: Clock, reading: bool) -> tuple[SqliteStorage, LockFile]:
        """See `storage.JournalPlace`."""
        storage = SqliteStorage.open(self.path, now=now, reading=reading)
        return storage, (ReadLockFile if reading else LockFile)(self.folder / "journal.lock")

    def warn_of_locks(self) -> str | None:
        """See `storage.JournalPlace`."""
        from escrowctl.journal.sqlite.mounts import warn_of_unshared_locks  # noqa: PLC0415 - for live writes and doctor

        return warn_of_unshared_locks(self.folder)
