"""Every command against services with different formats; expected output is written by hand."""

import shlex
from pathlib import Path

import pytest
from conftest import KEY, Run, Serve
from wire_server import WireServer

from services.examples import EXAMPLES
from services.service import ExampleService

COMMANDS = {"tx create", "tx get", "tx list", "tx update", "tx release", "user get", "webhook create", "webhook list"}


def configure(home: Path, service: ExampleService, server: WireServer) -> None:
    home.mkdir(parents=True, mode=0o700)
    url = server.base_url + service.path
    profile = f'[profiles.p]\nbase_url = "{url}"\napi_prefix = "{service.prefix}"\nmode = "test"\n{service.profile}\n'
    (home / "config.toml").write_text(profile)
    keys = home / "credentials.toml"
    keys.touch(mode=0o600)
    keys.write_text(f'[p]\norigin = "{server.base_url}"\nkey = "{KEY}"\n')


@pytest.mark.slow
@pytest.mark.parametrize("service", EXAMPLES, ids=lambda service: service.name)
def test_every_command_prints_the_expected_output(service: ExampleService, home: Path, serve: Serve, run: Run) -> None:
    server = serve(service.behave())
    configure(home, service, server)

    found = {one.line: run("-p", "p", *shlex.split(one.line)) for one in service.expected}

    assert {line: (result.code, result.out) for line, result in found.items()} == {
        one.line: (one.code, one.out) for one in service.expected
    }
    assert [(one.line, found[one.line].err) for one in service.expected if one.err not in found[one.line].err] == []
    assert {seen.header("authorization") for seen in server.seen} == {f"Bearer {KEY}"}
    outside = [seen.target for seen in server.seen if not seen.target.startswith(service.path + service.prefix + "/")]
    assert outside == []


@pytest.mark.parametrize("service", EXAMPLES, ids=lambda service: service.name)
def test_every_example_service_meets_every_command(service: ExampleService) -> None:
    met = {" ".join(one.line.split()[:2]) for one in service.expected}

    assert met >= COMMANDS
    assert any(one.line.startswith("api ") for one in service.expected)
