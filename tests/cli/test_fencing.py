"""One journal reached by two paths that do not share locks: no record is lost, and no report may be false.

A second home whose journal.db is a hard link is such a path: SQLite's locks are shared there,
the locks that say who is alive are not. Where those are not shared either, a whole file is put back.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Result, Run, Serve
from wire_server import Seen, WireServer

from cli.replies import CREATE, RELEASE, holding, writes_meet

Line = Callable[..., Result]
Meanwhile = Callable[..., int]


@pytest.fixture
def two_paths(run: Run, serve: Serve, home: Path, tmp_path: Path) -> Any:
    """Start a service, one write of which calls `meanwhile`, and return it with a run by the one path to a journal.

    `meanwhile` gets what runs a line by the other path, in a separate process, and returns its exit code.
    """

    def start(meanwhile: Callable[[Meanwhile], None], *, at_write: int = 1) -> tuple[WireServer, Line]:
        other = tmp_path / "other"

        def by_other_path(*words: str) -> int:
            around = {**os.environ, **environ, "ESCROWCTL_HOME": str(other)}
            return subprocess.run([sys.executable, "-m", "escrowctl", *words], env=around, check=False).returncode

        holds = holding()

        def write(seen: Seen, connection: Any) -> None:
            if len(server.writes) == at_write:
                link(home / "state", other / "state")
                meanwhile(by_other_path)
            holds(seen, connection)

        server = serve(writes_meet(write))
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
        return server, lambda *words: run(*words, environ=environ)

    return start


def link(state: Path, other: Path) -> None:
    """Make another path to a journal, with separate locks."""
    other.mkdir(parents=True, mode=0o700)
    os.link(state / "journal.db", other / "journal.db")
    os.link(state / "journal.head", other / "journal.head")


def test_attempt_taken_over_by_another_path_ends_unknown(two_paths: Any) -> None:
    codes: list[int] = []

    def take_over(line: Meanwhile) -> None:
        codes.append(line("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", "--reason", "desk"))

    server, line = two_paths(take_over)

    result = line(*CREATE, "--json")

    shown = line("journal", "show", "j1", "--json").json
    assert (codes, result.code, result.error["code"], len(server.writes)) == ([0], 12, "outcome_unknown", 1)
    assert "another process changed j1" in result.error["message"]
    assert result.error["result_id"] == "tx_1"
    assert [event["state"] for event in shown["history"]] == ["in_flight", "not_applied"]
    assert line("journal", "verify").code == 0


def test_intent_overwritten_by_another_path_is_recorded_again(two_paths: Any, home: Path) -> None:
    codes: list[int] = []
    before = home.parent / "before"

    def overwrite(line: Meanwhile) -> None:
        # What another path's cache of the file still holds: the journal without the intent in flight.
        for name in ("journal.db", "journal.head"):
            (home / "state" / name).write_bytes((before / name).read_bytes())
        codes.append(line("tx", "create", "--amount", "7", "--currency", "EUR"))

    server, line = two_paths(overwrite, at_write=2)
    assert line(*RELEASE).code == 0
    shutil.copytree(home / "state", before)

    result = line(*CREATE, "--json")

    listed = line("journal", "list", "--json").json
    assert (codes, result.code, len(server.writes)) == ([0], 12, 3)
    assert "to see both attempts" in result.error["hint"]
    assert [(entry["entry"], entry["state"], str(entry["amount"])) for entry in listed] == [
        ("j3", "done", "100"),
        ("j2", "done", "7"),
        ("j1", "unconfirmed", "100"),
    ]
    assert line("journal", "verify").code == 0
