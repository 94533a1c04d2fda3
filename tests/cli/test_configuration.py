"""Where values come from: which origin was asked, with which key, for every combination that matters.

Two services, A and B, each with its own key; in every configuration, a key reaches only the
origin it was given for.
"""

import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Run, Serve
from keyring_stub import KeyringStub
from wire_server import Seen, WireServer, http_reply

from cli.conftest import Profile
from cli.replies import CREATE, HELD, json_reply

KEY_A, KEY_B = "sk_a_77c3e09d15ab", "sk_b_1f60b8a2c4de"
KEY_ENV, KEY_RING = "sk_env_4b1d9c70e2fa", "sk_ring_8e5a01f7c39b"


@dataclass(frozen=True)
class Case:
    """Line and environment (A and B are replaced by the base URLs), and the expected result.

    `seen`: the server that was asked and the key it saw, or the exit code with nothing asked.
    """

    name: str
    line: tuple[str, ...]
    environ: dict[str, str]
    seen: tuple[str, str] | int
    default: str | None = None


E_URL, E_KEY = "ESCROWCTL_BASE_URL", "ESCROWCTL_API_KEY"
E_FILE, E_PROFILE = "ESCROWCTL_API_KEY_FILE", "ESCROWCTL_PROFILE"

CASES = (
    Case("nothing", (), {}, 4),
    Case("a key alone", (), {E_KEY: KEY_ENV}, 4),
    Case("a URL alone", (), {E_URL: "A"}, 4),
    Case("URL and key", (), {E_URL: "A", E_KEY: KEY_ENV}, ("A", KEY_ENV)),
    Case("URL and both keys", (), {E_URL: "A", E_KEY: KEY_ENV, E_FILE: "env.key"}, 2),
    Case("URL and an empty key", (), {E_URL: "A", E_KEY: ""}, 4),
    Case("default profile", (), {}, ("A", KEY_A), default="a"),
    Case("default profile, stored key", (), {}, ("B", KEY_B), default="b"),
    Case("default profile, key stored for elsewhere", (), {}, 4, default="moved"),
    Case("default profile and a key for nowhere", (), {E_KEY: KEY_ENV}, 4, default="a"),
    Case("default profile and the environment's pair", (), {E_URL: "B", E_KEY: KEY_ENV}, ("B", KEY_ENV), default="a"),
    Case("default profile and the environment's URL", (), {E_URL: "B"}, 4, default="a"),
    Case("default profile and another in the environment", (), {E_PROFILE: "b"}, ("B", KEY_B), default="a"),
    Case("the environment's key before the profile's", (), {E_PROFILE: "a", E_KEY: KEY_ENV}, ("A", KEY_ENV)),
    Case("profile and another URL", (), {E_PROFILE: "a", E_URL: "B", E_KEY: KEY_ENV}, 2),
    Case("profile on the line over the environment's", ("-p", "b"), {E_PROFILE: "a"}, ("B", KEY_B)),
    Case("keyless on the line, a key for nowhere", ("-p", "keyless"), {E_KEY: KEY_ENV}, 4),
    Case("keyless on the line, a key for elsewhere", ("-p", "keyless"), {E_PROFILE: "b", E_KEY: KEY_ENV}, 4),
    Case("URL on the line, no key for it", ("--base-url", "A"), {E_KEY: KEY_ENV}, 4),
    Case("URL on the line, key for elsewhere", ("--base-url", "A"), {E_URL: "B", E_KEY: KEY_ENV}, 4),
    Case("URL on the line, key for it", ("--base-url", "A"), {E_URL: "A", E_KEY: KEY_ENV}, ("A", KEY_ENV)),
    Case("URL on the line never takes the default's key", ("--base-url", "B"), {}, 4, default="a"),
    Case("URL and profile on the line differ", ("--base-url", "B", "-p", "a"), {}, 2),
    Case("a config file that is not there", ("--config", "nowhere.toml"), {E_URL: "A", E_KEY: KEY_ENV}, 2),
    Case("the environment's key file before the stored key", (), {E_PROFILE: "b", E_FILE: "env.key"}, ("B", KEY_ENV)),
    Case("on the line a profile keeps its own key", ("-p", "b"), {E_PROFILE: "b", E_KEY: KEY_ENV}, ("B", KEY_B)),
    Case("a loose key file, on the line", ("-p", "loose"), {}, 2),
    Case("a loose key file is not made up for", ("-p", "loose"), {E_URL: "A", E_KEY: KEY_ENV}, 2),
    Case("an empty key file", (), {E_URL: "A", E_FILE: "empty.key"}, 4),
    Case("an empty key is not made up for", (), {E_PROFILE: "b", E_KEY: ""}, 4),
    Case("keyring, default profile", (), {}, ("A", KEY_RING), default="ring"),
    Case("keyring, never in CI", ("-p", "ring"), {"CI": "true"}, 4),
    Case("another config file, its own key file", ("--config", "other.toml", "-p", "a"), {}, ("B", KEY_B)),
    Case("another config file, a name with a key for elsewhere", ("--config", "other.toml", "-p", "b"), {}, 4),
    Case("another config file, the environment's key", ("--config", "other.toml"), {E_PROFILE: "b", E_KEY: KEY_ENV}, 4),
    Case("another config file, two key files", ("--config", "other.toml"), {E_PROFILE: "a", E_FILE: "env.key"}, 4),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_key_reaches_only_the_origin_it_was_given_for(
    case: Case, run: Run, home: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {"A": serve(json_reply(HELD)), "B": serve(json_reply(HELD))}
    _configure(home, servers, case.default)

    ring = KeyringStub({(f"escrowctl {servers['A'].base_url}", "ring"): KEY_RING})
    monkeypatch.setitem(sys.modules, "keyring", ring.module)

    def fill(text: str) -> str:
        if text.endswith((".toml", ".key")):
            return str(home / text)
        return servers[text[0]].base_url + text[1:] if text.rstrip("/") in servers else text

    environ = {name: fill(value) for name, value in case.environ.items()}
    result = run("tx", "get", "tx_1", "--debug", *(fill(word) for word in case.line), environ=environ)

    asked = {name: [seen.header("Authorization") for seen in server.seen] for name, server in servers.items()}
    if isinstance(case.seen, int):
        assert (result.code, asked) == (case.seen, {"A": [], "B": []}), result.err
    else:
        where, key = case.seen
        assert (result.code, asked) == (0, {"A": [], "B": []} | {where: [f"Bearer {key}"]}), result.err
    assert not any(key in result.out + result.err for key in (KEY_A, KEY_B, KEY_ENV, KEY_RING))


def _configure(home: Path, servers: dict[str, WireServer], default: str | None) -> None:
    home.mkdir(mode=0o700, parents=True)
    a, b = servers["A"].base_url, servers["B"].base_url
    config = f'default_profile = "{default}"\n' if default else ""
    config += f'[profiles.a]\nbase_url = "{a}"\napi_key_file = "a.key"\n'
    for name in ("keyless", "moved", "ring"):
        config += f'[profiles.{name}]\nbase_url = "{a}"\n'
    config += f'[profiles.b]\nbase_url = "{b}"\n'
    config += f'[profiles.loose]\nbase_url = "{a}"\napi_key_file = "loose.key"\n'
    other = f'[profiles.a]\nbase_url = "{b}"\napi_key_file = "b.key"\n[profiles.b]\nbase_url = "{a}"\n'
    (home / "config.toml").write_text(config)
    (home / "other.toml").write_text(other)
    credentials = "".join(
        f'[{name}]\norigin = "{origin}"\n{kept}\n'
        for name, origin, kept in (
            ("b", b, f'key = "{KEY_B}"'),
            ("moved", b, f'key = "{KEY_B}"'),
            ("ring", a, 'store = "keyring"'),
        )
    )
    keys = {"a.key": KEY_A, "b.key": KEY_B, "env.key": KEY_ENV + "\n", "loose.key": KEY_A, "empty.key": "\n"}
    for name, text in (*keys.items(), ("credentials.toml", credentials)):
        (home / name).write_text(text)
        (home / name).chmod(0o644 if name == "loose.key" else 0o600)


@pytest.mark.parametrize("proxy", ["http://u:hunter2@[bad", "socks5://u:hunter2@h:1080"])
def test_unusable_proxy_is_reported_without_its_password(run: Run, proxy: str) -> None:
    environ = {E_URL: "https://escrow.example.com", E_KEY: KEY_ENV, "HTTPS_PROXY": proxy}

    results = [run(*words, environ=environ) for words in (CREATE, ("config", "list"))]

    assert [(result.code, result.out, "hunter2" in result.err) for result in results] == [(2, "", False)] * 2


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_special_config_file_is_refused_without_waiting(run: Run, home: Path, kind: str) -> None:
    home.mkdir(mode=0o700, parents=True)
    place = home / "config.toml"
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            place.symlink_to("/dev/null")
    lines = (("tx", "get", "tx_1"), ("config", "set", "profiles.a.base_url", "https://a.example.com"))

    assert [run(*words).code for words in lines] == [2, 2]


def test_the_prefix_of_the_profile_is_the_only_one_tried(profile: Profile, run: Run) -> None:
    server = profile('api_prefix = "/v1"', behave=json_reply(b"{}", "404 Not Found"))

    assert (run(*CREATE).code, [seen.target for seen in server.seen]) == (6, ["/v1/transactions"])


MODES = """\
default_profile = "DEFAULT"
[profiles.live]
base_url = "https://live.example.com"
mode = "live"
[profiles.neither]
base_url = "https://neither.example.com"
"""
E_RELEASED = "ESCROWCTL_STATUS_RELEASED"
REAL, LOCAL = {E_URL: "https://real.example.com"}, {E_URL: "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("line", "environ", "mode", "shown"),
    [
        ((), REAL, "test", ("test", "ESCROWCTL_MODE")),
        ((), LOCAL, "live", ("live", "ESCROWCTL_MODE")),
        ((), {}, "test", ("test", "ESCROWCTL_MODE")),
        (("-p", "neither"), {}, "test", ("live", "built in")),
    ],
)
def test_mode_of_the_environment_counts_where_no_profile_says_it(
    run: Run,
    write_config: Callable[[str], Path],
    line: tuple[str, ...],
    environ: dict[str, str],
    mode: str,
    shown: tuple[str, str],
) -> None:
    write_config(MODES.replace("DEFAULT", "neither"))

    result = run(*line, "config", "get", "mode", "--json", environ=environ | {"ESCROWCTL_MODE": mode})

    assert (result.code, (result.json["value"], result.json["origin"])) == (0, shown)


@pytest.mark.parametrize(("environ", "default", "mode"), [({}, "live", "test"), (REAL, "neither", "prod")])
def test_unknown_or_contradicting_environment_mode_is_refused(
    run: Run, write_config: Callable[[str], Path], environ: dict[str, str], default: str, mode: str
) -> None:
    write_config(MODES.replace("DEFAULT", default))

    result = run("tx", "get", "tx_1", "--json", environ=environ | {"ESCROWCTL_MODE": mode})

    assert (result.code, result.out) == (2, "")
    assert "ESCROWCTL_MODE" in result.error["message"]


def test_release_is_confirmed_by_a_status_of_the_environment(run: Run, serve: Serve) -> None:
    state = ["held"]

    def behave(seen: Seen, connection: socket.socket) -> None:
        state[0] = "Paid_Out" if seen.is_write else state[0]
        connection.sendall(http_reply("200 OK", json.dumps({"id": "tx_1", "status": state[0]}).encode()))

    environ = {E_URL: serve(behave).base_url, E_KEY: KEY_ENV, E_RELEASED: "released,paid_out"}

    result = run("tx", "release", "tx_1", "--yes", "--json", environ=environ)

    assert (result.code, result.json["verified"]) == (0, True), result.err
