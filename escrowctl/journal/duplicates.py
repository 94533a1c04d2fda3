"""Find pairs of done writes with the same id, reference or idempotency key, for example after an import."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from escrowctl.journal.fold import duplicate_keys, reference_keys
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Selection, State


class DuplicatePair(NamedTuple):
    """Two done entries with the same id, reference or idempotency key. A value that they do not share is None."""

    first: Entry
    second: Entry
    id: str | None
    reference: str | None
    idempotency_key: str | None


def list_duplicates(journal: Journal) -> list[DuplicatePair]:
    """Return all pairs of duplicates in a journal."""
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for entry in journal.select_all(Selection(states=(State.DONE,))):
        for key in duplicate_keys(entry):
            numbers[key].append(entry.number)
    shared = [some for some in numbers.values() if len(some) > 1]
    return find_pairs(journal.storage.read_entries(set[int]().union(*shared)))


def find_pairs(entries: Iterable[Entry]) -> list[DuplicatePair]:
    """Return the pairs of duplicates among these entries, sorted by entry number. Only done entries count."""
    under_key: defaultdict[int, list[Entry]] = defaultdict(list)
    found: dict[tuple[int, int], DuplicatePair | None] = {}
    for entry in sorted(entries, key=lambda one: one.number):
        for key in duplicate_keys(entry) if entry.state is State.DONE else ():
            found |= {(one.number, entry.number): _pair_if_duplicates(one, entry) for one in under_key[key]}
            under_key[key].append(entry)
    return [pair for pair in found.values() if pair is not None]


def find_pairs_with(pairs: Sequence[DuplicatePair], entries: Iterable[Entry]) -> list[DuplicatePair]:
    """Return the pairs that contain one of these entries."""
    numbers = {entry.number for entry in entries}
    return [pair for pair in pairs if numbers & {pair.first.number, pair.second.number}]


def _pair_if_duplicates(first: Entry, second: Entry) -> DuplicatePair | None:
    """Return two done entries as a pair of duplicates. None: the entries share nothing, or both may be intended."""
    one, other = first.intent, second.intent
    is_allowed = first.number in other.allowed_duplicates or second.number in one.allowed_duplicates
    if is_allowed or not one.may_share_account(other):
        return None
    has_one_key = one.idempotency_key == other.idempotency_key
    created = first.settlement.result_id if one.has_no_id and other.has_no_id else None
    if has_one_key and created is not None and created == second.settlement.result_id:
        # The service recognised the key: both entries are one escrow.
        return None
    has_one_id = one.is_once_only and one.operation == other.operation and one.has_same_id(other)
    are_two_runs = None not in (one.run_key, other.run_key) and one.run_key != other.run_key
    has_one_reference = bool(reference_keys(one) & reference_keys(other)) and not are_two_runs
    pair = DuplicatePair(
        first,
        second,
        one.resource_id if has_one_id else None,
        one.reference if has_one_reference else None,
        one.idempotency_key if has_one_key else None,
    )
    return pair if has_one_id or has_one_reference or has_one_key else None
