"""When connections and addresses are used again: real sockets, a client without pause, a service that is counted."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from wire_server import WireServer, http_reply, serving

from escrowctl.client.connection import Connection
from escrowctl.client.http import Evidence, Request
from escrowctl.client.transport import IDLE_SECONDS, OriginTransport
from escrowctl.contract.redaction import Secret

REPLY = http_reply("200 OK", b'{"id":"tx_1"}')


@contextmanager
def connected(server: WireServer, **keywords: Any) -> Iterator[Callable[[str], bytes]]:
    """Yield what sends a request by its method on one connection of escrowctl, and returns the reply's body."""
    transport = OriginTransport(context=None, proxy=None, monotonic=time.monotonic, **keywords)
    connection = Connection(transport, Secret("sk_test_1"))

    def send(method: str) -> bytes:
        request = Request(method, f"{server.base_url}/x", (), b"{}")
        exchange = connection.exchange(request, evidence=Evidence(), seconds=5, limit=300_000)
        assert exchange.answer is not None, exchange
        return exchange.answer.body

    with closing(connection):
        yield send


def count_connections(reply: bytes, methods: str, pause: float = 0.0) -> int:
    ports: set[int] = set()

    def behave(_seen: object, connection: socket.socket) -> None:
        ports.add(connection.getpeername()[1])
        connection.sendall(reply)

    with serving(behave) as server, connected(server) as send:
        for method in methods.split():
            send(method)
            time.sleep(pause)
    return len(ports)


@pytest.mark.parametrize(
    ("methods", "count"), [("POST PUT POST", 3), ("GET GET", 1), ("GET POST", 2), ("POST GET GET", 2)]
)
def test_connection_is_shared_by_reads_alone(methods: str, count: int) -> None:
    assert count_connections(REPLY, methods) == count


def test_connection_that_brought_more_than_its_reply_is_not_used_again() -> None:
    assert count_connections(REPLY + REPLY, "GET GET") == 2


def test_reply_with_a_head_of_80_kilobytes_is_read() -> None:
    assert count_connections(http_reply("200 OK", b"{}", f"X-A: {'a' * 80_000}"), "GET") == 1


@pytest.mark.slow
def test_idle_connection_is_closed_after_a_second() -> None:
    assert count_connections(REPLY, "GET GET", pause=IDLE_SECONDS + 0.1) == 2


def test_failure_to_report_a_wait_does_not_disturb_the_request() -> None:
    waits: list[float] = []

    def fail(seconds: float) -> None:
        waits.append(seconds)
        raise RuntimeError("the terminal is gone")

    def behave(_seen: object, connection: socket.socket) -> None:
        time.sleep(0.5)
        connection.sendall(REPLY)

    with serving(behave) as server, connected(server, on_wait=fail) as send:
        assert send("POST") == b'{"id":"tx_1"}'
    assert (len(waits), len(server.seen)) == (2, 1)
    assert 0.2 <= waits[0] < waits[1] < 0.5


@pytest.mark.slow
def test_one_look_up_serves_the_connections_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    look_up = socket.getaddrinfo

    def note(host: str, *words: int, **keywords: int) -> list[tuple[Any, ...]]:
        # Where an address is connected to, it is only parsed.
        if threading.current_thread() is not threading.main_thread():
            looked_up.append(host)
        return list(look_up(host, *words, **keywords))

    monkeypatch.setattr(socket, "getaddrinfo", note)

    assert (count_connections(REPLY, "POST POST POST"), looked_up) == (3, ["127.0.0.1"])
    assert (count_connections(REPLY, "POST POST", pause=IDLE_SECONDS + 0.1), len(looked_up)) == (2, 3)
