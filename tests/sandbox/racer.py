"""One of several processes on one sandbox: prints "ready", waits for a line, acts, prints the result."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from escrowctl.sandbox.service import open_sandbox
from sandbox.conftest import client_of


def clock() -> datetime:
    return datetime.now(UTC)


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
