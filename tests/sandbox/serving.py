"""The installed `sandbox serve` as a process, and plain HTTP clients of it."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from e2e.script import Program

from escrowctl.loopback import HOST, LoopbackServer
from escrowctl.sandbox.ownership import ServedSandbox, announce_server
from escrowctl.sandbox.service import Sandbox, open_sandbox

SECONDS = 30
BROKEN = Path(__file__).with_name("broken_server.py")


@dataclass
class Served:
    """A running server: what its ready file says, and its process."""

    process: "subprocess.Popen[str]"
    ready: dict[str, Any]
    ready_file: Path

    @property
    def port(self) -> int:
        return _port_of(self.ready["base_url"])

    def call(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
        """Make one call of the API, on a new connection."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as connection:
            return call(connection, self.ready["key"], method, f"/api/v1{path}", body, **headers)

    def end(self, number: int) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


def call(
    connection: http.client.HTTPConnection, key: str, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, Any]:
    """Make one call; the reply is JSON, or empty."""
    given = {"Authorization": f"Bearer {key}", **headers}
    if body is not None:
        given["Content-Type"] = "application/json"
    connection.request(method, path, body=body, headers=given)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or "null")


@contextlib.contextmanager
def serving(program: Program, folder: Path, *words: str, broken: str = "") -> Iterator[Served]:
    """Run `sandbox serve --port 0` until the block ends; `broken` names a fault of `broken_server.py`."""
    ready_file = folder / f"ready-{time.monotonic_ns()}.json"
    line = ("sandbox", "serve", "--port", "0", "--ready-file", str(ready_file), *words)
    process = (
        subprocess.Popen([sys.executable, str(BROKEN), broken, *line], env=program.environ, text=True, **_PIPES)
        if broken
        else program.start(*line)
    )
    try:
        yield Served(process, _wait(process, ready_file), ready_file)
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def serving_here(home: Path, **settings: str) -> Iterator[ServedSandbox]:
    """Serve the sandbox of a home from a thread of this process: `--sandbox` talks to it over sockets.

    `settings` are variants by name.
    """
    sandbox = open_sandbox(home / "state" / "sandbox", now=lambda: datetime.now(UTC), alone=True)
    sandbox.rehearsal.change({f"variant.{name}": value for name, value in settings.items()})
    server = LoopbackServer(0)
    served = ServedSandbox(server.base_url, sandbox.key, sandbox.identity, os.getpid())
    assert sandbox.claim is not None, "it was opened with one"
    with contextlib.closing(sandbox), announce_server(sandbox.claim, served), _running(server, sandbox):
        yield served


@contextlib.contextmanager
def serving_sandbox(sandbox: Sandbox) -> Iterator[str]:
    """Serve a sandbox that is open; yields its URL."""
    server = LoopbackServer(0)
    with _running(server, sandbox):
        yield server.base_url


@contextlib.contextmanager
def _running(server: LoopbackServer, sandbox: Sandbox) -> Iterator[None]:
    stopping = threading.Event()
    sandbox.app.server = server
    thread = threading.Thread(
        target=server.run, args=(sandbox.app, stopping.is_set), kwargs={"commit_group": sandbox.store.group}
    )
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        with contextlib.suppress(ConnectionError):
            # It looks up when something arrives, else at the end of its turn.
            socket.create_connection((HOST, _port_of(server.base_url))).close()
        thread.join()
        server.close()


def _port_of(base_url: str) -> int:
    return int(base_url.rpartition(":")[2])


_PIPES: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def _wait(process: "subprocess.Popen[str]", ready_file: Path) -> dict[str, Any]:
    end = time.monotonic() + SECONDS
    while not ready_file.exists():
        assert process.poll() is None, f"the server ended with {process.returncode}: {process.communicate()}"
        assert time.monotonic() < end, "the server was never ready"
        time.sleep(0.01)
    ready: dict[str, Any] = json.loads(ready_file.read_text())
    return ready
