"""The journal as text: JSON lines that hold its whole chain, to be kept elsewhere and read back.

    {"escrowctl_journal": 1, "journal_id": "..."}
    {"sequence": 1, "entry": 1, "kind": "intent", "at": "...", "facts": {...}, "digest": "..."}
    ...
    {"head": {"sequence": 1, "digest": "..."}}

The last line tells a whole file from one that was cut.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from escrowctl.errors import NOTHING_IMPORTED, EscrowctlError, bad_value
from escrowctl.journal import rows
from escrowctl.journal.chain import EMPTY, Head, Link, Record, canonical
from escrowctl.journal.facts import check_journal_id, check_record
from escrowctl.journal.store import Store
from escrowctl.journal.verification import fold, links

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Archive:
    """A journal read back from text, its chain whole."""

    journal_id: str
    links: list[Link]

    @property
    def head(self) -> Head:
        """Where its chain ends."""
        return Head(self.links[-1].record.sequence, self.links[-1].digest) if self.links else EMPTY

    def by_entry(self) -> dict[int, list[Link]]:
        """Return the records of each entry, in order."""
        found: dict[int, list[Link]] = {}
        for link in self.links:
            found.setdefault(link.record.entry, []).append(link)
        return found


def write_archive(store: Store) -> Iterator[str]:
    """Yield the journal's lines, without line ends."""
    yield json.dumps({"escrowctl_journal": FORMAT, "journal_id": store.journal_id})
    head = EMPTY
    for link in links(store):
        record = link.record
        yield json.dumps(
            {
                "sequence": record.sequence,
                "entry": record.entry,
                "kind": record.kind,
                "at": record.at,
                "facts": json.loads(record.facts),
                "digest": link.digest,
            }
        )
        head = Head(record.sequence, link.digest)
    yield json.dumps({"head": {"sequence": head.sequence, "digest": head.digest}})


def read_archive(lines: Iterable[str], *, source: str) -> Archive:
    """Return what an export holds.

    Raises EscrowctlError (exit 2) naming the line where it is not one, was changed, or was cut, and the
    entry that its records do not make.
    """
    journal_id, found, head = "", [], EMPTY
    whole = False
    for number, line in enumerate(lines, start=1):
        try:
            document = json.loads(line)
            if number == 1:
                journal_id = _journal_id(document)
            elif "head" in document:
                whole = document["head"] == {"sequence": head.sequence, "digest": head.digest}
                break
            else:
                link = _link(document)
                if not link.follows(head):
                    raise _not_one(
                        source, number, "does not follow from the line before: it was changed, or lines are missing"
                    )
                found.append(link)
                head = Head(link.record.sequence, link.digest)
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
            raise _not_one(source, number, "is no line of a journal's export") from error
    if not whole:
        raise bad_value(f"{source} is not whole: it was cut, or its last line was changed.", effect=NOTHING_IMPORTED)
    archive = Archive(journal_id, found)
    for number, records in archive.by_entry().items():
        try:
            columns = fold(records)
            rows.entry_of(number, columns)
            rows.tokens_of(columns)
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise bad_value(f"the records of j{number} in {source} make no entry.", effect=NOTHING_IMPORTED) from error
    return archive


def _journal_id(document: dict[str, object]) -> str:
    if document["escrowctl_journal"] != FORMAT:
        raise ValueError(document["escrowctl_journal"])
    return check_journal_id(document["journal_id"])


def _link(document: dict[str, object]) -> Link:
    facts, sequence, entry = document["facts"], document["sequence"], document["entry"]
    if not (isinstance(facts, dict) and isinstance(sequence, int) and isinstance(entry, int)):
        raise TypeError(document)
    record = Record(sequence, entry, str(document["kind"]), str(document["at"]), canonical(facts))
    check_record(record, facts)
    return Link(record, str(document["digest"]))


def _not_one(source: str, number: int, why: str) -> EscrowctlError:
    return bad_value(f"line {number} of {source} {why}.", effect=NOTHING_IMPORTED)
