"""A small escrow service for one key, with the usual field names; `records` is what it holds."""

import json
import socket
import threading
from typing import Any

from wire_server import Seen, http_reply

from e2e.script import SECONDS

Record = dict[str, Any]


class EscrowService:
    """Creates, reads, lists and releases. While it is silent, a write gets no reply and does nothing; a write that
    it received waits until it may go on.
    """

    def __init__(self, key: str, *records: Record) -> None:
        self._key = key
        self.records = {record["id"]: record for record in records}
        self.is_silent = False
        self.received, self.may_write = threading.Event(), threading.Event()
        self.may_write.set()

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        if seen.is_write:
            self.received.set()
            self.may_write.wait(SECONDS)
        if seen.is_write and self.is_silent:
            return
        status, document = self._reply(seen)
        connection.sendall(http_reply(status, json.dumps(document).encode()))

    def _reply(self, seen: Seen) -> tuple[str, Any]:
        if seen.header("Authorization") != f"Bearer {self._key}":
            return "401 Unauthorized", {"detail": "no such key"}
        _, _, _, noun, *rest = seen.target.split("/")
        if noun == "webhooks":
            return "200 OK", []
        if not rest:
            return "200 OK", self._create(seen) if seen.method == "POST" else list(self.records.values())
        record = self.records.get(rest[0])
        if record is None:
            return "404 Not Found", {"detail": f"no transaction {rest[0]}"}
        if seen.method == "PUT":
            record["status"] = "released"
        return "200 OK", record

    def _create(self, seen: Seen) -> Record:
        record: Record = {"id": f"tx_{9001 + len(self.records)}", "status": "held"} | json.loads(seen.body)
        self.records[record["id"]] = record
        return record
