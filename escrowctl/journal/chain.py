"""The hash chain over the journal's records: each digest covers the record and the digest before it."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

GENESIS = "0" * 64
"""What stands in the place of the digest before the first record."""


class Kind(StrEnum):
    """What a record says: a write about to be sent, what became of it, an operator's word on it, or
    an entry taken over from another journal."""

    INTENT = "intent"
    VERDICT = "verdict"
    DECISION = "decision"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Record:
    """One appended record; `facts` is canonical JSON text."""

    sequence: int
    entry: int
    kind: str
    at: str
    facts: str

    def digest(self, previous: str) -> str:
        """Return SHA-256 over the previous digest and every column, as hex."""
        covered = json.dumps([previous, self.sequence, self.entry, self.kind, self.at, self.facts])
        return hashlib.sha256(covered.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Link:
    """A record as it stands in the chain."""

    record: Record
    digest: str

    def follows(self, previous: "Head") -> bool:
        """Whether this is the next record after a head, and its digest is right."""
        return self.record.sequence == previous.sequence + 1 and self.digest == self.record.digest(previous.digest)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends: the last record's sequence and digest."""

    sequence: int
    digest: str


EMPTY = Head(0, GENESIS)
"""The head of a chain without records."""


def canonical(facts: dict[str, object]) -> str:
    """Return facts as the one JSON text that stands for them."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))
