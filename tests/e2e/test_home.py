"""The folder on disk: who may read it, how it may be named, and what happens where there can be none."""

import stat
from pathlib import Path

import pytest
from cli.replies import CREATE, HELD
from conftest import KEY, Serve
from wire_server import WireServer, answering, hang_up, http_reply

from e2e.script import Program, clean_environment


@pytest.fixture
def server(serve: Serve) -> WireServer:
    """A server that makes every escrow tx_1."""
    return serve(answering(http_reply("200 OK", HELD)))


@pytest.mark.slow
@pytest.mark.parametrize("umask", ["000", "077", "777"])
def test_every_file_is_private_with_any_umask(program: Program, server: WireServer, umask: str) -> None:
    there = program.at(server).with_environ(ESCROWCTL_HOME=f"{program.environ['HOME']}/escrowctl")
    ended = there.bash(
        f"umask {umask}; escrowctl {' '.join(CREATE)} -q; escrowctl --sandbox {' '.join(CREATE)} -q >/dev/null"
    )
    assert (ended.code, ended.out, ended.err) == (0, "tx_1\n", "")
    root = Path(program.environ["HOME"])
    found = {path: stat.filemode(path.stat().st_mode) for path in root.rglob("*")}
    assert found == {path: "drwx------" if path.is_dir() else "-rw-------" for path in found}
    assert {path.name for path in found} >= {
        *("transaction", "journal.db", "journal.lock", "journal.head", "sandbox.db", "sandbox.lock")
    }


@pytest.mark.representative("words0-{file}", "words1-/dev/null")
@pytest.mark.parametrize("home", ["/proc/nowhere/escrowctl", "{file}", "/dev/null"])
@pytest.mark.parametrize("words", [CREATE, ("tx", "release", "tx_1", "--yes")])
def test_write_without_a_journal_folder_is_not_sent(
    program: Program, server: WireServer, tmp_path: Path, home: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "a-file"
    file.touch()
    there = program.at(server).with_environ(ESCROWCTL_HOME=home.format(file=file))
    ended = there.run(*words, "--json")
    assert (ended.code, ended.out) == (17, "")
    assert (ended.error["outcome"], ended.error["exit_code"]) == ("not_sent", 17)
    assert server.writes == []


def test_a_read_needs_no_folder_at_all(program: Program, server: WireServer) -> None:
    ended = program.at(server).with_environ(ESCROWCTL_HOME="/proc/nowhere/escrowctl").run("tx", "get", "tx_1", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "tx_1\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ['my own "home" of it\'s', "-q", "ünï 漢字", "$(touch pwned) `touch pwned`; #"])
def test_a_folder_may_have_any_name(tmp_path: Path, server: WireServer, name: str) -> None:
    folder = tmp_path / name
    program = Program(clean_environment(folder)).at(server)
    ended = program.run(*CREATE, "-q")
    assert (ended.code, ended.out, ended.err) == (0, "tx_1\n", "")
    assert program.journal() == [("create_transaction", "done")]
    assert {path.name for path in tmp_path.iterdir()} == {name}


@pytest.mark.slow
def test_config_path_is_quoted_in_hints(program: Program, serve: Serve, tmp_path: Path) -> None:
    server = serve(hang_up)
    config = tmp_path / 'the "live" one.toml'
    key = tmp_path / "it's the key"
    key.touch(mode=0o600)
    key.write_text(KEY)
    config.write_text(f'[profiles.acme]\nbase_url = "{server.base_url}"\nmode = "test"\napi_key_file = "{key}"\n')
    unknown = program.run("--config", str(config), "-p", "acme", *CREATE, "--json")
    assert unknown.code == 12
    pasteable = unknown.error["hint"].split(": ", 1)[1]
    settled = program.bash(f"{pasteable} --json")
    assert (settled.code, settled.error["code"], settled.error["entry"]) == (12, "outcome_unknown", "j1")
