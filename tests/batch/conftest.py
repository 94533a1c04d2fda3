"""Fixtures of the batch tests: a file of rows, a service that counts, and lines that are run against it."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Result, Run, Serve

from batch.services import Answer, BatchService, as_usual
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.opening import find_place, open_journal
from escrowctl.journal.sqlite.storage import SqliteStorage

Start = Callable[..., tuple[BatchService, Run]]
WriteRows = Callable[..., Path]


class Clock:
    """A clock that only sleeping moves: what waits for the pace does not wait in the test."""

    def __init__(self, speed: float = 1.0, *, start: datetime | None = None) -> None:
        self.now, began = 0.0, start or datetime.now(UTC)
        self.injected: dict[str, Any] = {
            "monotonic": lambda: self.now,
            "now": lambda: began + timedelta(seconds=self.now),
            "sleep": self._sleep,
        }
        self._speed = speed

    def _sleep(self, seconds: float) -> None:
        self.now += seconds * self._speed


@pytest.fixture
def rows(tmp_path: Path) -> WriteRows:
    """Write a file of `count` creates (amounts from 100 on, references A-1, A-2, ...), or this text."""

    def write(count: int = 3, *, text: str | bytes | None = None, name: str = "rows.csv", first: int = 1) -> Path:
        path = tmp_path / name
        if text is None:
            lines = [f"A-{number},{99 + number},EUR" for number in range(first, first + count)]
            text = "\n".join(["reference,amount,currency", *lines, ""])
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def start(serve: Serve, run: Run, home: Path) -> Start:
    """Start a service and return it with a `run` whose profile points to it; `lines` are added to the profile."""

    def begin(answer: Answer = as_usual, *lines: str, deduplicates: bool = False) -> tuple[BatchService, Run]:
        service = BatchService(answer, deduplicates=deduplicates)
        server = serve(service.behave)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = ['status.released = ["released"]', *lines]
        settings += ['idempotency = "header"'] if deduplicates else []
        (home / "config.toml").write_text(
            f'default_profile = "a"\n[profiles.a]\nbase_url = "{server.base_url}"\napi_key_file = "a.key"\n'
            + "\n".join(settings)
        )
        (home / "a.key").write_text(KEY)
        (home / "a.key").chmod(0o600)

        def run_batch(*words: str, **keywords: object) -> Result:
            return run(*(("batch",) if words[0] not in ("tx", "journal", "config") else ()), *words, **keywords)

        return service, run_batch

    return begin


def counts_of(result: Result) -> tuple[int, int, int, int]:
    """Return (done, failed, unknown, not sent) of a result under --json, after checking that they add up."""
    document = result.json
    found = (document["done"], document["refused"], document["unknown"], document["not_sent"])
    assert sum(found) == document["rows"], document
    return found


def open_elsewhere(home: Path) -> Journal:
    """Return the journal as another process would have it."""
    return open_journal(find_place(home / "state"), now=lambda: datetime.now(UTC))


FAILS = not_sent(ErrorCode.JOURNAL_UNUSABLE, "the disk failed.")


def fail_after(
    patch: pytest.MonkeyPatch,
    name: str,
    calls: int,
    error: Exception = FAILS,
    *,
    times: int = 10**6,
    owner: type = SqliteStorage,
) -> None:
    """Have a method of the storage, or of another class, fail after so many calls, so many times."""
    real: Callable[..., object] = getattr(owner, name)
    numbers = itertools.count()

    def method(self: object, *given: object, **named: object) -> object:
        if calls <= next(numbers) < calls + times:
            raise error
        return real(self, *given, **named)

    patch.setattr(owner, name, method)
