"""The one place where what SQLite and the system raise over the journal becomes `ErrorCode.JOURNAL_UNUSABLE`."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Hints, not_sent
from escrowctl.journal.fields import UNDECODABLE
from escrowctl.journal.storage import ACCEPT_HEAD

_P = ParamSpec("_P")
_R = TypeVar("_R")
_RAISED = (sqlite3.Error, OSError, *UNDECODABLE)
_WHEN_DAMAGED = (
    Hint("escrowctl journal verify", "what is wrong with it"),
    Hint("move it away, then escrowctl journal import FILE --restore, with the newest export", "to bring it back"),
)


class _HasPath(Protocol):
    @property
    def path(self) -> Path: ...


_S = TypeVar("_S", bound=_HasPath)


def translated(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Wrap a method of an object with the `path` of a file: what it raises over the file becomes our error."""

    @functools.wraps(method)
    def translating_method(self: _S, /, *words: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(self, *words, **named)
        except _RAISED as error:
            raise _error_of(self.path, error) from error

    return translating_method


@contextlib.contextmanager
def translating(path: Path) -> Iterator[None]:
    """Turn what is raised over a file in the block into our error."""
    try:
        yield
    except _RAISED as error:
        raise _error_of(path, error) from error


@contextlib.contextmanager
def unlockable(path: Path) -> Iterator[None]:
    """Turn a lock that the system does not give into our error."""
    try:
        yield
    except OSError as error:
        raise not_sent(
            ErrorCode.JOURNAL_UNUSABLE, f"the journal's lock file {path} cannot be used: {error.strerror or error}."
        ) from error


def unusable(path: Path, why: str, *, hint: Hints = ()) -> EscrowctlError:
    """Return the error that the file cannot be used; `why` ends the sentence."""
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"the journal {path} cannot be used: {why}.",
        hint=hint or f"no write is sent without a journal: {path.parent} must be a folder that can be written",
    )


def damaged(path: Path, why: str) -> EscrowctlError:
    """Return the error that the file is not what was written."""
    return unusable(path, f"it is damaged: {why}", hint=_WHEN_DAMAGED)


def lost(path: Path, why: str) -> EscrowctlError:
    """Return the error that the file contradicts the head saved next to it."""
    return unusable(path, f"it is damaged: {why}", hint=(*_WHEN_DAMAGED, ACCEPT_HEAD))


def _error_of(path: Path, error: Exception) -> EscrowctlError:
    if isinstance(error, sqlite3.Error):
        return unusable(path, str(error), hint=_advice(path, error))
    if isinstance(error, OSError):
        return unusable(path, str(error))
    return damaged(path, "a value in it is not what was recorded")


def _advice(path: Path, error: sqlite3.Error) -> Hints:
    # The low byte is the primary result code (sqlite.org/rescode.html).
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return f"free space in {path.parent}, then repeat the command"
        case sqlite3.SQLITE_BUSY:
            return "another process has been writing in it for too long: repeat the command"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
            return _WHEN_DAMAGED
        case _:
            return ()
