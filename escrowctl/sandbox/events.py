"""Events about transactions, and their deliveries to webhook endpoints.

A change and its event are written in the same database transaction. The event gets a delivery to every endpoint
that is then subscribed to its kind. An event may be sent more than once (sender.py). `sequence` counts the events
of one escrow transaction from 1, so a receiver notices a missing or late event.
"""

import sqlite3
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from escrowctl.post_once import Reply
from escrowctl.sandbox.bodies import write_json
from escrowctl.sandbox.records import EventKind, Transaction, add_duration
from escrowctl.sandbox.seed import draw_id

DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60))
"""The waits between attempts. If the attempt after the last wait fails, the delivery is dead."""


class DeliveryState(StrEnum):
    """The state of the delivery of an event to one endpoint. Only a waiting delivery has a next attempt."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    DEAD = "dead"
    """All five attempts failed. A replay allows five new attempts."""


class Delivery(NamedTuple):
    """One event for one endpoint. `due_at` is the time of the next attempt. A replay sets `failures` to 0."""

    position: int
    due_at: str
    failures: int
    message_id: str
    body: str
    url: str
    secret: str


ADD_EVENT = "INSERT INTO events (id, transaction_id, sequence, triggered, body) VALUES (?, ?, ?, ?, ?)"
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
UPDATE_DELIVERY = "UPDATE deliveries SET state = ?, failures = ?, next_attempt_at = ? WHERE position = ?"
RESTART_DELIVERIES = """
    UPDATE deliveries SET state = ?, failures = 0, next_attempt_at = ?
    WHERE event = (SELECT position FROM events WHERE id = ?)
"""


def add_event(
    connection: sqlite3.Connection, kind: EventKind, transaction: Transaction, *, at: str, triggered: bool = False
) -> str:
    """Write an event about a transaction, with a delivery to each subscribed endpoint. Return the event's id.

    The body is that of Standard Webhooks (`type`, `timestamp`, `data`: the record) and `sequence`. `at` is the time
    of the event. `triggered`: an operator asked for the event, and the transaction did not change.
    """
    (sequence,) = connection.execute(NEXT_SEQUENCE, (transaction.id,)).fetchone()
    body = write_json({"type": kind, "timestamp": at, "sequence": sequence, "data": transaction.document})
    event_id = draw_id(connection, "msg", table="events")
    added = connection.execute(ADD_EVENT, (event_id, transaction.id, sequence, triggered, body))
    delivery = {"event": added.lastrowid, "kind": kind, "state": DeliveryState.WAITING, "at": at}
    connection.execute(ADD_DELIVERIES, delivery)
    return event_id


def find_first_delivery(connection: sqlite3.Connection) -> Delivery | None:
    """Return the delivery whose next attempt is due first, or None."""
    row = connection.execute(FIRST_DELIVERY).fetchone()
    return Delivery(*row) if row else None


def record_attempt(connection: sqlite3.Connection, delivery: Delivery, reply: Reply, *, at: str) -> None:
    """Store an attempt that began at `at`, and the new state of its delivery. Only a 2xx status is a success."""
    milliseconds = round(reply.seconds * 1000)
    connection.execute(ADD_ATTEMPT, (delivery.position, at, milliseconds, reply.status, reply.error or None))
    state, failures, next_at = DeliveryState.DEAD, delivery.failures, None
    if reply.is_accepted:
        state = DeliveryState.DELIVERED
    elif failures < len(DELAYS):
        wait = timedelta(milliseconds=milliseconds) + DELAYS[failures]
        state, failures, next_at = DeliveryState.WAITING, failures + 1, add_duration(at, wait)
    connection.execute(UPDATE_DELIVERY, (state, failures, next_at, delivery.position))
