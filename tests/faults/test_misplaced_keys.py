"""A key typed in the wrong place is not shown, sent or written."""

import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import Result, Terminal
from wire_server import WireServer, http_reply, serving

from escrowctl.main import main
from escrowctl.runtime import Runtime
from faults.canary import STORED
from faults.key_detector import find_key
from faults.key_spellings import KEYS
from faults.misplaced_keys import PLACES, Place

RECORD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
REPRESENTATIVES = (
    "tx create --amount", "tx create --fields, a pointer", "tx create --data, a file", "an id on standard input",
    "a segment", "journal list --since", "auth login -p", "config set service_id", "ESCROWCTL_BASE_URL=URL/?key=KEY",
    "ESCROWCTL_API_KEY and ESCROWCTL_PROFILE exchanged", "ESCROWCTL_HOME", "base_url in config.toml, listed",
    "the confirmation of a release", "the name asked for by auth login",
)  # fmt: skip


@dataclass
class Machine:
    """A home, a key file next to it and a working folder; knows which files the test itself wrote."""

    folder: Path
    url: str
    key: str
    config: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    written: dict[Path, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(text)
        self.written[path] = text
        return path

    def filled(self, text: str) -> str:
        return text.replace("URL", self.url).replace("KEY", self.key)

    def run(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> Result:
        """Run the line with the key in a wrong place; empty variables are not set."""
        work = self.folder / "work"
        work.mkdir(parents=True)
        monkeypatch.chdir(work)
        if self.config or place.config:
            self.write(self.home / "config.toml", self.config + self.filled(place.config))
        environ = {"HOME": str(work), "ESCROWCTL_HOME": str(self.home), "PATH": os.defpath, **self.environ}
        environ |= {name: self.filled(text) for name, text in place.environ.items()}
        make = Terminal if place.terminal else io.StringIO
        out, err = make(), make()
        code = main(
            [self.filled(word) for word in place.line],
            Runtime(
                environ={name: text for name, text in environ.items() if text},
                stdin=make(self.filled(place.stdin)),
                stdout=out,
                stderr=err,
                sleep=lambda _seconds: None,
            ),
        )
        return Result(code, out.getvalue(), err.getvalue())

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of what the program left behind."""
        for path in self.folder.rglob("*"):
            yield str(path.relative_to(self.folder)), b""
            if path.is_file() and path.name != STORED and path.read_bytes() != self.written.get(path, "").encode():
                yield str(path.relative_to(self.folder)), path.read_bytes()


def by_variable(machine: Machine) -> None:
    machine.environ = {"ESCROWCTL_BASE_URL": machine.url, "ESCROWCTL_API_KEY": machine.key}


def by_file(machine: Machine) -> None:
    path = machine.write(machine.folder / "given.key", machine.key)
    machine.environ = {"ESCROWCTL_BASE_URL": machine.url, "ESCROWCTL_API_KEY_FILE": str(path)}


def by_profile(machine: Machine) -> None:
    path = json.dumps(str(machine.write(machine.folder / "given.key", machine.key)))
    machine.config = f'default_profile = "mine"\n[profiles.mine]\nbase_url = "{machine.url}"\napi_key_file = {path}\n'


def by_login(machine: Machine) -> None:
    machine.config = f'default_profile = "mine"\n[profiles.mine]\nbase_url = "{machine.url}"\n'
    machine.write(machine.home / STORED, f'[mine]\norigin = "{machine.url}"\nkey = {json.dumps(machine.key)}\n')


Way = Callable[[Machine], None]
WAYS: dict[str, Way] = {"variable": by_variable, "file": by_file, "profile": by_profile, "login": by_login}


@pytest.fixture
def server() -> Iterator[WireServer]:
    reply = http_reply("200 OK", RECORD)
    with serving(lambda _seen, connection: connection.sendall(reply)) as running:
        yield running


def leaks_of(place: Place, machine: Machine, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return where the key was found after a mistake."""
    server.seen.clear()
    result = machine.run(place, monkeypatch)
    assert result.code != 1, result.err
    found = [("stdout", result.out.encode()), ("stderr", result.err.encode()), *machine.files()]
    for seen in server.seen:
        others = [f"{name}: {value}" for name, value in seen.headers if name != "Authorization"]
        found.append(("a request", "\n".join([seen.target, *others]).encode() + seen.body))
    return [f"{name}: {shown}" for name, data in found if (shown := find_key(machine.key, data, layers=2))]


def test_a_misplaced_key_is_neither_shown_nor_sent_nor_written(
    tmp_path: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for number, name in enumerate(REPRESENTATIVES):
        machine = Machine(tmp_path / str(number), server.base_url, KEYS[number % 2])
        [*WAYS.values()][number % len(WAYS) if not PLACES[name].environ else 0](machine)
        found[name] = leaks_of(PLACES[name], machine, server, monkeypatch)

    assert {name: leaks for name, leaks in found.items() if leaks} == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", KEYS)
def test_no_misplaced_key_is_shown_sent_or_written(
    key: str, way: str, tmp_path: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for number, (name, place) in enumerate(PLACES.items()):
        if "--sandbox" in place.line and way in ("profile", "login"):
            # The sandbox is sealed: it reads no account's files, and does not use their keys.
            continue
        machine = Machine(tmp_path / str(number), server.base_url, key)
        WAYS[way](machine)
        found[name] = leaks_of(place, machine, server, monkeypatch)

    assert {name: leaks for name, leaks in found.items() if leaks} == {}


def test_places_of_misplaced_keys_are_89() -> None:
    assert len(PLACES) == 89
