"""A service for batches, independent of escrowctl: it counts what it did, and answers as a test chooses."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from wire_server import Seen, hang_up, http_reply

Answer = Callable[[int, Seen], str | None]
"""How to answer the n-th write (from 1): a status line, None to hang up after it was carried out, "" as usual."""


def as_usual(_number: int, _seen: Seen) -> str:
    return ""


@dataclass
class BatchService:
    """Creates and releases escrows; `applied` counts what was carried out, by create's reference or released id."""

    answer: Answer = as_usual
    answer_read: Callable[[int], str] = lambda _number: ""
    """How to answer the n-th read (from 1): a status line, "" with the record."""
    before_read: Callable[[str], None] = lambda _resource_id: None
    after_refusal: Callable[[], None] = lambda: None
    reports: Callable[[float], float] = lambda amount: amount
    """The amount of the escrow that a create of an amount makes."""
    name_next: Callable[[int], str] = lambda number: f"tx_made{number}"
    """The id of the n-th escrow that is created."""
    deduplicates: bool = False
    released_as: str = "released"
    """The status of an escrow that was released."""
    applied: Counter[str] = field(default_factory=Counter)
    received: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    peers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[str, str] = {}
        self.amounts: dict[str, float] = {}
        self._reads = 0
        self._made = 0

    def behave(self, seen: Seen, connection: socket.socket) -> None:
        if not seen.is_write:
            resource_id = seen.target.rpartition("/")[2]
            self.before_read(resource_id)
            with self._lock:
                self._reads += 1
                status = self.answer_read(self._reads)
            connection.sendall(http_reply(status, b'{"detail":"no"}') if status else self._record(resource_id))
            return
        if len(seen.body) < int(seen.header("Content-Length") or 0):
            # Whoever sent it was killed before its end: nothing is carried out.
            return
        with self._lock:
            self.peers.add(connection.getpeername()[1])
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            key = seen.header("Idempotency-Key") or ""
            self.received.append(key)
            number = len(self.received)
        try:
            reply = self.answer(number, seen)
        finally:
            # Before the reply: whoever has it may send the next row at once.
            with self._lock:
                self.at_once -= 1
        self._respond(reply, key, seen, connection)

    def _respond(self, status: str | None, key: str, seen: Seen, connection: socket.socket) -> None:
        if status and status[0] == "4":
            connection.sendall(http_reply(status, b'{"detail":"no"}'))
            self.after_refusal()
            return
        resource_id = self._apply(key, seen)
        if status is None:
            hang_up(seen, connection)
        elif status and status[0] == "2":
            connection.sendall(self._record(resource_id, status=status))
        elif status:
            connection.sendall(http_reply(status, b'{"detail":"after it was done"}'))
        else:
            sent = json.loads(seen.body) if seen.body else {}
            connection.sendall(self._record(resource_id, sent.get("currency", "EUR")))

    def _apply(self, key: str, seen: Seen) -> str:
        with self._lock:
            if self.deduplicates and key in self._by_key:
                return self._by_key[key]
            if seen.method == "PUT":
                resource_id = name = seen.target.split("/")[-2]
            else:
                self._made += 1
                body = json.loads(seen.body)
                resource_id, name = self.name_next(self._made), str(body.get("ref", body["amount"]))
                self.amounts[resource_id] = self.reports(body["amount"])
            self._by_key[key] = resource_id
            self.applied[name] += 1
            return resource_id

    def _record(self, resource_id: str, currency: str = "EUR", *, status: str = "200 OK") -> bytes:
        state = self.released_as if self.applied[resource_id] else "held"
        amount = self.amounts.get(resource_id, 100)
        record = {"id": resource_id, "status": state, "amount": amount, "currency": currency}
        return http_reply(status, json.dumps(record).encode())
