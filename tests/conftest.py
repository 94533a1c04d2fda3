"""Every test runs with a fresh home, no configuration, and no terminal."""

import io
import json
import os
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Under a umask such as 002 the group could change the config files of these tests, and they would be refused.
os.umask(0o022)

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "contract")]

if os.environ.get("ESCROWCTL_TEST_HTTPX") == "httpx2":
    # The same tests against the continuation of httpx: the API is the same, so the modules can replace each other.
    import httpcore2
    import httpx2

    sys.modules["httpx"] = httpx2
    sys.modules["httpcore"] = httpcore2

from wire_server import Behave, WireServer, serving

from escrowctl.main import main
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from storage.postgres import Server

pytest_plugins = ("machine",)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A background job of a script: its programs would ignore SIGINT too, and the tests of Ctrl-C with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same under nohup(1).
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

KEY = "sk_test_0123456789abcdef"
STORAGE = os.environ.get("ESCROWCTL_TEST_STORAGE", "sqlite")
"""`memory` or `postgres`: the same tests on another adapter; those that need the file are skipped."""


QUICK_CASES = 4
"""The quick ring has so many cases of a parametrised test, unless the test names its representatives."""
_cases: Counter[str] = Counter()


def pytest_itemcollected(item: pytest.Function) -> None:
    """Put a test into its rings: `pytest` runs quick, `pytest -m full` quick and slow; long is a ring of its own."""
    if item.get_closest_marker("long"):
        return
    name, _, case = item.nodeid.partition("[")
    _cases[name] += 1
    named = item.get_closest_marker("representative")
    is_named = named and any(fnmatchcase(case[:-1], pattern) for pattern in named.args)
    is_other_case = not is_named if named else _cases[name] > QUICK_CASES
    if not (is_other_case or item.get_closest_marker("slow")):
        item.add_marker("quick")
    item.add_marker("full")


def make_environ(home: Path, base_url: str) -> dict[str, str]:
    """Return the complete environment of a process with this home and service, and with `KEY`."""
    environ = {"PATH": os.defpath, "HOME": str(home), "ESCROWCTL_HOME": str(home)}
    return environ | {"ESCROWCTL_BASE_URL": base_url, "ESCROWCTL_API_KEY": KEY}


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The last stderr line as the JSON error that it must be."""
        document = json.loads(self.err.splitlines()[-1])
        assert isinstance(document, dict)
        error = document["error"]
        assert isinstance(error, dict)
        return error


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


Run = Callable[..., Result]
Serve = Callable[[Behave], WireServer]
ServiceAndRun = Callable[[Behave], tuple[WireServer, Run]]
"""Starts a service, and returns it with a `run` that is pointed at it."""

NOW = datetime(2026, 11, 21, 3, 12, 44, tzinfo=UTC)
"""The time of tests that choose one."""


@pytest.fixture(autouse=True)
def storage_adapter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the adapter of this run in the place of SQLite's."""
    if STORAGE == "sqlite":
        yield
        return
    from storage import memory
    from storage.file_tests import needs_file

    if needs_file(str(request.path), request.node.originalname):
        pytest.skip("it looks into the journal's file, or starts a second process")
    if STORAGE == "postgres":
        from storage.postgres import TestPlace

        server = request.getfixturevalue("postgres")
        monkeypatch.setattr("escrowctl.journal.opening.find_place", lambda folder: TestPlace(server, folder))
        yield
        return
    monkeypatch.setattr("escrowctl.journal.opening.find_place", memory.MemoryPlace)
    yield
    memory.forget_all()


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Server]":
    """A PostgreSQL server for all tests of one process."""
    from storage.postgres import Server, find_programs

    server = Server(find_programs())
    yield server
    server.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh ESCROWCTL_HOME and HOME, and none of this machine's variables that matter."""
    for name in list(os.environ):
        if name.startswith("ESCROWCTL_") and not name.startswith("ESCROWCTL_TEST_"):
            monkeypatch.delenv(name)
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ESCROWCTL_HOME", str(folder / "escrowctl"))
    monkeypatch.setenv("COLUMNS", "100")
    return folder / "escrowctl"


@pytest.fixture
def run(home: Path) -> Run:
    """Run a command line through `main`: `run("tx", "release", "tx_1", stdin="yes\\n", terminal=True)`."""

    def run_line(
        *words: str,
        stdin: str = "",
        terminal: bool = False,
        environ: dict[str, str] | None = None,
        without: tuple[str, ...] = (),
        stdout: Any = None,
        **injected: Any,
    ) -> Result:
        injected.setdefault("sleep", lambda seconds: time.sleep(min(seconds, 0.01)))
        make = Terminal if terminal else io.StringIO
        out, err = make(), make()
        around = {name: value for name, value in {**os.environ, **(environ or {})}.items() if name not in without}
        code = main(words, Runtime(environ=around, stdin=make(stdin), stdout=stdout or out, stderr=err, **injected))
        # In commands to paste: no operator has this home.
        own_home = f"ESCROWCTL_HOME={shlex.quote(str(home))} "
        return Result(int(code), *(stream.getvalue().replace(own_home, "") for stream in (out, err)))

    return run_line


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start raw-socket servers that end with the test."""
    with ExitStack() as stack:
        yield lambda behave: stack.enter_context(serving(behave))


@pytest.fixture
def service_and_run(serve: Serve, run: Run) -> ServiceAndRun:
    """Start a server and return it with a `run` whose environment points to it."""

    def start(behave: Behave) -> tuple[WireServer, Run]:
        server = serve(behave)
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}

        def run_there(*words: str, **keywords: Any) -> Result:
            merged = environ | keywords.pop("environ", {})
            result = run(*words, environ=merged, **keywords)
            # In commands to paste: the port is another one each time.
            leading = f"ESCROWCTL_BASE_URL={server.base_url} "
            return replace(result, out=result.out.replace(leading, ""), err=result.err.replace(leading, ""))

        return server, run_there

    return start
