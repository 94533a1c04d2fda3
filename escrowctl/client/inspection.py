"""Looking at a transaction before it is written to: what was agreed to must still be so."""

from collections.abc import Callable

from escrowctl.client.reading import Reader
from escrowctl.client.records import describe
from escrowctl.contract.money import Money
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, command, not_sent

Confirm = Callable[[str, Located | None], bool]
"""Asks for consent with the id and the record as read; returns whether somebody was asked (and time
passed); raises EscrowctlError where consent is not given."""


def inspect(reader: Reader, resource_id: str, *, unread: bool, verb: str) -> Located | None:
    """Return what the service says of a transaction now; `unread`: None where it cannot be read.

    Raises EscrowctlError, as a reading does, that says the write was not sent; `verb` names it.
    """
    try:
        record = reader.read(GET_TRANSACTION, resource_id, decides=True)
        if not isinstance(record.value, dict):
            raise not_sent(ErrorCode.UNREADABLE_REPLY, "get transaction: the reply is JSON, but no record.")
        located = record.located
        _require_same(resource_id, located)
        return located
    except EscrowctlError as error:
        if error.code is ErrorCode.EXPECTATION_FAILED:
            raise
        unreadable = error.code in (ErrorCode.UNREADABLE_REPLY, ErrorCode.READ_FAILED)
        if unread and unreadable:
            return None
        raise _unreadable(error, unreadable=unreadable, verb=verb) from error


def is_another(resource_id: str, located: Located) -> bool:
    """Whether a record, read under an id, says that it is another one."""
    return located.id is not None and located.id.casefold() != resource_id.casefold()


def list_differences(found: Located, sent: Money | None) -> list[str]:
    """Return how a record's amount and currency differ from what was sent; currencies are compared case-blind."""
    differences = []
    if sent is not None and found.amount is not None and found.amount != sent.amount:
        differences.append(f"its amount is {found.amount} ({sent.amount} was sent)")
    if sent is not None and found.currency is not None and found.currency.casefold() != sent.currency.casefold():
        differences.append(f"its currency is {found.currency} ({sent.currency} was sent)")
    return differences


def _require_same(resource_id: str, located: Located) -> None:
    """Raise EscrowctlError `expectation_failed` (exit 3) where the record says that it is another one."""
    if not is_another(resource_id, located):
        return
    raise not_sent(
        ErrorCode.EXPECTATION_FAILED,
        f"the record read as {resource_id} says that it is {located.id}: it may be another escrow.",
        hint=(
            f"if it is the same escrow, name it {located.id}",
            command("config set reply.id /FIELD", "if another field of the record is its id"),
        ),
        facts={"expected": resource_id, "found": located.id},
    )


def require_unchanged(resource_id: str, before: Located | None, now: Located | None) -> None:
    """Raise EscrowctlError `expectation_failed` (exit 3) where the record is not what was shown."""
    if now != before:
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED,
            f"{resource_id} changed while you were asked: {describe(before)} then, {describe(now)} now.",
        )


def _unreadable(error: EscrowctlError, *, unreadable: bool, verb: str) -> EscrowctlError:
    hint = (f"to {verb} it anyway: --allow-unreadable",) if unreadable else error.hints
    return not_sent(error.code, error.message, hint=hint, effect=f"The {verb} was not sent.", facts=error.facts)
