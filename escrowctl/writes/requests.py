"""Make the complete request of each write, as it is sent and as the journal records it; check that it may be sent."""

from typing import NamedTuple

from escrowctl.config.service import Service
from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.contract.json import JsonValue, encode, normalise, read_value
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
from escrowctl.errors import ErrorCode, Reason, bad_value, not_sent
from escrowctl.journal.account import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Intent
from escrowctl.writes.kinds import kind_of


class RowOrigin(NamedTuple):
    """The row of a batch that a write is for; see `Intent`. All None: the write is not a row."""

    batch: str | None = None
    line: int | None = None
    columns: str | None = None
    run_key: str | None = None


NO_ROW = RowOrigin()


class WriteOptions(NamedTuple):
    """Options of a write by the operator, and the row that the write is for. The journal records them.

    `allowed_duplicates` are the numbers of journal entries that do not block this write as a duplicate. `reference`
    is the operator's own name for the new escrow; no two escrows share one. `already_sent`: send nothing, and
    record the write as unknown.
    """

    idempotency_key: str | None = None
    reference: str | None = None
    reason: str | None = None
    allowed_duplicates: tuple[int, ...] = ()
    origin: RowOrigin = NO_ROW
    already_sent: bool = False


class WriteRequest(NamedTuple):
    """A write as it will be sent and recorded.

    Identical writes of one operation have the same `fingerprint`. `locks` names the locks that are held across
    processes while the write is sent. `body` is the text that is sent, `document` its JSON. `recorded_body` is the
    body as the journal stores it: complete, or with hashes in place of possible secrets.
    """

    operation: Operation
    body: str | None
    document: JsonValue
    fingerprint: str
    locks: tuple[str, ...]
    options: WriteOptions
    recorded_body: str | None
    resource_id: str | None = None
    money: Money | None = None

    @property
    def is_capped(self) -> bool:
        """Whether the profile's caps apply to the write."""
        return kind_of(self.operation.name).is_capped(self.document)

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
    money: Money, service: Service, data: dict[str, JsonValue], options: WriteOptions
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
        document=body,
        fingerprint=fingerprint,
        # The rows of a file are told apart by their references, so equal rows need not wait for each other.
        locks=_locks_of_create(fingerprint, options.reference) if options.origin.batch is None else (),
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
    document = read_value(body)
    return WriteRequest(
        operation=operation,
        body=body,
        document=document,
        fingerprint=echoed,
        locks=_locks_of_transaction(resource_id, echoed),
        options=options,
        recorded_body=encode(hash_private_values(document)) if body is not None else None,
        resource_id=resource_id,
        money=find_money(found),
    )


def make_update_request(
    resource_id: str, body: JsonValue, options: WriteOptions, found: KnownFields | None
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
        document=body,
        fingerprint=f"{echoed} {encode(normalise(recorded))}",
        locks=_locks_of_transaction(resource_id, echoed),
        options=options,
        recorded_body=encode(recorded),
        resource_id=resource_id,
        money=Money(in_body.amount, currency) if in_body.amount is not None and currency is not None else None,
    )


def make_webhook_request(body: JsonValue, service: Service, options: WriteOptions) -> WriteRequest:
    """Return the request to register an endpoint. The journal stores no text that may be a secret."""
    recorded = redact(body, harmless=service.webhooks.field_names)
    fingerprint = encode(normalise(recorded))
    return WriteRequest(
        operation=CREATE_WEBHOOK,
        body=encode(body),
        document=body,
        fingerprint=fingerprint,
        locks=(f"webhook\n{fingerprint}",),
        options=options,
        recorded_body=encode(recorded),
    )


def make_call_request(operation: Operation, body: JsonValue, options: WriteOptions) -> WriteRequest:
    """Return the request for a call that is not part of the interface; `body` None: no body.

    escrowctl does not know which fields are secret, so the journal stores no text that may be a secret.
    """
    recorded = redact(body)
    return WriteRequest(
        operation=operation,
        body=encode(body) if body is not None else None,
        document=body,
        fingerprint=f"{operation.path} {encode(normalise(recorded))}",
        locks=(f"call\n{operation.method}\n{operation.path}",),
        options=options,
        recorded_body=encode(recorded) if body is not None else None,
    )


def restore_request(entry: Entry) -> WriteRequest | None:
    """Return the request that an entry records; None if the journal may have hashes in place of texts."""
    intent = entry.intent
    operation = OPERATIONS_BY_NAME.get(intent.operation)
    body = read_value(intent.body)
    if operation is None or operation.is_confidential or hash_private_values(body) != body:
        return None
    locks = _locks_of_create(intent.fingerprint, intent.reference)
    if intent.resource_id is not None:
        locks = _locks_of_transaction(intent.resource_id, intent.fingerprint.split(" ", 1)[0])
    return WriteRequest(
        operation=operation,
        body=intent.body,
        document=body,
        fingerprint=intent.fingerprint,
        locks=locks,
        options=WriteOptions(
            intent.idempotency_key,
            intent.reference,
            intent.reason,
            intent.allowed_duplicates,
            RowOrigin(intent.batch, intent.line, intent.columns, intent.run_key),
        ),
        recorded_body=intent.body,
        resource_id=intent.resource_id,
        money=intent.money,
    )


def _locks_of_transaction(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"transaction\n{fold_id(resource_id)}" for resource_id in ids))


def _locks_of_create(fingerprint: str, reference: str | None) -> tuple[str, ...]:
    return (f"create\n{fingerprint}\n{fold_reference(reference or '')}",)


def account_of(service: Service) -> Account:
    """Return the account that this run uses at the service."""
    return Account(service.account, key=service.key)


def make_intent(service: Service, request: WriteRequest, idempotency_key: str) -> Intent:
    """Return the intent that the journal stores for a request, without who sends it."""
    options = request.options
    return Intent(
        operation=request.operation.name,
        service=service.identity,
        site=service.site,
        profile=service.name,
        method=request.operation.method,
        url=service.make_url(request.operation.fill_path(request.resource_id)),
        body=request.recorded_body,
        idempotency_key=idempotency_key,
        fingerprint=request.fingerprint,
        resource_id=request.resource_id,
        money=request.money,
        reference=options.reference,
        reason=options.reason,
        allowed_duplicates=options.allowed_duplicates,
        account=account_of(service),
        already_sent=options.already_sent,
        **options.origin._asdict(),
    )


def require_writable(service: Service) -> None:
    """Raise EscrowctlError `READ_ONLY` if the profile forbids writes."""
    if service.read_only:
        raise not_sent(ErrorCode.READ_ONLY, f"the profile {service.name} is read-only.")


def is_unopened(service: Service, operation: Operation, journal: Journal) -> bool:
    """Whether a write has to wait: it is a live create, and its journal was made from an export and not opened."""
    return service.live and operation is CREATE_TRANSACTION and journal.is_unopened()


def require_opened(service: Service, operation: Operation, journal: Journal) -> None:
    """Raise EscrowctlError `ErrorCode.CONFIRMATION_NEEDED` if `is_unopened`."""
    if is_unopened(service, operation, journal):
        message = "this journal was made from an export, and was not opened: it may lack creates that were sent."
        raise not_sent(ErrorCode.CONFIRMATION_NEEDED, message, reason=Reason.NOT_OPENED)
