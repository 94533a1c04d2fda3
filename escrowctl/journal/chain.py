"""The hash chain over the journal's records: each digest covers the record and the digest before it."""

import hashlib
import json
from enum import StrEnum
from typing import NamedTuple

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

GENESIS = "0" * 64
"""The digest before the first record."""


class Kind(StrEnum):
    """The kind of a record: a write about to be sent, its outcome, an operator's decision, or an entry imported
    from another journal. About the journal itself: it was made from an export, the reason why live creates are
    sent anyway, or it is closed (always the last record)."""

    INTENT = "intent"
    # Stored, and covered by each digest, since format 1.
    SETTLEMENT = "verdict"
    DECISION = "decision"
    IMPORT = "import"
    OPENING = "opening"
    REASON = "reason"
    CLOSING = "closing"


JOURNAL_KINDS = (Kind.OPENING, Kind.REASON, Kind.CLOSING)
JOURNAL = 0
"""The entry number of records about the journal itself. Their facts are texts."""


class ChainRecord(NamedTuple):
    """One appended record; `facts` is canonical JSON text."""

    sequence: int
    entry: int
    kind: str
    at: str
    facts: str

    def digest(self, previous: str) -> str:
        """Return SHA-256 over the previous digest and every column, as hex."""
        covered = json.dumps([previous, *self])
        return hashlib.sha256(covered.encode()).hexdigest()


class Head(NamedTuple):
    """The end of a chain: the last record's sequence and digest."""

    sequence: int
    digest: str


EMPTY = Head(0, GENESIS)
"""The head of a chain without records."""


class Link(NamedTuple):
    """A record with its digest in the chain."""

    record: ChainRecord
    digest: str

    @property
    def head(self) -> Head:
        """The head of the chain that ends with this record."""
        return Head(self.record.sequence, self.digest)

    def follows(self, previous: Head) -> bool:
        """Whether this is the next record after a head, and its digest is right."""
        return self.record.sequence == previous.sequence + 1 and self.digest == self.record.digest(previous.digest)


def canonical(facts: dict[str, object]) -> str:
    """Return facts as canonical JSON: one text for equal facts."""
    return _encode(facts)
