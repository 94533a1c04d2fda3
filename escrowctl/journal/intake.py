"""Taking another journal's entries over, so that what was written from there is known here.

Merged entries get numbers of this journal and keep the name of where they come from. A journal that
was lost is restored from its own export: the same records, the same identity, into an empty file.
"""

from dataclasses import dataclass

from escrowctl.errors import ErrorCode, EscrowctlError, Sending
from escrowctl.journal.archive import Archive
from escrowctl.journal.chain import EMPTY, Link
from escrowctl.journal.entries import State
from escrowctl.journal.rows import Columns
from escrowctl.journal.store import Store
from escrowctl.journal.verification import fold

WHILE_EXPORTED = "it was in flight when its journal was exported"
_OPEN = (State.UNKNOWN.value, State.IN_FLIGHT.value)


@dataclass(frozen=True, slots=True)
class Intake:
    """How many entries were taken over, brought up to date, and known already."""

    added: int = 0
    updated: int = 0
    known: int = 0


def merge(store: Store, archive: Archive, *, at: str) -> Intake:
    """Take an archive's entries over in one transaction; again is harmless.

    An entry that is settled here stays as it is. Raises EscrowctlError: 7 where the archive is an
    earlier state of this very journal that contradicts it, and `journal_unusable`.
    """
    if archive.journal_id == store.journal_id:
        return _recognise(store, archive)
    added = updated = known = 0
    with store.transaction():
        store.check_tail()
        for number, links in _by_entry(archive).items():
            columns = _as_imported(fold(links), origin=f"{archive.journal_id} j{number}")
            earlier = store.by_origin(columns["origin"])
            if earlier is None and store.by_key(_names(columns), columns["idempotency_key"]) is not None:
                known += 1
            elif earlier is None:
                store.add_import(store.next_number(), columns, at=at)
                added += 1
            elif earlier.is_open and columns["state"] not in _OPEN:
                store.add_import(earlier.number, columns, at=at)
                updated += 1
            else:
                known += 1
    return Intake(added, updated, known)


def restore(store: Store, archive: Archive) -> Intake:
    """Bring an archive back as the journal that it was, into one that holds nothing.

    Raises EscrowctlError (7) where this journal holds records.
    """
    with store.transaction():
        if store.head() != EMPTY:
            raise _refusal("this journal holds entries: only an empty one can become another.")
        store.take_identity(archive.journal_id)
        for link in archive.links:
            store.add_link(link)
    return Intake(added=len(_by_entry(archive)))


def _recognise(store: Store, archive: Archive) -> Intake:
    if why := store.contradiction(archive.head):
        raise _refusal(f"the export is of this very journal, and they do not agree: {why}.")
    return Intake(known=len(_by_entry(archive)))


def _by_entry(archive: Archive) -> dict[int, list[Link]]:
    found: dict[int, list[Link]] = {}
    for link in archive.links:
        found.setdefault(link.record.entry, []).append(link)
    return found


def _as_imported(columns: Columns, *, origin: str) -> Columns:
    """Return a row as this journal takes it: nobody here sends what was in flight there."""
    imported = columns | {"origin": columns["origin"] or origin}
    if columns["state"] == State.IN_FLIGHT.value:
        imported |= {"state": State.UNKNOWN.value, "detail": WHILE_EXPORTED}
    return imported


def _names(columns: Columns) -> set[str]:
    return {columns["service"], columns["site"] or columns["service"]}


def _refusal(sentence: str) -> EscrowctlError:
    return EscrowctlError(ErrorCode.CONFLICT, f"{sentence} Nothing was imported.", sending=Sending.NOT_SENT)
