"""Opening a journal: the one place that chooses where it is stored."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from escrowctl.journal.journal import Journal
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.storage import Locks, Storage
from escrowctl.runtime import timestamp


def open_journal(folder: Path, *, now: Callable[[], datetime], reading: bool = False) -> Journal:
    """Return the journal in a folder; raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.

    `reading`: nothing is created, and what cannot be written is read.
    """
    storage, locks = open_storage(folder, created_at=timestamp(now()), reading=reading)
    return Journal(storage, locks, now=now, secrets=SigningSecrets(folder))


def open_storage(folder: Path, *, created_at: str, reading: bool) -> tuple[Storage, Locks]:
    """Return a folder's storage and its locks; raises as `open_journal` does."""
    storage = SqliteStorage.open(folder / "journal.db", made_at=created_at, reading=reading)
    return storage, (ReadLockFile if reading else LockFile)(folder / "journal.lock")
