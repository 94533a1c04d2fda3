"""What commands ask the client to write: each order complete, as it will be sent and journalled."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from escrowctl.contract.body import encode, normalise
from escrowctl.contract.identifiers import fold_id, fold_reference
from escrowctl.contract.money import Money
from escrowctl.contract.number import JsonValue, Number
from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    OPERATIONS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
    make_foreign,
)
from escrowctl.contract.record import locate
from escrowctl.contract.redaction import hash_values, redact
from escrowctl.contract.reply import Document, read_reply
from escrowctl.errors import bad_value

if TYPE_CHECKING:
    from escrowctl.config.service import Service
    from escrowctl.contract.record import Located
    from escrowctl.journal.model import Entry


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an operator says beside a write: kept in the journal, or about what it may repeat.

    `despite` names journal entries, equal and unknown, that it is sent in spite of. `reference` is
    the operator's own name for what is made: one reference, one record.
    """

    idempotency_key: str | None = None
    reference: str | None = None
    reason: str | None = None
    despite: tuple[int, ...] = ()


NOTHING_SAID = Circumstances()


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms escrows are to be released.

    `expected_*` refuse on a mismatch, amounts compared as Decimals. `unread` allows a record that
    cannot be read, `if_released` makes "already released" a success, `wait` is how many seconds to
    wait for a word that means released (None: not at all).
    """

    body: str | None = None
    expected_amount: Number | None = None
    expected_currency: str | None = None
    unread: bool = False
    if_released: bool = False
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A write as it will be sent and journalled.

    `likeness` as in `journal.model.Intent`; `locks` name what is held across processes while it is
    sent; `recorded_body` is what the journal keeps of the body: the body itself, or with hashes in
    the place of what may be secret. `is_capped`: whether a profile's caps speak of it; where they do
    and `money` is not known, it is not sent under them.
    """

    operation: Operation
    body: str | None
    likeness: str
    locks: tuple[str, ...]
    circumstances: Circumstances
    recorded_body: str | None
    resource_id: str | None = None
    money: Money | None = None
    is_capped: bool = True

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Everything in it that somebody typed."""
        said = self.circumstances
        return (self.operation.path, self.resource_id, self.body, said.idempotency_key, said.reference, said.reason)


def order_creation(
    money: Money, service: "Service", data: dict[str, JsonValue], circumstances: Circumstances = NOTHING_SAID
) -> Order:
    """Return the order: the two fields of interface.md section 2, then those the operator gave.

    Raises EscrowctlError (exit 2) where `data` names one of the fields again.
    """
    body: dict[str, JsonValue] = {"amount": money.amount, "currency": money.currency}
    added = dict(data)
    if circumstances.reference is not None and service.reference_field is not None:
        added.setdefault(service.reference_field, circumstances.reference)
    for name in added:
        if name in body:
            raise bad_value(f'--data has "{name}", which is for --{name} to say: leave it out of --data.')
    return order_creation_of(body | added, circumstances)


def order_creation_of(
    body: JsonValue, circumstances: Circumstances = NOTHING_SAID, *, operation: Operation = CREATE_TRANSACTION
) -> Order:
    """Return the order to create an escrow with exactly this body."""
    recorded = hash_values(body)
    likeness = encode(normalise(recorded))
    found = locate(body, noun=operation.noun, any_case=False)
    return Order(
        operation=operation,
        body=encode(body),
        likeness=likeness,
        locks=_create_locks(likeness, circumstances.reference),
        circumstances=circumstances,
        recorded_body=encode(recorded),
        money=Money(found.amount, found.currency) if found.amount is not None and found.currency is not None else None,
    )


def order_release(
    resource_id: str,
    terms: Terms,
    circumstances: Circumstances = NOTHING_SAID,
    *,
    found: "Located | None" = None,
    operation: Operation = RELEASE_TRANSACTION,
) -> Order:
    """Return the order to release one escrow; `found` is its record as read, with the id it echoes."""
    money = None
    if found is not None and found.amount is not None and found.currency is not None:
        money = Money(found.amount, found.currency)
    # The locks are on both spellings: the one typed, and the one that the service echoes.
    echoed = (found.id if found else None) or resource_id
    return Order(
        operation=operation,
        body=terms.body,
        likeness=echoed,
        locks=_transaction_locks(resource_id, echoed),
        circumstances=circumstances,
        recorded_body=encode(hash_values(_read(terms.body))) if terms.body is not None else None,
        resource_id=resource_id,
        money=money,
    )


def order_update(
    resource_id: str,
    body: JsonValue,
    circumstances: Circumstances = NOTHING_SAID,
    *,
    found: "Located | None" = None,
    operation: Operation = UPDATE_TRANSACTION,
) -> Order:
    """Return the order to update one escrow, under the lock that its release takes.

    Caps speak of it where it sets an amount, and refuse one that is not found where amounts are.
    """
    echoed = (found.id if found else None) or resource_id
    said = locate(body, noun=operation.noun, any_case=False)
    currency = said.currency or (found.currency if found else None)
    recorded = hash_values(body)
    return Order(
        operation=operation,
        body=encode(body),
        likeness=f"{echoed} {encode(normalise(recorded))}",
        locks=_transaction_locks(resource_id, echoed),
        circumstances=circumstances,
        recorded_body=encode(recorded),
        resource_id=resource_id,
        money=Money(said.amount, currency) if said.amount is not None and currency is not None else None,
        is_capped=_speaks_of_amount(body),
    )


def order_webhook(
    body: JsonValue,
    service: "Service",
    circumstances: Circumstances = NOTHING_SAID,
    *,
    operation: Operation = CREATE_WEBHOOK,
) -> Order:
    """Return the order to register an endpoint; of its body the journal keeps no text that may be a secret."""
    recorded = redact(body, harmless=service.webhooks.field_names)
    likeness = encode(normalise(recorded))
    return Order(
        operation=operation,
        body=encode(body),
        likeness=likeness,
        locks=(f"webhook\n{likeness}",),
        circumstances=circumstances,
        recorded_body=encode(recorded),
        is_capped=False,
    )


def order_call(
    method: str, path: str, body: JsonValue, circumstances: Circumstances, *, resource_id: str | None = None
) -> Order:
    """Return the order for a call that the interface does not know; `body` None: no body.

    `resource_id` is the transaction that the path names: its lock is taken. Nothing is known of what
    such a call sends and gets, so the journal keeps no text of it that may be a secret.
    """
    operation = make_foreign(method, path)
    recorded = encode(redact(body)) if body is not None else None
    return Order(
        operation=operation,
        body=encode(body) if body is not None else None,
        likeness=f"{path} {encode(normalise(redact(body)))}",
        locks=_transaction_locks(resource_id) if resource_id else (f"call\n{method}\n{path}",),
        circumstances=circumstances,
        recorded_body=recorded,
        resource_id=resource_id,
    )


def order_again(entry: "Entry") -> Order | None:
    """Return the order that a journal entry stands for; None where the journal holds hashes in place of its texts."""
    intent = entry.intent
    operation = next((one for one in OPERATIONS if one.name == intent.operation), None)
    body = _read(intent.body) if intent.body is not None else None
    if operation is None or operation.is_confidential or hash_values(body) != body:
        return None
    echoed = intent.fingerprint.split(" ", 1)[0]
    locks = (
        _create_locks(intent.fingerprint, intent.reference)
        if intent.resource_id is None
        else _transaction_locks(intent.resource_id, echoed)
    )
    return Order(
        operation=operation,
        body=intent.body,
        likeness=intent.fingerprint,
        locks=locks,
        circumstances=Circumstances(intent.idempotency_key, intent.reference, intent.reason, intent.allowed_duplicates),
        recorded_body=intent.body,
        resource_id=intent.resource_id,
        money=intent.money,
        is_capped=intent.operation != UPDATE_TRANSACTION.name or _speaks_of_amount(body),
    )


def _read(body: str) -> JsonValue:
    reply = read_reply(body.encode())
    return reply.value if isinstance(reply, Document) else None


def _speaks_of_amount(body: JsonValue) -> bool:
    """Whether a field at any depth is named like an amount, however it is spelled."""
    match body:
        case dict():
            return any("amount" in key.casefold() or _speaks_of_amount(item) for key, item in body.items())
        case list():
            return any(_speaks_of_amount(item) for item in body)
        case _:
            return False


def _transaction_locks(*ids: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"transaction\n{fold_id(resource_id)}" for resource_id in ids))


def _create_locks(likeness: str, reference: str | None) -> tuple[str, ...]:
    return (f"create\n{likeness}\n{fold_reference(reference or '')}",)
