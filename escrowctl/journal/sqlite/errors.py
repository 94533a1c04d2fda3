"""The one place that turns errors of SQLite and the system about the journal into `ErrorCode.JOURNAL_UNUSABLE`."""

import contextlib
import functools
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Hints, command, not_sent
from escrowctl.journal.fields import UNDECODABLE
from escrowctl.sqlite import primary_code

_P = ParamSpec("_P")
_R = TypeVar("_R")
_RAISED = (sqlite3.Error, OSError, *UNDECODABLE)
FROM_EXPORT = command("journal init --from NEWEST_EXPORT --yes", "to make a new journal of an export")
"""The hint if a journal can no longer be used. `journal export` still works on a refused journal."""
_VERIFY = command("journal verify", "to see what is wrong")


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


def unusable(path: Path, why: str, *, hint: Hints = ()) -> EscrowctlError:
    """Return the error that the file cannot be used; `why` ends the sentence."""
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"the journal {path} cannot be used: {why}.",
        hint=hint or Hint(f"ls -ld {shlex.quote(str(path.parent))}", "check that the folder exists and is writable"),
    )


def damaged(path: Path, why: str) -> EscrowctlError:
    """Return the error that the file is damaged."""
    return unusable(path, f"the file is damaged: {why}", hint=(_VERIFY, FROM_EXPORT))


def lost(path: Path, why: str) -> EscrowctlError:
    """Return the error that the file and the head saved next to it do not match: either may be wrong."""
    return unusable(path, why, hint=(_VERIFY, FROM_EXPORT))


def require_not_lost(path: Path) -> None:
    """Raise `ErrorCode.JOURNAL_UNUSABLE` if only the saved head exists: a new file would not know earlier writes."""
    if path.exists():
        return
    head = path.with_suffix(".head")
    # Another process may have created both meanwhile, the file first.
    if head.is_file() and not head.is_symlink() and not path.exists():
        anew = Hint(shlex.join(["mv", str(head), f"{head}.old"]), "or, to begin one that knows no earlier write")
        why = f"the file is missing, but {head.name} is there: the file was moved or removed"
        raise unusable(path, why, hint=(FROM_EXPORT, anew))


def _error_of(path: Path, error: Exception) -> EscrowctlError:
    if isinstance(error, sqlite3.Error):
        return unusable(path, str(error), hint=_advice(path, error))
    if isinstance(error, OSError):
        return unusable(path, str(error))
    return damaged(path, "a stored value does not match its record")


def _advice(path: Path, error: sqlite3.Error) -> Hints:
    match primary_code(error):
        case sqlite3.SQLITE_FULL:
            return f"make space in {path.parent}, then repeat the command"
        case sqlite3.SQLITE_BUSY:
            return "another process keeps the journal locked: repeat the command"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
            return _VERIFY, FROM_EXPORT
        case sqlite3.SQLITE_IOERR:
            return command("journal verify", f"check the disk of {path.parent}, then the journal")
        case _:
            return ()
