"""Webhook endpoints: the operations create and list, their records, their SQL, and the events they can get.

INTERFACE.md sections 2, 4 and 6 show no fields of an endpoint, no body for its creation and no kinds of event.
The sandbox's own choice: `url`, required; `events`, a list of kinds, every kind if not given;
`description`, a short text; any other field is stored as sent, unless only the service may set it.

An address is a matter of form only: one regular expression, so that the OpenAPI document can state
exactly the rule that is enforced. It has no construct that Python and ECMA-262 read differently. The
grammar is RFC 3986's, in ASCII: `http` or `https` in small letters, a host, a port from 1 to 65535, a
path, a query. Not allowed: userinfo (a password would be stored and listed) and a fragment (it is
never sent). A name in other letters has its ASCII form (RFC 5891, `xn--...`).
"""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.sandbox.bodies import JsonObject, JsonValue, read_stored, write_json
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.http import Call, Field, no_such_start, read_fields, read_page
from escrowctl.sandbox.idempotency import add_reply, find_reply
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.signing import draw_secret
from escrowctl.sandbox.store import Store

MAX_DESCRIPTION_LENGTH = 500
MAX_URL_LENGTH = 2048

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = rf"{_LABEL}(?:\.{_LABEL})*"  # a dotted IPv4 address is one of these

_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = "|".join(
    (
        f"(?:{_GROUP}:){{7}}{_GROUP}",
        *(f"(?:{_GROUP}:){{1,{7 - after}}}(?::{_GROUP}){{1,{after}}}" for after in range(1, 7)),
        f"(?:{_GROUP}:){{1,7}}:",
        f":(?::{_GROUP}){{1,7}}",
        "::",
    )
)

_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"

# Percent signs come with two digits; written this way, a search has only one way to match and never backtracks.
_IN_PATH = "[A-Za-z0-9._~!$&'()*+,;=:@/-]*"
_PATH = f"{_IN_PATH}(?:%[0-9A-Fa-f]{{2}}{_IN_PATH})*"
_IN_QUERY = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]*"
_QUERY = f"{_IN_QUERY}(?:%[0-9A-Fa-f]{{2}}{_IN_QUERY})*"

URL_PATTERN = rf"https?://(?:{_NAME}|\[(?:{_IPV6})\])(?::(?:{_PORT}))?(?:/{_PATH})?(?:\?{_QUERY})?"

URL_RULE = (
    "url must be an absolute http or https URL in ASCII, without user name, password or fragment,"
    f" of at most {MAX_URL_LENGTH} characters."
)


class EventKind(StrEnum):
    """What can happen to a transaction, named as Standard Webhooks names events: a noun and a past participle."""

    TRANSACTION_CREATED = "transaction.created"
    TRANSACTION_UPDATED = "transaction.updated"
    TRANSACTION_RELEASED = "transaction.released"
    TRANSACTION_EXPIRED = "transaction.expired"


EVENTS_RULE = f"events must be a list of one or more of {', '.join(EventKind)}, none twice."


STATUS = "enabled"
"""Of every endpoint: none is ever disabled."""


class Endpoint(NamedTuple):
    """Where events go. `events` None means every kind, including later ones.

    `secret` signs what is sent there: `whsec_` and base64, as in Standard Webhooks. `extra` holds
    the fields that the sandbox does not know.
    """

    id: str
    url: str
    events: tuple[EventKind, ...] | None
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
            "events": list(EventKind) if self.events is None else list(self.events),
            **described,
            **self.extra,
            "status": STATUS,
            "created_at": self.created_at,
        }


RESERVED_FIELDS = frozenset({"id", "status", "secret", "created_at"})
"""Fields of the record that only the service may set."""


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


def is_endpoint_url(text: str) -> bool:
    """Whether an endpoint may have this address; it looks up and reaches nothing."""
    # Compiled at the first use and not at import: 1.4 ms that few commands need.
    return len(text) <= MAX_URL_LENGTH and re.fullmatch(URL_PATTERN, text) is not None


def _is_url(value: JsonValue) -> bool:
    return isinstance(value, str) and is_endpoint_url(value)


def _is_list_of_kinds(value: JsonValue) -> bool:
    if not isinstance(value, list) or not all(isinstance(item, str) and item in set(EventKind) for item in value):
        return False
    return 0 < len(value) == len(set(value))


def _is_description(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= MAX_DESCRIPTION_LENGTH


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "url": Field(_is_url, URL_RULE, required=True),
        "events": Field(_is_list_of_kinds, EVENTS_RULE),
        "description": Field(
            _is_description, f"description must be text of at most {MAX_DESCRIPTION_LENGTH} characters."
        ),
    }
)
"""The fields of a creation; without `events` an endpoint gets every kind."""


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
        requested = read_fields(call.json_object(), FIELDS, reserved=RESERVED_FIELDS)
        if (kinds := requested["events"]) is not None:
            requested["events"] = tuple(map(EventKind, kinds))
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            while True:
                endpoint = Endpoint(
                    id=self._draw_id("wh"),
                    secret=draw_secret(),
                    created_at=timestamp(self._clock.read(connection)),
                    **requested,
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
    events = None if row["events"] is None else tuple(map(EventKind, json.loads(row["events"])))
    return Endpoint(**{**stored, "events": events, "extra": read_stored(row["extra"])})
