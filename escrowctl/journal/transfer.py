"""Export a journal as text, and import the text of another journal: JSON lines with the complete chain.

    {"escrowctl_journal": 1, "journal_id": "..."}
    {"sequence": 1, "entry": 1, "kind": "intent", "at": "...", "facts": {...}, "digest": "..."}
    ...
    {"head": {"sequence": 1, "digest": "..."}}

The last line shows that the file is not truncated. An import copies the entries of another journal. They
get new numbers here, and `origin` names the journal and entry that they come from.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, bad_value, not_sent
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, ChainRecord, Head, Kind, canonical_json
from escrowctl.journal.duplicates import DuplicatePair, find_pairs, find_pairs_with
from escrowctl.journal.fields import DECODING_ERRORS, Facts
from escrowctl.journal.fold import StoredEntry, add_record, duplicate_keys
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import EXPORTED_IN_FLIGHT, OPEN_STATES, Entry, Selection, State
from escrowctl.journal.storage import Closing, Storage, Transaction
from escrowctl.journal.witness import find_mismatch

EXPORT_FORMAT = 1
_PAGE_SIZE, _ENTRIES_A_COMMIT = 500, 500


class Archive(NamedTuple):
    """A journal read from an export, with a valid chain. `by_entry`: entry number -> valid records."""

    journal_id: str
    records: list[ChainRecord]
    by_entry: dict[int, list[ChainRecord]]

    @property
    def head(self) -> Head:
        """The end of the archive's chain."""
        return self.records[-1].head if self.records else EMPTY_HEAD

    @property
    def closing(self) -> Closing | None:
        """What its closing record says. None: it was open."""
        return Closing.from_last(self.records[-1] if self.records else None)

    @property
    def record_count(self) -> int:
        """The number of records in the archive, without a closing record at the end."""
        return len(self.records) - (self.closing is not None)


class ImportResult(NamedTuple):
    """How many entries an import added, updated or knew already. `duplicates`: pairs with a changed entry."""

    added: int = 0
    updated: int = 0
    known: int = 0
    duplicates: tuple[DuplicatePair, ...] = ()


def read_chain(storage: Storage) -> Iterator[ChainRecord]:
    """Yield every record of the chain in order. Each page is read completely before its records are yielded."""
    after = 0
    while page := storage.read_records(after=after, limit=_PAGE_SIZE):
        yield from page
        after = page[-1].sequence


def write_archive(storage: Storage, report: Callable[[str], None]) -> Iterator[str]:
    """Yield the lines of an export, without line ends. If the chain is broken, report it and skip the rest."""
    yield json.dumps({"escrowctl_journal": EXPORT_FORMAT, "journal_id": storage.journal_id})
    head = EMPTY_HEAD
    try:
        for record in read_chain(storage):
            if not record.follows(head):
                report(f"record {head.sequence + 1} is missing or was changed")
                break
            yield json.dumps(record._asdict() | {"facts": json.loads(record.facts)})
            head = record.head
    except EscrowctlError as error:
        report(error.message.rstrip("."))
    yield json.dumps({"head": head._asdict()})


def read_archive(lines: Iterable[str], *, source: str) -> Archive:
    """Return the journal in an export. `source` is its name in messages.

    Raises EscrowctlError `ErrorCode.BAD_VALUE` if the export is truncated, if a line is not part of an export or
    was changed, or if the records of an entry contradict each other. The message names the line or entry.
    """
    # Only an import needs these models, which take long to load.
    from escrowctl.journal.imported import FirstLine, RecordLine  # noqa: PLC0415

    journal_id, found, head = "", list[ChainRecord](), EMPTY_HEAD
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
                one = RecordLine.model_validate(document)
                record = ChainRecord(one.sequence, one.entry, one.kind, one.at, canonical_json(one.facts), one.digest)
                if not record.follows(head):
                    problem = "does not match the line before it: a line was changed or is missing"
                    raise _bad_line(source, number, problem)
                found.append(record)
                head = record.head
        except (*DECODING_ERRORS, RecursionError) as error:
            raise _bad_line(source, number, "is not a line of a journal export") from error
    if not is_complete:
        message = f"{source} is not complete: it was truncated, or its last line was changed."
        raise bad_value(message, effect=Effect.NOTHING_IMPORTED)
    return Archive(journal_id, found, _group_by_entry(found, source))


def _group_by_entry(found: list[ChainRecord], source: str) -> dict[int, list[ChainRecord]]:
    by_entry: dict[int, list[ChainRecord]] = {}
    for record in found:
        if record.entry != NO_ENTRY:
            by_entry.setdefault(record.entry, []).append(record)
    for number, records in by_entry.items():
        try:
            _build_entry(records)
        except DECODING_ERRORS as error:
            message = f"the records of j{number} in {source} are incomplete or contradict each other."
            raise bad_value(message, effect=Effect.NOTHING_IMPORTED) from error
    return by_entry


def _build_entry(records: list[ChainRecord]) -> StoredEntry:
    folded: StoredEntry | None = None
    for record in records:
        folded = add_record(folded, record, latest="")
    assert folded is not None, "an entry has records"
    return folded


