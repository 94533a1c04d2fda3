"""A journal file that cannot be used, as an error: nothing is sent then, and why decides what to do about it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Hints, command, not_sent

_UNDECODABLE = (ValueError, TypeError, KeyError, IndexError, ArithmeticError)
"""What a value of the wrong kind raises on its way from a row to an entry."""

_WHEN_DAMAGED = (
    Hint("escrowctl journal verify", "what is wrong with it"),
    Hint("move it away, then escrowctl journal import FILE --restore, with the newest export", "to bring it back"),
)


ACCEPT_HEAD = command("journal verify --accept-head", "if no write is missing from it")
"""The hint to accept a journal that its head file contradicts."""


def unusable(path: Path, why: str, *, hint: Hints = ()) -> EscrowctlError:
    """Return the error (17) that the file cannot be used; `why` ends the sentence."""
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"the journal {path} cannot be used: {why}.",
        hint=hint or f"no write is sent without a journal: {path.parent} must be a folder that can be written",
    )


def damaged(path: Path, why: str) -> EscrowctlError:
    """Return the error (17) that the file is not what was written."""
    return unusable(path, f"it is damaged: {why}", hint=_WHEN_DAMAGED)


def behind(path: Path, why: str) -> EscrowctlError:
    """Return the error (17) that the file and the head stored next to it disagree."""
    return unusable(path, f"it is damaged: {why}", hint=(*_WHEN_DAMAGED, ACCEPT_HEAD))


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what the system and SQLite raise over the file into the error that nothing may be sent after."""
    try:
        yield
    except sqlite3.Error as error:
        raise unusable(path, str(error), hint=_way_on(path, error)) from error
    except OSError as error:
        raise unusable(path, str(error)) from error


@contextlib.contextmanager
def decoding(path: Path) -> Iterator[None]:
    """As `translated`, where what was read is made into entries: what cannot be is damage."""
    with translated(path):
        try:
            yield
        except _UNDECODABLE as error:
            raise damaged(path, "a value in it is not what was recorded") from error


def _way_on(path: Path, error: sqlite3.Error) -> Hints:
    # The low byte is the primary result code (sqlite.org/rescode.html).
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return (f"free space in {path.parent}, then repeat the line",)
        case sqlite3.SQLITE_BUSY:
            return ("another process has been writing in it for too long: repeat the line",)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
            return _WHEN_DAMAGED
        case _:
            return ()
