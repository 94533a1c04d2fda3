"""Open a journal: choose its storage, and refuse it if a setting requires a different journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.sqlite.files import find_journal_id
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.runtime import Clock

if TYPE_CHECKING:
    from escrowctl.journal.storage import Locks, Storage

JOURNAL_FILE_NAME = "journal.db"


def open_journal(
    folder: Path, *, now: Clock, read_only: bool = False, pins: Collection[tuple[str, str]] = ()
) -> Journal:
    """Return the journal in a folder. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.

    `read_only`: nothing is created, and the files may be read-only. Each of the `pins` is the id of a required
    journal and the name of the setting with this id. If the folder has a different journal or none, that is an
    error, and no journal is created.
    """
    if pins:
        _require_pinned_journal(folder / JOURNAL_FILE_NAME, pins)
    storage, locks = open_storage(folder, now=now, reading=read_only)
    return Journal(storage, locks, folder=folder)


def _require_pinned_journal(path: Path, pins: Iterable[tuple[str, str]]) -> None:
    journal_id = find_journal_id(path)
    actual = f"{path} does not exist" if journal_id is None else f"this journal is {journal_id}"
    for required_id, setting in pins:
        if not required_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE, f"{setting} is empty: it should be the id that journal init printed."
            )
        if required_id != journal_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"{actual}, but {setting} requires journal {required_id}, which has the earlier writes.",
                reason=Reason.PINNED_MISSING if journal_id is None else Reason.PINNED_ELSEWHERE,
            )


def open_storage(folder: Path, *, now: Clock, reading: bool) -> tuple[Storage, Locks]:
    """Return the storage and the locks of the journal in a folder. Raises `ErrorCode.JOURNAL_UNUSABLE`."""
    storage = SqliteStorage.open(folder / JOURNAL_FILE_NAME, now=now, reading=reading)
    return storage, (ReadLockFile if reading else LockFile)(folder / "journal.lock")
