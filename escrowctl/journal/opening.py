"""Open a journal. Only this module chooses where it is stored, and refuses a journal other than the required one."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.journal.sqlite.connection import find_id
from escrowctl.journal.sqlite.errors import FROM_EXPORT
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
    for required, source in pins:
        if not required:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"{source} is empty: it should be the id that journal init printed.",
                hint="in CI, check that the variable is passed to this job; to require no journal, unset it",
            )
        if required != journal_id:
            raise _another(path, journal_id, required, source)


def _another(path: Path, journal_id: str | None, required: str, source: str) -> EscrowctlError:
    """Return the refusal of the journal that is here, or of a new one, if a pin requires another journal."""
    if journal_id is None:
        this, use = f"{path} does not exist", FROM_EXPORT
    else:
        this, use = f"this journal is {journal_id}", Hint("set ESCROWCTL_HOME to its folder", "to use that one")
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"{this}, but {source} requires journal {required}, which knows the earlier writes.",
        hint=(
            command("config path", "to see where this journal is"),
            use,
            Hint(f"change {source}", "only if nothing that it sent can be sent again"),
        ),
    )


def open_storage(folder: Path, *, reading: bool) -> tuple[Storage, Locks]:
    """Return a folder's storage and its locks. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`."""
    storage = SqliteStorage.open(folder / FILE_NAME, reading=reading)
    return storage, (ReadLockFile if reading else LockFile)(folder / "journal.lock")
