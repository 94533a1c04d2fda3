"""Deliveries in the store: which one is next, and what an attempt, a pause, a replay and a switch change.

A delivery has a next attempt exactly while it is waiting and its endpoint is enabled.
"""

import sqlite3
from datetime import datetime, timedelta
from typing import NamedTuple

from escrowctl.sandbox.clock import later
from escrowctl.sandbox.endpoints import EndpointStatus
from escrowctl.sandbox.outbox import DeliveryState
from escrowctl.sandbox.schedule import DISABLED_AFTER, LONGEST_PAUSE, Attempt, delay_after, pause_after
from escrowctl.sandbox.signing import draw_secret

OVERLAP = timedelta(days=1)
"""How long the secret before the last rotation signs too."""


class Delivery(NamedTuple):
    """One event on its way to one endpoint. `due_at` is when the next attempt is due; `failures` in this round."""

    position: int
    due_at: str
    failures: int
    endpoint_id: str
    message_id: str
    body: str
    url: str
    secret: str
    previous_secret: str | None
    previous_until: str | None

    def secrets(self, *, at: str) -> list[str]:
        """Return what signs an attempt: the secret, and after a rotation for a while the one before."""
        if self.previous_secret is None or self.previous_until is None or at >= self.previous_until:
            return [self.secret]
        return [self.secret, self.previous_secret]


FIRST = """
    SELECT d.position, d.next_attempt_at, d.failures, d.endpoint_id, e.id, e.body,
      w.url, w.secret, w.previous_secret, w.previous_until
    FROM deliveries d JOIN events e ON e.position = d.event JOIN webhook_endpoints w ON w.id = d.endpoint_id
    WHERE d.next_attempt_at IS NOT NULL ORDER BY d.next_attempt_at, d.position LIMIT 1
"""

ADD_ATTEMPT = """
    INSERT INTO delivery_attempts (delivery, attempted_at, status, error, milliseconds) VALUES (?, ?, ?, ?, ?)
"""

END = "UPDATE deliveries SET state = ?, next_attempt_at = NULL WHERE position = ?"

TRY_AGAIN = """
    UPDATE deliveries SET state = :state, failures = :failures, next_attempt_at =
      (SELECT max(:at, coalesce(paused_until, '')) FROM webhook_endpoints WHERE id = endpoint_id AND status = :enabled)
"""
"""To be followed by which; at a disabled endpoint there is no next attempt."""

RECOVER = "UPDATE webhook_endpoints SET failing_since = NULL, paused_until = NULL WHERE id = ?"

FAIL = "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, ?) WHERE id = ? RETURNING failing_since"


def first_delivery(connection: sqlite3.Connection) -> Delivery | None:
    """Return the delivery whose next attempt is due first, or None."""
    row = connection.execute(FIRST).fetchone()
    return Delivery(*row) if row else None


def settle(connection: sqlite3.Connection, delivery: Delivery, attempt: Attempt, *, at: str, chance: float) -> None:
    """Record an attempt that began `at` this moment, and what follows from it. `chance` is from 0 to 1."""
    values = (delivery.position, at, attempt.status, attempt.error, attempt.milliseconds)
    connection.execute(ADD_ATTEMPT, values)
    if attempt.delivered:
        connection.execute(END, (DeliveryState.DELIVERED, delivery.position))
        connection.execute(RECOVER, (delivery.endpoint_id,))
        return
    ended = later(at, timedelta(milliseconds=attempt.milliseconds))
    failures = delivery.failures + 1
    delay = delay_after(failures, attempt, chance=chance)
    if delay is None:
        connection.execute(END, (DeliveryState.DEAD, delivery.position))
    else:
        _try_again(connection, "WHERE position = :which", delivery.position, failures=failures, at=later(ended, delay))
    if attempt.overloaded:
        _pause(connection, delivery.endpoint_id, until=later(ended, pause_after(delay or LONGEST_PAUSE, attempt)))
    (since,) = connection.execute(FAIL, (at, delivery.endpoint_id)).fetchone()
    if attempt.gone or datetime.fromisoformat(at) - datetime.fromisoformat(since) >= DISABLED_AFTER:
        disable(connection, delivery.endpoint_id)


def replay(connection: sqlite3.Connection, event_id: str, *, at: str) -> int:
    """Start the deliveries of an event again, from the first attempt; return how many there are."""
    which = "WHERE event = (SELECT position FROM events WHERE id = :which)"
    return _try_again(connection, which, event_id, failures=0, at=at)


def disable(connection: sqlite3.Connection, endpoint_id: str) -> None:
    """Send an endpoint nothing more; what waits for it stays."""
    connection.execute("UPDATE webhook_endpoints SET status = ? WHERE id = ?", (EndpointStatus.DISABLED, endpoint_id))
    stop = "UPDATE deliveries SET next_attempt_at = NULL WHERE endpoint_id = ? AND next_attempt_at IS NOT NULL"
    connection.execute(stop, (endpoint_id,))


def enable(connection: sqlite3.Connection, endpoint_id: str, *, at: str) -> None:
    """Send to an endpoint again, and at once what waits for it; one that is enabled is not changed."""
    change = "UPDATE webhook_endpoints SET status = ? WHERE id = ? AND status = ?"
    values = (EndpointStatus.ENABLED, endpoint_id, EndpointStatus.DISABLED)
    if connection.execute(change, values).rowcount == 0:
        return
    connection.execute(RECOVER, (endpoint_id,))
    wake = "UPDATE deliveries SET next_attempt_at = ? WHERE endpoint_id = ? AND state = ?"
    connection.execute(wake, (at, endpoint_id, DeliveryState.WAITING))


def rotate(connection: sqlite3.Connection, endpoint_id: str, *, at: str) -> str:
    """Give an endpoint a new secret and return it; the one before signs too, for `OVERLAP`."""
    secret = draw_secret()
    change = "UPDATE webhook_endpoints SET secret = ?, previous_secret = secret, previous_until = ? WHERE id = ?"
    connection.execute(change, (secret, later(at, OVERLAP), endpoint_id))
    return secret


def _try_again(connection: sqlite3.Connection, where: str, which: str | int, *, failures: int, at: str) -> int:
    values = {"state": DeliveryState.WAITING, "failures": failures, "at": at, "which": which}
    return connection.execute(TRY_AGAIN + where, {**values, "enabled": EndpointStatus.ENABLED}).rowcount


def _pause(connection: sqlite3.Connection, endpoint_id: str, *, until: str) -> None:
    values = {"endpoint": endpoint_id, "until": until}
    pause = "UPDATE webhook_endpoints SET paused_until = max(coalesce(paused_until, ''), :until) WHERE id = :endpoint"
    connection.execute(pause, values)
    postpone = (
        "UPDATE deliveries SET next_attempt_at = :until WHERE endpoint_id = :endpoint AND next_attempt_at < :until"
    )
    connection.execute(postpone, values)
