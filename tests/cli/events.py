"""An application that takes events, and what a listener shows and stores of them."""

import contextlib
import json
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import Result
from wire_server import Seen, http_reply

Listen = Callable[..., Result]


@dataclass
class Application:
    """A web application that answers with the statuses in turn, and with the last one from then on."""

    statuses: list[int] = field(default_factory=lambda: [200])
    seen: list[Seen] = field(default_factory=list)

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        self.seen.append(seen)
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        connection.sendall(http_reply(f"{status} Said", b""))

    @property
    def ids(self) -> list[str | None]:
        return [seen.header("webhook-id") for seen in self.seen]


def lines_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def rows_of(spool: Path, statement: str = "SELECT * FROM events") -> list[tuple[Any, ...]]:
    """Execute a statement in the file of events, and return its rows."""
    with contextlib.closing(sqlite3.connect(spool)) as database, database:
        return database.execute(statement).fetchall()
