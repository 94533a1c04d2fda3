"""Other entries about the same escrow: one release cannot be two, and one escrow is not what two creates made."""

from collections.abc import Callable, Iterable

from escrowctl.journal.accounts import Account
from escrowctl.journal.entries import Entry, Selection, State
from escrowctl.journal.journal import Journal

_PAGE = 100


def find_release(journal: Journal, entry: Entry, account: Account) -> Entry | None:
    """Return another entry that released the escrow of a release."""
    selection = Selection(_PAGE, states=(State.DONE,), resource_id=entry.intent.resource_id)
    return _first(journal.all(selection), entry, account, lambda other: other.intent.is_once_only)


def find_creator(journal: Journal, entry: Entry, resource_id: str, account: Account) -> Entry | None:
    """Return another entry that created an escrow under this id."""
    made = journal.store.by_result(resource_id)
    return _first(made, entry, account, lambda other: other.state is State.DONE and other.intent.is_create)


def _first(others: Iterable[Entry], entry: Entry, account: Account, is_like: Callable[[Entry], bool]) -> Entry | None:
    names = set(entry.intent.names)
    for other in others:
        is_elsewhere = not names & set(other.intent.names) or account.is_other(other.intent.account)
        if other.number != entry.number and is_like(other) and not is_elsewhere:
            return other
    return None
