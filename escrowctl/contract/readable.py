"""Check that a reply is the escrow that was asked for by its id."""

from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.contract.record import Record, find_items, has_other_id
from escrowctl.errors import ErrorCode, EscrowctlError, command


def explain_wrong_record(resource_id: str, record: Record) -> str | None:
    """Return why a reply is not the escrow with this id, as a clause; None if the reply is that escrow."""
    known = record.known
    if has_other_id(resource_id, known):
        return f"the service answered for {resource_id} with the id {known.id}, which may be a different escrow"
    if find_list_items(record, noun=GET_TRANSACTION.noun) is not None:
        return f"the service answered for {resource_id} with a list"
    if known.id is None and known.status is None and known.amount is None:
        return f"the service answered for {resource_id} with JSON that has no id, no status and no amount"
    return None


def require_escrow(resource_id: str, record: Record) -> None:
    """Raise `ErrorCode.UNREADABLE_REPLY` if a reply is not the escrow with this id."""
    if (why := explain_wrong_record(resource_id, record)) is not None:
        hint = command(f"doctor --tx {resource_id}", "to find the fields of the escrow")
        facts = {"id": resource_id, "body": record.document}
        raise EscrowctlError(ErrorCode.UNREADABLE_REPLY, f"{why}.", hint=hint, facts=facts)


def find_list_items(record: Record, *, noun: str) -> list[JsonValue] | None:
    """Return the items of a reply if the reply is a list and not a single record; else None."""
    value = record.value
    if record.known.id is not None or record.known.amount is not None:
        return None
    # An array next to other fields may be a part of a record: it is a list only if it has a usual name.
    return find_items(value, noun=noun, by_name_only=isinstance(value, dict) and len(value) > 1)
