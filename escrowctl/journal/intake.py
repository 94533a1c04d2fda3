"""Taking another journal's entries over, so that what was written from there is known here.

Merged entries get numbers of this journal and keep the name of where they come from. A journal that
was lost is restored from its own export: the same records, the same identity, into an empty file.
"""

from dataclasses import dataclass

from escrowctl.errors import NOTHING_IMPORTED, ErrorCode, EscrowctlError, Hints, not_sent
from escrowctl.journal.archive import Archive
from escrowctl.journal.chain import EMPTY, Link
from escrowctl.journal.entries import Entry, State
from escrowctl.journal.fencing import find_requests
from escrowctl.journal.head import KeptHead, UnreadableHeadError
from escrowctl.journal.rows import Columns
from escrowctl.journal.store import Store
from escrowctl.journal.verification import fold

WHILE_EXPORTED = "it was in flight when its journal was exported"


@dataclass(frozen=True, slots=True)
class Intake:
    """How many entries were taken over, brought up to date, and known already."""

    added: int = 0
    updated: int = 0
    known: int = 0


def merge(store: Store, archive: Archive, *, at: str) -> Intake:
    """Take an archive's entries over in one transaction; again is harmless.

    Two entries are one where one's attempts go on from the other's: neither an idempotency key nor a
    number makes them so, for both may be used twice. Raises EscrowctlError: 7 where the archive is an
    earlier state of this very journal that contradicts it, and `journal_unusable`.
    """
    if archive.journal_id == store.journal_id:
        return _recognise(store, archive)
    added = updated = known = 0
    with store.transaction():
        store.check_tail()
        for number, links in archive.by_entry().items():
            theirs = fold(links)
            origin = f"{archive.journal_id} j{number}"
            earlier = _here(store, theirs, links, origin)
            if earlier is None:
                first = theirs["origin"] or origin
                known_as = origin if _is_of(store, first) else first
                store.add_import(store.next_number(), _as_imported(theirs, origin=known_as), at=at)
                added += 1
            elif _outweighs(theirs, links, earlier, store.links_of(earlier.number)):
                store.add_import(earlier.number, _as_imported(theirs, origin=earlier.origin or origin), at=at)
                updated += 1
            else:
                known += 1
    return Intake(added, updated, known)


def restore(store: Store, archive: Archive) -> Intake:
    """Bring an archive back as the journal that it was, into one that holds nothing.

    Raises EscrowctlError (7) where this journal holds records, and where the head next to it is
    unreadable, of another journal, or says that more was written than the archive holds.
    """
    with store.transaction():
        if store.head() != EMPTY:
            raise _refusal("this journal holds entries: only an empty one can become another.")
        _require_reaching(store, archive)
        store.take_identity(archive.journal_id)
        for link in archive.links:
            store.add_link(link)
        # Before the commit: a kill in between leaves an empty journal, into which the same file can be restored.
        store.head_file.replace(KeptHead(archive.journal_id, archive.head))
    return Intake(added=len(archive.by_entry()))


def _recognise(store: Store, archive: Archive) -> Intake:
    if why := store.contradiction(archive.head):
        raise _refusal(
            f"the export is of this very journal, and they do not agree: {why}.",
            hint="one of the two went on as a copy: settle by hand what only the other holds",
        )
    return Intake(known=len(archive.by_entry()))


def _require_reaching(store: Store, archive: Archive) -> None:
    """Refuse an archive that is of another journal than was here before, or older."""
    path = store.head_file.path
    by_hand = f"to restore it anyway: check what was written here, then remove {path}"
    try:
        kept = store.head_file.read()
    except UnreadableHeadError:
        raise _refusal(f"{path} is not a head file: which journal was here is not known.", hint=by_hand) from None
    if kept is None or kept == KeptHead(store.journal_id, EMPTY):
        return
    if kept.journal_id != archive.journal_id:
        raise _refusal(
            f"{path} is of journal {kept.journal_id}, and the export is of journal {archive.journal_id}.",
            hint=(f"import an export of journal {kept.journal_id}", by_hand),
        )
    if kept.head == EMPTY:
        return
    last = archive.head.sequence
    if kept.head.sequence > last:
        raise _refusal(
            f"the journal that stood here had {kept.head.sequence} records, and the export ends with {last}: "
            "what was written since would not be known, and could be done again.",
            hint=("import a later export", f"or settle by hand what was written since, then remove {path}"),
        )
    if archive.links[kept.head.sequence - 1].digest != kept.head.digest:
        raise _refusal(f"the export is not of the journal that stood here: {path.name} beside it says otherwise.")


def _here(store: Store, theirs: Columns, their_links: list[Link], origin: str) -> Entry | None:
    """Return the entry that another journal's entry is: taken over before, or first written from here.

    What was sent from both since they parted is two writes, and a journal that was restored may have
    given a number again: only a shared attempt shows that they are one.
    """
    first = theirs["origin"] or origin
    candidates = [*store.by_origin(first), *(store.by_origin(origin) if first != origin else [])]
    if _is_of(store, first) and (own := store.by_number(int(first.partition(" j")[2]))) is not None:
        candidates.append(own)
    for earlier in candidates:
        ours = find_requests(store.links_of(earlier.number))
        if theirs["request_id"] in ours or earlier.request_id in find_requests(their_links):
            return earlier
    return None


def _is_of(store: Store, origin: str) -> bool:
    """Whether an entry was first written from this journal."""
    return origin.partition(" j")[0] == store.journal_id


def _outweighs(theirs: Columns, their_links: list[Link], ours: Entry, our_links: list[Link]) -> bool:
    """Whether what the other journal says of an entry is later, or safer, than what stands here.

    What was sent again from here since stands as it is: their word is not about that attempt. What
    may have happened there is believed where nothing here says that it cannot have.
    """
    state = State(theirs["state"])
    if ours.is_open:
        settled = state not in (State.UNKNOWN, State.IN_FLIGHT)
        return settled and ours.state is not State.IN_FLIGHT and ours.request_id in find_requests(their_links)
    if ours.state is State.DONE:
        return False
    may_have = state in (State.UNKNOWN, State.IN_FLIGHT) and theirs["request_id"] not in find_requests(our_links)
    return state is State.DONE or may_have


def _as_imported(columns: Columns, *, origin: str) -> Columns:
    """Return a row as this journal takes it: nobody here sends what was in flight there.

    What it was sent in spite of are numbers of the other journal.
    """
    imported = columns | {"origin": origin, "despite": ""}
    if columns["state"] == State.IN_FLIGHT.value:
        imported |= {"state": State.UNKNOWN.value, "detail": WHILE_EXPORTED}
    return imported


def _refusal(sentence: str, *, hint: Hints = ()) -> EscrowctlError:
    return not_sent(ErrorCode.CONFLICT, sentence, hint=hint, effect=NOTHING_IMPORTED)
