"""What the harnesses of this folder may ask for."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from wire_server import Seen, serving

from faults.hostile_terminal import Service

SECONDS_TO_NOTICE = 60


@pytest.fixture
def time_limit() -> Iterator[None]:
    """Fail a test that takes longer than a harness may take to notice that escrowctl is broken."""

    def give_up(_signal: int, _frame: object) -> None:
        raise AssertionError(f"nothing was noticed within {SECONDS_TO_NOTICE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS_TO_NOTICE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def reached() -> Iterator[Callable[[], None]]:
    """What a broken variant calls when its broken part runs; fails a test whose variant never was reached."""
    calls: list[None] = []
    yield lambda: calls.append(None)
    assert calls, "the broken part never ran"


@pytest.fixture
def service(run: Run, home: Path) -> Iterator[Service]:
    replies: list[bytes] = [b""]
    writes: list[bytes] = []

    def behave(seen: Seen, connection: Any) -> None:
        connection.sendall(writes[0] if writes and seen.is_write else replies[0])

    with serving(behave) as server:
        yield Service(server, replies, writes, run, home)
