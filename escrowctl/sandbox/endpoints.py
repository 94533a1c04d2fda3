"""Webhook endpoints: the operations create and list, their records and their SQL.

INTERFACE.md sections 2, 4 and 6 show no fields of an endpoint, no body for its creation and no kinds of event: all of
that is the sandbox's own choice.
"""

import json
import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from escrowctl.sandbox.bodies import JsonObject, read_stored, write_json
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.http import Call, no_such_start, read_page
from escrowctl.sandbox.idempotency import add_reply, find_reply
from escrowctl.sandbox.records import EventKind, timestamp
from escrowctl.sandbox.requests import NewWebhook, read_body
from escrowctl.sandbox.signing import draw_secret
from escrowctl.sandbox.store import Store

STATUS = "enabled"
"""Of every endpoint: none is ever disabled."""


class Endpoint(NamedTuple):
    """Where events go. `events` None means every kind, including later ones.

    `secret` signs what is sent there: `whsec_` and base64, as in Standard Webhooks. `extra` holds
    the fields that the sandbox does not know.
    """

    id: str
    url: str
    events: list[EventKind] | None
    description: str | None
    secret: str
    extra: JsonObject
    created_at: str

    def document(self) -> JsonObject:
        """The record on the wire, without its secret; `description` only if there is one."""
        described: JsonObject = {} if self.description is None else {"description": self.description}
        return {
            "id": self.id,
            "url": self.url,
            "events": list(EventKind) if self.events is None else self.events,
            **described,
            **self.extra,
            "status": STATUS,
            "created_at": self.created_at,
        }


INSERT = """
    INSERT INTO webhook_endpoints (id, url, events, description, secret, extra, created_at)
    VALUES (:id, :url, :events, :description, :secret, :extra, :created_at)
    ON CONFLICT (id) DO NOTHING
"""

NEWEST = """
    SELECT * FROM webhook_endpoints
    WHERE :after IS NULL OR position < (SELECT position FROM webhook_endpoints WHERE id = :after)
    ORDER BY position DESC LIMIT :count
"""


class EndpointRoutes:
    """Answers for webhook endpoints. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, clock: Clock, draw_id: Callable[[str], str]) -> None:
        self._store = store
        self._clock = clock
        self._draw_id = draw_id

    def create(self, call: Call) -> JsonObject:
        """Store a new endpoint, and return its record with the secret; 400 for a flawed body.

        The secret is in this answer only, and in that to the same request under a recognised key. The same
        address again makes a second endpoint: the interface shows nothing that forbids it.
        """
        body = read_body(call, NewWebhook)
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            while True:
                endpoint = Endpoint(
                    id=self._draw_id("wh"),
                    url=body.url,
                    events=body.events,
                    description=body.description,
                    secret=draw_secret(),
                    extra=body.extra,
                    created_at=timestamp(self._clock.read(connection)),
                )
                if add_endpoint(connection, endpoint):
                    break
            reply = {**endpoint.document(), "secret": endpoint.secret}
            add_reply(connection, call, reply)
        return reply

    def list_newest(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first, without their secrets."""
        page = read_page(call)
        with self._store.reading() as connection:
            if page.after is not None and find_endpoint(connection, page.after) is None:
                raise no_such_start("webhook endpoint", page.after)
            found = newest_endpoints(connection, after=page.after, count=page.rows_to_read)
        return page.envelope([endpoint.document() for endpoint in found])


def add_endpoint(connection: sqlite3.Connection, endpoint: Endpoint) -> bool:
    """Insert an endpoint; False, with nothing changed, if its id is taken."""
    events = None if endpoint.events is None else json.dumps(endpoint.events)
    values = {**endpoint._asdict(), "events": events, "extra": write_json(endpoint.extra)}
    return connection.execute(INSERT, values).rowcount == 1


def find_endpoint(connection: sqlite3.Connection, endpoint_id: str) -> Endpoint | None:
    """Read one endpoint, or None."""
    row = connection.execute("SELECT * FROM webhook_endpoints WHERE id = ?", (endpoint_id,)).fetchone()
    return _endpoint(row) if row else None


def newest_endpoints(connection: sqlite3.Connection, *, after: str | None, count: int) -> list[Endpoint]:
    """Read up to `count` endpoints, newest first; with `after`, only those older than that one."""
    return [_endpoint(row) for row in connection.execute(NEWEST, {"after": after, "count": count})]


def _endpoint(row: sqlite3.Row) -> Endpoint:
    stored = {name: row[name] for name in Endpoint._fields}
    events = None if row["events"] is None else list(map(EventKind, json.loads(row["events"])))
    return Endpoint(**{**stored, "events": events, "extra": read_stored(row["extra"])})
