"""The webhook endpoints that the store keeps, their SQL, and how they look on the wire.

interface.md section 2: fields of the webhook record are not shown. All of them are the sandbox's
own choice.
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from escrowctl.sandbox.body import JsonObject, read_json, write_json
from escrowctl.sandbox.events import EventKind


class EndpointStatus(StrEnum):
    """Whether events are sent to an endpoint."""

    ENABLED = "enabled"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where events go. `events` None means every kind, later ones too.

    `secret` signs what is sent there: `whsec_` and base64, as Standard Webhooks has it. `extra`
    holds the other fields that were sent.
    """

    id: str
    url: str
    events: tuple[EventKind, ...] | None
    description: str | None
    status: EndpointStatus
    secret: str
    extra: JsonObject
    created_at: str

    def document(self) -> JsonObject:
        """The record on the wire, without its secret; `description` only if there is one."""
        described: JsonObject = {} if self.description is None else {"description": self.description}
        return {
            "id": self.id,
            "url": self.url,
            "events": list(EventKind) if self.events is None else list(self.events),
            **described,
            **self.extra,
            "status": self.status,
            "created_at": self.created_at,
        }

    def document_with_secret(self) -> JsonObject:
        """The record on the wire as its creator sees it, once."""
        return {**self.document(), "secret": self.secret}


RESERVED_FIELDS = frozenset({"id", "status", "secret", "created_at"})
"""Fields of the record that only the service may set."""

INSERT = """
    INSERT INTO webhook_endpoints (id, url, events, description, status, secret, extra, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING
"""

NEWEST = """
    SELECT * FROM webhook_endpoints
    WHERE :after IS NULL OR position < (SELECT position FROM webhook_endpoints WHERE id = :after)
    ORDER BY position DESC LIMIT :count
"""


def add_endpoint(connection: sqlite3.Connection, endpoint: Endpoint) -> bool:
    """Insert an endpoint; False, with nothing changed, if its id is taken."""
    cursor = connection.execute(
        INSERT,
        (
            endpoint.id,
            endpoint.url,
            None if endpoint.events is None else json.dumps(endpoint.events),
            endpoint.description,
            endpoint.status,
            endpoint.secret,
            write_json(endpoint.extra),
            endpoint.created_at,
        ),
    )
    return cursor.rowcount == 1


def has_endpoint(connection: sqlite3.Connection, endpoint_id: str) -> bool:
    """Whether there is an endpoint of this id."""
    return connection.execute("SELECT 1 FROM webhook_endpoints WHERE id = ?", (endpoint_id,)).fetchone() is not None


def newest_endpoints(connection: sqlite3.Connection, *, after: str | None, count: int) -> list[Endpoint]:
    """Read up to `count` endpoints, newest first; with `after`, only those older than that one."""
    return [_endpoint(row) for row in connection.execute(NEWEST, {"after": after, "count": count})]


def _endpoint(row: sqlite3.Row) -> Endpoint:
    extra = read_json(row["extra"].encode())
    assert isinstance(extra, Mapping)
    return Endpoint(
        id=row["id"],
        url=row["url"],
        events=None if row["events"] is None else tuple(map(EventKind, json.loads(row["events"]))),
        description=row["description"],
        status=EndpointStatus(row["status"]),
        secret=row["secret"],
        extra=extra,
        created_at=row["created_at"],
    )
