"""Opening a journal: the one place that chooses where it is stored, and that refuses another one than is required."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path

from escrowctl.config.pins import JournalPin
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, command, not_sent
from escrowctl.journal.chain import Kind
from escrowctl.journal.journal import Journal
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.journal.sqlite.connection import find_id
from escrowctl.journal.sqlite.errors import FROM_EXPORT
from escrowctl.journal.sqlite.locks import LockFile, ReadLockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.sqlite.succession import Successor, look_at, replace_journal
from escrowctl.journal.storage import Locks, Storage
from escrowctl.journal.transfer import Archive, merge

_FILE_NAME = "journal.db"


def open_journal(
    folder: Path, *, now: Callable[[], datetime], reading: bool = False, pins: Collection[JournalPin] = ()
) -> Journal:
    """Return the journal in a folder; raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`.

    `reading`: nothing is created, and what cannot be written is read. If `pins` require another journal, this
    raises before one is created.
    """
    if pins:
        _require_pinned(folder / _FILE_NAME, pins)
    storage, locks = open_storage(folder, reading=reading)
    return Journal(storage, locks, now=now, secrets=SigningSecrets(folder))


def _require_pinned(path: Path, pins: Iterable[JournalPin]) -> None:
    journal_id = find_id(path)
    for pin in pins:
        if not pin.journal_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"{pin.source} is empty: it should be the id that journal init printed.",
                hint="in CI, check that the variable is passed to this job; to require no journal, unset it",
            )
        if pin.journal_id != journal_id:
            raise _another(path, journal_id, pin)


def _another(path: Path, journal_id: str | None, pin: JournalPin) -> EscrowctlError:
    """Return the refusal of the journal that is here, or of a new one, instead of the one that a pin requires."""
    if journal_id is None:
        this, use = f"{path} does not exist", FROM_EXPORT
    else:
        this, use = f"this journal is {journal_id}", Hint("set ESCROWCTL_HOME to its folder", "to use that one")
    return not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"{this}, but {pin.source} requires journal {pin.journal_id}, which knows the earlier writes.",
        hint=(
            command("config path", "to see where this journal is"),
            use,
            Hint(f"change {pin.source}", "only if nothing that it sent can be sent again"),
        ),
    )


def open_storage(folder: Path, *, reading: bool) -> tuple[Storage, Locks]:
    """Return a folder's storage and its locks; raises as `open_journal` does."""
    storage = SqliteStorage.open(folder / _FILE_NAME, reading=reading)
    return storage, (ReadLockFile if reading else LockFile)(folder / "journal.lock")


def replace_from_export(
    folder: Path, archive: Archive, *, at: str, confirm: Callable[[int | None], None]
) -> tuple[Successor, int | None]:
    """Make a new journal of an export in the place of the one in a folder, if any.

    Returns it, and how many records the old one had that the export does not have (None: not known); `confirm` is
    called with that number first. Raises EscrowctlError: `ErrorCode.CONFLICT` if the export is of another journal,
    or the one that is here is valid and has more records.
    """
    path = folder / _FILE_NAME
    before = look_at(path, archive.journal_id)
    if before.ids and archive.journal_id not in before.ids:
        names = " and ".join(sorted(before.ids))
        raise not_sent(
            ErrorCode.CONFLICT,
            f"the export comes from journal {archive.journal_id}, but {folder} has journal {names}.",
            hint=command("journal import EXPORT", "to add the writes of the export to this journal"),
        )
    missing = max(before.records - archive.records, 0) if before.ids else None
    if before.is_valid and missing:
        raise not_sent(
            ErrorCode.CONFLICT,
            f"this journal is valid and has {before.records} records, but the export has {archive.records}.",
            hint=command("journal export > EXPORT", "to export it again"),
        )
    confirm(missing)

    def fill(storage: Storage) -> None:
        with storage.transaction() as transaction:
            transaction.note(Kind.OPENING, {"journal_id": archive.journal_id}, at=at)
        merge(storage, archive, at=at)

    return replace_journal(path, fill, before, at=at), missing
