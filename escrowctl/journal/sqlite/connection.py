"""Check the journal's files, and open connections to its database."""

import contextlib
import os
import sqlite3
from pathlib import Path

from escrowctl import sqlite
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.files import NotRegularError, check_regular, create_empty_file, find_flaw, make_private_folder
from escrowctl.journal.sqlite.errors import translating_errors

_SUFFIXES = (".db", ".db-journal", ".lock", ".head")


def find_journal_id(path: Path) -> str | None:
    """Return the id of the journal in a file of any format. None: there is no journal.

    Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.
    """
    with translating_errors(path), contextlib.closing(connect_to_read(path)) as database:
        return database.execute("SELECT id FROM journal").fetchone()[0] if sqlite.read_version(database) else None


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to the journal's file, for this thread only. Creates the file if it is missing.

    Raises OSError, sqlite3.Error or EscrowctlError.
    """
    make_private_folder(path.parent)
    # SQLite would create it with the umask's mode; its own journal gets the mode of this file.
    create_empty_file(path)
    check_files(path)
    return sqlite.connect(path)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection for reads: an empty database if there is no file. Raises the errors of `connect`."""
    check_files(path, reading=True)
    if not path.exists():
        return sqlite3.connect(":memory:", isolation_level=None)
    if not os.access(path, os.W_OK):
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    # If a crash interrupted a commit, the next connection undoes it, and must write for that.
    return connect(path)


def check_files(path: Path, *, reading: bool = False) -> None:
    """Raise `JOURNAL_UNUSABLE` if a file is not regular or, without `reading`, if other users can change it."""
    for file in (path.with_suffix(suffix) for suffix in _SUFFIXES):
        try:
            flaw = find_flaw(check_regular(file), file)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except NotRegularError as error:
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, f"{file} {error.strerror}.") from error
        if flaw is not None and not reading:
            raise not_sent(ErrorCode.JOURNAL_UNUSABLE, f"{file} {flaw.reason}.", hint=flaw.fix)
