"""An example of a service, as data: its routes byte by byte, the profile that fits it, and what commands must print.

A route answers with its replies in turn, the last one for ever; the record of `tx_1`-like ids changes
from `before` to `after` once a release was accepted. Anything else is 404 with a text.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from wire_server import Behave, Seen, http_reply

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"


@dataclass(frozen=True)
class Reply:
    """One reply: `status` as `200 OK`; a body with a content type."""

    status: str
    body: str = ""
    content_type: str = JSON

    def encode(self) -> bytes:
        return http_reply(self.status, self.body.encode(), content_type=self.content_type)


def ok(body: str) -> Reply:
    return Reply("200 OK", body)


@dataclass(frozen=True)
class Expected:
    """One command line against a service, and what it must do: exit code, whole stdout, and what stderr says."""

    line: str
    code: int
    out: str
    err: str = ""


@dataclass(frozen=True)
class ExampleService:
    """One server. `path` is the base URL's path, `profile` more lines of TOML."""

    name: str
    routes: Mapping[str, Reply]
    expected: tuple[Expected, ...]
    prefix: str = "/api/v1"
    path: str = ""
    profile: str = ""
    after: Mapping[str, Reply] = field(default_factory=dict)

    def behave(self) -> Behave:
        """Return what a WireServer does for this service; a fresh one for each server."""
        state = {"released": False}

        def behave(seen: Seen, connection: socket.socket) -> None:
            place = f"{seen.method} {seen.target.removeprefix(self.path + self.prefix)}"
            known = seen.target.startswith(self.path + self.prefix + "/")
            found = (self.after.get(place) if state["released"] else None) or self.routes.get(place)
            if place.startswith("PUT") and place.endswith("/release"):
                state["released"] = True
            reply = found if found and known else Reply("404 Not Found", "no such route\n", TEXT)
            connection.sendall(reply.encode())

        return behave
