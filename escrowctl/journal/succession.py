"""Replace a journal that is refused, lost, or of an earlier format by a new journal made from an export."""

from collections.abc import Callable
from pathlib import Path

from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.chain import Kind
from escrowctl.journal.opening import FILE_NAME
from escrowctl.journal.reasons import Reason
from escrowctl.journal.sqlite.succession import Successor, look_at, replace_journal
from escrowctl.journal.storage import Storage
from escrowctl.journal.transfer import Archive, merge


def replace_from_export(
    folder: Path, archive: Archive, *, at: str, confirm: Callable[[int | None], None]
) -> tuple[Successor, int | None]:
    """Make a new journal from an export. It replaces the journal in a folder, if there is one.

    Return it, and the number of the old journal's records that the export lacks (None: not known). `confirm` is
    called with that number first. Raises EscrowctlError `ErrorCode.CONFLICT` if the export comes from another
    journal, or if the journal here is valid and has more records.
    """
    path = folder / FILE_NAME
    before = look_at(path, archive.journal_id)
    if before.ids and archive.journal_id not in before.ids:
        names = " and ".join(sorted(before.ids))
        raise not_sent(
            ErrorCode.CONFLICT,
            f"the export comes from journal {archive.journal_id}, but {folder} has journal {names}.",
            reason=Reason.EXPORT_OF_ANOTHER,
        )
    missing = max(before.records - archive.records, 0) if before.ids else None
    if before.is_valid and missing:
        raise not_sent(
            ErrorCode.CONFLICT,
            f"this journal is valid and has {before.records} records, but the export has {archive.records}.",
            reason=Reason.EXPORT_IS_OLDER,
        )
    confirm(missing)

    def fill(storage: Storage) -> None:
        with storage.transaction() as transaction:
            transaction.note(Kind.OPENING, {"journal_id": archive.journal_id}, at=at)
        merge(storage, archive, at=at)

    return replace_journal(path, fill, before, at=at), missing
