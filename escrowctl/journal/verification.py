"""Whether a journal is what was written: its chain, what is derived from it, and the heads kept elsewhere.

It finds accidents and careless edits. Who can write the file can also write a chain that is whole:
only a head that was kept elsewhere shows that (`journal export --head`).
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from escrowctl.errors import EscrowctlError
from escrowctl.journal import rows
from escrowctl.journal.chain import EMPTY, Head, Link
from escrowctl.journal.head import KeptHead
from escrowctl.journal.rows import Columns
from escrowctl.journal.store import Store

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Verification:
    """What was looked at, and the first thing that is wrong (None: nothing).

    `behind` is in what the chain contradicts the head file, where that is a problem or not.
    """

    records: int
    entries: int
    head: Head
    problem: str | None
    behind: str | None


def verify(store: Store, *, expected: Head | None = None, any_head: bool = False) -> Verification:
    """Check a copy of the whole journal, taken at one moment, so that nobody's writing is waited for or seen half.

    `expected` is a head that it must still hold; with `any_head` the head file is no problem. Raises
    EscrowctlError `journal_unusable` only where the file cannot be read at all.
    """
    # Read before the copy is taken: what is written meanwhile only puts the chain ahead of it.
    behind = store.behind_head_file()
    with contextlib.closing(store.copy()) as frozen:
        return _verify(frozen, behind=behind, expected=expected, any_head=any_head)


def _verify(store: Store, *, behind: str | None, expected: Head | None, any_head: bool) -> Verification:
    head, problem = _walk_chain(store)
    entries = 0
    if problem is None:
        problem = (None if any_head else behind) or (store.contradiction(expected) if expected else None)
    if problem is None:
        entries, problem = _walk_entries(store)
    return Verification(head.sequence, entries, head, problem or store.find_damage(), behind)


def accept_head(store: Store) -> Head:
    """Store the head of the chain as it is now, whatever the head file says, and return it.

    Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` where the head file is of another journal, and
    this or `ErrorCode.STATE_UNUSABLE` where it cannot be written.
    """
    with store.transaction():
        store.refuse_foreign_head()
        head = store.head()
        store.head_file.replace(KeptHead(store.journal_id, head))
    return head


def links(store: Store) -> Iterator[Link]:
    """Yield every record of the chain in order; each page is read and closed before anything else happens."""
    after = 0
    while page := store.links(after=after, limit=_PAGE):
        yield from page
        after = page[-1].record.sequence


def fold(records: list[Link]) -> Columns:
    """Return the row that an entry's records make; raises ValueError, KeyError or TypeError for damaged ones."""
    columns: Columns = {}
    for link in records:
        record = link.record
        columns = rows.apply(columns, record.kind, record.at, json.loads(record.facts))
    return columns


def _walk_chain(store: Store) -> tuple[Head, str | None]:
    head = EMPTY
    for link in links(store):
        if not link.follows(head):
            return head, f"record {head.sequence + 1} is missing or not what was written"
        head = Head(link.record.sequence, link.digest)
    return head, None


def _walk_entries(store: Store) -> tuple[int, str | None]:
    """Hold each entry against its records; what is derived must be what they make."""
    count, after, guards = 0, 0, 0
    try:
        while page := store.page(after=after, limit=_PAGE):
            for number, columns in page:
                if problem := _compare(store, number, columns):
                    return count, problem
                count += 1
                guards += len(rows.tokens_of(columns))
            after = page[-1][0]
    except EscrowctlError as error:
        return count, error.message
    if count != len({link.record.entry for link in links(store)}):
        return count, "there are records of an entry that is missing"
    if guards != store.count_guards():
        return count, "something stands against new writes that no entry accounts for"
    return count, None


def _compare(store: Store, number: int, columns: Columns) -> str | None:
    try:
        made = fold(store.links_of(number))
        tokens = rows.tokens_of(made)
        rows.entry_of(number, made)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return f"the records of entry j{number} cannot be read"
    if made != columns:
        return f"entry j{number} is not what its records make of it"
    if not store.stands(number, tokens):
        return f"entry j{number} does not stand against new writes as it should"
    return None
