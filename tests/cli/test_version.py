"""`escrowctl version`: what it reports is what the program uses."""

import platform
import sqlite3
from pathlib import Path

from conftest import Run, ServiceAndRun

from cli.replies import CREATE, HELD, json_reply
from escrowctl import __version__

NAMES = ["version", "python", "platform", "config", "journal", "cache", "journal_format"]


def test_version_reports_the_paths_and_format_that_are_used(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(HELD))
    assert run(*CREATE).code == 0

    found = run("version", "--json").json

    with sqlite3.connect(found["journal"]) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (found["journal_format"],)
    paths = run("config", "path", "--json").json
    assert list(found) == NAMES
    assert {name: found[name] for name in ("config", "journal", "cache")} == {
        name: paths[name] for name in ("config", "journal", "cache")
    }
    assert (found["version"], found["python"]) == (__version__, platform.python_version())


def test_version_needs_no_configuration_and_creates_nothing(run: Run, home: Path) -> None:
    result = run("version", "--config", "missing.toml")

    assert (result.code, result.err) == (0, "")
    assert [line.split("\t")[0] for line in result.out.splitlines()] == NAMES
    assert not home.exists()
