"""What the harnesses of this folder may ask for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from wire_server import Seen, serving

from faults.screens import Service


@pytest.fixture
def service(run: Run, home: Path) -> Iterator[Service]:
    replies: list[bytes] = [b""]
    writes: list[bytes] = []

    def behave(seen: Seen, connection: Any) -> None:
        connection.sendall(writes[0] if writes and seen.is_write else replies[0])

    with serving(behave) as server:
        yield Service(server, replies, writes, run, home)
