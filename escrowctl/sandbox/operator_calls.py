"""Calls for the operator of the sandbox, not part of the interface: settings, moves, the ledger, events, the clock.

PUT    /sandbox/settings                          {name: value}; DELETE removes every setting
POST   /sandbox/moves                             {"id", "status"}
GET    /sandbox/ledger
GET    /sandbox/deliveries?undelivered=true&limit=50    newest first
POST   /sandbox/events                            {"event", "transaction"}: send one, and change nothing
GET    /sandbox/events/{id}                       with its deliveries, and every attempt
POST   /sandbox/events/{id}/replay
GET    /sandbox/clock
POST   /sandbox/clock                             {"advance_seconds"}
"""

import re
import sqlite3
from collections.abc import Callable, Mapping
from datetime import timedelta

from escrowctl.errors import EscrowctlError
from escrowctl.sandbox import deliveries, ledger
from escrowctl.sandbox.bodies import (
    BodyFlaw,
    JsonObject,
    JsonValue,
    ProblemError,
    ProblemKind,
    flawed,
    no_record,
    parameter_flaw,
    read_stored,
)
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.http import Call, Handler
from escrowctl.sandbox.magic import MAGIC_IDS
from escrowctl.sandbox.moves import carry_out
from escrowctl.sandbox.outbox import add_event
from escrowctl.sandbox.records import TRANSITIONS, State, find_move, find_transaction, timestamp
from escrowctl.sandbox.rehearsal import Rehearsal
from escrowctl.sandbox.requests import Advance, NewEvent, NewStatus, read_body
from escrowctl.sandbox.sender import Sender
from escrowctl.sandbox.store import Store
from escrowctl.sandbox.transactions import require_transaction

LIMIT = re.compile(r"[1-9][0-9]{0,2}|1000")

_DELIVERIES = """
    SELECT e.id, e.kind AS event, e.transaction_id AS "transaction", e.sequence, e.triggered,
      d.endpoint_id AS endpoint, w.url, d.state,
      (SELECT count(*) FROM delivery_attempts WHERE delivery = d.position) AS attempts,
      d.next_attempt_at AS next_attempt, last.status AS last_status, last.error AS last_error, d.position
    FROM deliveries d JOIN events e ON e.position = d.event JOIN webhook_endpoints w ON w.id = d.endpoint_id
    LEFT JOIN delivery_attempts last
      ON last.position = (SELECT max(position) FROM delivery_attempts WHERE delivery = d.position)
    WHERE NOT (:undelivered AND d.state = 'delivered') AND (:event IS NULL OR e.id = :event)
    ORDER BY d.position DESC LIMIT :limit
"""

_ATTEMPTS = """
    SELECT attempted_at AS at, status, error, milliseconds FROM delivery_attempts WHERE delivery = ? ORDER BY position
"""


