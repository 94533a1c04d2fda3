"""Turn errors of SQLite and of the operating system into `ErrorCode.JOURNAL_UNUSABLE`."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from escrowctl.errors import ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.journal.fields import DECODING_ERRORS
from escrowctl.journal.storage import damaged, unusable
from escrowctl.sqlite import primary_code

_P = ParamSpec("_P")
_R = TypeVar("_R")
_REASON_OF_CODE = {
    sqlite3.SQLITE_BUSY: Reason.LOCKED,
    sqlite3.SQLITE_CORRUPT: Reason.DAMAGED,
    sqlite3.SQLITE_ERROR: Reason.DAMAGED,
    sqlite3.SQLITE_FULL: Reason.DISK_FULL,
    sqlite3.SQLITE_IOERR: Reason.DISK_FAILED,
    sqlite3.SQLITE_NOTADB: Reason.DAMAGED,
}
_TRANSLATED_ERRORS = (sqlite3.Error, OSError, *DECODING_ERRORS)


def translate_errors(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """Wrap a method so that errors of the file at the object's `path` become `ErrorCode.JOURNAL_UNUSABLE`."""

    @functools.wraps(method)
    def translating_method(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except _TRANSLATED_ERRORS as error:
            raise to_journal_error(self.path, error) from error

    return translating_method


@contextlib.contextmanager
def translating_errors(path: Path) -> Iterator[None]:
    """Turn errors of the journal's file in the `with` block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except _TRANSLATED_ERRORS as error:
        raise to_journal_error(path, error) from error


@contextlib.contextmanager
def translating_lock_errors(path: Path) -> Iterator[None]:
    """Turn an OSError about the lock file in the `with` block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except OSError as error:
        cause = error.strerror or error
        message = f"the journal's lock file {path} cannot be used: {cause}."
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, message) from error


def to_journal_error(path: Path, error: Exception) -> EscrowctlError:
    """Return the error `ErrorCode.JOURNAL_UNUSABLE` for an error of SQLite or the operating system, or a bad value."""
    if isinstance(error, sqlite3.Error):
        return unusable(str(path), str(error), reason=_REASON_OF_CODE.get(primary_code(error), Reason.FILE_UNUSABLE))
    if isinstance(error, OSError):
        return unusable(str(path), str(error))
    return damaged(str(path), "a stored value does not match its record")
