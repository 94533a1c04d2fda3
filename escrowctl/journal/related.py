"""Other entries about the same escrow: one release cannot be two, and one escrow is not what two creates made."""

from escrowctl.journal.accounts import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Selection, State

_PAGE = 100


def find_same(journal: Journal, entry: Entry, account: Account) -> Entry | None:
    """Return another entry that did what a write that is done only once did: released the same escrow."""
    selection = Selection(_PAGE, states=(State.DONE,), resource_id=entry.intent.resource_id)
    return _first(journal, selection, entry, account)


def find_creator(journal: Journal, entry: Entry, resource_id: str, account: Account) -> Entry | None:
    """Return another create of the same kind that got this id: an escrow and an endpoint may share one."""
    selection = Selection(_PAGE, states=(State.DONE,), result_id=resource_id)
    return _first(journal, selection, entry, account)


def _first(journal: Journal, selection: Selection, entry: Entry, account: Account) -> Entry | None:
    """Return the first other entry of one operation and service that is not certainly of another account."""
    names = set(entry.intent.names)
    for other in journal.all(selection._replace(operations=(entry.intent.operation,))):
        is_elsewhere = not names & set(other.intent.names) or account.is_other(other.intent.account)
        if other.number != entry.number and not is_elsewhere:
            return other
    return None
