"""Lines that these tests run, and what the raw-socket server replies to them, byte by byte."""

import re
import socket
from itertools import count
from typing import Any

from wire_server import Behave, Seen, answering, by_method, http_reply

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
RELEASED = b'{"id":"tx_1","status":"released","amount":100,"currency":"USD"}'

CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")
RELEASE = ("tx", "release", "tx_1", "--yes")
WEBHOOK = ("webhook", "create", "--url", "https://hooks.example.net/x")
STATUS_RELEASED = 'status.released = ["released"]'
OTHER_KEY = "sk_live_fedcba9876543210"


def create(amount: str, currency: str = "USD", *options: str) -> tuple[str, ...]:
    return ("tx", "create", "--amount", amount, "--currency", currency, *options)


def json_reply(body: bytes, status: str = "200 OK", *headers: str) -> Behave:
    """Return a behaviour that always answers with this body."""
    return answering(http_reply(status, body, *headers))


def holding() -> Behave:
    """Return a behaviour that answers with the record as held; each create gets its own id, amount and currency."""
    numbers = count(1)

    def behave(seen: Seen, connection: socket.socket) -> None:
        record = HELD
        if seen.method == "POST":
            record = record.replace(b"tx_1", b"tx_%d" % next(numbers))
            if sent := re.search(rb'"amount":.*"currency":"[A-Z]+"', seen.body):
                record = record.replace(b'"amount":100,"currency":"USD"', sent[0])
        connection.sendall(http_reply("200 OK", record))

    return behave


def bytes_then_close(data: bytes) -> Behave:
    """Return a behaviour that sends these bytes, valid or not, and closes."""

    def behave(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_RDWR)

    return behave


def in_turn(*behaviours: Behave) -> Behave:
    """Return a behaviour that does these in turn, the last one for ever."""
    waiting = list(behaviours)

    def behave(seen: Seen, connection: socket.socket) -> None:
        (waiting.pop(0) if len(waiting) > 1 else waiting[0])(seen, connection)

    return behave


def writes_meet(behave: Behave, *, reads: Behave | None = None) -> Behave:
    """Return a behaviour for writes; reads are answered with the record as held, or as `reads` says."""
    return by_method(GET=reads or json_reply(HELD), POST=behave, PUT=behave)


def entry_of(document: dict[str, Any]) -> tuple[str, str]:
    """Return what a journal line of these tests is compared by: operation and state."""
    return document["operation"], document["state"]


def takes(*keys: str) -> Behave:
    """Return a service that takes these keys, and has no webhooks."""

    def behave(seen: Seen, connection: Any) -> None:
        known = seen.header("Authorization") in {f"Bearer {key}" for key in keys}
        refusal = http_reply("401 Unauthorized", b'{"detail":"no such key"}')
        connection.sendall(http_reply("200 OK", b"[]") if known else refusal)

    return behave
