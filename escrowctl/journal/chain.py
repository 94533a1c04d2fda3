"""The hash chain over the journal's records: each digest covers the record and the digest before it."""

import hashlib
import json
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""Returns facts as canonical JSON: equal facts give equal texts."""

GENESIS = "0" * 64
"""The digest before the first record."""


class Kind:
    """The kinds of records, as stored. Four kinds are about an entry: a write that is about to be sent, the write's
    outcome, an operator's decision, an import. Three are about the journal. OPENING: it was made from an export.
    REASON: an operator's reason to send live creates after that. CLOSING: another journal replaced this one."""

    INTENT = "intent"
    # The value is older than the name. It is stored and hashed, so it cannot change.
    SETTLEMENT = "verdict"
    DECISION = "decision"
    IMPORT = "import"
    OPENING = "opening"
    REASON = "reason"
    CLOSING = "closing"


JOURNAL_KINDS = (Kind.OPENING, Kind.REASON, Kind.CLOSING)
NO_ENTRY = 0
"""The entry number of all records about the journal itself."""


class Head(NamedTuple):
    """The end of a chain: the last record's sequence and digest."""

    sequence: int
    digest: str


EMPTY_HEAD = Head(0, GENESIS)
"""The head of a chain without records."""


class ChainRecord(NamedTuple):
    """One record of the chain. `at` is its time, `facts` its content as canonical JSON.

    `digest` is `compute_digest` of the digest before it and of the other fields.
    """

    sequence: int
    entry: int
    kind: str
    at: str
    facts: str
    digest: str

    @property
    def head(self) -> Head:
        """The head of the chain that ends with this record."""
        return Head(self.sequence, self.digest)

    def has_digest_after(self, previous: str) -> bool:
        """Whether the digest is correct if `previous` is the digest before it."""
        return self.digest == compute_digest(previous, self[:-1])

    def follows(self, previous: Head) -> bool:
        """Whether this record has a correct digest and comes directly after `previous`, the head of a chain."""
        return self.sequence == previous.sequence + 1 and self.has_digest_after(previous.digest)


def compute_digest(previous: str, fields: tuple[int, int, str, str, str]) -> str:
    """Return the SHA-256 of the previous digest and the fields of a record except its digest, as hex."""
    sequence, entry, *texts = fields  # as json.dumps writes a list of them, in a third of its time
    before, kind, at, facts = map(encode_basestring_ascii, (previous, *texts))
    return hashlib.sha256(f"[{before}, {sequence}, {entry}, {kind}, {at}, {facts}]".encode()).hexdigest()