def _bad_line(source: str, number: int, problem: str) -> EscrowctlError:
    return bad_value(f"line {number} of {source} {problem}.", effect=Effect.NOTHING_IMPORTED)


def import_archive(transaction: Transaction, storage: Storage, archive: Archive) -> ImportResult:
    """Import an archive's entries in one transaction of `storage`. Importing twice is safe.

    Two entries are the same write if one of them has the last attempt of the other. Idempotency keys and numbers
    are not compared: different writes may have the same ones. Raises EscrowctlError: `ErrorCode.CONFLICT` if the
    archive comes from this journal but contradicts it, `ErrorCode.JOURNAL_UNUSABLE` if nothing can be written.
    """
    if archive.journal_id == storage.journal_id:
        if mismatch := find_mismatch(transaction, archive.head, transaction.head):
            raise not_sent(
                ErrorCode.CONFLICT,
                f"the export comes from this journal but does not match it: {mismatch}. Two copies of this journal "
                "were used: ask the service about the writes that only the export contains.",
                effect=Effect.NOTHING_IMPORTED,
            )
        return ImportResult(known=len(archive.by_entry))
    added = updated = known = 0
    changed: list[Entry] = []
    for number, records in archive.by_entry.items():
        theirs = _build_entry(records)
        origin = f"{archive.journal_id} j{number}"
        ours = _find_same_write(storage, theirs.entry, origin)
        if ours is None:
            first = theirs.entry.origin or origin
            facts = _facts_to_import(theirs, origin=origin if _is_own_origin(storage, first) else first)
            changed.append(transaction.append(None, Kind.IMPORT, facts))
            added += 1
        elif _must_replace(theirs.entry, ours):
            # An entry that was written here stays this journal's own: `fields.apply_record`.
            facts = _facts_to_import(theirs, origin=ours.origin or origin)
            changed.append(transaction.append(ours.number, Kind.IMPORT, facts))
            updated += 1
        else:
            known += 1
    done = [entry for entry in changed if entry.state is State.DONE]
    near: dict[int, Entry] = {}
    for entry in done:
        near |= {one.number: one for one in transaction.find_by_keys(duplicate_keys(entry))}
    return ImportResult(added, updated, known, tuple(find_pairs_with(find_pairs(near.values()), done)))


def import_in_commits(journal: Journal, archive: Archive) -> ImportResult:
    """Import an archive in small commits: others who share the journal have to record outcomes meanwhile."""
    entries, done = [*archive.by_entry.items()], list[ImportResult]()
    for start in range(0, max(1, len(entries)), _ENTRIES_A_COMMIT):
        some = archive._replace(by_entry=dict(entries[start : start + _ENTRIES_A_COMMIT]))
        with journal.checked_commit() as commit:
            done.append(import_archive(commit.transaction, journal.storage, some))
    added, updated, known = map(sum, zip(*(one[:3] for one in done), strict=True))
    return ImportResult(added, updated, known, tuple(pair for one in done for pair in one.duplicates))


def _find_same_write(storage: Storage, theirs: Entry, origin: str) -> Entry | None:
    """Return this journal's entry that is the same write as `theirs`, an entry of another journal.

    It was imported before, or was first written here. A shared number is not enough: a restored journal may reuse an
    entry's number. None also if both journals sent the write again.
    """
    first = theirs.origin or origin
    found = [one for name in dict.fromkeys((first, origin)) for one in storage.select(Selection(None, origin=name))]
    if _is_own_origin(storage, first):
        found += storage.read_entries([int(first.partition(" j")[2])])
    return next(
        (one for one in found if theirs.request_id in one.request_ids or one.request_id in theirs.request_ids), None
    )


def _is_own_origin(storage: Storage, origin: str) -> bool:
    return origin.partition(" j")[0] == storage.journal_id


def _must_replace(theirs: Entry, ours: Entry) -> bool:
    """Whether `theirs`, the other journal's record of a write, replaces `ours`: its state is later or safer.

    If `ours` is unknown: `theirs` has the outcome of the same attempt. If `ours` is in flight or done: never. In
    any other state: `theirs` is done, or is open after an attempt that this journal does not have.
    """
    if ours.is_open:
        return not theirs.is_open and ours.state is not State.IN_FLIGHT and ours.request_id in theirs.request_ids
    if ours.state is State.DONE:
        return False
    return theirs.state is State.DONE or (theirs.state in OPEN_STATES and theirs.request_id not in ours.request_ids)


def _facts_to_import(theirs: StoredEntry, *, origin: str) -> Facts:
    """Return the facts of the import record for `theirs`, an entry of another journal.

    An entry that was in flight there is unknown here. The allowed duplicates are left out: they are numbers of the
    other journal.
    """
    facts = theirs.facts | {"origin": origin, "despite": "", "resends": theirs.entry.resends}
    if theirs.entry.state is State.IN_FLIGHT:
        facts |= {"state": State.UNKNOWN.value, "detail": EXPORTED_IN_FLIGHT}
    return facts
