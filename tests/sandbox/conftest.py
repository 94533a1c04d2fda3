"""Fixtures of the sandbox tests: a folder, a clock, a sandbox, its clients, other processes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.conftest import program

from escrowctl.sandbox.ledger import Balance, calculate_balances
from escrowctl.sandbox.service import Sandbox, open_sandbox
from sandbox.racer import client_of

__all__ = ["program"]

RACER = Path(__file__).with_name("racer.py")

Connect = Callable[[Sandbox], httpx.Client]
Start = Callable[..., subprocess.Popen[str]]


def fetch_document(sandbox: Sandbox) -> dict[str, Any]:
    """Read the OpenAPI document without a key."""
    with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app)) as anonymous:
        document: dict[str, Any] = anonymous.get("http://sandbox.invalid/openapi.json").raise_for_status().json()
    return document


def balances(sandbox: Sandbox) -> tuple[Balance, ...]:
    """Add up the ledger, per currency, at one moment."""
    with sandbox.store.reading() as connection:
        return calculate_balances(connection)


def rows(sandbox: Sandbox, query: str) -> list[tuple[Any, ...]]:
    """Return what a query finds in the store."""
    with sandbox.store.reading() as connection:
        return [tuple(row) for row in connection.execute(query)]


@pytest.fixture
def now() -> Callable[[], datetime]:
    """A clock that advances one second at every call, from 2026-11-21T03:12:44Z."""
    start, looks = datetime(2026, 11, 21, 3, 12, 44, tzinfo=UTC), iter(range(1_000_000))
    return lambda: start + timedelta(seconds=next(looks))


class Time:
    """A clock that a test moves, from 2026-11-21T03:12:44Z."""

    def __init__(self) -> None:
        self.passed = timedelta(0)

    def __call__(self) -> datetime:
        return datetime(2026, 11, 21, 3, 12, 44, tzinfo=UTC) + self.passed

    def pass_by(self, **duration: int) -> None:
        self.passed += timedelta(**duration)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the sandbox; it does not exist yet."""
    return tmp_path / "state" / "sandbox"


@pytest.fixture
def sandbox(folder: Path, now: Callable[[], datetime]) -> Iterator[Sandbox]:
    opened = open_sandbox(folder, now=now)
    yield opened
    opened.close()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients with a sandbox's key, over the real WSGI path."""
    with contextlib.ExitStack() as clients:
        yield lambda sandbox: clients.enter_context(client_of(sandbox))


@pytest.fixture
def client(sandbox: Sandbox, connect: Connect) -> httpx.Client:
    return connect(sandbox)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start `racer.py` with arguments; each process waits for a line on stdin before it acts."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(RACER), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(Path.cwd())]))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of one sandbox for all examples of a generated test."""
    sandbox = open_sandbox(tmp_path_factory.mktemp("shared") / "sandbox", now=lambda: datetime.now(UTC))
    with client_of(sandbox) as client:
        yield client
    sandbox.close()
