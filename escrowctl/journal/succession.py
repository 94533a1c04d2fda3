"""What engines share when they make a new journal from an export, which takes the place of another journal."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.journal.chain import Kind
from escrowctl.journal.storage import Storage
from escrowctl.journal.transfer import Archive, import_archive


class OldJournal(NamedTuple):
    """The journal that is to be replaced. `ids` are the journal ids that are stored for it, normally one.

    `records` is the number of its records, or 0 if it is not the journal of the export. `is_valid`: it exists, can
    be opened, and `verify` finds no problem.
    """

    ids: frozenset[str]
    records: int
    is_valid: bool


class Successor(NamedTuple):
    """The new journal. `was_closed`: the old journal was closed. `old_file`: the copy of its file, or None."""

    journal_id: str
    was_closed: bool
    old_file: Path | None = None


def count_missing(old: OldJournal, archive: Archive, where: str) -> int | None:
    """Return the number of records of the old journal, at `where`, that the export lacks. None: it is not known.

    Raises EscrowctlError `ErrorCode.CONFLICT` if the export comes from a different journal, or if the old journal is
    valid and has more records than the export.
    """
    if old.ids and archive.journal_id not in old.ids:
        found_ids = " and ".join(sorted(old.ids))
        raise not_sent(
            ErrorCode.CONFLICT,
            f"the export comes from journal {archive.journal_id}, but {where} has journal {found_ids}.",
            reason=Reason.EXPORT_OF_ANOTHER,
        )
    missing = max(old.records - archive.record_count, 0) if old.ids else None
    if old.is_valid and missing:
        raise not_sent(
            ErrorCode.CONFLICT,
            f"this journal is valid and has {old.records} records, but the export has only "
            f"{archive.record_count}: export the journal again.",
        )
    return missing


def close_old_journal(storage: Storage, successor_id: str, old: OldJournal) -> None:
    """Close a journal with a record that names its successor. Raises `BUSY` if it has changed since it was read."""
    with storage.transaction() as transaction:
        if old.is_valid and storage.count_records() != old.records:
            raise not_sent(ErrorCode.BUSY, "another process has written to this journal: export it again.")
        transaction.append_journal_record(Kind.CLOSING, {"successor": successor_id})


def fill_from_export(storage: Storage, archive: Archive) -> None:
    """Begin a new journal with the entries of an export."""
    with storage.transaction() as transaction:
        transaction.append_journal_record(Kind.OPENING, {"journal_id": archive.journal_id})
        import_archive(transaction, storage, archive)
