"""One client against servers that look nothing like each other: every command, expected by hand."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Run
from wire_server import Behave, WireServer

from manners.manner import Manner
from manners.servers import MANNERS

COMMANDS = {"tx create", "tx get", "tx list", "tx update", "tx release", "user get", "webhook create", "webhook list"}


def configure(home: Path, manner: Manner, server: WireServer) -> None:
    home.mkdir(parents=True, mode=0o700)
    url = server.base_url + manner.path
    profile = f'[profiles.p]\nbase_url = "{url}"\napi_prefix = "{manner.prefix}"\nmode = "test"\n{manner.profile}\n'
    (home / "config.toml").write_text(profile)
    keys = home / "credentials.toml"
    keys.touch(mode=0o600)
    keys.write_text(f'[p]\norigin = "{server.base_url}"\nkey = "{KEY}"\n')


@pytest.mark.representative(
    "bare records, as observed",
    "ids as integers*",
    "strange names, unknown",
    "errors with status 200",
    "pages and empty replies",
)
@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: manner.name)
def test_every_command_says_what_was_written_by_hand(
    manner: Manner, home: Path, serve: Callable[[Behave], WireServer], run: Run
) -> None:
    server = serve(manner.behave())
    configure(home, manner, server)

    found = {one.line: run("-p", "p", *shlex.split(one.line)) for one in manner.expected}

    assert {line: (result.code, result.out) for line, result in found.items()} == {
        one.line: (one.code, one.out) for one in manner.expected
    }
    assert [(one.line, found[one.line].err) for one in manner.expected if one.err not in found[one.line].err] == []
    assert {seen.header("authorization") for seen in server.seen} == {f"Bearer {KEY}"}
    outside = [seen.target for seen in server.seen if not seen.target.startswith(manner.path + manner.prefix + "/")]
    assert outside == []


@pytest.mark.parametrize("manner", MANNERS, ids=lambda manner: manner.name)
def test_every_manner_meets_every_command(manner: Manner) -> None:
    met = {" ".join(one.line.split()[:2]) for one in manner.expected}

    assert met >= COMMANDS
    assert any(one.line.startswith("api ") for one in manner.expected)
