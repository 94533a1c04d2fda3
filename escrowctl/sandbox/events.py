"""Events: changes of a transaction, written in the database transaction of the change itself, and their deliveries.

Each event has a delivery to every endpoint that was subscribed to its kind at that moment. A committed
event is delivered at least once, because the sending process may die at any moment (sender.py).
`sequence` counts the events of one transaction from 1: a receiver can notice a missing or late one.
"""

import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from escrowctl.sandbox.bodies import write_json
from escrowctl.sandbox.records import EventKind, Move, Transaction, later
from escrowctl.sandbox.seed import draw_id

KINDS: Mapping[Move, EventKind] = {
    Move.CREATE: EventKind.TRANSACTION_CREATED,
    Move.RELEASE: EventKind.TRANSACTION_RELEASED,
    Move.EXPIRE: EventKind.TRANSACTION_EXPIRED,
}
"""The event of a move; any other move is an update."""

DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60))
"""The waits between attempts. If the attempt after the last wait fails, the delivery is dead."""


class DeliveryState(StrEnum):
    """The state of the delivery of an event to one endpoint. Only a waiting delivery has a next attempt."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    DEAD = "dead"
    """All five attempts failed; a replay starts again."""


class Delivery(NamedTuple):
    """One event on its way to one endpoint. `due_at` is the time of the next attempt. `failures` counts this round."""

    position: int
    due_at: str
    failures: int
    message_id: str
    body: str
    url: str
    secret: str


class Attempt(NamedTuple):
    """The result of one attempt: the status of the reply, or the reason why there is none."""

    milliseconds: int
    status: int | None = None
    error: str | None = None


ADD_EVENT = """
    INSERT INTO events (id, kind, transaction_id, sequence, triggered, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
NEXT_SEQUENCE = "SELECT coalesce(max(sequence), 0) + 1 FROM events WHERE transaction_id = ?"
ADD_DELIVERIES = """
    INSERT INTO deliveries (event, endpoint_id, state, next_attempt_at)
    SELECT :event, id, :state, :at FROM webhook_endpoints
    WHERE EXISTS (SELECT 1 FROM json_each(document, '$.events') WHERE value = :kind)
    ORDER BY position
"""
FIRST_DELIVERY = """
    SELECT d.position, d.next_attempt_at, d.failures, e.id, e.body, json_extract(w.document, '$.url'), w.secret
    FROM deliveries d JOIN events e ON e.position = d.event JOIN webhook_endpoints w ON w.id = d.endpoint_id
    WHERE d.next_attempt_at IS NOT NULL ORDER BY d.next_attempt_at, d.position LIMIT 1
"""
ADD_ATTEMPT = """
    INSERT INTO delivery_attempts (delivery, attempted_at, milliseconds, status, error) VALUES (?, ?, ?, ?, ?)
"""
SETTLE = "UPDATE deliveries SET state = ?, failures = ?, next_attempt_at = ? WHERE position = ?"
REPLAY = """
    UPDATE deliveries SET state = ?, failures = 0, next_attempt_at = ?
    WHERE event = (SELECT position FROM events WHERE id = ?)
"""


def add_event(
    connection: sqlite3.Connection, kind: EventKind, transaction: Transaction, *, at: str, triggered: bool = False
) -> str:
    """Write an event about a transaction in this state, and a delivery for each endpoint; return the event's id.

    The body is that of Standard Webhooks: `type`, `timestamp`, `data` (the record), and `sequence`.
    """
    (sequence,) = connection.execute(NEXT_SEQUENCE, (transaction.id,)).fetchone()
    body = write_json({"type": kind, "timestamp": at, "sequence": sequence, "data": transaction.document()})
    event_id = draw_id(connection, "msg", table="events")
    added = connection.execute(ADD_EVENT, (event_id, kind, transaction.id, sequence, triggered, body, at))
    delivery = {"event": added.lastrowid, "kind": kind, "state": DeliveryState.WAITING, "at": at}
    connection.execute(ADD_DELIVERIES, delivery)
    return event_id


def first_delivery(connection: sqlite3.Connection) -> Delivery | None:
    """Return the delivery whose next attempt is due first, or None."""
    row = connection.execute(FIRST_DELIVERY).fetchone()
    return Delivery(*row) if row else None


def settle(connection: sqlite3.Connection, delivery: Delivery, attempt: Attempt, *, at: str) -> None:
    """Record an attempt that began at `at`, and the new state of the delivery. Only a 2xx is a success."""
    connection.execute(ADD_ATTEMPT, (delivery.position, at, *attempt))
    state, failures, next_at = DeliveryState.DEAD, delivery.failures, None
    if attempt.status in range(200, 300):
        state = DeliveryState.DELIVERED
    elif failures < len(DELAYS):
        wait = timedelta(milliseconds=attempt.milliseconds) + DELAYS[failures]
        state, failures, next_at = DeliveryState.WAITING, failures + 1, later(at, wait)
    connection.execute(SETTLE, (state, failures, next_at, delivery.position))


def replay(connection: sqlite3.Connection, event_id: str, *, at: str) -> int:
    """Start the deliveries of an event again, from the first attempt; return how many there are."""
    return connection.execute(REPLAY, (DeliveryState.WAITING, at, event_id)).rowcount
