"""One process of several at a sandbox: says "ready", waits for a line, then acts and says what came."""

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


def at_the_door(sandbox: Sandbox) -> httpx.Client:
    return httpx.Client(
        transport=httpx.WSGITransport(app=sandbox.app),
        base_url="http://sandbox.invalid/api/v1",
        headers={"Authorization": f"Bearer {sandbox.key}"},
    )


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def open_it(folder: Path) -> None:
    sandbox = open_sandbox(folder, now=clock)
    say(sandbox.identity, sandbox.key)


def open_it_with_little_room(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    try:
        open_it(folder)
    except EscrowctlError as error:
        say(error.code, error.message)


def release(folder: Path, transaction_id: str) -> None:
    client = at_the_door(open_sandbox(folder, now=clock))
    say(client.put(f"/transactions/{transaction_id}/release").status_code)


def create_for_ever(folder: Path) -> None:
    client = at_the_door(open_sandbox(folder, now=clock))
    while True:
        reply = client.post("/transactions", json={"amount": 7, "currency": "USD"})
        say(reply.status_code, reply.json()["id"])


ACTS: dict[str, Callable[..., None]] = {
    "open": open_it,
    "open-with-little-room": open_it_with_little_room,
    "release": release,
    "create-for-ever": create_for_ever,
}

if __name__ == "__main__":
    say("ready")
    sys.stdin.readline()
    ACTS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
