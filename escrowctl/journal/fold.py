"""Build an entry from its records, and derive everything else that a journal stores about the entry.

A storage has the records and, for lookups, data derived from them: a row for each entry, the duplicate
keys that new writes are compared with, and the running totals for caps. The derived data can be rebuilt
from the records. A row is compared with its records whenever the entry is read.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.journal import fields
from escrowctl.journal.chain import ChainRecord, Head, Kind, canonical_json, compute_digest
from escrowctl.journal.fields import Facts
from escrowctl.journal.model import DECIDED_RESEND, OPEN_STATES, Entry, Intent, State

_SHORT_LIVED_BIT = 1 << 62
"""The bit that is set in keys that are removed when a write is settled. It keeps these few keys together: a commit
of many writes then changes few pages of a table ordered by key. SQLite's positive integers have 63 bits."""

_ONCE_ONLY = "release_transaction"
"""The operation in the keys of every once-only write, because these exclude each other: a record gets only one."""


TotalKey = tuple[str, str, str, str, str]
"""The key of a running total: operation, currency, UTC day, and the service's two names (`service` and `site`)."""


class StoredEntry(NamedTuple):
    """An entry built from its records, with its stored values (`facts`) and its duplicate keys.

    `records` is the number of its records. `latest` is the latest date in the journal up to the last of them.
    """

    entry: Entry
    facts: Facts
    keys: frozenset[int]
    records: int
    latest: str

    @property
    def row(self) -> tuple[object, ...]:
        """The row that is stored for the entry: the values of the `QUERIED_FIELDS`, and three that are derived."""
        return (*(self.facts[name] for name in fields.QUERIED_FIELDS), self.records, self.entry.counted_on, self.latest)


def next_record(head: Head, number: int, kind: str, facts: Facts, *, at: str) -> ChainRecord:
    """Return the next record of the chain that ends with `head`. `number` is the entry's number."""
    content = (head.sequence + 1, number, kind, at, canonical_json(facts))
    return ChainRecord(*content, compute_digest(head.digest, content))


def add_record(
    before: StoredEntry | None, record: ChainRecord, *, latest: str, facts: Facts | None = None
) -> StoredEntry:
    """Return an entry after one more record. Raises one of `fields.DECODING_ERRORS` if the record is not valid.

    `before` is None for a new entry. `latest` is the latest date of all earlier records in the journal. `facts` are
    the record's decoded facts, if the caller has them.
    """
    new = json.loads(record.facts) if facts is None else facts
    facts = fields.apply_record(before.facts if before else {}, record.kind, record.at, new)
    event = fields.event_of(record.kind, record.at, new)
    now = max(latest, record.at)
    if before is not None and record.kind not in (Kind.INTENT, Kind.IMPORT):
        old = before.entry
        resends = old.resends + (record.kind == Kind.DECISION and new["detail"] == DECIDED_RESEND)
        entry = old._replace(settlement=fields.settlement_of(facts), settled_at=record.at, resends=resends)
    else:
        entry = fields.entry_of(record.entry, facts)
        old = before.entry if before else entry
        entry = entry._replace(
            history=old.history,
            request_ids=old.request_ids | {new["request_id"]},
            resends=max(old.resends, new.get("resends", 0)),
            counted_on=now[:10] if record.kind == Kind.INTENT else max(old.counted_on, facts["sent_at"][:10]),
        )
    entry = entry._replace(history=(*entry.history, event))
    return StoredEntry(entry, facts, duplicate_keys(entry), before.records + 1 if before else 1, now)


def rebuild_entry(row: tuple[object, ...], records: Iterable[tuple[ChainRecord, str]]) -> StoredEntry:
    """Return an entry from its stored row and its records. Each record comes with the digest before it.

    Raises one of `fields.DECODING_ERRORS`: ValueError if a record was changed or does not match the row.
    """
    found: StoredEntry | None = None
    for record, previous in records:
        if not record.has_digest_after(previous):
            raise ValueError(record.sequence)
        found = add_record(found, record, latest="")
    # The dates in a row depend on other entries' records: `journal verify` compares them.
    *_, counted_on, latest = row
    if found is None or found.row[:-2] != row[:-2] or not (isinstance(counted_on, str) and isinstance(latest, str)):
        raise ValueError(row)
    return found._replace(entry=found.entry._replace(counted_on=counted_on), latest=latest)


def duplicate_keys(entry: Entry) -> frozenset[int]:
    """Return the duplicate keys that an entry has in its current state. New writes are compared with these keys.

    The key of the idempotency key is always included. The key of the reference is included if the entry is open or
    done. The keys of the fingerprints are included if the entry is open, or done and once-only: a create or update
    that is identical to a done one may be intended.
    """
    is_open, is_done = entry.state in OPEN_STATES, entry.state is State.DONE
    guards_identical = is_open or (is_done and entry.intent.is_once_only)
    return _keys(entry.intent, key=True, fingerprint=guards_identical, reference=is_open or is_done)


def keys_to_check(intent: Intent) -> frozenset[int]:
    """Return the duplicate keys to look for before an intent is sent. A reference counts only if there is no id."""
    return _keys(intent, key=True, fingerprint=True, reference=intent.has_no_id)


def fingerprint_keys(intent: Intent) -> frozenset[int]:
    """Return the duplicate keys that identical writes share. A create with a reference in a batch has none."""
    return _keys(intent, fingerprint=True)


def reference_keys(intent: Intent) -> frozenset[int]:
    """Return a set with the duplicate key that is derived from a write's reference, or an empty set."""
    return _keys(intent, reference=True)


def hash_reference(reference: str) -> int:
    """Return the duplicate key of a reference. References that look alike have the same key."""
    return _hash_key("reference", fold_reference(reference))


def hash_once_only(resource_id: str) -> int:
    """Return the duplicate key of all once-only writes to a record. Ids that differ only in case have the same key."""
    return _hash_key("likeness", _ONCE_ONLY, fold_id(resource_id))


def _keys(intent: Intent, *, key: bool = False, fingerprint: bool = False, reference: bool = False) -> frozenset[int]:
    """Return the duplicate keys of these kinds. Keys do not depend on the service: callers compare services.

    Ids that differ only in case or Unicode form have the same key. So do references that look alike, and all
    once-only writes to one record.
    """
    # The stored keys are hashes of these names, so the names cannot change: "likeness" is the fingerprint.
    found = [_hash_key("key", intent.idempotency_key)] if key else []
    # Only the reference identifies a row of a batch: thousands of rows may have the same amount.
    if fingerprint and not (intent.batch is not None and intent.has_no_id and intent.reference is not None):
        found += [
            hash_once_only(one)
            if intent.is_once_only
            else _SHORT_LIVED_BIT | _hash_key("likeness", intent.operation, one)
            for one in intent.fingerprints
        ]
    if reference and intent.reference is not None:
        found.append(hash_reference(intent.reference))
    return frozenset(found)


@lru_cache(maxsize=1024)
def _hash_key(*parts: str) -> int:
    # Below _SHORT_LIVED_BIT. Cached, because the keys of the writes in progress are needed several times.
    text = ", ".join(map(encode_basestring_ascii, parts))
    return int.from_bytes(hashlib.sha256(f"[{text}]".encode()).digest()[:8], "big") >> 2
