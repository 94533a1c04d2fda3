"""A server on raw sockets that misbehaves on purpose, from the moment a connection comes, and counts.

It shares no code with escrowctl, its sandbox, or any HTTP library. Each connection serves one request.
Where a write is what is to be spoilt, the readings around it are answered well.
"""

import contextlib
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from wire_server import Seen, http_reply

PATIENCE = 20.0
"""Seconds after which a connection that is still open is given up."""


@dataclass
class Connection:
    """One connection as a misbehaviour sees it; `right` is the body of the reply that would be right."""

    socket: socket.socket
    right: bytes
    hurry: Callable[[], None]
    """Lets the client's clock jump past its deadline."""
    elsewhere: str = ""
    """The base URL of another server, for redirects."""
    requests: list[Seen] = field(default_factory=list)
    """What was read of it."""
    was_read: bool = False
    reader: BinaryIO = field(init=False)

    def __post_init__(self) -> None:
        self.reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reset(self) -> None:
        """Break off with a TCP reset; close() would wait for the reader that shares the descriptor."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.socket.detach())

    def read_head(self) -> list[bytes] | None:
        """Read up to the empty line; None where nothing came."""
        lines = []
        self.was_read = True
        while line := self.reader.readline().rstrip(b"\r\n"):
            lines.append(line)
        return lines or None

    def read_request(self) -> Seen | None:
        head = self.read_head()
        if head is None:
            return None
        method, target, _version = head[0].decode("latin-1").split()
        pairs = (line.decode("latin-1").partition(":") for line in head[1:])
        headers = tuple((name, value.strip()) for name, _, value in pairs)
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        self.requests.append(Seen(method, target, headers, self.reader.read(length)))
        return self.requests[-1]

    def wait_for_the_first_byte(self) -> None:
        """Wait until something lies there to be read, and do not read it."""
        select.select([self.socket], [], [], PATIENCE)

    def wait_for_the_other_end(self) -> None:
        """Keep the connection until the client leaves."""
        while self.socket.recv(65536):
            pass


Misbehave = Callable[[Connection], None]


@dataclass
class MisbehavingServer:
    """Misbehaves on each connection, as a service or, with `tunnel`, as a proxy with the service behind it.

    `spares`: how many connections are served well before. `on_arrival`: misbehaves before it has read
    anything. `spares_readings`: a GET is answered well. `tunnel` is the TLS of the service behind the
    proxy; `at_proxy` spoils the tunnel itself.
    """

    misbehave: Misbehave
    right: bytes
    spares: int = 0
    on_arrival: bool = False
    spares_readings: bool = False
    tunnel: ssl.SSLContext | None = None
    at_proxy: Misbehave | None = None
    seen: list[Seen] = field(default_factory=list)
    tunnels: list[list[bytes]] = field(default_factory=list)
    """The heads of the CONNECT requests."""
    elsewhere: str = ""
    unread: int = 0
    """How many connections were spoilt whose request was not read: each may have carried a write."""
    skew: float = 0.0
    """Seconds by which the client's clock is ahead, once a misbehaviour hurries."""

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def writes(self) -> list[Seen]:
        """The requests that may have moved money."""
        return [seen for seen in list(self.seen) if seen.is_write]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            for number in range(1_000_000):
                connection, _ = self._listener.accept()
                connection.settimeout(PATIENCE)
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection, number), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, plain: socket.socket, number: int) -> None:
        # What else goes wrong in here, pytest reports: a broken harness proves nothing.
        with contextlib.suppress(OSError), plain:
            inner = self._dig(plain) if self.tunnel or self.at_proxy else plain
            if inner is not None:
                with inner:
                    connection = Connection(inner, self.right, self._hurry, self.elsewhere)
                    self._converse(connection, spared=number < self.spares)

    def _dig(self, plain: socket.socket) -> socket.socket | None:
        """Be the proxy: read CONNECT, and be the service inside the tunnel."""
        outer = Connection(plain, self.right, self._hurry)
        head = outer.read_head()
        if head is None:
            return None
        self.tunnels.append(head)
        if self.at_proxy is not None:
            self.at_proxy(outer)
            return None
        outer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        assert self.tunnel is not None
        return self.tunnel.wrap_socket(plain, server_side=True)

    def _converse(self, connection: Connection, *, spared: bool) -> None:
        if self.on_arrival and not spared:
            try:
                self.misbehave(connection)
            finally:
                self._note(connection)
            return
        seen = connection.read_request()
        if seen is None:
            return
        self._note(connection)
        if spared or (self.spares_readings and not seen.is_write):
            connection.send(http_reply("200 OK", record(seen.target), "Connection: close"))
        else:
            self.misbehave(connection)

    def _note(self, connection: Connection) -> None:
        with self._lock:
            self.seen.extend(connection.requests)
            self.unread += not connection.requests

    def _hurry(self) -> None:
        self.skew = 3600.0


def record(target: str) -> bytes:
    """Return the record, as held, of the transaction that a target names."""
    named = target.removesuffix("/release").rpartition("/")[2]
    return b'{"id":"%s","status":"held","amount":100,"currency":"USD"}' % named.encode()
