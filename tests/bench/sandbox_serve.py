"""Measure `sandbox serve`: durable creates over HTTP, compared with Prism's stateless mock of the same call.

pytest does not run this.

Both get the same requests from the same generator (eight kept-alive connections in one thread), turn
by turn in one run; rates are compared by their medians. Prism mocks the sandbox's own OpenAPI document:

    python3 -m venv /tmp/own && /tmp/own/bin/pip install -q .
    npm install --prefix /tmp/prism @stoplight/prism-cli
    python3 tests/bench/sandbox_serve.py --escrowctl /tmp/own/bin/escrowctl \\
        --prism /tmp/prism/node_modules/.bin/prism

It prints a table and exits 1 where a bound is missed, 2 where a program is missing or fails.
"""

import argparse
import contextlib
import json
import os
import re
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CLIENTS = 8
BODY = b'{"amount":100,"currency":"USD"}'
READY_SECONDS = 0.6
RATIO = 1.0
_CANNOT_MEASURE = 2
_PATIENCE = 30


@dataclass
class Peer:
    """A server that runs: its port, its key, and the rates measured."""

    name: str
    port: int
    key: str
    rates: list[float] = field(default_factory=list)

    @property
    def request(self) -> bytes:
        return (
            f"POST /api/v1/transactions HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
        ).encode() + BODY


def main() -> int:
    """Measure, print the table, and return 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--escrowctl", required=True)
    parser.add_argument("--prism", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    if not (shutil.which(given.escrowctl) and shutil.which(given.prism)):
        sys.stderr.write("a program is missing\n")
        return _CANNOT_MEASURE
    with tempfile.TemporaryDirectory() as folder:
        ready = statistics.median(measure_start(given.escrowctl, Path(folder) / f"start{run}") for run in range(7))
        sandbox, prism = measure_rates(given, Path(folder))
    ratio = statistics.median(sandbox.rates) / statistics.median(prism.rates)
    for peer in (sandbox, prism):
        rates = ", ".join(f"{rate:.0f}" for rate in sorted(peer.rates))
        sys.stdout.write(f"{peer.name:<16} {statistics.median(peer.rates):8.0f} creates/s   ({rates})\n")
    sys.stdout.write(f"ratio            {ratio:8.2f}   bound {RATIO}\n")
    sys.stdout.write(f"ready            {ready:8.3f} s bound {READY_SECONDS}\n")
    return 0 if ratio >= RATIO and ready < READY_SECONDS else 1


def measure_start(escrowctl: str, home: Path) -> float:
    """Return the seconds from the start of the process until it accepts a connection."""
    began = time.monotonic()
    with serve_sandbox(escrowctl, home) as peer, socket.create_connection(("127.0.0.1", peer.port)):
        return time.monotonic() - began


def measure_rates(given: argparse.Namespace, folder: Path) -> tuple[Peer, Peer]:
    """Let both serve at once, load them turn by turn, and return them with their rates."""
    with serve_sandbox(given.escrowctl, folder / "home") as sandbox:
        document = folder / "openapi.json"
        with urllib.request.urlopen(f"http://127.0.0.1:{sandbox.port}/openapi.json") as answer:
            document.write_bytes(answer.read())
        with serve_prism(given.prism, document) as prism:
            for peer in (sandbox, prism):
                load(peer, given.seconds / 2)
            for _ in range(given.rounds):
                for peer in (sandbox, prism):
                    peer.rates.append(load(peer, given.seconds))
    return sandbox, prism


@contextlib.contextmanager
def serve_sandbox(escrowctl: str, home: Path) -> Iterator[Peer]:
    """Run `sandbox serve` with its own home."""
    ready = home.with_suffix(".ready")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "ESCROWCTL_HOME": str(home)}
    line = [escrowctl, "sandbox", "serve", "--port", "0", "--ready-file", str(ready)]
    with subprocess.Popen(line, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise SystemExit(_CANNOT_MEASURE)
                time.sleep(0.002)
            found = json.loads(ready.read_text())
            yield Peer("sandbox serve", int(found["base_url"].rpartition(":")[2]), found["key"])
        finally:
            process.terminate()


@contextlib.contextmanager
def serve_prism(prism: str, document: Path) -> Iterator[Peer]:
    """Run Prism's mock of the document."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [prism, "mock", "-h", "127.0.0.1", "-p", str(port), "-v", "error", str(document)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + _PATIENCE
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(_CANNOT_MEASURE)
                time.sleep(0.05)
            yield Peer("prism mock", port, "any")
        finally:
            process.terminate()


def load(peer: Peer, seconds: float) -> float:
    """Return the rate of 200s over eight connections, each asking again when it was answered."""
    waiting: dict[socket.socket, bytes] = {}
    done = 0
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
        for _ in range(CLIENTS):
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", peer.port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection, selectors.EVENT_READ)
            waiting[connection] = b""
            connection.sendall(peer.request)
        began = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            for key, _ in selector.select(timeout=1):
                connection = key.fileobj  # type: ignore[assignment] # what was registered
                received = waiting[connection] + connection.recv(65536)
                if _is_complete(received):
                    if not received.startswith(b"HTTP/1.1 200"):
                        sys.stderr.write(f"{peer.name}: {received[:300]!r}\n")
                        raise SystemExit(_CANNOT_MEASURE)
                    done += 1
                    received = b""
                    connection.sendall(peer.request)
                waiting[connection] = received
    return done / (now - began)


def _is_complete(received: bytes) -> bool:
    head, mark, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    return len(body) >= int(length[1]) if length else bool(mark) and body.endswith(b"0\r\n\r\n")


if __name__ == "__main__":
    sys.exit(main())
