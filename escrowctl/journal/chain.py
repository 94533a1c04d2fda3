"""The hash chain over the journal's records: each digest covers the record and the digest before it."""

import hashlib
import json
from dataclasses import dataclass

GENESIS = "0" * 64


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


def canonical(facts: dict[str, object]) -> str:
    """Return facts as the one JSON text that stands for them."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))
