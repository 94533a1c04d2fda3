"""Make a new shared journal from an export, under another name in the same database: for example after a failover.

    new         created, without records
    new         filled from the export
    old         closed: a last record names the new journal, which nobody uses before

If the process is killed in between, the old journal may still be open. To repeat the command is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from escrowctl.journal.chain import EMPTY_HEAD
from escrowctl.journal.postgres.place import PostgresPlace
from escrowctl.journal.storage import Closing
from escrowctl.journal.succession import (
    OldJournal,
    Successor,
    close_journal,
    count_missing,
    fill_from_export,
    refuse_filled,
    refuse_unfinished,
)
from escrowctl.journal.transfer import Archive
from escrowctl.journal.verification import verify
from escrowctl.journal.witness import Witness
from escrowctl.runtime import Clock


def replace_from_export(
    old: PostgresPlace,
    new: PostgresPlace,
    archive: Archive,
    *,
    admin: str | None,
    now: Clock,
    confirm: Callable[[int | None], None],
) -> tuple[Successor, int | None]:
    """Make a new journal from an export, and close the old one, if there is one.

    `admin`: see `PostgresPlace.create`. `confirm` is called with the number of the old journal's records that the
    export lacks (None: not known) before anything is changed; it is also returned. Raises the errors of
    `succession.count_missing`, `CONFLICT` if the new journal has other records, and `BUSY` if a write is in progress.
    """
    before, new_id = _inspect(old, archive.journal_id, now), new.find_id()
    missing = count_missing(before, archive, old.location, successor_id=new_id)
    if new.exists:
        with closing(new.open(now=now, reading=True)[0]) as storage:
            refuse_filled(storage, archive, new.location)
    confirm(missing)
    journal_id = new_id or new.create(admin)
    with closing(new.open(now=now, reading=False)[0]) as storage:
        fill_from_export(storage, archive, new.location)
        Witness(new).create(storage)
    if old.exists:
        with closing(old.open(now=now, reading=False)[0]) as storage:
            close_journal(old, storage, Closing(journal_id, new.location), records=before.stored)
    return Successor(journal_id, was_closed=old.exists), missing


def _inspect(place: PostgresPlace, journal_id: str, now: Clock) -> OldJournal:
    """Return the journal at a place. `journal_id` is the journal of the export. Raises `JOURNAL_UNUSABLE`."""
    saved = (witness := Witness(place)).read()
    ids = {saved.journal_id} if saved is not None and saved.head != EMPTY_HEAD else set[str]()
    counts = [saved.head.sequence] if saved is not None and saved.journal_id == journal_id else [0]
    if not place.exists:
        return OldJournal(frozenset(ids), max(counts))
    storage, locks = place.open(now=now, reading=True)
    with closing(storage), closing(locks):
        refuse_unfinished(storage, locks)
        ids.add(storage.journal_id)
        found, stored = verify(storage, witness), storage.count_records()
        if storage.journal_id == journal_id:
            # The saved head of a valid journal has no other record, but it may count the closing record.
            counts = [*(() if found.problem is None else counts), stored]
        with storage.reading() as view:
            return OldJournal(frozenset(ids), max(counts), stored, min(found.records, stored), view.closing)
