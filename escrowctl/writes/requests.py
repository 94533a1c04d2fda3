"""Make the complete request of each write, as it is sent and as the journal records it."""

from typing import NamedTuple

from escrowctl.config.service import Service
from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.contract.json import Document, JsonValue, Number, encode, normalise, read_reply
from escrowctl.contract.money import Money, find_money
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    OPERATIONS_BY_NAME,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.contract.record import KnownFields, find_known_fields
from escrowctl.contract.redaction import hash_private_values, redact
from escrowctl.errors import bad_value
from escrowctl.journal.model import Entry


class WriteOptions(NamedTuple):
    """Options that an operator adds to a write; the journal records them.

    `allowed_duplicates` are the numbers of journal entries that do not block this write as a duplicate. `reference`
    is the operator's own name for the new escrow; no two escrows share one.
    """

    idempotency_key: str | None = None
    reference: str | None = None
    reason: str | None = None
    allowed_duplicates: tuple[int, ...] = ()


NO_OPTIONS = WriteOptions()


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


class WriteRequest(NamedTuple):
    """A write as it will be sent and recorded.

    Identical writes of one operation have the same `fingerprint`. `locks` names the locks that are held across
    processes while the write is sent. `recorded_body` is the body as the journal stores it: complete, or with
    hashes in place of possible secrets. `is_capped`: the caps of the profile apply; a request without `money` is
    then refused if there are caps.
    """

    operation: Operation
    body: str | None
    fingerprint: str
    locks: tuple[str, ...]
    options: WriteOptions
    recorded_body: str | None
    resource_id: str | None = None
    money: Money | None = None
    is_capped: bool = True

    @property
    def typed_texts(self) -> tuple[str | None, ...]:
        """All texts that the operator may have typed. The API key must not be in any of them."""
        options = self.options
        return (
            self.operation.path,
            self.resource_id,
            self.body,
            options.idempotency_key,
            options.reference,
            options.reason,
        )


def make_create_request(
    money: Money, service: Service, data: dict[str, JsonValue], options: WriteOptions = NO_OPTIONS
) -> WriteRequest:
    """Return the request to create an escrow. Its body has amount and currency, and the fields of `data`.

    If the profile names a field for the reference, the body has that field too. Raises EscrowctlError `BAD_VALUE`
    if `data` or the reference would set amount or currency again.
    """
    body: dict[str, JsonValue] = {"amount": money.amount, "currency": money.currency}
    fields = dict(data)
    if options.reference is not None and service.reference_field is not None:
        fields.setdefault(service.reference_field, options.reference)
    for name in fields:
        # A service may ignore case in names, and use the last field.
        if (repeated := name.casefold()) in body:
            raise bad_value(f'the field "{name}" would set the {repeated} a second time: leave "{name}" out.')
    body |= fields
    recorded = hash_private_values(body)
    fingerprint = encode(normalise(recorded))
    return WriteRequest(
        operation=CREATE_TRANSACTION,
        body=encode(body),
        fingerprint=fingerprint,
        locks=_locks_of_create(fingerprint, options.reference),
        options=options,
        recorded_body=encode(recorded),
        money=money,
    )


def make_once_only_request(
    operation: Operation, resource_id: str, body: str | None, options: WriteOptions, *, found: KnownFields | None = None
) -> WriteRequest:
    """Return the request for a write that an escrow gets only once. `found` is its record, if it was read."""
    # Lock both spellings of the id: as typed, and as the service echoes it.
    echoed = (found.id if found else None) or resource_id
    return WriteRequest(
        operation=operation,
        body=body,
        fingerprint=echoed,
        locks=_locks_of_transaction(resource_id, echoed),
        options=options,
        recorded_body=encode(hash_private_values(_parse_body(body))) if body is not None else None,
        resource_id=resource_id,
        money=find_money(found),
    )


