"""A fake service, independent of escrowctl: raw sockets, its own truth, and answers drawn from a seed."""

import itertools
import json
import random
import socket
import threading
import time
from dataclasses import dataclass, field

from wire_server import Seen, WireServer, hang_up, http_reply

KINDS = ("answer", "late", "drop", "error", "hang", "echo")


@dataclass
class FakeService:
    """Applies every write it receives, with any answer; `applied` is the truth of what happened."""

    chance: random.Random
    kind: str | None = None
    """How to answer writes; None draws one of KINDS for each."""
    applied: list[tuple[str, str, str]] = field(default_factory=list)
    """(idempotency key, target, id) of each write, in order."""
    received: threading.Event = field(default_factory=threading.Event)
    note: str = ""
    """A text in the record of each write: the more of it, the more there is to record of an outcome."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.server = WireServer(self._behave)

    def held(self, resource_id: str) -> bool:
        return not any(target.endswith(f"/{resource_id}/release") for _, target, _ in self.applied)

    def ids(self) -> set[str]:
        return {resource_id for _, _, resource_id in self.applied}

    def _behave(self, seen: Seen, connection: socket.socket) -> None:
        if not seen.is_write:
            resource_id = seen.target.rpartition("/")[2]
            connection.sendall(_record(resource_id, 500, held=self.held(resource_id)))
            return
        resource_id, amount = self._apply(seen)
        kind = self.kind or self.chance.choice(KINDS)
        self.received.set()
        if kind == "late":
            time.sleep(self.chance.uniform(0, 0.05))  # a service takes its time; the kill may come meanwhile
        if kind in ("answer", "late"):
            connection.sendall(_record(resource_id, amount, held=seen.method == "POST", note=self.note))
        elif kind == "echo":
            # As a service does that mirrors what it was sent: the key is in it.
            connection.sendall(_record(resource_id, amount, held=True, seen=dict(seen.headers)))
        elif kind == "error":
            connection.sendall(http_reply("500 Internal Server Error", b'{"detail":"after the commit"}'))
        elif kind == "drop":
            hang_up(seen, connection)

    def _apply(self, seen: Seen) -> tuple[str, int]:
        with self._lock:
            body = json.loads(seen.body) if seen.body else {}
            resource_id = seen.target.split("/")[-2] if seen.method == "PUT" else f"tx_made{next(self._numbers)}"
            self.applied.append((seen.header("Idempotency-Key") or "", seen.target, resource_id))
            return resource_id, body.get("amount", 500)


def _record(resource_id: str, amount: int, *, held: bool, note: str = "", seen: dict[str, str] | None = None) -> bytes:
    status = "held" if held else "released"
    record = {"id": resource_id, "status": status, "amount": amount, "currency": "USD"}
    record |= {"seen": seen} if seen else {}
    record |= {"note": note} if note else {}
    return http_reply("200 OK", json.dumps(record).encode())
