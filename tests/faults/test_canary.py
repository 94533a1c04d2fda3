"""The key is in no byte that is shown or stored, in no command line and in no child's environment."""

import json
import os
import random
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import internals
import pytest
from conftest import Run
from e2e.script import Program, clean_environment, find_script
from wire_server import Seen, http_reply, serving

from faults.canary import ECHOES, KEYS, LINES, WAYS, Canary, behave_badly
from faults.process_watch import ProcessWatch
from faults.seeds import draw_seed
from faults.strace import needs_strace

ENOUGH = 500

OUTPUT_OPTIONS = ((), ("--json",), ("--debug",), ("--debug", "--json"), ("-v",), ("-q",))

CREATE = ("tx", "create", "--amount", "100", "--currency", "USD")
DEFECTS: dict[str, tuple[str, ...]] = {
    "escrowctl.writes.writer.judge_write": CREATE,
    "escrowctl.client.reader.make_record": ("tx", "get", "tx_1"),
    "escrowctl.journal.journal.Journal.begin": CREATE,
    "escrowctl.output.console.render_rows": ("tx", "get", "tx_1"),
    internals.JUDGE_ANSWER: CREATE,
    "escrowctl.client.connection.Connection.exchange": ("tx", "get", "tx_1"),
}
"""What fails with the key in its exception -> a line that calls it."""


_started: list[str] = []


def _note_children(event: str, _arguments: object) -> None:
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.system"):
        _started.append(event)


@pytest.fixture
def children() -> list[str]:
    """Programs started meanwhile: one would inherit the environment with the key in it."""
    if _note_children not in _hooked:
        sys.addaudithook(_note_children)
        _hooked.append(_note_children)
    _started.clear()
    return _started


_hooked: list[Callable[[str, object], None]] = []


def break_now_and_then(chance: random.Random, key: str, patch: pytest.MonkeyPatch) -> None:
    """Let a place in escrowctl itself fail, with the key in the message."""
    if chance.random() > 0.2:
        return

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError(f"a defect with {key} in it")

    patch.setattr(chance.choice([*DEFECTS]), fail)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [50, 170])
@pytest.mark.parametrize("key", KEYS)
def test_key_is_in_no_byte_of_500_failing_runs(
    run: Run, home: Path, key: str, runs: int, children: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, canary = random.Random(draw_seed()), Canary(key, home)
    failed, crashes = 0, home / "state" / "crashes"
    with serving(behave_badly(chance, key)) as server:
        # Until a crash report was written too: few runs meet none of the defects.
        while failed < runs or (failed < ENOUGH and not crashes.is_dir()):
            environ = WAYS[chance.choice([*WAYS])](home, server.base_url, key)
            line = (*chance.choice(LINES), *chance.choice(OUTPUT_OPTIONS), "--timeout", "5")
            line = tuple(word.replace("{url}", server.base_url) for word in line)
            with monkeypatch.context() as patch:
                break_now_and_then(chance, key, patch)
                result = run(*line, environ=environ, stdin=key)
            failed += result.code != 0
            canary.look_at(line, result)
    canary.look_into_files()
    # A reply that is cut in the middle of a key is not the key.
    assert canary.found == []
    assert crashes.is_dir(), "no defect was met, and no crash report looked into"
    assert children == []


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_key_in_a_defect_is_in_no_byte(run: Run, home: Path, defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = KEYS[0]
    canary, reached = Canary(key, home), list[str]()

    def fail(*_: Any, **__: Any) -> None:
        reached.append(defect)
        raise ValueError(f"a defect with {key} in it")

    def echo(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(http_reply("200 OK", json.dumps({"id": "tx_1", "status": "held", "note": key}).encode()))

    monkeypatch.setattr(defect, fail)
    with serving(echo) as server:
        environ = WAYS["variable"](home, server.base_url, key)
        for options in ((), ("--json",), ("--debug",)):
            line = (*DEFECTS[defect], *options)
            canary.look_at(line, run(*line, environ=environ))
    canary.look_into_files()

    assert reached
    assert canary.found == []
    assert any((home / "state" / "crashes").iterdir())


def run_script(folder: Path, way: str, key: str, lines: Sequence[tuple[str, ...]], seed: int) -> None:
    """Run the installed script, its key given in one way, while all command lines and its children are looked at."""
    home = folder / "home" / "escrowctl"
    program = Program(clean_environment(folder / "home") | {"ESCROWCTL_HOME": str(home)})
    canary = Canary(key, home)
    watch = ProcessWatch(canary, folder / "started")
    with serving(watch.looking(behave_badly(random.Random(seed), key))) as server:
        environ = {**program.environ, **WAYS[way](home, server.base_url, key)}
        for line in lines:
            words = [word.replace("{url}", server.base_url) for word in line]
            result = watch.run(str(find_script()), *words, "--debug", environ=environ, stdin=key)
            assert result.code != 1, result.err
            canary.look_at(line, result)
    canary.look_into_files()
    assert canary.found == []
    # Else no process was watched.
    assert any(b"\0".join((b"tx", b"create", b"--amount")) in seen for seen in watch.lines)


@pytest.mark.representative("variable")
@needs_strace
@pytest.mark.parametrize("way", WAYS)
def test_key_is_in_no_process_arguments_or_environment(way: str, tmp_path: Path) -> None:
    seed = draw_seed()
    run_script(tmp_path, way, random.Random(seed).choice(KEYS), (LINES[0], LINES[-1]), seed)


@pytest.mark.long
@needs_strace
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_key_is_in_no_arguments_or_environment_of_any_command(way: str, key: str, tmp_path: Path) -> None:
    run_script(tmp_path, way, key, LINES, draw_seed())


# Teeth


CARELESS = """
import os, subprocess, sys
ask = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
url, key = os.environ["ESCROWCTL_BASE_URL"], os.environ["ESCROWCTL_API_KEY"]
if sys.argv[1] == "argument":
    subprocess.run([sys.executable, "-S", "-c", ask, url, key], env={})
else:
    subprocess.run(["true"])
"""


@needs_strace
@pytest.mark.parametrize(
    ("how", "where"),
    [("argument", {"a child", "a command line"}), ("environment", {"a child"})],
    ids=["argv", "environ"],
)
def test_the_watch_notices_a_key_that_is_handed_on(how: str, where: set[str], tmp_path: Path) -> None:
    key, canary = KEYS[0], Canary(KEYS[0], tmp_path / "home")
    watch = ProcessWatch(canary, tmp_path / "started")
    answer = http_reply("200 OK", b"{}", "Connection: close")
    with serving(watch.looking(lambda _seen, connection: connection.sendall(answer))) as server:
        environ = {"PATH": os.defpath, **WAYS["variable"](tmp_path / "home", server.base_url, key)}
        watch.run(sys.executable, "-c", CARELESS, how, environ=environ, stdin="")

    assert {found.partition(":")[0] for found in canary.found} == where


def test_canary_harness_detects_unredacted_keys(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken variant: without redaction the harness must find the key."""
    key, canary = KEYS[0], Canary(KEYS[0], home)
    monkeypatch.setattr("escrowctl.client.http.Answer.without_key", lambda answer, _key: answer)
    with serving(lambda _seen, connection: connection.sendall(ECHOES[4](key))) as server:
        run(*LINES[0], environ={"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": key})

    canary.look_into_files()
    assert canary.found != []
