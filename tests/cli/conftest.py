"""Fixtures of the command-line tests."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import KEY, NOW, Result, Run, Serve, ServiceAndRun
from webhook_sender import SECRET
from wire_server import Behave, WireServer, hang_up

from cli.events import Application, Listen
from cli.replies import HELD, RELEASE, create, entry_of, holding, in_turn, json_reply, writes_meet

if TYPE_CHECKING:
    from storage.postgres import Server

Journal = Callable[..., list[tuple[str, str]]]
Machine = Callable[..., Result]
StartShared = Callable[..., tuple[WireServer, list[Machine]]]
Profile = Callable[..., WireServer]
Served = tuple[WireServer, Run]
UnknownWrite = Callable[..., Served]

DAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""The day of `journal_of_six`."""


def start_elsewhere(*line: str, **environ: str) -> subprocess.Popen[bytes]:
    """Start this line in another process."""
    words = [sys.executable, "-m", "escrowctl", *line]
    return subprocess.Popen(words, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def names_of_files_with(text: str, home: Path) -> list[str]:
    files = (path for path in home.rglob("*") if path.is_file())
    return [str(path.relative_to(home)) for path in files if text.encode() in path.read_bytes()]


@pytest.fixture
def journal(run: Run) -> Journal:
    """Return (operation, state) of every journal entry, oldest first: what the journal says afterwards."""

    def read(*options: str) -> list[tuple[str, str]]:
        result = run(*options, "journal", "list", "--json")
        assert result.code == 0, result.err
        documents: list[dict[str, Any]] = result.json
        return [entry_of(document) for document in reversed(documents)]

    return read


@pytest.fixture
def write_config(home: Path) -> Callable[[str], Path]:
    """Write config.toml and return its path."""

    def write(text: str) -> Path:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = home / "config.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def profile(serve: Serve, write_config: Callable[[str], Path], home: Path) -> Profile:
    """Write a profile `a` with these lines for a server that behaves like this, and make it the default."""

    def write(*lines: str, behave: Behave | None = None) -> WireServer:
        server = serve(behave or holding())
        text = "\n".join(lines)
        write_config(
            f'default_profile = "a"\n[profiles.a]\nbase_url = "{server.base_url}"\napi_key_file = "a.key"\n{text}\n'
        )
        (home / "a.key").write_text(KEY)
        (home / "a.key").chmod(0o600)
        return server

    return write


@pytest.fixture
def retrying_service_and_run(profile: Profile, run: Run) -> ServiceAndRun:
    """As `service_and_run`, with a profile whose service refuses throttled requests before it processes them."""

    def start(behave: Behave) -> tuple[WireServer, Run]:
        return profile("retry_throttled = true", behave=behave), run

    return start


@pytest.fixture
def state(home: Path) -> Path:
    return home / "state"


@pytest.fixture
def journal_of_six(service_and_run: ServiceAndRun) -> Served:
    """A journal of six: two creates and a release done, a create refused, a create and an update unknown."""
    writes = in_turn(
        *[holding()] * 3, json_reply(b"", "400 No"), hang_up, hang_up, json_reply(b'{"id":"wh_1"}'), json_reply(HELD)
    )
    server, run = service_and_run(writes_meet(writes))
    lines = (
        create("100.50"),
        create("0.50", "USD", "--reference", "order-1"),
        (*RELEASE, "--expect-amount", "100"),
        create("7", "EUR"),
        create("8", "EUR"),
        ("tx", "update", "tx_1", "--data", '{"n":1}', "--yes"),
    )
    assert [run(*line, now=lambda: DAY).code for line in lines] == [0, 0, 0, 8, 12, 12]
    return server, run


@pytest.fixture
def unknown_write(service_and_run: ServiceAndRun) -> UnknownWrite:
    """Start a server on which one write has become unknown, as j1."""

    def start(line: tuple[str, ...], behave: Behave, **keywords: Any) -> tuple[WireServer, Run]:
        server, run = service_and_run(behave)
        result = run(*line, now=lambda: NOW, **keywords)
        assert result.code == 12, result.err
        server.seen.clear()
        return server, run

    return start


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def target(application: Application, serve: Serve) -> str:
    return f"{serve(application).base_url}/hooks?a=1"


@pytest.fixture
def listen(run: Run, tmp_path: Path) -> Iterator[Listen]:
    """Listen, do something with the port in another thread, and stop by a signal."""
    failures: list[Exception] = []

    def listen_there(act: Callable[[int], object], *words: str, number: int = signal.SIGINT, **given: Any) -> Result:
        ready, ended = tmp_path / "ready.json", threading.Event()

        def act_when_ready() -> None:
            while not ready.exists() and not ended.is_set():
                time.sleep(0.005)
            try:
                if ready.exists():
                    act(int(json.loads(ready.read_text())["url"].rpartition(":")[2]))
            except Exception as error:  # noqa: BLE001 - it is raised again in the test's own thread
                failures.append(error)
            finally:
                # It is gone when the listener has ended by itself.
                if ready.exists():
                    os.kill(os.getpid(), number)

        thread = threading.Thread(target=act_when_ready)
        thread.start()
        given.setdefault("monotonic", lambda: 0.0)
        given["environ"] = {"ESCROWCTL_WEBHOOK_SECRET": SECRET} | given.get("environ", {})
        try:
            return run("webhook", "listen", "--port", "0", "--ready-file", str(ready), *words, **given)
        finally:
            ended.set()
            thread.join()

    yield listen_there
    assert failures == []


@pytest.fixture
def spool(home: Path) -> Path:
    return home / "state" / "webhooks.db"


@pytest.fixture
def url(postgres: "Server") -> str:
    """The URL of a journal that does not exist yet."""
    from storage.postgres import new_name

    return f"{postgres.url}?journal={new_name()}"


@pytest.fixture
def machine(run: Run, tmp_path: Path, url: str) -> Callable[[WireServer, str], Machine]:
    """Return what runs command lines on a machine of this name: its home is its own, the journal is shared."""

    def start(server: WireServer, name: str) -> Machine:
        home = tmp_path / name
        environ = {"ESCROWCTL_HOME": str(home), "HOME": str(home), "ESCROWCTL_JOURNAL": url, "ESCROWCTL_MODE": "live"}
        environ |= {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": "sk_test_0123456789abcdef"}
        environ |= {"ESCROWCTL_STATUS_RELEASED": "released"}

        def run_there(*words: str, **keywords: Any) -> Result:
            given = environ | keywords.pop("environ", {})
            return run(*words, environ={name: value for name, value in given.items() if value}, **keywords)

        return run_there

    return start


@pytest.fixture
def shared(serve: Serve, machine: Callable[[WireServer, str], Machine]) -> StartShared:
    """Start a service, and return it with machines of these names. The first one has created their journal."""

    def start(*names: str, behave: Behave | None = None) -> tuple[WireServer, list[Machine]]:
        server = serve(behave or holding())
        machines = [machine(server, name) for name in names]
        assert machines[0]("journal", "init", "--single-role").code == 0
        return server, machines

    return start
