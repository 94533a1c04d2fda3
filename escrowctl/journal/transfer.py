"""The journal as text, to be stored elsewhere and read back: JSON lines with the complete chain.

    {"escrowctl_journal": 1, "journal_id": "..."}
    {"sequence": 1, "entry": 1, "kind": "intent", "at": "...", "facts": {...}, "digest": "..."}
    ...
    {"head": {"sequence": 1, "digest": "..."}}

The last line shows that the file is not truncated. An import copies the entries of another journal: they
get numbers of this journal, and store the journal and entry that they come from.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, not_sent
from escrowctl.journal.chain import EMPTY, JOURNAL, ChainRecord, Head, Kind, Link, canonical
from escrowctl.journal.duplicates import Duplicate, pair_up
from escrowctl.journal.fields import UNDECODABLE, Facts
from escrowctl.journal.fold import Folded, duplicate_keys, extend
from escrowctl.journal.model import OPEN_STATES, WHILE_EXPORTED, Entry, Selection, State
from escrowctl.journal.storage import Storage, Transaction, writing

FORMAT = 1
_PAGE = 500


class Archive(NamedTuple):
    """A journal read from text, with a valid chain. `by_entry` has the records of each entry; they are valid too."""

    journal_id: str
    links: list[Link]
    by_entry: dict[int, list[Link]]

    @property
    def head(self) -> Head:
        """The end of its chain."""
        return self.links[-1].head if self.links else EMPTY

    @property
    def records(self) -> int:
        """The number of its records, without a closing record."""
        return sum(link.record.kind != Kind.CLOSING for link in self.links)


class Imported(NamedTuple):
    """The numbers of entries added, updated and already known. `duplicates`: pairs with an added or updated entry."""

    added: int = 0
    updated: int = 0
    known: int = 0
    duplicates: tuple[Duplicate, ...] = ()


def links(storage: Storage) -> Iterator[Link]:
    """Yield every record of the chain in order. Each page is read completely before its records are yielded."""
    after = 0
    while page := storage.records(after=after, limit=_PAGE):
        yield from page
        after = page[-1].record.sequence


def write_archive(storage: Storage, report: Callable[[str], None]) -> Iterator[str]:
    """Yield the journal's lines, without line ends. If the chain is broken, report it and leave out the rest."""
    yield json.dumps({"escrowctl_journal": FORMAT, "journal_id": storage.journal_id})
    head = EMPTY
    try:
        for link in links(storage):
            if not link.follows(head):
                report(f"record {head.sequence + 1} is missing or was changed")
                break
            document = link.record._asdict() | {"facts": json.loads(link.record.facts), "digest": link.digest}
            yield json.dumps(document)
            head = link.head
    except EscrowctlError as error:
        report(error.message.rstrip("."))
    yield json.dumps({"head": head._asdict()})


def read_archive(lines: Iterable[str], *, source: str) -> Archive:
    """Return the journal in an export.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` if the export is truncated, if a line is not part of an export or
    was changed, or if the records of an entry contradict each other. The message names that line or entry.
    """
    # An export need not pay for its import.
    from escrowctl.journal.imported import FirstLine, Line  # noqa: PLC0415

    journal_id, found, head = "", list[Link](), EMPTY
    is_complete = False
    for number, line in enumerate(lines, start=1):
        try:
            document = json.loads(line)
            if number == 1:
                journal_id = FirstLine.model_validate(document).journal_id
            elif "head" in document:
                is_complete = document["head"] == head._asdict()
                break
            else:
                one = Line.model_validate(document)
                record = ChainRecord(one.sequence, one.entry, one.kind.value, one.at, canonical(one.facts))
                link = Link(record, one.digest)
                if not link.follows(head):
                    why = "does not match the line before it: a line was changed or is missing"
                    raise _not_one(source, number, why)
                found.append(link)
                head = link.head
        except (*UNDECODABLE, RecursionError) as error:
            raise _not_one(source, number, "is not a line of a journal export") from error
    if not is_complete:
        raise bad_value(
            f"{source} is not complete: it was truncated, or its last line was changed.", effect=Effect.NOTHING_IMPORTED
        )
    return Archive(journal_id, found, _by_entry(found, source))


def _by_entry(found: list[Link], source: str) -> dict[int, list[Link]]:
    by_entry: dict[int, list[Link]] = {}
    for link in found:
        if link.record.entry != JOURNAL:
            by_entry.setdefault(link.record.entry, []).append(link)
    for number, records in by_entry.items():
        try:
            _fold(records)
        except UNDECODABLE as error:
            why = f"the records of j{number} in {source} are incomplete or contradict each other."
            raise bad_value(why, effect=Effect.NOTHING_IMPORTED) from error
    return by_entry


def _fold(records: list[Link]) -> Folded:
    folded: Folded | None = None
    for link in records:
        folded = extend(folded, link, latest="")
    assert folded is not None, "an entry has records"
    return folded


