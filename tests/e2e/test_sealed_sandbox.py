"""`--sandbox` goes nowhere else, with any environment and files: no socket is ever connected."""

from pathlib import Path

import pytest
from conftest import Serve
from wire_server import WireServer, answering, http_reply

from e2e.script import Program

# An audit hook cannot be taken out again, and sees what the socket module does for anybody.
_NO_NETWORK = """
import sys
asked = []
def refuse(event, details):
    if event.startswith("socket.") and event not in ("socket.__new__",):
        asked.append(event)
        raise OSError("no network in this test: " + event)
sys.addaudithook(refuse)
from escrowctl.main import main
code = main()
sys.stderr.write("ASKED " + repr(asked))
sys.exit(code)
"""

CREATE = ("--sandbox", "tx", "create", "--amount", "100", "--currency", "USD", "-q")
KEY = "sk_live_of_a_real_account"


def hostile_environments(server: WireServer, folder: Path) -> dict[str, dict[str, str]]:
    """Return environments by name, each of which leads somewhere without `--sandbox`, or is broken."""
    url = server.base_url
    variables = {
        "ESCROWCTL_BASE_URL": url,
        "ESCROWCTL_API_KEY": KEY,
        "ESCROWCTL_PROFILE": "a",
        "ESCROWCTL_CONFIG": str(folder / "config.toml"),
        "ESCROWCTL_MODE": "live",
        "ESCROWCTL_JOURNAL_ID": "00000000-0000-0000-0000-000000000000",
    }
    every = (*variables, "ESCROWCTL_API_KEY_FILE", "ESCROWCTL_CA_BUNDLE")
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), url)
    return {
        "nothing": {},
        "a whole account": variables,
        "each variable empty": dict.fromkeys(every, ""),
        "each variable nonsense": dict.fromkeys(every, "\x1b[2J:"),
        "proxies": variables | proxies | {"NO_PROXY": "nothing"},
        "a profile that is not there": {"ESCROWCTL_PROFILE": "nowhere"},
        "a config file that is not there": {"ESCROWCTL_CONFIG": "/nowhere/config.toml"},
        "a broken config file": {"ESCROWCTL_CONFIG": str(folder / "broken.toml")},
        "a config file that is a pipe": {"ESCROWCTL_CONFIG": "/dev/stdin"},
        "both keys": {"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_API_KEY_FILE": "/etc/shadow"},
        "CI": variables | {"CI": "true"},
    }


@pytest.fixture
def server(serve: Serve) -> WireServer:
    return serve(answering(http_reply("200 OK", b'{"id":"tx_wrong"}')))


@pytest.mark.slow
@pytest.mark.parametrize("files", ["none", "default profile", "broken"])
def test_sandbox_connects_nowhere_in_any_environment(
    program: Program, server: WireServer, tmp_path: Path, files: str
) -> None:
    home = program.config
    home.mkdir(parents=True, mode=0o700)
    config = f'default_profile = "a"\n[profiles.a]\nbase_url = "{server.base_url}"\nmode = "live"\n'
    (tmp_path / "config.toml").write_text(config)
    (tmp_path / "broken.toml").write_text("[[[ not TOML")
    if files != "none":
        (home / "config.toml").write_text(config if files == "default profile" else "[profiles.a]\nnonsense = 1\n")
        credentials = f'[a]\norigin = "{server.base_url}"\nkey = "{KEY}"\n'
        (home / "credentials.toml").write_text(credentials if files == "default profile" else "not TOML at all =")
        (home / "credentials.toml").chmod(0o600 if files == "default profile" else 0o666)

    made = {}
    for name, environ in hostile_environments(server, tmp_path).items():
        ended = program.with_environ(**environ).python(_NO_NETWORK, *CREATE)
        made[name] = (ended.code, ended.out[:3], ended.err)

    assert made == dict.fromkeys(hostile_environments(server, tmp_path), (0, "tx_", "ASKED []"))
    assert server.seen == []


@pytest.mark.slow
def test_the_refusal_of_sockets_would_be_noticed(program: Program, server: WireServer) -> None:
    ended = program.at(server).python(_NO_NETWORK, "tx", "get", "tx_1")

    assert ended.code == 11
    assert "no network in this test: socket." in ended.err
    assert server.seen == []


@pytest.mark.parametrize("line", [("-p", "a"), ("--base-url", "https://escrow.example.com")])
def test_sandbox_with_another_target_is_refused(program: Program, line: tuple[str, ...]) -> None:
    ended = program.python(_NO_NETWORK, *line, *CREATE)

    assert (ended.code, ended.out) == (2, "")
    assert "contradict each other" in ended.err
