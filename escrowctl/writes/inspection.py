"""Read a transaction before a write to it, and refuse the write if the record is not as expected."""

from collections.abc import Callable
from typing import NamedTuple

from escrowctl.client.reader import Reader
from escrowctl.config.service import Service
from escrowctl.contract.json import Number
from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.contract.record import KnownFields, describe_money, describe_record
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Selection, State
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import WriteRequest, account_of
from escrowctl.writes.result import list_money_differences

Confirm = Callable[[str, KnownFields | None], bool]
"""Asks the operator to confirm a write, with the id and the record as read. Returns whether it asked, because that
takes time. Raises EscrowctlError if the write is not confirmed."""

_UNREADABLE_CODES = (ErrorCode.UNREADABLE_REPLY, ErrorCode.READ_FAILED, ErrorCode.FORBIDDEN)
"""Codes of a record that cannot be read. An API key may be allowed to write and not to read (`FORBIDDEN`)."""


class RecordOptions(NamedTuple):
    """Options of a write to an existing escrow.

    `body` is the body of the request, as JSON text. The write is refused if the escrow does not have the
    `expected_amount` and `expected_currency` (None: any). `allow_unreadable`: the write is sent even if the record
    cannot be read. `skip_done`: an escrow that is released already is no error. `wait` is how many seconds to wait
    until the service reports the release (None: do not wait).
    """

    body: str | None = None
    expected_amount: Number | None = None
    expected_currency: str | None = None
    allow_unreadable: bool = False
    skip_done: bool = False
    wait: float | None = None


def inspect(reader: Reader, service: Service, resource_id: str, options: RecordOptions) -> KnownFields | None:
    """Return a transaction as read now; None if it is unreadable and `options.allow_unreadable` is set.

    Raises EscrowctlError if the record cannot be read. Raises `UNREADABLE_REPLY` if the profile relies on a status,
    the record has no status, and `allow_unreadable` is not set.
    """
    try:
        found = reader.read_escrow(resource_id).known
    except EscrowctlError as error:
        is_unreadable = error.code in _UNREADABLE_CODES
        if is_unreadable and options.allow_unreadable:
            return None
        is_compared = options.expected_amount is not None or options.expected_currency is not None
        raise not_sent(
            error.code,
            error.message,
            hint=error.hints,
            effect=Effect.NOTHING_SENT_NOW,
            facts=error.facts,
            reason=Reason.UNREADABLE if is_unreadable and not is_compared else "",
        ) from error
    expects_status = service.pointers.status is not None or bool(service.released)
    if found.status is None and expects_status and not options.allow_unreadable:
        # It may be released already.
        message = f"escrowctl finds no status in the record of {resource_id}."
        raise not_sent(ErrorCode.UNREADABLE_REPLY, message, effect=Effect.NOTHING_SENT_NOW, reason=Reason.NO_STATUS)
    return found


def inspect_target(
    reader: Reader, service: Service, request: WriteRequest, options: RecordOptions, *, may_be_done: bool = False
) -> KnownFields | None:
    """Return the record that a write will change; None if it is unreadable and `options.allow_unreadable` is set.

    Raises EscrowctlError if the record cannot be read; `EXPECTATION_FAILED` if the amount or currency is not as
    expected; `ALREADY_DONE` if the write seems done or in progress, unless `may_be_done` is set.
    """
    resource_id, operation = request.resource_id or "", request.operation
    found = inspect(reader, service, resource_id, options)
    require_expected_money(resource_id, found, options)
    kind = kind_of(operation.name)
    if found is None or may_be_done:
        return found
    if kind.seems_done(found.status, service):
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"{resource_id} is already {found.status}.",
            reason="" if kind.is_proven_by(found.status, service) else Reason.SEEMS_DONE,
        )
    if kind.is_in_progress(found.status, service):
        raise not_sent(
            ErrorCode.ALREADY_DONE,
            f"the service reports {resource_id} as {found.status}: a {operation.verb} may be in progress.",
            facts={"id": resource_id, "status": found.status},
            reason=Reason.IN_PROGRESS,
        )
    return found


