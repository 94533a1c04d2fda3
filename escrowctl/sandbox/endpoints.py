"""Webhook endpoints: the operations create and list.

INTERFACE.md sections 2, 4 and 6 show no fields of an endpoint, no body for its creation and no kinds of event: all of
that is the sandbox's own choice.
"""

import json

from escrowctl.sandbox.bodies import JsonObject, read_stored, write_json
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.http import Call, read_page
from escrowctl.sandbox.idempotency import add_reply, find_reply
from escrowctl.sandbox.records import EventKind, timestamp
from escrowctl.sandbox.requests import NewWebhook, read_body
from escrowctl.sandbox.seed import draw_id
from escrowctl.sandbox.signing import draw_secret
from escrowctl.sandbox.store import Store

INSERT = """
    INSERT INTO webhook_endpoints (id, url, events, secret, document) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING
"""


class EndpointRoutes:
    """Answers for webhook endpoints. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, call: Call) -> JsonObject:
        """Store a new endpoint, and return its record with the secret; 400 for a flawed body.

        The secret is only in this answer, and in the answer to the same request under a recognised key. The same
        address again makes a second endpoint: nothing in the interface forbids it.
        """
        body = read_body(call, NewWebhook)
        events, secret = body.events or list(EventKind), draw_secret()
        described: JsonObject = {"description": body.description} if "description" in body.model_fields_set else {}
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            at = timestamp(self._clock.read(connection))
            while True:
                endpoint_id = draw_id(connection, "wh")
                document: JsonObject = {
                    "id": endpoint_id,
                    "url": body.url,
                    "events": events,
                    **described,
                    **body.extra,
                    "status": "enabled",
                    "created_at": at,
                }
                values = (endpoint_id, body.url, json.dumps(events), secret, write_json(document))
                if connection.execute(INSERT, values).rowcount == 1:
                    break
            reply = {**document, "secret": secret}
            add_reply(connection, call, reply)
        return reply

    def list_newest(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first, without their secrets."""
        with self._store.reading() as connection:
            rows, has_more = read_page(connection, call, "webhook_endpoints", "webhook endpoint")
        return {"data": [read_stored(row["document"]) for row in rows], "has_more": has_more}
