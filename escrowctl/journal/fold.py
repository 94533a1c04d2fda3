"""An entry is the fold of its records. This module derives everything else that a journal stores about it.

A storage has the records and, for lookups, data derived from them: a row for each entry, the duplicate
keys under which an entry guards against new writes, and the running totals for caps. All of it can be
rebuilt from the records. A row is compared with its records whenever the entry is read.
"""

import functools
import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.journal import fields
from escrowctl.journal.chain import ChainRecord, Head, Kind, Link, canonical
from escrowctl.journal.fields import Facts
from escrowctl.journal.model import DECIDED_RESEND, OPEN_STATES, Entry, Intent, State

_SHORT_LIVED = 1 << 62
"""Added to keys that are removed when a write is settled, so that these few keys are next to each other. A commit of
many writes then changes few pages of a table that is ordered by key. SQLite's integers have 63 bits."""


class StoredRow(NamedTuple):
    """The row that is stored for an entry in addition to its records. `values` are the queried fields.

    `records` is the number of its records, `latest` the latest date in the journal up to its last record.
    """

    values: tuple[str | int | None, ...]
    records: int
    counted_on: str
    latest: str


class Folded(NamedTuple):
    """An entry with all stored values, its row, and the duplicate keys under which it guards against new writes."""

    entry: Entry
    facts: Facts
    row: StoredRow
    keys: frozenset[int]


def next_link(head: Head, number: int, kind: Kind, facts: Facts, *, at: str) -> Link:
    """Return the record that continues a chain."""
    record = ChainRecord(head.sequence + 1, number, kind.value, at, canonical(facts))
    return Link(record, record.digest(head.digest))


def extend(before: Folded | None, link: Link, *, latest: str, facts: Facts | None = None) -> Folded:
    """Return an entry after one more record. Raises one of `fields.UNDECODABLE` if the record is not valid.

    `latest` is the latest date of all earlier records, `facts` the record's decoded facts, if the caller has them.
    """
    record = link.record
    new = json.loads(record.facts) if facts is None else facts
    facts = fields.apply(before.facts if before else {}, record.kind, record.at, new)
    event = fields.event_of(record.kind, record.at, new)
    records, counted_on = (before.row.records, before.row.counted_on) if before else (0, "")
    now = max(latest, record.at)
    if before is not None and record.kind not in (Kind.INTENT, Kind.IMPORT):
        old = before.entry
        resends = old.resends + (record.kind == Kind.DECISION and new["detail"] == DECIDED_RESEND)
        settlement = fields.settlement_of(facts)
        entry = old._replace(
            settlement=settlement, settled_at=record.at, history=(*old.history, event), resends=resends
        )
    else:
        counted_on = now[:10] if record.kind == Kind.INTENT else max(counted_on, facts["sent_at"][:10])
        history, requests, resends = (
            (before.entry.history, before.entry.requests, before.entry.resends) if before else ((), frozenset[str](), 0)
        )
        entry = fields.entry_of(
            record.entry,
            facts,
            history=(*history, event),
            requests=requests | {new["request_id"]},
            resends=max(resends, new.get("resends", 0)),
            counted_on=counted_on,
        )
    row = StoredRow(tuple(facts[name] for name in fields.QUERIED), records + 1, counted_on, now)
    return Folded(entry, facts, row, duplicate_keys(entry))


def build(row: StoredRow, links: Iterable[tuple[Link, str]]) -> Folded:
    """Return a stored entry from its row and its records, each with the digest of the record before it.

    Raises one of `fields.UNDECODABLE`: ValueError if a record was changed or the row does not match the records.
    """
    found: Folded | None = None
    for link, previous in links:
        if link.digest != link.record.digest(previous):
            raise ValueError(link.record.sequence)
        found = extend(found, link, latest="")
    # The dates in a row depend on other entries' records: `journal verify` compares them.
    if found is None or (found.row.values, found.row.records) != (row.values, row.records):
        raise ValueError(row)
    return found._replace(entry=found.entry._replace(counted_on=row.counted_on), row=row)


def duplicate_keys(entry: Entry) -> frozenset[int]:
    """Return the keys under which an entry guards against new writes in its current state.

    Always its idempotency key. Its reference if it happened or may have happened. Its fingerprint while it
    is open, and forever if it is a done release: once the outcome of a create or update is known, an
    identical one may be intended.
    """
    is_open, is_done = entry.state in OPEN_STATES, entry.state is State.DONE
    guards_identical = is_open or (is_done and entry.intent.is_once_only)
    return _keys(entry.intent, key=True, fingerprint=guards_identical, reference=is_open or is_done)


def keys_to_check(intent: Intent) -> frozenset[int]:
    """Return the keys under which an entry may stop this intent. A reference counts only without an id."""
    return _keys(intent, key=True, fingerprint=True, reference=intent.has_no_id)


def idempotency_keys(intent: Intent) -> frozenset[int]:
    """Return the key of a write's idempotency key."""
    return _keys(intent, key=True)


def fingerprint_keys(intent: Intent) -> frozenset[int]:
    """Return the keys of an identical write: one for each fingerprint."""
    return _keys(intent, fingerprint=True)


def reference_keys(intent: Intent) -> frozenset[int]:
    """Return the key of a write's reference, if it has one."""
    return _keys(intent, reference=True)


def _keys(intent: Intent, *, key: bool = False, fingerprint: bool = False, reference: bool = False) -> frozenset[int]:
    """Return the keys of these kinds. They are the same for all services: a lookup filters by service.

    Ids that differ only in case or Unicode form share a key, and so do references that look alike.
    """
    # The kinds' names are part of stored keys since format 1: "likeness" is the fingerprint.
    found = [_key("key", intent.idempotency_key)] if key else []
    # Only the reference identifies a row of a batch: thousands of rows may have the same amount.
    if fingerprint and not (intent.batch is not None and intent.has_no_id and intent.reference is not None):
        given = [fold_id(one) if intent.is_once_only else one for one in intent.fingerprints]
        place = 0 if intent.is_once_only else _SHORT_LIVED
        found += [place | _key("likeness", intent.operation, one) for one in given]
    if reference and intent.reference is not None:
        found.append(_key("reference", fold_reference(intent.reference)))
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def _key(*parts: str) -> int:
    # Below _SHORT_LIVED.
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8], "big") >> 2
