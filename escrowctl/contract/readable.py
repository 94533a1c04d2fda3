"""Check that a reply is the escrow that was asked for by its id."""

from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.contract.record import Record, find_items, is_another
from escrowctl.errors import ErrorCode, EscrowctlError, command


def why_unreadable(resource_id: str, record: Record) -> str | None:
    """Return the reason why a reply is not the escrow that was read under this id; None if it is.

    It is not if it is a list, has another id, or has neither id nor status nor amount. A record without an id is that
    escrow's if it has a status or an amount.
    """
    located = record.located
    if is_another(resource_id, located):
        return f"the service answered for {resource_id} with the id {located.id}, which may be another escrow"
    if list_of(record, noun=GET_TRANSACTION.noun) is not None:
        return f"the service answered for {resource_id} with a list"
    if located.id is None and located.status is None and located.amount is None:
        return f"the service answered for {resource_id} with JSON that has no id, no status and no amount"
    return None


def require_escrow(resource_id: str, record: Record) -> None:
    """Raise `ErrorCode.UNREADABLE_REPLY` if a reply is not the escrow that was read under this id."""
    if (why := why_unreadable(resource_id, record)) is not None:
        find = command(f"doctor --tx {resource_id}", "to find its fields")
        facts = {"id": resource_id, "body": record.document}
        raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, f"{why}.", hint=find, facts=facts)


def list_of(record: Record, *, noun: str) -> list[JsonValue] | None:
    """Return the items of a reply that is a list and no record itself; None for any other reply."""
    value = record.value
    if record.located.id is not None or record.located.amount is not None:
        return None
    if isinstance(value, dict) and len(value) > 1:
        # Among other fields, an array may be a part of a record. Next to a second field, it counts as the
        # items of a list only under a usual name: not as the only array, and no array is not an empty list.
        value = {**value, "": [], " ": []}
    return find_items(value, noun=noun)
