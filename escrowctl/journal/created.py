"""Two creates must not get one id: the service or a proxy gave one of them the reply to the other."""

from collections.abc import Iterable

from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.errors import Outcome
from escrowctl.journal.accounts import Account
from escrowctl.journal.model import Entry, Settlement, State


def is_other_done(entry: Entry, other: Entry, account: Account | None = None) -> bool:
    """Whether `other` is not `entry`, is done, has the same operation and service, and may have the same account.

    If `account` is given, it is compared in place of the account of `entry`.
    """
    mine, theirs = entry.intent, other.intent
    return (
        (other.state, theirs.operation) == (State.DONE, mine.operation)
        and other.number != entry.number
        and mine.shares_service(theirs)
        and not (account or mine.account).is_other(theirs.account)
    )


def correct_shared_id(entry: Entry, settlement: Settlement, others: Iterable[Entry]) -> Settlement:
    """Return the settlement of a create, corrected if one of the entries in `others` created the same id.

    If the create was proven by its reply, it stays done and gets a remark. If it was proven only by a read, it
    becomes unknown. Webhooks are not compared: a service may return an existing endpoint again.
    """
    created_id = settlement.result_id
    if settlement.state is not State.DONE or created_id is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return settlement
    other = next((one for one in others if one.settlement.result_id == created_id and is_other_done(entry, one)), None)
    if other is None:
        return settlement
    if settlement.verified:
        detail = f"{settlement.http_status}, but {created_id} is also the id of {other.name}"
        return settlement._replace(outcome=Outcome.UNKNOWN, detail=detail, result_id=None, verified=False, remark=None)
    return settlement._replace(remark=" and ".join(filter(None, (settlement.remark, f"{other.name} has the same id"))))
