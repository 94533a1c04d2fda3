"""Make a new shared journal from an export, under another name in the same database: for example after a failover.

    new         created closed: a record names the old journal, which is still in use
    new         filled from the export, and still closed
    old         closed: a last record names the new journal
    new         opened

If the process is killed in between, at most the old journal is open. To repeat the command is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, Kind
from escrowctl.journal.fold import next_record
from escrowctl.journal.postgres.place import PostgresPlace
from escrowctl.journal.storage import Closing
from escrowctl.journal.succession import Successor, close_journal, count_missing, fill_from_export, inspect, open_filled
from escrowctl.journal.transfer import Archive
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
    before, new_id = inspect(old, archive.journal_id, now), new.find_id()
    missing = count_missing(before, archive, old.location, successor_id=new_id)
    confirm(missing)
    until = Closing(archive.journal_id, old.location)
    # The database's clock dates the rest. A later date would hold until then: no cap would begin again.
    first = next_record(EMPTY_HEAD, NO_ENTRY, Kind.CLOSING, until.facts, at="1970-01-01T00:00:00.000Z")
    journal_id = new_id or new.create(admin, first)
    with closing(new.open(now=now, reading=False)[0]) as storage:
        fill_from_export(storage, archive, new.location, until=until)
        Witness(new).create(storage)
        if old.exists:
            with closing(old.open(now=now, reading=False)[0]) as old_storage:
                close_journal(old, old_storage, Closing(journal_id, new.location), records=before.stored)
        open_filled(storage, archive)
    return Successor(journal_id, was_closed=old.exists), missing