def _not_one(source: str, number: int, why: str) -> EscrowctlError:
    return bad_value(f"line {number} of {source} {why}.", effect=Effect.NOTHING_IMPORTED)


def merge(storage: Storage, archive: Archive, *, at: str) -> Imported:
    """Import an archive's entries in one commit. Importing twice is safe.

    Two entries are the same if the attempts of one continue those of the other. A shared idempotency key
    or number does not prove it: both may be used twice. Raises EscrowctlError: `ErrorCode.CONFLICT` if the
    archive comes from this journal but contradicts it, `ErrorCode.JOURNAL_UNUSABLE` if nothing can be written.
    """
    if archive.journal_id == storage.journal_id:
        return _compare_with_itself(storage, archive)
    added = updated = known = 0
    changed: list[Entry] = []
    with writing(storage) as transaction:
        transaction.check()
        for number, records in archive.by_entry.items():
            theirs = _fold(records)
            origin = f"{archive.journal_id} j{number}"
            relatives = _find_relatives(storage, transaction, theirs.entry, origin)
            ours = _find_same(relatives, theirs.entry)
            if ours is None:
                first = theirs.entry.origin or origin
                known_as = origin if _is_of(storage, first) else first
                facts = _as_imported(theirs, origin=known_as)
                changed.append(transaction.append(transaction.next_number(), Kind.IMPORT, facts, at=at))
                added += 1
            elif _outweighs(theirs.entry, ours):
                # An entry that was written here stays this journal's own: `fields.apply`.
                facts = _as_imported(theirs, origin=ours.origin or origin)
                changed.append(transaction.append(ours.number, Kind.IMPORT, facts, at=at))
                updated += 1
            else:
                known += 1
        duplicates = _find_duplicates(transaction, changed)
    return Imported(added, updated, known, duplicates)


def _find_duplicates(transaction: Transaction, changed: list[Entry]) -> tuple[Duplicate, ...]:
    """Return the pairs that contain one of these entries."""
    done = [entry for entry in changed if entry.state is State.DONE]
    near = {one.number: one for entry in done for one in transaction.find_by_keys(duplicate_keys(entry))}
    numbers = {entry.number for entry in done}
    return tuple(pair for pair in pair_up(near.values()) if numbers & {pair.first.number, pair.second.number})


def _compare_with_itself(storage: Storage, archive: Archive) -> Imported:
    if why := storage.contradiction(archive.head):
        raise not_sent(
            ErrorCode.CONFLICT,
            f"the export comes from this journal but does not match it: {why}. Two copies of this journal were used: "
            "ask the service about the writes that only the export contains.",
            effect=Effect.NOTHING_IMPORTED,
        )
    return Imported(known=len(archive.by_entry))


def _find_relatives(storage: Storage, transaction: Transaction, theirs: Entry, origin: str) -> list[Entry]:
    """Return the entries that share an attempt with another journal's entry: imported before, or first written here.

    A restored journal may use a number again: only a shared attempt shows that two entries are related.
    """
    first = theirs.origin or origin
    found = [one for name in dict.fromkeys((first, origin)) for one in storage.select(Selection(-1, origin=name))]
    if _is_of(storage, first) and (own := transaction.find(int(first.partition(" j")[2]))) is not None:
        found.append(own)
    return [one for one in found if one.requests & theirs.requests]


def _find_same(relatives: list[Entry], theirs: Entry) -> Entry | None:
    """Return the same entry as another journal's, or None. If both sent it again since, they are two writes."""
    return next(
        (one for one in relatives if theirs.request_id in one.requests or one.request_id in theirs.requests), None
    )


def _is_of(storage: Storage, origin: str) -> bool:
    """Whether an entry was first written in this journal."""
    return origin.partition(" j")[0] == storage.journal_id


def _outweighs(theirs: Entry, ours: Entry) -> bool:
    """Whether the other journal's state of an entry is later or safer than this journal's.

    An open entry that was sent again from here does not change: their outcome is of an earlier attempt. An attempt
    that may have happened there counts unless this journal has that attempt too.
    """
    if ours.is_open:
        return not theirs.is_open and ours.state is not State.IN_FLIGHT and ours.request_id in theirs.requests
    if ours.state is State.DONE:
        return False
    may_have = theirs.state in OPEN_STATES and theirs.request_id not in ours.requests
    return theirs.state is State.DONE or may_have


def _as_imported(theirs: Folded, *, origin: str) -> Facts:
    """Return an entry's facts for the import: an entry that was in flight there is unknown here.

    Its allowed duplicates are left out, because they are numbers of the other journal.
    """
    facts = theirs.facts | {"origin": origin, "despite": "", "resends": theirs.entry.resends}
    if theirs.entry.state is State.IN_FLIGHT:
        facts |= {"state": State.UNKNOWN.value, "detail": WHILE_EXPORTED}
    return facts
