"""The journal's files: check them, and open connections to the database."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from escrowctl import sqlite
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.files import NotRegularError, check_regular, create_empty_file, find_flaw, make_private_folder
from escrowctl.journal.sqlite.errors import TRANSLATED_ERRORS, to_journal_error

FORMAT_VERSION = 16
"""The file's format. Raise it when the tables, the locks or the data of `journal.fold` change. escrowctl refuses
other formats."""

_TRY_SECONDS = 0.001
_SUFFIXES = (".db", ".db-journal", ".lock", ".head")


class JournalConnection(sqlite3.Connection):
    """A connection to the journal's tables; see `tables.database.Database`."""

    location = ""
    json_text = "json_extract({column}, '$.{name}')"
    row_locks = ""  # a transaction that writes locks the file

    def send(self, statement: str, values: Sequence[object], /) -> None:
        """See `tables.database.Database`."""
        self.execute(statement, values)

    def translate(self, error: Exception) -> EscrowctlError | None:
        """See `tables.database.Database`."""
        return to_journal_error(self.location, error) if isinstance(error, TRANSLATED_ERRORS) else None


class PatientConnection(JournalConnection):
    """A connection that waits for other processes, up to `sqlite.BUSY_SECONDS`, and tries often.

    SQLite itself waits up to 100 ms between two tries: too long to find a gap between the commits of a busy process.
    Set SQLite's own busy_timeout to 0 when the tables are known: until then, only SQLite's own waiting finds tables
    that another process creates meanwhile.
    """

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement. Raises sqlite3.Error."""
        end: float | None = None
        while True:
            try:
                return super().execute(statement, values)
            except sqlite3.OperationalError as error:
                end = end or time.monotonic() + sqlite.BUSY_SECONDS
                if sqlite.primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(_TRY_SECONDS)


def connect(path: Path) -> PatientConnection:
    """Return a connection to the journal's file, for this thread only. Creates the file if it is missing.

    Raises OSError, sqlite3.Error or EscrowctlError.
    """
    make_private_folder(path.parent)
    # SQLite would create it with the umask's mode; its own journal gets the mode of this file.
    create_empty_file(path)
    check_files(path)
    database = sqlite3.connect(path, timeout=sqlite.BUSY_SECONDS, isolation_level=None, factory=PatientConnection)
    database.location = str(path)
    return database


def connect_to_copy(location: str, name: str = "", *, is_uri: bool = False) -> JournalConnection:
    """Return a connection to an empty temporary database or, if `is_uri`, to the file with a URI.

    `location` is for messages.
    """
    database = sqlite3.connect(name, uri=is_uri, isolation_level=None, factory=JournalConnection)
    database.location = location
    return database


def connect_to_read(path: Path) -> JournalConnection:
    """Return a connection for reads: an empty database if there is no file. Raises the errors of `connect`."""
    check_files(path, reading=True)
    if not path.exists():
        return connect_to_copy(str(path), ":memory:")
    if not os.access(path, os.W_OK):
        return connect_to_copy(str(path), f"{path.absolute().as_uri()}?mode=ro", is_uri=True)
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


def read_identity(database: sqlite3.Connection) -> tuple[str, str | None]:
    """Return the journal's id, and the problem if the tables are not as they were created. None: no problem."""
    journal_id, created = database.execute("SELECT id, layout FROM journal").fetchone()
    return journal_id, None if created == layout_of(database) else "the list of tables was changed"
