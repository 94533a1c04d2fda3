"""Looking at a transaction before it is written to: what was agreed to must still be so."""

from collections.abc import Callable

from escrowctl.client.reading import Reader
from escrowctl.contract.operations import GET_TRANSACTION
from escrowctl.contract.record import Located
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending

Confirm = Callable[[str, Located | None], bool]
"""Asks for consent with the id and the record as read; returns whether somebody was asked (and time
passed); raises EscrowctlError where consent is not given."""


def inspect(reader: Reader, resource_id: str, *, unread: bool, verb: str) -> Located | None:
    """Return what the service says of a transaction now; `unread`: None where it cannot be read.

    Raises EscrowctlError, as a reading does, that says the write was not sent; `verb` names it.
    """
    try:
        return reader.read(GET_TRANSACTION, resource_id).located
    except EscrowctlError as error:
        unreadable = error.code in (ErrorCode.UNREADABLE_REPLY, ErrorCode.READ_FAILED)
        if unread and unreadable:
            return None
        raise _not_sent(error, unreadable=unreadable, verb=verb) from error


def require_unchanged(resource_id: str, before: Located | None, now: Located | None) -> None:
    """Raise EscrowctlError `expectation_failed` (exit 3) where the record is not what was shown."""
    if now != before:
        raise EscrowctlError(
            ErrorCode.EXPECTATION_FAILED,
            f"{resource_id} changed while you were asked: {describe(before)} then, {describe(now)} now. {NOTHING_SENT}",
            sending=Sending.NOT_SENT,
        )


def describe(located: Located | None) -> str:
    """Return a record in a few words: status, amount, currency."""
    if located is None:
        return "unreadable"
    return " ".join(part for part in (located.status, describe_money(located)) if part) or "nothing known"


def describe_money(located: Located | None) -> str:
    """Return `100 USD`, as far as it is known."""
    if located is None or located.amount is None:
        return ""
    return f"{located.amount} {located.currency or ''}".rstrip()


def _not_sent(error: EscrowctlError, *, unreadable: bool, verb: str) -> EscrowctlError:
    message = error.message.removesuffix(NOTHING_SENT).removesuffix("It was only a read.").strip()
    hint = (f"to {verb} it all the same: --unread",) if unreadable else error.hint
    return EscrowctlError(
        error.code, f"{message} The {verb} was not sent.", hint=hint, sending=Sending.NOT_SENT, facts=error.facts
    )
