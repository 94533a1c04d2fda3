"""One of several processes on one sandbox: prints "ready", waits for a line, acts, prints the result."""

import resource
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx

from escrowctl.errors import EscrowctlError
from escrowctl.sandbox.service import Sandbox, open_sandbox


def clock() -> datetime:
    return datetime.now(UTC)


def plain_client(sandbox: Sandbox) -> httpx.Client:
    return httpx.Client(
        transport=httpx.WSGITransport(app=sandbox.app),
        base_url="http://sandbox.invalid/api/v1",
        headers={"Authorization": f"Bearer {sandbox.key}"},
    )


def report(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def open_and_report(folder: Path) -> None:
    sandbox = open_sandbox(folder, now=clock)
    report(sandbox.identity, sandbox.key)


def open_with_little_room(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    try:
        open_and_report(folder)
    except EscrowctlError as error:
        report(error.code, error.message)


def release(folder: Path, transaction_id: str) -> None:
    client = plain_client(open_sandbox(folder, now=clock))
    report(client.put(f"/transactions/{transaction_id}/release").status_code)


def create_until_killed(folder: Path) -> None:
    client = plain_client(open_sandbox(folder, now=clock))
    while True:
        reply = client.post("/transactions", json={"amount": 7, "currency": "USD"})
        report(reply.status_code, reply.json()["id"])


ACTIONS: dict[str, Callable[..., None]] = {
    "open": open_and_report,
    "open-with-little-room": open_with_little_room,
    "release": release,
    "create-until-killed": create_until_killed,
}

if __name__ == "__main__":
    report("ready")
    sys.stdin.readline()
    ACTIONS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
