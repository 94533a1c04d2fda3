"""Calls for the operator of the sandbox, outside the interface: settings, moves, the ledger, events, the clock.

GET    /sandbox/status
PUT    /sandbox/settings                          {name: value}; DELETE removes every setting
POST   /sandbox/moves                             {"id", "status"}
GET    /sandbox/ledger
GET    /sandbox/deliveries?undelivered=true&limit=50    newest first
POST   /sandbox/events                            {"event", "transaction"}: send an event without a change
GET    /sandbox/events/{id}                       the event, its deliveries and every attempt
POST   /sandbox/events/{id}/replay
GET    /sandbox/clock
POST   /sandbox/clock                             {"advance_seconds"}
"""

import sqlite3
from collections.abc import Mapping
from datetime import timedelta

from escrowctl.errors import EscrowctlError
from escrowctl.sandbox.bodies import JsonObject, JsonValue, ProblemError, ProblemKind, invalid, no_record, parse_object
from escrowctl.sandbox.events import RESTART_DELIVERIES, DeliveryState, add_event
from escrowctl.sandbox.http import Call, Handler
from escrowctl.sandbox.interface import require_transaction
from escrowctl.sandbox.ledger import calculate_balances, format_amount
from escrowctl.sandbox.magic import MAGIC_IDS
from escrowctl.sandbox.moves import perform_move
from escrowctl.sandbox.records import TRANSITIONS, UserId, find_transaction, timestamp
from escrowctl.sandbox.requests import ClockAdvance, DeliveriesQuery, NewEvent, NewStatus, read_body, read_query
from escrowctl.sandbox.sender import Sender
from escrowctl.sandbox.settings import Rehearsal
from escrowctl.sandbox.store import Store

_COUNT_TRANSACTIONS = "SELECT status, count(*) FROM transactions GROUP BY status ORDER BY status"
_COUNT_DELIVERIES = "SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state"

_SELECT_DELIVERIES = """
    SELECT e.id, e.kind AS event, e.transaction_id AS "transaction", e.sequence, e.triggered,
      d.endpoint_id AS endpoint, json_extract(w.document, '$.url') AS url, d.state,
      (SELECT count(*) FROM delivery_attempts WHERE delivery = d.position) AS attempts,
      d.next_attempt_at AS next_attempt, last.status AS last_status, last.error AS last_error, d.position
    FROM deliveries d JOIN events e ON e.position = d.event JOIN webhook_endpoints w ON w.id = d.endpoint_id
    LEFT JOIN delivery_attempts last
      ON last.position = (SELECT max(position) FROM delivery_attempts WHERE delivery = d.position)
    WHERE NOT (:undelivered AND d.state = 'delivered') AND (:event IS NULL OR e.id = :event)
    ORDER BY d.position DESC LIMIT :limit
"""

_SELECT_EVENT = """
    SELECT id, kind AS event, transaction_id AS "transaction", sequence, triggered, created_at, body
    FROM events WHERE id = ?
"""

_SELECT_ATTEMPTS = """
    SELECT attempted_at AS at, status, error, milliseconds FROM delivery_attempts WHERE delivery = ? ORDER BY position
"""

_SELECT_ENTRIES = """
    SELECT entry, transaction_id AS "transaction", move, account, currency, units AS amount, posted_at
    FROM ledger_entries ORDER BY entry
"""