class OperatorCalls:
    """Answers these calls; refusals are `ProblemError`s. `arrive` does all due work until the advanced time."""

    def __init__(
        self, store: Store, clock: Clock, sender: Sender, rehearsal: Rehearsal, *, arrive: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._rehearsal = rehearsal
        self._arrive = arrive

    @property
    def handlers(self) -> Mapping[str, Mapping[str, Handler]]:
        """Path -> method -> handler."""
        return {
            "/sandbox/settings": {"PUT": self.change_settings, "DELETE": self.clear_settings},
            "/sandbox/moves": {"POST": self.move},
            "/sandbox/ledger": {"GET": self.list_ledger},
            "/sandbox/deliveries": {"GET": self.list_newest},
            "/sandbox/events": {"POST": self.trigger},
            "/sandbox/events/{id}": {"GET": self.get_event},
            "/sandbox/events/{id}/replay": {"POST": self.replay},
            "/sandbox/clock": {"GET": self.get_clock, "POST": self.advance},
        }

    def change_settings(self, call: Call) -> JsonObject:
        """Set each name of the body to its value, and return all settings; 400 for an invalid one."""
        body = call.json_object()
        texts = {name: value for name, value in body.items() if isinstance(value, str)}
        if len(texts) != len(body):
            raise flawed(BodyFlaw("#", "The body must be an object of texts."))
        try:
            self._rehearsal.change(texts)
        except EscrowctlError as error:
            raise flawed(BodyFlaw("#", error.message)) from error
        return self._rehearsal.current().texts()

    def clear_settings(self, call: Call) -> JsonObject:
        """Remove every setting."""
        call.ignore_body()
        self._rehearsal.clear()
        return {}

    def move(self, call: Call) -> JsonObject:
        """Move a transaction to the status in the body, and return its record with `status_before`.

        404 if there is no such transaction; 409 if its state does not allow the move.
        """
        body = read_body(call, NewStatus)
        with self._store.writing() as connection:
            before = require_transaction(connection, body.id).status
            move = find_move(before, State(body.status)) if body.status in set(State) else None
            if move is None or body.id in MAGIC_IDS:
                raise _impossible(body, before)
            at = timestamp(self._clock.read(connection))
            moved = carry_out(connection, body.id, move, at=at)
            assert moved is not None, "its state was read in this transaction"
        return {"status_before": before, **moved.document()}

    def list_ledger(self, _call: Call) -> JsonObject:
        """Return every entry and the sums (`ledger.describe_ledger`)."""
        with self._store.reading() as connection:
            return ledger.describe_ledger(connection)

    def list_newest(self, call: Call) -> JsonObject:
        """Return `{"data": [delivery, ...], "has_more", "ahead_seconds"}`, newest first."""
        parameters = call.parameters("undelivered", "limit")
        undelivered, limit = parameters.get("undelivered", "false"), parameters.get("limit", "50")
        if undelivered not in ("true", "false"):
            raise flawed(parameter_flaw("undelivered", "undelivered must be true or false."))
        if not LIMIT.fullmatch(limit):
            raise flawed(parameter_flaw("limit", "limit must be a whole number from 1 to 1000."))
        with self._store.reading() as connection:
            found = _list(connection, undelivered=undelivered == "true", limit=int(limit) + 1)
            ahead = round(self._clock.ahead(connection).total_seconds())
        listed = [{name: value for name, value in one.items() if name != "position"} for one in found[: int(limit)]]
        return {"data": listed, "has_more": len(found) > int(limit), "ahead_seconds": ahead}

    def trigger(self, call: Call) -> JsonObject:
        """Write an event about a transaction in its present state, and return it; 404 if there is none."""
        body = read_body(call, NewEvent)
        with self._store.writing() as connection:
            transaction = find_transaction(connection, body.transaction)
            if transaction is None:
                raise no_record("transaction", body.transaction)
            at = timestamp(self._clock.read(connection))
            event_id = add_event(connection, body.event, transaction, at=at, triggered=True)
            return _event(connection, event_id)

    def get_event(self, call: Call) -> JsonObject:
        """Return an event, its deliveries and their attempts; 404 if there is none."""
        with self._store.reading() as connection:
            return _event(connection, call.resource_id)

    def replay(self, call: Call) -> JsonObject:
        """Start the deliveries of an event again, the dead ones too, and return it; 409 if it has none."""
        call.ignore_body()
        with self._store.writing() as connection:
            _event(connection, call.resource_id)
            at = timestamp(self._clock.read(connection))
            if not deliveries.replay(connection, call.resource_id, at=at):
                sentence = f"No endpoint was to get event {call.resource_id}: there is nothing to send again."
                raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
            return _event(connection, call.resource_id)

    def get_clock(self, _call: Call) -> JsonObject:
        """Return `{"now", "ahead_seconds", "advancing_to"}`; the last is null unless events are still being sent."""
        with self._store.reading() as connection:
            ahead = self._clock.ahead(connection)
            now = timestamp(self._clock.machine_time() + ahead)
        return {"now": now, "ahead_seconds": round(ahead.total_seconds()), "advancing_to": self._sender.target}

    def advance(self, call: Call) -> JsonObject:
        """Advance the clock. In-process, all due work is done before the answer. A server does it in the background."""
        self._sender.advance(timedelta(seconds=read_body(call, Advance).advance_seconds))
        if not self._sender.is_in_background:
            self._arrive()
        return self.get_clock(call)


def _list(
    connection: sqlite3.Connection, *, undelivered: bool = False, event: str | None = None, limit: int = -1
) -> list[dict[str, JsonValue]]:
    rows = connection.execute(_DELIVERIES, {"undelivered": undelivered, "event": event, "limit": limit})
    return [{**dict(row), "triggered": bool(row["triggered"])} for row in rows]


def _event(connection: sqlite3.Connection, event_id: str) -> JsonObject:
    row = connection.execute("SELECT * FROM events WHERE id = ?", (event_id,)).fetchone()
    if row is None:
        raise no_record("event", event_id)
    about = ("id", "event", "transaction", "sequence", "triggered")
    listed = []
    for one in reversed(_list(connection, event=event_id)):
        attempts = [dict(attempt) for attempt in connection.execute(_ATTEMPTS, (one["position"],))]
        shown = {name: value for name, value in one.items() if name not in (*about, "attempts", "position")}
        listed.append({**shown, "attempts": attempts})
    return {
        "id": row["id"],
        "event": row["kind"],
        "transaction": row["transaction_id"],
        "sequence": row["sequence"],
        "triggered": bool(row["triggered"]),
        "created_at": row["created_at"],
        "body": read_stored(row["body"]),
        "deliveries": listed,
    }


def _impossible(wanted: NewStatus, before: State) -> ProblemError:
    if wanted.id in MAGIC_IDS:
        return ProblemError(ProblemKind.MOVE_REFUSED, f"{wanted.id} is a magic id: it always is {before}.")
    ways = [one.after for one in TRANSITIONS.values() if one.before is before]
    where = f"from there it can become {', '.join(ways)}" if ways else "it can change no more"
    # The status is user input: it may be anything.
    shown = re.sub(r"[^a-z_-]", "?", wanted.status[:30]) or "nothing"
    return ProblemError(ProblemKind.MOVE_REFUSED, f"{wanted.id} is {before} and cannot become {shown}: {where}.")
