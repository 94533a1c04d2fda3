"""The journal's files: check them, open connections to the database, read and write the saved head."""

import contextlib
import hashlib
import json
import os
import sqlite3
from pathlib import Path

from escrowctl import sqlite
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.files import (
    NotRegularError,
    TooLargeError,
    check_regular,
    create_empty_file,
    find_flaw,
    make_private_folder,
    open_regular,
    read_regular,
    replace_durably,
)
from escrowctl.journal.chain import Head
from escrowctl.journal.sqlite.errors import translating_errors

FORMAT_VERSION = 16
"""The file's format. Raise it when the tables, the locks or the data of `journal.fold` change. escrowctl refuses
other formats."""

_HEAD_LENGTH = 15 + 36 + 1 + 20 + 1 + 64 + 1
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


def layout_of(database: sqlite3.Connection) -> str:
    """Return a digest of the tables and their first page numbers. A wrong page number makes a table look empty."""
    rows = database.execute("SELECT name, rootpage, sql FROM sqlite_master ORDER BY rowid").fetchall()
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def find_changed_layout(database: sqlite3.Connection) -> str | None:
    """Return the problem if the tables are not as they were created. None: no problem."""
    (created,) = database.execute("SELECT layout FROM journal").fetchone()
    return None if created == layout_of(database) else "the list of tables was changed"


class UnreadableHeadError(Exception):
    """The head file does not contain a valid head."""


class HeadFile:
    """The file next to a journal that contains the journal's head.

    An older copy of a journal has a valid chain: only a separately stored head shows that records are missing.
    The file is created before the first record. After each commit it is updated, but not synced. It may be
    one commit behind the journal, or more after a power failure. It is never ahead of the journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def replace(self, journal_id: str, head: Head) -> None:
        """Replace the file by a new one with this head, durably and in one step: the file is never empty.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE`; then the old file is unchanged.
        """
        replace_durably(self.path, _format_line(journal_id, head), private=True)

    def update(self, journal_id: str, head: Head) -> None:
        """Overwrite the head in the file. An OSError is ignored: the file then has an older head."""
        with contextlib.suppress(OSError):
            handle = open_regular(self.path, os.O_WRONLY)
            try:
                os.pwrite(handle, _format_line(journal_id, head).encode(), 0)
            finally:
                os.close(handle)

    def read(self) -> tuple[str, Head] | None:
        """Return the journal's id and its head. None: no file. Raises UnreadableHeadError or OSError."""
        try:
            content, _ = read_regular(self.path, limit=_HEAD_LENGTH, follow=False)
        except FileNotFoundError:
            return None
        except TooLargeError as error:
            raise UnreadableHeadError from error
        line = content.decode("ascii", "replace")
        try:
            _, journal_id, sequence, digest = line.split()
            saved = journal_id, Head(int(sequence), digest)
        except ValueError:
            raise UnreadableHeadError from None
        if len(line) != _HEAD_LENGTH or _format_line(*saved) != line:
            raise UnreadableHeadError
        return saved


def _format_line(journal_id: str, head: Head) -> str:
    return f"escrowctl-head {journal_id} {head.sequence:020d} {head.digest}\n"