def require_as_created(
    journal: Journal, service: Service, resource_id: str, found: KnownFields, options: RecordOptions
) -> None:
    """Raise `ErrorCode.EXPECTATION_FAILED` if all creates of this escrow in the journal sent different money.

    An amount or currency that `options` expect is not compared: `require_expected_money` compares it.
    """
    account = account_of(service)
    selection = Selection(states=(State.DONE,), operations=(CREATE_TRANSACTION.name,), result_ids=(resource_id,))
    created = [
        entry
        for entry in journal.select_all(selection)
        if entry.intent.goes_to_service(service.journal_names) and not account.is_other(entry.intent.account)
    ]
    amount = None if options.expected_amount is not None else found.amount
    compared = found._replace(amount=amount, currency=None if options.expected_currency is not None else found.currency)
    if created and all(list_money_differences(compared, entry.intent.money) for entry in created):
        first, now = created[-1], describe_money(found)
        reports = " and ".join(found.unreadable) or f"the service now reports {now}"
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED,
            f"{first.name} created {resource_id} with {first.intent.money}, but {reports}.",
            facts={
                "expected": str(first.intent.money),
                "found": now,
                "entry": first.name,
                "id": resource_id,
                "amount": found.amount,
                "currency": found.currency,
            },
            reason=Reason.MONEY_CHANGED,
        )


def require_unchanged(resource_id: str, before: KnownFields | None, now: KnownFields | None) -> None:
    """Raise `ErrorCode.EXPECTATION_FAILED` if the record differs from `before` (None: not readable)."""
    if now != before:
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED,
            f"{resource_id} changed since escrowctl read it: "
            f"it was {describe_record(before)}, it is {describe_record(now)}.",
        )


def require_resendable(service: Service, entry: Entry, found: KnownFields) -> None:
    """Raise `ErrorCode.EXPECTATION_FAILED` if a write must not be sent again.

    It must not if the escrow's amount or currency is not as sent, or if the escrow's status suggests that the write
    is done. It must not if the write may be in progress and the service does not deduplicate.
    """
    money, now = entry.intent.money, describe_money(found)
    if money is not None and (found.amount, found.currency) != (money.amount, money.currency):
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED,
            f"{entry.name} was sent for {money}, but {entry.intent.resource_id} now has {now or 'an unknown amount'}.",
            facts={"expected": str(money), "found": now},
        )
    kind = kind_of(entry.intent.operation)
    if kind.seems_done(found.status, service):
        message = f"the service reports {entry.intent.resource_id} as {found.status}."
        raise not_sent(ErrorCode.EXPECTATION_FAILED, message, facts=entry.facts, reason=Reason.SEEMS_DONE)
    if kind.is_pending(found.status, service) and not service.deduplicates:
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED,
            f"{describe_pending_write(entry, found)}.",
            facts=entry.facts | {"status": found.status},
            reason=Reason.MAY_BE_IN_PROGRESS,
        )


def describe_pending_write(entry: Entry, found: KnownFields) -> str:
    """Return the clause that a write may be in progress, with the status of its escrow."""
    verb, resource_id = entry.intent.verb, entry.intent.resource_id
    return f"the service reports {resource_id} as {found.status}: the {verb} may be in progress"


def require_expected_money(resource_id: str, found: KnownFields | None, options: RecordOptions) -> None:
    """Raise `ErrorCode.EXPECTATION_FAILED` if a record does not have the expected amount and currency."""
    amount, currency = options.expected_amount, options.expected_currency
    if found is None and (amount is not None or currency is not None):
        expected = " ".join(str(one) for one in (amount, currency) if one is not None)
        message = f"{resource_id} could not be read, so {expected} cannot be checked."
        raise not_sent(ErrorCode.EXPECTATION_FAILED, message)
    if found is None:
        return
    if amount is not None and (found.amount is None or found.amount != amount):
        raise _unexpected_field(resource_id, "amount", found.amount, amount)
    if currency is not None and found.currency != currency:
        raise _unexpected_field(resource_id, "currency", found.currency, currency)


def _unexpected_field(resource_id: str, field: str, found: object, expected: object) -> EscrowctlError:
    found_clause = f"is {found}" if found is not None else "cannot be found in its record"
    return not_sent(
        ErrorCode.EXPECTATION_FAILED,
        f"the {field} of {resource_id} {found_clause}, but {expected} was expected.",
        facts={"id": resource_id, "expected": str(expected), "found": str(found) if found is not None else None},
        reason=Reason.FIELD_NOT_FOUND if found is None else "",
    )
