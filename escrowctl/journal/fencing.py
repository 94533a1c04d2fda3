"""Fencing: an attempt's outcome is recorded only while that attempt is still its entry's current one.

The journal's locks see to that on one path to it. Two paths may not share locks (`journal.mounts`): then
another process may have taken an entry over, or have overwritten it, while we were sending.
"""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from escrowctl.errors import EscrowctlError
from escrowctl.journal.chain import Link
from escrowctl.journal.entries import Entry, State, Verdict
from escrowctl.journal.store import Store


def settle_if_current(store: Store, entry: Entry, verdict: Verdict, *, at: str) -> bool:
    """Record the outcome of an attempt of ours, only inside a transaction; returns False where it is not current.

    An attempt whose intent was overwritten is recorded again, with its outcome, as an entry of its own.
    """
    now = store.by_number(entry.number)
    if now is not None and (now.request_id, now.state) == (entry.request_id, State.IN_FLIGHT):
        store.add_verdict(entry.number, verdict, at=at)
        return True
    if entry.request_id not in find_requests(store.links_of(entry.number)):
        number = store.next_number()
        store.add_intent(number, entry.intent, attempt=1, request_id=entry.request_id, at=at)
        store.add_verdict(number, verdict, at=at)
    return False


def is_on_record(path: Path, entry: Entry, verdict: Verdict) -> bool:
    """Whether the outcome of an attempt is on record, to one who opens the journal anew."""
    try:
        store = Store.open(path, made_at="", reading=True)
    except EscrowctlError:
        return False
    with contextlib.closing(store), contextlib.suppress(EscrowctlError):
        found = store.by_number(entry.number)
        return found is not None and (found.attempt, found.verdict) == (entry.attempt, verdict)
    return False


def find_requests(links: Iterable[Link]) -> set[str]:
    """Return the request ids of an entry's attempts."""
    facts = (json.loads(link.record.facts) for link in links)
    return {found["request_id"] for found in facts if "request_id" in found}