def make_update_request(
    resource_id: str, body: JsonValue, options: WriteOptions, *, found: KnownFields | None
) -> WriteRequest:
    """Return the request to update an escrow. It has the same locks as the escrow's release.

    Caps apply if the body sets an amount. Under caps, the update is refused if that amount cannot be read.
    """
    echoed = (found.id if found else None) or resource_id
    in_body = find_known_fields(body, noun=UPDATE_TRANSACTION.noun, any_case=False)
    currency = in_body.currency or (found.currency if found else None)
    recorded = hash_private_values(body)
    return WriteRequest(
        operation=UPDATE_TRANSACTION,
        body=encode(body),
        fingerprint=f"{echoed} {encode(normalise(recorded))}",
        locks=_locks_of_transaction(resource_id, echoed),
        options=options,
        recorded_body=encode(recorded),
        resource_id=resource_id,
        money=Money(in_body.amount, currency) if in_body.amount is not None and currency is not None else None,
        is_capped=_may_set_amount(body),
    )


def make_webhook_request(body: JsonValue, service: Service, options: WriteOptions = NO_OPTIONS) -> WriteRequest:
    """Return the request to register an endpoint. The journal stores no text that may be a secret."""
    recorded = redact(body, harmless=service.webhooks.field_names)
    fingerprint = encode(normalise(recorded))
    return WriteRequest(
        operation=CREATE_WEBHOOK,
        body=encode(body),
        fingerprint=fingerprint,
        locks=(f"webhook\n{fingerprint}",),
        options=options,
        recorded_body=encode(recorded),
        is_capped=False,
    )


def make_call_request(operation: Operation, body: JsonValue, options: WriteOptions) -> WriteRequest:
    """Return the request for a call that is not part of the interface; `body` None: no body.

    escrowctl does not know which fields are secret, so the journal stores no text that may be a secret.
    """
    recorded = redact(body)
    return WriteRequest(
        operation=operation,
        body=encode(body) if body is not None else None,
        fingerprint=f"{operation.path} {encode(normalise(recorded))}",
        locks=(f"call\n{operation.method}\n{operation.path}",),
        options=options,
        recorded_body=encode(recorded) if body is not None else None,
    )


def restore_request(entry: Entry) -> WriteRequest | None:
    """Return the request that an entry records; None if the journal may have hashes in place of texts."""
    intent = entry.intent
    operation = OPERATIONS_BY_NAME.get(intent.operation)
    body = _parse_body(intent.body) if intent.body is not None else None
    if operation is None or operation.is_confidential or hash_private_values(body) != body:
        return None
    echoed = intent.fingerprint.split(" ", 1)[0]
    locks = (
        _locks_of_create(intent.fingerprint, intent.reference)
        if intent.resource_id is None
        else _locks_of_transaction(intent.resource_id, echoed)
    )
    return WriteRequest(
        operation=operation,
        body=intent.body,
        fingerprint=intent.fingerprint,
        locks=locks,
        options=WriteOptions(intent.idempotency_key, intent.reference, intent.reason, intent.allowed_duplicates),
        recorded_body=intent.body,
        resource_id=intent.resource_id,
        money=intent.money,
        is_capped=intent.operation != UPDATE_TRANSACTION.name or _may_set_amount(body),
    )


def _parse_body(body: str) -> JsonValue:
    reply = read_reply(body.encode())
    return reply.value if isinstance(reply, Document) else None


def _may_set_amount(body: JsonValue) -> bool:
    """Whether the name of a field at any depth contains "amount", in any case."""
    match body:
        case dict():
            return any("amount" in key.casefold() or _may_set_amount(item) for key, item in body.items())
        case list():
            return any(_may_set_amount(item) for item in body)
        case _:
            return False


def _locks_of_transaction(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"transaction\n{fold_id(resource_id)}" for resource_id in ids))


def _locks_of_create(fingerprint: str, reference: str | None) -> tuple[str, ...]:
    return (f"create\n{fingerprint}\n{fold_reference(reference or '')}",)
