"""Make a new journal from an export. It replaces a journal that is unusable, lost or of an earlier format.

The new journal is complete before the old one is closed and replaced.

    journal.new/    the folder in which the new journal is made
    journal.db      replaced in one step; an old journal.head does not match it, so writes are refused
    journal.head    replaced in one step; from then on the new journal is in use

If the process is killed after the old journal is closed, writes may be refused until the replacement is repeated.
"""

import contextlib
import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.files import PRIVATE, make_private_folder, sync_folder
from escrowctl.journal.chain import EMPTY_HEAD
from escrowctl.journal.sqlite.errors import translating_errors
from escrowctl.journal.sqlite.files import check_files
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.storage import Closing, head_of
from escrowctl.journal.succession import (
    OldJournal,
    Successor,
    close_journal,
    count_missing,
    fill_from_export,
    inspect,
    judge_saved_head,
)
from escrowctl.journal.transfer import Archive
from escrowctl.journal.witness import Witness
from escrowctl.runtime import Clock
from escrowctl.sqlite import primary_code

_TEMPORARY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""The SQLite result codes of temporary problems: the file itself may be valid."""


def replace_from_export(
    place: SqlitePlace, archive: Archive, *, now: Clock, confirm: Callable[[int | None], None]
) -> tuple[Successor, int | None]:
    """Make a new journal from an export. It replaces the journal at a place, damaged or not, if there is one.

    Return the new journal, and the number of the old journal's records that the export lacks (None: not known).
    `confirm` is called with that number before anything is changed. Raises the errors of `succession.count_missing`,
    and `JOURNAL_UNUSABLE` if a file is not regular, or cannot be read for a reason other than damage.
    """
    check_files(place.path, reading=True)
    old_journal = judge_saved_head(Witness(place).read(), archive.journal_id)
    with _ignore_damage():
        old_journal = old_journal._replace(ids=old_journal.ids | set(filter(None, [place.find_id()])))
    with _ignore_damage():
        old_journal = inspect(place, archive.journal_id, now)
    missing = count_missing(old_journal, archive, str(place.folder), successor_id=None)
    confirm(missing)
    return _replace_journal(place, archive, old_journal, now), missing


def _replace_journal(place: SqlitePlace, archive: Archive, old_journal: OldJournal, now: Clock) -> Successor:
    """Make a new journal from an export, close the journal at the place, and put the new one in its place.

    Raises EscrowctlError `ErrorCode.BUSY` if another process makes a journal here, or has written to the old one
    since `old_journal` was read. The old journal is unchanged until a closing record is appended.
    """
    make_private_folder(place.folder)
    path = place.path
    draft = path.parent / "journal.new"
    with contextlib.closing(LockFile(path.with_suffix(".lock"))) as locks:
        if not locks.hold("journal init"):
            raise not_sent(ErrorCode.BUSY, f"another process is making a journal in {place.folder}.")
        shutil.rmtree(draft, ignore_errors=True)
        with contextlib.closing(SqliteStorage.open(draft / path.name, now=now)) as storage:
            fill_from_export(storage, archive, place.location)
            journal_id, head = storage.journal_id, head_of(storage)
        was_closed = False
        if path.exists():
            with _ignore_damage(), contextlib.closing(SqliteStorage.open(path, now=now)) as storage:
                close_journal(place, storage, Closing(journal_id), records=old_journal.stored)
                was_closed = True
        saved = Witness(place)
        if not os.path.lexists(saved.path):
            # From now on no other process creates a journal here.
            saved.replace(journal_id, EMPTY_HEAD)
        with translating_errors(path):
            old = _save_old_file(path, draft) if path.exists() else None
            (draft / path.name).replace(path)
            sync_folder(path.parent)
        saved.replace(journal_id, head)
        shutil.rmtree(draft, ignore_errors=True)
        return Successor(journal_id, was_closed, old)


def _save_old_file(path: Path, draft: Path) -> Path:
    """Copy the old journal's file to a new name, and return the path of the copy.

    The rollback journal of a killed commit is moved too: SQLite must not apply it to the new journal's file.
    """
    with (copied := draft / "old").open("xb") as target, path.open("rb") as source:
        shutil.copyfileobj(source, target)
        os.fsync(target.fileno())
    copied.chmod(PRIVATE)
    names = (path.with_suffix(f".old-{number}") for number in itertools.count(1))
    old = next(name for name in names if not os.path.lexists(name))
    copied.replace(old)
    rest = path.with_name(f"{path.name}-journal")
    with contextlib.suppress(FileNotFoundError):
        rest.replace(old.with_name(f"{old.name}-journal"))
    return old


@contextlib.contextmanager
def _ignore_damage() -> Iterator[None]:
    """Ignore an error that comes from damage, and not, for example, from a lock or a full disk."""
    try:
        yield
    except EscrowctlError as error:
        if error.code is not ErrorCode.JOURNAL_UNUSABLE or primary_code(error.__cause__) in _TEMPORARY_CODES:
            raise
