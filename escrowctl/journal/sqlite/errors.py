"""Turn errors of SQLite and of the operating system into `ErrorCode.JOURNAL_UNUSABLE`."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.storage import damaged, unusable
from escrowctl.sqlite import primary_code

_REASON_OF_CODE = {
    sqlite3.SQLITE_BUSY: Reason.LOCKED,
    sqlite3.SQLITE_CORRUPT: Reason.DAMAGED,
    sqlite3.SQLITE_ERROR: Reason.DAMAGED,
    sqlite3.SQLITE_FULL: Reason.DISK_FULL,
    sqlite3.SQLITE_IOERR: Reason.DISK_FAILED,
    sqlite3.SQLITE_NOTADB: Reason.DAMAGED,
}
TRANSLATED_ERRORS = (sqlite3.Error, OSError, *DECODING_ERRORS)


@contextlib.contextmanager
def translating_errors(path: Path) -> Iterator[None]:
    """Turn errors of the journal's file in the `with` block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except TRANSLATED_ERRORS as error:
        raise to_journal_error(str(path), error) from error


@contextlib.contextmanager
def translating_lock_errors(path: Path) -> Iterator[None]:
    """Turn an OSError about the lock file in the `with` block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except OSError as error:
        message = f"the journal's lock file {path} cannot be used: {error.strerror or error}."
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message) from error


def to_journal_error(location: str, error: Exception) -> EscrowctlError:
    """Return the error `ErrorCode.JOURNAL_UNUSABLE` for an error of SQLite or the operating system, or a bad value."""
    if isinstance(error, sqlite3.Error):
        return unusable(location, str(error), reason=_REASON_OF_CODE.get(primary_code(error), Reason.FILE_UNUSABLE))
    if isinstance(error, OSError):
        return unusable(location, str(error))
    return damaged(location, "a stored value does not match its record")
