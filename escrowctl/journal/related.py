"""Other entries about the same escrow: one release cannot be two, and one escrow is not what two creates made."""

from collections.abc import Callable

from escrowctl.journal.accounts import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Intent, Selection, State

_PAGE = 100


def find_same(journal: Journal, entry: Entry, account: Account) -> Entry | None:
    """Return another entry that did what a write that is done only once did: released the same escrow."""
    selection = Selection(_PAGE, states=(State.DONE,), resource_id=entry.intent.resource_id)
    return _first(journal, selection, entry, account, lambda other: other.operation == entry.intent.operation)


def find_creator(journal: Journal, entry: Entry, resource_id: str, account: Account) -> Entry | None:
    """Return another entry that created an escrow under this id."""
    selection = Selection(_PAGE, states=(State.DONE,), result_id=resource_id)
    return _first(journal, selection, entry, account, lambda other: other.has_no_id)


def _first(
    journal: Journal, selection: Selection, entry: Entry, account: Account, is_like: Callable[[Intent], bool]
) -> Entry | None:
    """Return the first other entry at the same service that is not certainly of another account."""
    names = set(entry.intent.names)
    for other in journal.all(selection):
        is_elsewhere = not names & set(other.intent.names) or account.is_other(other.intent.account)
        if other.number != entry.number and is_like(other.intent) and not is_elsewhere:
            return other
    return None
