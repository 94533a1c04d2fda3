"""One of several processes on one sandbox: prints "ready", waits for a line, acts, prints the result."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from escrowctl.sandbox.service import Sandbox, open_sandbox


def clock() -> datetime:
    return datetime.now(UTC)


def client_of(sandbox: Sandbox) -> httpx.Client:
    """Return a client with the sandbox's key, over the real WSGI path."""
    headers = {"Authorization": f"Bearer {sandbox.key}"}
    transport = httpx.WSGITransport(app=sandbox.app)
    return httpx.Client(transport=transport, base_url="http://sandbox.invalid/api/v1", headers=headers)


def report(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def open_and_report(folder: Path) -> None:
    sandbox = open_sandbox(folder, now=clock)
    report(sandbox.identity, sandbox.key)


def release(folder: Path, transaction_id: str) -> None:
    client = client_of(open_sandbox(folder, now=clock))
    report(client.put(f"/transactions/{transaction_id}/release").status_code)


ACTIONS: dict[str, Callable[..., None]] = {"open": open_and_report, "release": release}

if __name__ == "__main__":
    report("ready")
    sys.stdin.readline()
    ACTIONS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
