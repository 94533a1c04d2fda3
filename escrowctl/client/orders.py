"""What commands ask of the client and get back, as plain values; light to import."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from escrowctl.contract.body import encode, normalise
from escrowctl.contract.money import Money
from escrowctl.contract.number import JsonValue, Number
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, Operation
from escrowctl.errors import bad_value

if TYPE_CHECKING:
    from escrowctl.config.service import Service
    from escrowctl.contract.record import Located
    from escrowctl.journal.entries import Entry


@dataclass(frozen=True, slots=True)
class Record:
    """What a service says of one thing: the whole document, the record in it, and what was found there."""

    document: JsonValue
    value: JsonValue
    located: "Located"


@dataclass(frozen=True, slots=True)
class Records:
    """A collection as a service lists it: the whole document, and the items found in it."""

    document: JsonValue
    items: list[Record]


@dataclass(frozen=True, slots=True)
class NewEscrow:
    """What to create: `money` and the further fields of `--data`; the rest is kept locally.

    `despite` names journal entries, equal and unknown, that it is sent in spite of.
    """

    money: Money
    data: dict[str, JsonValue] = field(default_factory=dict)
    idempotency_key: str | None = None
    reference: str | None = None
    reason: str | None = None
    despite: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Created:
    """An escrow that exists. `replayed`: an earlier command created it, nothing was sent now."""

    entry: "Entry"
    record: Record
    replayed: bool


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
    idempotency_key: str | None = None
    reason: str | None = None
    despite: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """A release that was accepted.

    `verified`: read back as released (True), as another word or one nobody vouches for (False), or
    not readable (None). `entry` is None where it had been released before: nothing was sent now.
    """

    id: str
    http_status: int | None
    reply: JsonValue
    status_before: str | None
    status_after: str | None
    verified: bool | None
    money: str
    entry: "Entry | None"
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """A write as it will be sent and journalled; `likeness` as in `journal.entries.Intent`."""

    operation: Operation
    body: str | None
    likeness: str
    resource_id: str | None = None
    money: Money | None = None
    idempotency_key: str | None = None
    reference: str | None = None
    reason: str | None = None
    despite: tuple[int, ...] = ()

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Everything in it that somebody typed."""
        return (self.resource_id, self.body, self.idempotency_key, self.reference, self.reason)


def order_creation(escrow: NewEscrow, service: "Service") -> Order:
    """Return the order: the two fields of interface.md section 2, then those the operator gave.

    Raises EscrowctlError (exit 2) where `--data` names one of the fields again.
    """
    body: dict[str, JsonValue] = {"amount": escrow.money.amount, "currency": escrow.money.currency}
    added = dict(escrow.data)
    if escrow.reference is not None and service.reference_field is not None:
        added.setdefault(service.reference_field, escrow.reference)
    for name in added:
        if name in body:
            raise bad_value(f'--data has "{name}", which is for --{name} to say: leave it out of --data.')
    body |= added
    return Order(
        operation=CREATE_TRANSACTION,
        body=encode(body),
        likeness=encode(normalise(body)),
        money=escrow.money,
        idempotency_key=escrow.idempotency_key,
        reference=escrow.reference,
        reason=escrow.reason,
        despite=escrow.despite,
    )


def order_release(resource_id: str, terms: Terms, *, found: "Located | None" = None) -> Order:
    """Return the order to release one escrow; `found` is its record as read, with the id it echoes."""
    money = None
    if found is not None and found.amount is not None and found.currency is not None:
        money = Money(found.amount, found.currency)
    return Order(
        operation=RELEASE_TRANSACTION,
        body=terms.body,
        likeness=(found.id if found else None) or resource_id,
        resource_id=resource_id,
        money=money,
        idempotency_key=terms.idempotency_key,
        reason=terms.reason,
        despite=terms.despite,
    )
