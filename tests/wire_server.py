"""A server on raw sockets: it shares no code with escrowctl, its sandbox, or any HTTP library.

`behave` is called with each request once its head and body have arrived (as far as Content-Length
says) and the connection; it writes raw bytes, or does not, or closes. `seen` keeps every request in
the order of arrival, so that a test can count what reached the service.
"""

import contextlib
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header of that name, case-blind."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def is_write(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")


Behave = Callable[[Seen, socket.socket], None]


def http_reply(status: str, body: bytes = b"", *headers: str, content_type: str = "application/json") -> bytes:
    """Return a whole reply: `status` as `200 OK`."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if body:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answering(*replies: bytes) -> Behave:
    """Return a behaviour that sends these replies in turn, the last one for ever."""
    waiting = list(replies)

    def behave(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(waiting.pop(0) if len(waiting) > 1 else waiting[0])

    return behave


def hang_up(_seen: Seen, connection: socket.socket) -> None:
    """Close the connection without an answer."""
    connection.shutdown(socket.SHUT_RDWR)


def reset(_seen: Seen, connection: socket.socket) -> None:
    """Break the connection off with a TCP reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # close() would wait for the reader that shares the descriptor.
    os.close(connection.detach())


def say_nothing(_seen: Seen, connection: socket.socket) -> None:
    """Keep the connection open and never answer."""


def by_method(**behaviours: Behave) -> Behave:
    """Return a behaviour that depends on the method: `by_method(GET=..., PUT=...)`."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        behaviours[seen.method](seen, connection)

    return behave


@dataclass
class WireServer:
    """Listens on loopback, on a free port unless one is given; each connection has its own thread."""

    behave: Behave
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._connections: list[socket.socket] = []
        self._open = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def writes(self) -> list[Seen]:
        """The requests that may have moved money."""
        return [seen for seen in list(self.seen) if seen.is_write]

    def drain(self) -> None:
        """Wait until everything has been read that was sent by clients which are gone."""
        deadline = time.monotonic() + 10
        with socket.create_connection(("127.0.0.1", self.port)) as probe:
            # Connections are accepted in turn: once this one is answered to, those before it have their threads.
            probe.shutdown(socket.SHUT_WR)
            probe.recv(1)
        while self._open and time.monotonic() < deadline:
            time.sleep(0.001)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.close()
        # Nobody listens there now, and no server of another test gets this port while this one exists.
        with contextlib.suppress(OSError):
            weakref.finalize(self, keep_port(self.port).close)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                with self._lock:
                    self._open += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._converse(connection)
        finally:
            with self._lock:
                self._open -= 1

    def _converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            reader = connection.makefile("rb")
            while (seen := _read_request(reader)) is not None:
                with self._lock:
                    self.seen.append(seen)
                self.behave(seen, connection)


def _read_request(reader: BinaryIO) -> Seen | None:
    line = reader.readline()
    if not line.strip():
        return None
    method, target, _version = line.decode("latin-1").split()
    headers = []
    while text := reader.readline().decode("latin-1").strip():
        name, _, value = text.partition(":")
        headers.append((name, value.strip()))
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Seen(method, target, tuple(headers), reader.read(length))


def keep_port(port: int = 0) -> socket.socket:
    """Bind a port of loopback, a free one unless one is given, without listening: connections to it are refused."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", port))
    return kept


@contextlib.contextmanager
def serving(behave: Behave) -> Iterator[WireServer]:
    """Run a server for the length of the block."""
    with contextlib.closing(WireServer(behave)) as server:
        yield server
