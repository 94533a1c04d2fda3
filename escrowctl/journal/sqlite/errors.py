"""The one place that turns errors of SQLite and the system about the journal into `ErrorCode.JOURNAL_UNUSABLE`."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.journal.fields import UNDECODABLE
from escrowctl.journal.reasons import Reason
from escrowctl.sqlite import primary_code

_P = ParamSpec("_P")
_R = TypeVar("_R")
_REASONS = {
    sqlite3.SQLITE_BUSY: Reason.LOCKED,
    sqlite3.SQLITE_CORRUPT: Reason.DAMAGED,
    sqlite3.SQLITE_ERROR: Reason.DAMAGED,
    sqlite3.SQLITE_FULL: Reason.DISK_FULL,
    sqlite3.SQLITE_IOERR: Reason.DISK_FAILED,
    sqlite3.SQLITE_NOTADB: Reason.DAMAGED,
}
_RAISED = (sqlite3.Error, OSError, *UNDECODABLE)


class _HasPath(Protocol):
    @property
    def path(self) -> Path: ...


_S = TypeVar("_S", bound=_HasPath)


def translated(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Wrap a method of an object with the `path` of a file: errors of that file become `JOURNAL_UNUSABLE`."""

    @functools.wraps(method)
    def translating_method(self: _S, /, *words: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(self, *words, **named)
        except _RAISED as error:
            raise _error_of(self.path, error) from error

    return translating_method


@contextlib.contextmanager
def translating(path: Path) -> Iterator[None]:
    """Turn the errors of a file in the block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except _RAISED as error:
        raise _error_of(path, error) from error


@contextlib.contextmanager
def unlockable(path: Path) -> Iterator[None]:
    """Turn an OSError about the lock file in the block into `ErrorCode.JOURNAL_UNUSABLE`."""
    try:
        yield
    except OSError as error:
        raise not_sent(
            ErrorCode.JOURNAL_UNUSABLE, f"the journal's lock file {path} cannot be used: {error.strerror or error}."
        ) from error


def unusable(path: Path, why: str, *, reason: str = Reason.FILE_UNUSABLE) -> EscrowctlError:
    """Return the error that the file cannot be used; `why` ends the sentence."""
    message = f"the journal {path} cannot be used: {why}."
    return not_sent(ErrorCode.JOURNAL_UNUSABLE, message, facts={"folder": str(path.parent)}, reason=reason)


def damaged(path: Path, why: str) -> EscrowctlError:
    """Return the error that the file is damaged."""
    return unusable(path, f"the file is damaged: {why}", reason=Reason.DAMAGED)


def require_not_lost(path: Path) -> None:
    """Raise `ErrorCode.JOURNAL_UNUSABLE` if only the saved head exists: a new file would not know earlier writes."""
    if path.exists():
        return
    head = path.with_suffix(".head")
    # Another process may have created both meanwhile, the file first.
    if head.is_file() and not head.is_symlink() and not path.exists():
        why = f"the file is missing, but {head.name} is there: the file was moved or removed"
        raise unusable(path, why, reason=Reason.FILE_MISSING)


def _error_of(path: Path, error: Exception) -> EscrowctlError:
    if isinstance(error, sqlite3.Error):
        return unusable(path, str(error), reason=_REASONS.get(primary_code(error), Reason.FILE_UNUSABLE))
    if isinstance(error, OSError):
        return unusable(path, str(error))
    return damaged(path, "a stored value does not match its record")
