"""Deliveries in the store: find the next one, record an attempt, replay.

A delivery has a next attempt exactly while it is waiting.
"""

import sqlite3
from datetime import timedelta
from typing import NamedTuple

from escrowctl.sandbox.clock import later
from escrowctl.sandbox.outbox import DeliveryState

DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60))
"""The waits between attempts. If the attempt after the last wait fails, the delivery is dead."""

_SUCCESS = range(200, 300)


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


FIRST = """
    SELECT d.position, d.next_attempt_at, d.failures, e.id, e.body, w.url, w.secret
    FROM deliveries d JOIN events e ON e.position = d.event JOIN webhook_endpoints w ON w.id = d.endpoint_id
    WHERE d.next_attempt_at IS NOT NULL ORDER BY d.next_attempt_at, d.position LIMIT 1
"""

ADD_ATTEMPT = """
    INSERT INTO delivery_attempts (delivery, attempted_at, status, error, milliseconds) VALUES (?, ?, ?, ?, ?)
"""

END = "UPDATE deliveries SET state = ?, next_attempt_at = NULL WHERE position = ?"

TRY_AGAIN = "UPDATE deliveries SET failures = ?, next_attempt_at = ? WHERE position = ?"

REPLAY = """
    UPDATE deliveries SET state = ?, failures = 0, next_attempt_at = ?
    WHERE event = (SELECT position FROM events WHERE id = ?)
"""


def first_delivery(connection: sqlite3.Connection) -> Delivery | None:
    """Return the delivery whose next attempt is due first, or None."""
    row = connection.execute(FIRST).fetchone()
    return Delivery(*row) if row else None


def settle(connection: sqlite3.Connection, delivery: Delivery, attempt: Attempt, *, at: str) -> None:
    """Record an attempt that began at `at`, and the new state of the delivery. Only a 2xx is a success."""
    values = (delivery.position, at, attempt.status, attempt.error, attempt.milliseconds)
    connection.execute(ADD_ATTEMPT, values)
    if attempt.status in _SUCCESS:
        connection.execute(END, (DeliveryState.DELIVERED, delivery.position))
    elif delivery.failures == len(DELAYS):
        connection.execute(END, (DeliveryState.DEAD, delivery.position))
    else:
        next_at = later(at, timedelta(milliseconds=attempt.milliseconds) + DELAYS[delivery.failures])
        connection.execute(TRY_AGAIN, (delivery.failures + 1, next_at, delivery.position))


def replay(connection: sqlite3.Connection, event_id: str, *, at: str) -> int:
    """Start the deliveries of an event again, from the first attempt; return how many there are."""
    return connection.execute(REPLAY, (DeliveryState.WAITING, at, event_id)).rowcount
