"""Events: changes of a transaction, written in the database transaction of the change itself.

Each event has a row for every endpoint that was subscribed to its kind at that moment. A committed
event is delivered at least once, because the sending process may die at any moment (sender.py).
`sequence` counts the events of one transaction from 1: a receiver can notice a missing or late one.
"""

import sqlite3
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from escrowctl.sandbox.bodies import write_json
from escrowctl.sandbox.records import EventKind, Move, Transaction
from escrowctl.sandbox.seed import draw_id

KINDS: Mapping[Move, EventKind] = MappingProxyType(
    {
        Move.CREATE: EventKind.TRANSACTION_CREATED,
        Move.RELEASE: EventKind.TRANSACTION_RELEASED,
        Move.EXPIRE: EventKind.TRANSACTION_EXPIRED,
    }
)
"""The event of a move; any other move is an update."""


class DeliveryState(StrEnum):
    """The state of the delivery of an event to one endpoint."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    DEAD = "dead"
    """All five attempts failed; a replay starts again."""


ADD_EVENT = """
    INSERT INTO events (id, kind, transaction_id, sequence, triggered, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING
"""

NEXT_SEQUENCE = "SELECT coalesce(max(sequence), 0) + 1 FROM events WHERE transaction_id = ?"

ADD_DELIVERIES = """
    INSERT INTO deliveries (event, endpoint_id, state, next_attempt_at)
    SELECT :event, id, :state, :at FROM webhook_endpoints
    WHERE EXISTS (SELECT 1 FROM json_each(events) WHERE value = :kind)
    ORDER BY position
"""


def add_event(
    connection: sqlite3.Connection, kind: EventKind, transaction: Transaction, *, at: str, triggered: bool = False
) -> str:
    """Write an event about a transaction in this state, and a delivery for each endpoint; return the event's id.

    The body is that of Standard Webhooks: `type`, `timestamp`, `data` (the record), and `sequence`.
    """
    (sequence,) = connection.execute(NEXT_SEQUENCE, (transaction.id,)).fetchone()
    body = write_json({"type": kind, "timestamp": at, "sequence": sequence, "data": transaction.document()})
    while True:
        event_id = draw_id(connection, "msg")
        values = (event_id, kind, transaction.id, sequence, triggered, body, at)
        added = connection.execute(ADD_EVENT, values)
        if added.rowcount == 1:
            delivery = {"event": added.lastrowid, "kind": kind, "state": DeliveryState.WAITING, "at": at}
            connection.execute(ADD_DELIVERIES, delivery)
            return event_id
