"""Open a journal. Only this module chooses where it is stored, and refuses a journal other than the required one."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path

from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.reasons import Reason
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.journal.sqlite.connection import find_id
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.storage import Locks, Storage

FILE_NAME = "journal.db"


def open_journal(
    folder: Path, *, now: Callable[[], datetime], reading: bool = False, pins: Collection[tuple[str, str]] = ()
) -> Journal:
    """Return the journal in a folder. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.

    `reading`: nothing is created, and a journal that cannot be written is read too. If `pins` require another
    journal, the error is raised before one is created.
    """
    if pins:
        _require_pinned(folder / FILE_NAME, pins)
    storage, locks = open_storage(folder, reading=reading)
    return Journal(storage, locks, now=now, secrets=SigningSecrets(folder))


def _require_pinned(path: Path, pins: Iterable[tuple[str, str]]) -> None:
    journal_id = find_id(path)
    this = f"{path} does not exist" if journal_id is None else f"this journal is {journal_id}"
    for required, source in pins:
        if not required:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE, f"{source} is empty: it should be the id that journal init printed."
            )
        if required != journal_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"{this}, but {source} requires journal {required}, which knows the earlier writes.",
                reason=Reason.PINNED_MISSING if journal_id is None else Reason.PINNED_ELSEWHERE,
            )


def open_storage(folder: Path, *, reading: bool) -> tuple[Storage, Locks]:
    """Return a folder's storage and its locks. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`."""
    storage = SqliteStorage.open(folder / FILE_NAME, reading=reading)
    return storage, (ReadLockFile if reading else LockFile)(folder / "journal.lock")
