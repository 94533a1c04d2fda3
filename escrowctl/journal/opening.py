"""Opening the journal's file: for its owner alone, and for those who only look without making or needing anything."""

import contextlib
import os
import sqlite3
from pathlib import Path

from escrowctl.config.folders import make_private_folder, sync_folder

BUSY_SECONDS = 10.0


def open_database(path: Path) -> sqlite3.Connection:
    """Return a connection to the file, made where it is missing; raises OSError, sqlite3.Error or EscrowctlError."""
    make_private_folder(path.parent)
    _make_private_file(path)
    # Autocommit: transactions are opened by hand, so that none is open by accident.
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def open_database_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection for one who only looks: a missing file reads as an empty one; raises as `open_database`."""
    if not path.exists():
        return sqlite3.connect(":memory:", isolation_level=None)
    if not os.access(path, os.W_OK):
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    # What a crash left half done is undone by whoever opens the file next, and that takes writing.
    return open_database(path)


def keep_copy(path: Path) -> None:
    """Copy the file to `journal.db.bak` as it is on disk, durably, before it is brought to a newer format.

    The copy is SQLite's own: closing the file by hand would free this process's locks on it (fcntl(2)).
    """
    unfinished, copy = path.with_name(f"{path.name}.bak.new"), path.with_name(f"{path.name}.bak")
    unfinished.unlink(missing_ok=True)
    _make_private_file(unfinished)
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    with contextlib.closing(source), contextlib.closing(sqlite3.connect(unfinished)) as target:
        source.backup(target)
    unfinished.replace(copy)
    sync_folder(path.parent)


def _make_private_file(path: Path) -> None:
    """Create the file 0600 before SQLite would with the umask's mode; its journal inherits the mode."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
