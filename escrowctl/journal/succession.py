"""What engines share when they make a new journal from an export, which takes the place of another journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.journal.chain import EMPTY_HEAD, Kind
from escrowctl.journal.commit import sender_lock
from escrowctl.journal.model import Selection, State
from escrowctl.journal.storage import Closing, JournalPlace, Locks, Storage
from escrowctl.journal.transfer import Archive, import_archive
from escrowctl.journal.witness import Witness


class OldJournal(NamedTuple):
    """The journal that is to be replaced. `ids` are the journal ids that are stored for it, normally one.

    `records` is the number of records that it had, as far as known, or 0 if it is not the journal of the export; the
    next two are how many it stores, damaged ones included (None: not known), and how many of them an export has.
    `closing`: what its closing record says, if it has one.
    """

    ids: frozenset[str]
    records: int
    stored: int | None = None
    readable: int = 0
    closing: Closing | None = None


class Successor(NamedTuple):
    """The new journal. `was_closed`: the old journal was closed. `old_file`: the copy of its file, or None."""

    journal_id: str
    was_closed: bool
    old_file: Path | None = None


def count_missing(old: OldJournal, archive: Archive, where: str, *, successor_id: str | None) -> int | None:
    """Return the number of records of the old journal, at `where`, that the export lacks. None: it is not known.

    `successor_id`: the id of the new journal, if it exists. Raises EscrowctlError `ErrorCode.CONFLICT` if the old
    journal has another successor, the export comes from a different journal, or it lacks records that can be read.
    """
    for closed in (old.closing, archive.closing):
        refuse_second_successor(closed, successor_id)
    if old.ids and archive.journal_id not in old.ids:
        found_ids = " and ".join(sorted(old.ids))
        raise not_sent(
            ErrorCode.CONFLICT,
            f"the export comes from journal {archive.journal_id}, but {where} has journal {found_ids}.",
            reason=Reason.EXPORT_OF_ANOTHER,
        )
    if old.readable > archive.record_count:
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{old.readable} records of this journal can be read, but the export has only {archive.record_count}: "
            "export the journal again.",
        )
    return max(old.records - archive.record_count, 0) if old.ids else None


def close_journal(place: JournalPlace, storage: Storage, closing: Closing, *, records: int | None) -> None:
    """Close a journal with a record that names its successor, and save the head. To repeat it is safe.

    `records`: their number when the journal was read; None if they could not be counted. Raises `BUSY` if it has
    changed since then, and `CONFLICT` if another journal took its place.
    """
    with storage.transaction() as transaction:
        refuse_second_successor(transaction.closing, closing.successor)
        if transaction.closing is None or transaction.closing.successor != closing.successor:
            if records not in (None, storage.count_records()):
                raise not_sent(ErrorCode.BUSY, "another process has written to the journal meanwhile: begin again.")
            facts = {name: value for name, value in closing._asdict().items() if value is not None}
            transaction.append_journal_record(Kind.CLOSING, facts)
    if (witness := Witness(place)).find_problem(storage) is None:
        # An older copy, which is open, is refused then.
        witness.update(storage.journal_id, transaction.head)


def refuse_second_successor(closing: Closing | None, wanted_id: str | None) -> None:
    """Raise `CONFLICT` if another journal than the wanted one took the place of a closed one: both could be used.

    A successor at the same place, from an interrupted `journal init --from`, was never used.
    """
    if closing is not None and closing.where is not None and closing.successor != wanted_id:
        facts, message = {"where": closing.where}, f"the journal is closed already: {closing}."
        raise not_sent(ErrorCode.CONFLICT, message, facts=facts, reason=Reason.MOVED)


def refuse_unfinished(storage: Storage, locks: Locks) -> None:
    """Raise `BUSY` if a write is in progress, or may still arrive: the successor would not wait for it."""
    senders = {sender_lock(one.request_id): one for one in storage.select(Selection(None, states=(State.IN_FLIGHT,)))}
    for lock, entry in senders.items():
        if locks.is_held(lock) or locks.may_still_send(lock):
            message = f"{entry.intent.sender} is sending {entry.name}: close the journal when it has ended."
            raise not_sent(ErrorCode.BUSY, message)


def refuse_filled(storage: Storage, archive: Archive, where: str) -> None:
    """Raise `CONFLICT` if a new journal, at `where`, has records, unless an export of the same journal made it."""
    first = next(iter(storage.read_records(after=0, limit=1)), None)
    opening = json.loads(first.facts) if first is not None and first.kind == Kind.OPENING else None
    if first is not None and opening != {"journal_id": archive.journal_id}:
        raise not_sent(ErrorCode.CONFLICT, f"the journal {where} exists already, and has records.")


def fill_from_export(storage: Storage, archive: Archive, where: str) -> None:
    """Begin a new journal, at `where`, with the entries of an export. To repeat it is safe. Raises `CONFLICT`."""
    with storage.transaction() as transaction:
        refuse_filled(storage, archive, where)
        if transaction.head == EMPTY_HEAD:
            transaction.append_journal_record(Kind.OPENING, {"journal_id": archive.journal_id})
        import_archive(transaction, storage, archive)