class OperatorCalls:
    """The handlers of the operator's calls. A handler raises ProblemError to refuse a request."""

    def __init__(self, store: Store, sender: Sender, rehearsal: Rehearsal) -> None:
        self._store = store
        self._sender = sender
        self._rehearsal = rehearsal

    @property
    def handlers(self) -> Mapping[str, Mapping[str, Handler]]:
        """The handlers, by path and method."""
        return {
            "/sandbox/status": {"GET": self.get_status},
            "/sandbox/settings": {"PUT": self.change_settings, "DELETE": self.clear_settings},
            "/sandbox/moves": {"POST": self.move_transaction},
            "/sandbox/ledger": {"GET": self.list_ledger},
            "/sandbox/deliveries": {"GET": self.list_deliveries},
            "/sandbox/events": {"POST": self.trigger_event},
            "/sandbox/events/{id}": {"GET": self.get_event},
            "/sandbox/events/{id}/replay": {"POST": self.replay_event},
            "/sandbox/clock": {"GET": self.get_clock, "POST": self.advance_clock},
        }

    def get_status(self, _call: Call) -> JsonObject:
        """Return the settings, the number of records by state, and the balance of each currency in its main unit."""
        settings = self._rehearsal.read()
        with self._store.reading() as connection:
            (webhooks,) = connection.execute("SELECT count(*) FROM webhook_endpoints").fetchone()
            balances = [
                {"currency": one.currency, "held": format_amount(one.held).text, "balanced": one.is_consistent}
                for one in calculate_balances(connection)
            ]
            return {
                "identity": self._store.identity,
                "settings": settings,
                "transactions": dict(connection.execute(_COUNT_TRANSACTIONS).fetchall()),
                "users": len(UserId),
                "webhooks": webhooks,
                "deliveries": dict(connection.execute(_COUNT_DELIVERIES).fetchall()),
                "ledger": balances,
            }

    def change_settings(self, call: Call) -> JsonObject:
        """Set all names in the body to their values, or none: then raises ProblemError 400. Return all settings."""
        body = call.read_object()
        texts = {name: value for name, value in body.items() if isinstance(value, str)}
        if len(texts) != len(body):
            raise invalid({"pointer": "#", "detail": "Every value in the body must be a string."})
        try:
            self._rehearsal.change(texts)
        except EscrowctlError as error:
            raise invalid({"pointer": "#", "detail": error.message}) from error
        return self._rehearsal.read()

    def clear_settings(self, call: Call) -> JsonObject:
        """Remove every setting, and return {}."""
        call.check_unused_body()
        self._rehearsal.clear()
        return {}

    def move_transaction(self, call: Call) -> JsonObject:
        """Move a transaction to the status in the body, and return its record with `status_before`.

        Raises ProblemError: 404 if there is no such transaction, 409 if its status does not allow the move.
        """
        body = read_body(call, NewStatus)
        with self._store.writing() as connection:
            before = require_transaction(connection, body.id).status
            wanted = (before, body.status)
            move = next((name for name, one in TRANSITIONS.items() if (one.before, one.after) == wanted), None)
            moved = perform_move(connection, body.id, move, at=self._store.sandbox_time(connection)) if move else None
        if moved is None:
            ways = [one.after for one in TRANSITIONS.values() if one.before is before and body.id not in MAGIC_IDS]
            choices = f"it can become {', '.join(ways)}" if ways else "its status is final"
            sentence = f"{body.id} is {before} and cannot become {body.status}: {choices}."
            raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
        return {"status_before": before, **moved.document}

    def list_ledger(self, _call: Call) -> JsonObject:
        """Return the entries, oldest first, and the sums by currency. Amounts are numbers in the main unit."""
        with self._store.reading() as connection:
            entries = [
                {**dict(row), "amount": format_amount(row["amount"])} for row in connection.execute(_SELECT_ENTRIES)
            ]
            currencies = [
                {
                    "currency": one.currency,
                    "entries": one.entries,
                    "sum": format_amount(one.total),
                    "held": format_amount(one.held),
                    "balanced": one.is_consistent,
                }
                for one in calculate_balances(connection)
            ]
        return {"entries": entries, "currencies": currencies}

    def list_deliveries(self, call: Call) -> JsonObject:
        """Return `{"data": [delivery, ...], "has_more", "ahead_seconds"}`, newest delivery first."""
        query = read_query(call, DeliveriesQuery)
        limit = int(query.limit)
        with self._store.reading() as connection:
            found = _find_deliveries(connection, undelivered=query.undelivered == "true", limit=limit + 1)
            ahead = round(self._store.clock_offset(connection).total_seconds())
        listed = [{name: value for name, value in one.items() if name != "position"} for one in found[:limit]]
        return {"data": listed, "has_more": len(found) > limit, "ahead_seconds": ahead}

    def trigger_event(self, call: Call) -> JsonObject:
        """Write an event about a transaction that does not change. Return the event. Raises ProblemError 404."""
        body = read_body(call, NewEvent)
        with self._store.writing() as connection:
            if (transaction := find_transaction(connection, body.transaction)) is None:
                raise no_record("transaction", body.transaction)
            at = self._store.sandbox_time(connection)
            return _read_event(connection, add_event(connection, body.event, transaction, at=at, triggered=True))

    def get_event(self, call: Call) -> JsonObject:
        """Return an event with its deliveries and their attempts, both oldest first. Raises ProblemError 404."""
        with self._store.reading() as connection:
            return _read_event(connection, call.resource_id)

    def replay_event(self, call: Call) -> JsonObject:
        """Restart all deliveries of an event. Return the event. Raises ProblemError 404, or 409 if there are none."""
        call.check_unused_body()
        with self._store.writing() as connection:
            _read_event(connection, call.resource_id)
            values = (DeliveryState.WAITING, self._store.sandbox_time(connection), call.resource_id)
            if not connection.execute(RESTART_DELIVERIES, values).rowcount:
                sentence = f"No endpoint was subscribed to event {call.resource_id}: there is nothing to send again."
                raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
            return _read_event(connection, call.resource_id)

    def get_clock(self, _call: Call) -> JsonObject:
        """Return the sandbox's time. `advancing_to` is the target while the clock is being advanced, else null."""
        with self._store.reading() as connection:
            ahead = self._store.clock_offset(connection)
            now = timestamp(self._store.machine_time() + ahead)
        return {"now": now, "ahead_seconds": round(ahead.total_seconds()), "advancing_to": self._sender.clock_target}

    def advance_clock(self, call: Call) -> JsonObject:
        """Advance the clock, and return its state like `get_clock`. A server does so in the background."""
        self._sender.advance(timedelta(seconds=read_body(call, ClockAdvance).advance_seconds))
        return self.get_clock(call)


def _find_deliveries(
    connection: sqlite3.Connection, *, undelivered: bool = False, event: str | None = None, limit: int = -1
) -> list[dict[str, JsonValue]]:
    rows = connection.execute(_SELECT_DELIVERIES, {"undelivered": undelivered, "event": event, "limit": limit})
    return [{**dict(row), "triggered": bool(row["triggered"])} for row in rows]


def _read_event(connection: sqlite3.Connection, event_id: str) -> JsonObject:
    if (row := connection.execute(_SELECT_EVENT, (event_id,)).fetchone()) is None:
        raise no_record("event", event_id)
    found = {**dict(row), "triggered": bool(row["triggered"]), "body": parse_object(row["body"])}
    listed = []
    for one in reversed(_find_deliveries(connection, event=event_id)):
        attempts = [dict(attempt) for attempt in connection.execute(_SELECT_ATTEMPTS, (one["position"],))]
        shown = {name: value for name, value in one.items() if name not in {*found, "position"}}
        listed.append({**shown, "attempts": attempts})
    return {**found, "deliveries": listed}
