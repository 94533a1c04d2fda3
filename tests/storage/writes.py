"""Writes and outcomes of the tests of storage, and how they are stored."""

from datetime import UTC, datetime
from typing import Any

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import Outcome
from escrowctl.journal.chain import Kind
from escrowctl.journal.fields import facts_of_intent, facts_of_settlement
from escrowctl.journal.model import Entry, Intent, Settlement
from escrowctl.journal.storage import Storage, Transaction

NOW, LATER = "2026-11-21T03:12:44.000Z", "2026-11-22T00:00:00.000Z"
DONE = Settlement(Outcome.DONE, "200", 200, "tx_1", '{"id":"tx_1"}')
REFUSED = Settlement(Outcome.REFUSED, "400", 400)
UNKNOWN = Settlement(Outcome.UNKNOWN, "no answer")


def create(number: int, *, key: str | None = None, reference: str | None = None, **more: Any) -> Intent:
    body = f'{{"amount":{number},"currency":"USD"}}'
    return Intent(
        operation=CREATE_TRANSACTION.name,
        service="https://escrow.example.com",
        profile="acme",
        method="POST",
        url="https://escrow.example.com/api/v1/transactions",
        body=body,
        idempotency_key=key or f"key-{number}",
        fingerprint=body,
        money=Money(Number(str(number)), "USD"),
        reference=reference,
    )._replace(**more)


def release(resource_id: str) -> Intent:
    url = f"https://escrow.example.com/api/v1/transactions/{resource_id}/release"
    operation = RELEASE_TRANSACTION.name
    return create(1)._replace(
        operation=operation, method="PUT", url=url, body=None, fingerprint=resource_id, resource_id=resource_id
    )


class Clock:
    """A storage's clock, for a test to set."""

    def __init__(self) -> None:
        self.set(NOW)

    def set(self, time: str) -> None:
        self._now = datetime.fromisoformat(time).astimezone(UTC)

    def __call__(self) -> datetime:
        return self._now


def append(transaction: Transaction, intent: Intent, settlement: Settlement | None = None) -> Entry:
    facts = facts_of_intent(intent, attempt=1, request_id=f"request-{transaction.head.sequence + 1}")
    entry = transaction.append(None, Kind.INTENT, facts)
    if settlement is None:
        return entry
    return transaction.append(entry.number, Kind.SETTLEMENT, facts_of_settlement(settlement))


def store(storage: Storage, *writes: tuple[Intent, Settlement | None]) -> list[Entry]:
    with storage.transaction() as transaction:
        return [append(transaction, *write) for write in writes]
