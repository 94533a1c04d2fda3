"""Events are forwarded in the order of arrival, none is lost: the application fails, the listener is killed.

The long form: `pytest -m long tests/webhooks`. A failed run prints its seed.
"""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.script import Program
from faults.seeds import draw_seed
from webhook_sender import send
from wire_server import Seen, WireServer, hang_up, http_reply

from webhooks.listener import SECONDS, Listener, wait_until

FAILURES = 0.3


class Application:
    """Refuses three of ten attempts, but no event ten times in a row; remembers in which order it accepted events."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._refused = 0
        self._keeps = threading.Event()
        self._kept = threading.Event()
        self.accepted: list[str | None] = []
        self.refusals = 0

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        if self._keeps.is_set():
            self._kept.set()
            return
        if self._refused < 5 and self._draw.random() < FAILURES:
            self._refused += 1
            self.refusals += 1
            if self._refused % 2:
                connection.sendall(http_reply("503 Not Now"))
            else:
                hang_up(seen, connection)
            return
        self._refused = 0
        self.accepted.append(seen.header("webhook-id"))
        connection.sendall(http_reply("200 OK"))

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Let the block begin when an attempt is on its way, and leave it without an answer."""
        self._kept.clear()
        self._keeps.set()
        assert self._kept.wait(SECONDS)
        yield
        self._keeps.clear()

    def wait_for(self, count: int) -> None:
        """Wait until so many were accepted."""
        wait_until(lambda: len(self.accepted) >= count)


def deliver(listener: Listener, count: int) -> None:
    """Send events one by one, each until it is accepted, as a service does."""
    for number in range(count):
        while True:
            with contextlib.suppress(OSError):
                if send(listener.port, number) == 200:
                    break
            time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "kills"), [(40, 1), pytest.param(10_000, 50, marks=pytest.mark.long)])
def test_forwarding_keeps_the_order_and_loses_nothing(count: int, kills: int, program: Program, tmp_path: Path) -> None:
    draw = random.Random(draw_seed())
    application = Application(draw)
    with contextlib.closing(WireServer(application)) as server:
        listener = Listener(program, tmp_path, "--forward-to", f"{server.base_url}/hooks", "--json")
        with contextlib.closing(listener):
            sender = threading.Thread(target=deliver, args=(listener, count))
            sender.start()
            for kill in range(1, kills + 1):
                application.wait_for(count * kill // (kills + 1))
                with application.keeping() if kill % 2 else contextlib.nullcontext():
                    time.sleep(draw.random() / 50)
                    listener.kill()
                listener.start()
            sender.join()
            wait_until(lambda: f"msg_{count - 1}" in application.accepted[-3:])
            code = listener.stop()

    assert list(dict.fromkeys(application.accepted)) == [f"msg_{number}" for number in range(count)]
    assert len(application.accepted) <= count + kills, "only an attempt that a kill cut off is repeated"
    assert (code, application.refusals > 0) == (143, True), listener.output[-2000:]
