"""What engines share when they make a new journal from an export, which takes the place of another journal."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, Reason, not_sent
from escrowctl.journal.chain import EMPTY_HEAD, Kind
from escrowctl.journal.commit import sender_lock
from escrowctl.journal.model import Selection, State
from escrowctl.journal.storage import Closing, JournalPlace, Locks, Storage
from escrowctl.journal.transfer import Archive, import_archive
from escrowctl.journal.verification import verify
from escrowctl.journal.witness import SavedHead, Witness
from escrowctl.runtime import Clock


class OldJournal(NamedTuple):
    """The journal that is to be replaced. `ids` are the journal ids that are stored for it, normally one.

    `records` is the number of records that it had, as far as known, or 0 if it is not the journal of the export; the
    next two are how many it stores, damaged ones included, and how many of them an export has. None: not known.
    `closing`: what its closing record says, if it has one.
    """

    ids: frozenset[str]
    records: int | None
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
        message = f"the export comes from journal {archive.journal_id}, but {where} has journal {found_ids}."
        raise not_sent(ErrorCode.CONFLICT, message, reason=Reason.EXPORT_OF_ANOTHER)
    if old.readable > archive.record_count:
        known = f"{old.readable} records of this journal can be read, but the export has only {archive.record_count}"
        raise not_sent(ErrorCode.CONFLICT, f"{known}: export the journal again.")
    return max(old.records - archive.record_count, 0) if old.ids and old.records is not None else None


def judge_saved_head(saved: SavedHead | None, journal_id: str) -> OldJournal:
    """Return what a saved head says about a journal. `journal_id` is the journal of the export."""
    if saved is None or saved.head == EMPTY_HEAD:
        return OldJournal(frozenset(), 0)
    return OldJournal(frozenset((saved.journal_id,)), saved.head.sequence if saved.journal_id == journal_id else 0)


def inspect(place: JournalPlace, journal_id: str, now: Clock) -> OldJournal:
    """Return the journal at a place. `journal_id` is that of the export. Raises the errors of `refuse_unfinished`."""
    witness = Witness(place)
    known = judge_saved_head(witness.read(), journal_id)
    if not place.exists:
        return known
    storage, locks = place.open(now=now, reading=True)
    with contextlib.closing(storage), contextlib.closing(locks):
        if journal_id in known.ids and _is_made_for(storage, journal_id):
            # An interrupted command put it in the place of the old journal, and nobody has used it.
            return known
        checked, stored, saved = verify(storage, witness), storage.count_records(), known.records or 0
        records: int | None = saved
        if storage.journal_id == journal_id:
            # The saved head of a valid journal has no other record, but it may count the closing record.
            records = stored if checked.problem is None else max(saved, stored)
            if checked.problem is not None and 0 < saved <= stored and witness.find_problem(storage) is not None:
                # Others may have written to an older copy since: what is gone was never counted.
                records = None
        refuse_unfinished(storage, locks)
        with storage.reading() as view:
            # The records of another journal would be lost with it.
            ids = frozenset((storage.journal_id,)) if stored else known.ids | {storage.journal_id}
            return OldJournal(ids, records, stored, min(checked.head.sequence, stored), view.closing)


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
            transaction.append_journal_record(Kind.CLOSING, closing.facts)
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
        if locks.is_held(lock) or locks.seconds_to_wait(lock):
            message = f"{entry.intent.sender} is sending {entry.name}: close the journal when it has ended."
            raise not_sent(ErrorCode.BUSY, message)


def _is_made_for(storage: Storage, journal_id: str) -> bool:
    """Whether a journal was made to replace the journal with this id."""
    first = next(iter(storage.read_records(after=0, limit=1)), None)
    made_for = json.loads(first.facts).values() if first and first.kind in (Kind.OPENING, Kind.CLOSING) else ()
    return journal_id in made_for


def fill_from_export(storage: Storage, archive: Archive, where: str, *, until: Closing | None = None) -> None:
    """Fill a new journal, at `where`, with the entries of an export. To repeat it is safe.

    If the old journal is still in use, the new one is closed as `until` says: then call `open_filled`. Raises
    `CONFLICT` if the new one has records, unless it was made to replace the journal of the export.
    """
    with storage.transaction() as transaction:
        if storage.count_records() and not _is_made_for(storage, archive.journal_id):
            raise not_sent(ErrorCode.CONFLICT, f"the journal {where} exists already, and has records.")
        closing = until if transaction.head == EMPTY_HEAD else transaction.closing
        refuse_second_successor(closing, archive.journal_id)
        if transaction.head == EMPTY_HEAD:
            transaction.append_journal_record(Kind.OPENING, {"journal_id": archive.journal_id})
        import_archive(transaction, storage, archive)
        if closing is not None:
            transaction.append_journal_record(Kind.CLOSING, closing.facts)


def open_filled(storage: Storage, archive: Archive) -> None:
    """Open a new journal: the old one is closed now."""
    with storage.transaction() as transaction:
        if transaction.closing is not None and transaction.closing.successor == archive.journal_id:
            transaction.append_journal_record(Kind.OPENING, {"journal_id": archive.journal_id})
