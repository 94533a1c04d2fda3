"""What this journal knows of the escrows at the service."""

from collections.abc import Iterator

from escrowctl.journal.accounts import account_of
from escrowctl.journal.model import Entry, Selection
from escrowctl.session import Session


def entries_here(session: Session, selection: Selection) -> Iterator[Entry]:
    """Yield the entries of a selection that are at this run's service, newest first; none of another account."""
    names, account = frozenset(session.service.names), account_of(session.service)
    for entry in session.journal_to_read.all(selection):
        if not names.isdisjoint(entry.intent.names) and not account.is_other(entry.intent.account):
            yield entry
