"""A service that sends one reply too many on an open connection, and a proxy that shares its connections to it.

Independent of escrowctl: raw sockets, and a count of its own of the writes that it applied.
"""

import contextlib
import json
import socket
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import BinaryIO

from wire_server import Seen, http_reply

AMOUNT = 100


@dataclass(frozen=True)
class ExtraReply:
    """A reply to no request: its status, and how many seconds after a real reply it is sent.

    Without a delay, it is sent as soon as the next request has arrived: the worst moment.
    """

    status: int
    delay: float | None


@dataclass
class ExtraReplyService:
    """Applies creates and releases, all of one amount; sends an extra reply after some of the real ones.

    A connection stays open unless the client sends `Connection: close`; then the extra reply comes before the end.
    """

    extra: ExtraReply
    latency: float
    followed: frozenset[int]
    """The numbers (from 1) of the writes that an extra reply follows."""
    refused: str
    """The reference, or the id, whose write is never applied, but answered 503; extra replies follow its reads."""
    ignores_close: bool = False
    names_request: bool = False
    """Whether every reply names the request and the idempotency key that it answers."""
    reads_have_ids: bool = True
    applied: Counter[str] = field(default_factory=Counter)
    """How often each write was applied, by reference or released id."""
    ids: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The ids of the records of each write that was applied."""
    sent_extra: int = 0
    writes_after_extra: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._writes = 0
        self._latest = ""
        self._waiting: dict[socket.socket, bytes] = {}

    def behave(self, seen: Seen, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if (waiting := self._waiting.pop(connection, None)) is not None:
            self._send_extra(waiting, connection)
        with self._lock:
            self._writes += seen.is_write
            self.writes_after_extra += seen.is_write and self.sent_extra > 0
            name, resource_id = self._name(seen)
            is_followed = self._writes in self.followed if seen.is_write else name == self.refused
            reply = self._reply(seen, name, resource_id)
            extra = self._extra_reply(seen, resource_id)
        time.sleep(self.latency)
        with contextlib.suppress(OSError):
            connection.sendall(reply)
        is_last = seen.header("Connection") == "close" and not self.ignores_close
        if is_followed and self.extra.delay is None and not is_last:
            self._waiting[connection] = extra
        elif is_followed:
            sender = threading.Thread(target=self._send_extra, args=(extra, connection), daemon=True)
            sender.start()
            if is_last:
                sender.join()
        if is_last:
            connection.shutdown(socket.SHUT_RDWR)

    def _name(self, seen: Seen) -> tuple[str, str]:
        """Return what a request is counted by, and the id of its record."""
        if seen.method == "POST":
            name = str(json.loads(seen.body)["ref"])
            return name, f"tx_{name}_{self.applied[name] + 1}"
        resource_id = seen.target.split("/")[4]
        return resource_id, resource_id

    def _reply(self, seen: Seen, name: str, resource_id: str) -> bytes:
        if seen.is_write and name == self.refused:
            return self._render(seen, 503, {"detail": "try later"})
        if seen.is_write:
            self.applied[name] += 1
            self.ids[name].add(resource_id)
            self._latest = resource_id
        return self._render(seen, 200, self._record(seen, resource_id))

    def _extra_reply(self, seen: Seen, resource_id: str) -> bytes:
        """Return a late copy of a real reply: to this write, or after a read to a read of what was written last."""
        if self.extra.status >= 300:
            return self._render(seen, self.extra.status, {"error": "unexpected"})
        shown_id = resource_id if seen.is_write else self._latest or resource_id
        return self._render(seen, self.extra.status, self._record(seen, shown_id))

    def _record(self, seen: Seen, resource_id: str) -> dict[str, object]:
        status = "released" if self.applied[resource_id] and seen.method != "POST" else "held"
        record = {"id": resource_id, "status": status, "amount": AMOUNT, "currency": "EUR"}
        if not (seen.is_write or self.reads_have_ids):
            del record["id"]
        return record

    def _render(self, seen: Seen, status: int, document: dict[str, object]) -> bytes:
        names = []
        if self.names_request:
            names = [f"X-Request-Id: {seen.header('X-Request-Id')}"]
            document = document | ({"idempotency_key": seen.header("Idempotency-Key")} if seen.is_write else {})
        return http_reply(f"{status} Any", json.dumps(document).encode(), *names)

    def _send_extra(self, reply: bytes, connection: socket.socket) -> None:
        time.sleep(self.extra.delay or 0)
        with self._lock:
            self.sent_extra += 1
        with contextlib.suppress(OSError):
            connection.sendall(reply)


class SharingProxy:
    """Sends each request to the service on a connection that carried others; the next reply counts as its answer.

    It is in front of the service, as a load balancer is: no other proxy is used for loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[socket.socket, BinaryIO]] = []

    def behave(self, seen: Seen, connection: socket.socket) -> None:
        upstream, reader = self._idle.pop() if self._idle else self._open()
        headers = [f"{name}: {value}" for name, value in seen.headers if name.lower() != "connection"]
        head = "\r\n".join([f"{seen.method} {seen.target} HTTP/1.1", *headers, "", ""])
        upstream.sendall(head.encode() + seen.body)
        reply = _read_reply(reader)
        self._idle.append((upstream, reader))
        connection.sendall(reply)
        if seen.header("Connection") == "close":
            connection.shutdown(socket.SHUT_RDWR)

    def close_idle(self) -> None:
        """Close the connections to the service, as after a time without requests."""
        while self._idle:
            upstream, reader = self._idle.pop()
            reader.close()
            upstream.close()

    def _open(self) -> tuple[socket.socket, BinaryIO]:
        upstream = socket.create_connection(("127.0.0.1", self._port))
        return upstream, upstream.makefile("rb")


def _read_reply(reader: BinaryIO) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            raise ConnectionError("the service closed the connection")
        head += line
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
    return head + reader.read(length)
