"""`auth login` as a person and as a script meet it: a real terminal, a real pipe, real files."""

import contextlib
import socket
import stat
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pexpect
import pytest
from conftest import Serve
from wire_server import Seen, WireServer, http_reply

from e2e.script import Program, Terminal, finish, plain

KEY = "sk_live_0123456789abcdef"


@pytest.fixture
def server(serve: Serve) -> WireServer:
    """A service that takes KEY and no other."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        known = seen.header("Authorization") == f"Bearer {KEY}"
        reply = http_reply("200 OK", b"[]") if known else http_reply("401 Unauthorized", b'{"detail":"no such key"}')
        connection.sendall(reply)

    return serve(behave)


def answer_all(terminal: Terminal, *answers: str) -> tuple[int, str]:
    """Type each answer at its mark, and return the exit code and all that was shown."""
    for answer in answers:
        terminal.answer("> ", answer)
    code, shown = terminal.finish()
    return code, plain(shown)


def test_a_conversation_asks_checks_each_answer_and_shows_no_key(program: Program, server: WireServer) -> None:
    url = server.base_url
    wrong = ("http://escrow.example.com", url, "prod", "Live", "acme live", "acme-live", "two words", KEY)
    code, shown = answer_all(program.terminal("auth", "login", columns=250), *(f"{answer}\n" for answer in wrong))

    asked = ("The base URL of", "Environment (", "Name for this profile (", "API key (")
    assert (code, [shown.count(question) for question in asked], shown.count("error: ")) == (0, [2] * 4, 4)
    assert ("two words" in shown, KEY in shown) == (False, False)
    assert [seen.target for seen in server.seen] == ["/api/v1/webhooks"]
    assert f'key = "{KEY}"' in (program.config / "credentials.toml").read_text()


@pytest.mark.slow
def test_refused_key_is_asked_for_again_and_not_stored(program: Program, server: WireServer) -> None:
    words = ("auth", "login", "--base-url", server.base_url, "--mode", "test", "-p", "a")
    code, shown = answer_all(program.terminal(*words), *["sk_wrong_key\n"] * 3)
    assert (code, shown.count("API key (not shown"), "sk_wrong_key" in shown) == (4, 3, False)
    assert not program.config.exists()

    code, shown = answer_all(program.terminal(*words, "-q"), "sk_wrong_key\n", f"{KEY}\n")
    assert (code, shown.splitlines()[-1]) == (0, "a")


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code"), [("\x03", 130), ("\x04", 3)], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("answers", [0, 1], ids=["at the first question", "at the key"])
def test_cancelled_login_stores_nothing_and_restores_the_terminal(
    program: Program, server: WireServer, typed: str, code: int, answers: int
) -> None:
    words = ["--mode", "test", "-p", "a"] + (["--base-url", server.base_url] if answers else [])
    process = program.terminal("auth", "login", *words)
    shown_code, shown = answer_all(process, typed)
    assert (shown_code, server.seen) == (code, [])
    assert "Traceback" not in shown
    assert not program.config.exists()


@pytest.mark.slow
def test_interrupted_login_restores_the_terminal_echo(program: Program, server: WireServer) -> None:
    shell = pexpect.spawn("bash", ["--norc", "--noprofile"], env=dict(program.environ), encoding="utf-8", timeout=30)
    shell.sendline("PS1='$ '; bind 'set enable-bracketed-paste off'; clear")
    for keys in ("\x03", "\x04", f"{KEY}\n"):
        shell.sendline(f"escrowctl auth login --base-url {server.base_url} --mode test -p a; stty -a | tr ' ' '\\n'")
        shell.expect_exact("(not shown while you type):")
        shell.expect_exact("> ")
        time.sleep(0.2)
        shell.send(keys)
        shell.expect(r"\s(-?echo);?\s")
        assert shell.match[1] == "echo"
        shell.expect_exact("extproc")
    shell.close(force=True)


@pytest.mark.slow
def test_key_from_a_shell_pipe_is_in_no_process_arguments(program: Program, serve: Serve) -> None:
    """While the service takes its time, every process of this machine is looked at."""
    seen: list[str] = []

    def behave(_seen: Seen, connection: socket.socket) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                seen.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        connection.sendall(http_reply("200 OK", b"[]"))

    url = serve(behave).base_url
    there = program.with_environ(THE_KEY=KEY)
    ended = there.bash(f'printf %s "$THE_KEY" | escrowctl auth login --base-url {url} --mode test -p acme-test -q')

    assert (ended.code, ended.out, ended.err) == (0, "acme-test\n", "")
    assert any("auth login" in line for line in seen), "the login itself was looked at"
    assert [line for line in seen if KEY in line] == []


@pytest.mark.slow
@pytest.mark.parametrize("umask", ["000", "777"])
def test_stored_credentials_are_private_with_any_umask(program: Program, server: WireServer, umask: str) -> None:
    there = program.with_environ(THE_KEY=KEY)
    line = f"escrowctl auth login --base-url {server.base_url} --mode test"
    ended = there.bash(
        f'umask {umask}; printf %s "$THE_KEY" | {line} -p a -q && printf %s "$THE_KEY" | {line} -p b -q '
        "&& escrowctl config set profiles.a.timeout 5 -q && escrowctl auth logout -p a -q"
    )

    assert (ended.code, ended.out, ended.err) == (0, "a\nb\n", "")
    modes = {path.name: stat.filemode(path.stat().st_mode) for path in (program.config, *program.config.iterdir())}
    assert modes == {"escrowctl": "drwx------", "config.toml": "-rw-------", "credentials.toml": "-rw-------"}


@pytest.mark.slow
def test_bytes_that_are_no_text_are_no_key(program: Program, server: WireServer) -> None:
    line = f"escrowctl auth login --base-url {server.base_url} --mode test -p a"
    for given in (r"printf '\xff\xfe\x00'", "head -c 100000 /dev/zero", "cat /dev/null", "cat /bin/ls"):
        ended = program.bash(f"{given} | {line}")
        assert (ended.code, ended.out) == (4 if "null" in given else 2, ""), (given, ended.err)
        assert "Traceback" not in ended.err
    assert (server.seen, program.config.exists()) == ([], False)


@pytest.mark.slow
def test_login_killed_at_any_moment_leaves_a_complete_file(program: Program, server: WireServer) -> None:
    """SIGKILL during edits: config.toml parses, and holds a prefix of what was written."""
    program.run("config", "set", "profiles.a.base_url", server.base_url)
    code = (
        "from pathlib import Path; from escrowctl.config.editing import ConfigEditor\n"
        "from escrowctl.runtime import Runtime\n"
        f"editor = ConfigEditor(Path({str(program.config / 'config.toml')!r}), Runtime())\n"
        "editor.set(('profiles', 'a', 'timeout'), 1)\n"
        "print('ready', flush=True)\n"
        "for number in range(1, 30000): editor.set(('profiles', 'a', 'timeout'), 1 + number / 10)\n"
    )
    last = 0.0
    for round_number in range(5):
        process = subprocess.Popen([sys.executable, "-c", code], env=program.environ, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.037 * round_number)
        process.kill()
        finish(process)
        profile = tomllib.loads((program.config / "config.toml").read_text())["profiles"]["a"]
        assert set(profile) == {"base_url", "timeout"}
        last = max(last, profile["timeout"])
    assert last > 1
    assert program.run("config", "set", "profiles.a.mode", "test").code == 0
    assert sorted(path.name for path in program.config.iterdir()) == ["config.toml"]


def start_with_key(program: Program, key: str, *words: str) -> "subprocess.Popen[str]":
    process = program.start("auth", "login", *words, "-q", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(key)
    process.stdin.close()
    process.stdin = None
    return process


@pytest.mark.slow
def test_two_logins_at_once_lose_no_key(program: Program, server: WireServer) -> None:
    line = ("--base-url", server.base_url, "--mode", "test", "-p")
    processes = [start_with_key(program, KEY, *line, f"p{number}") for number in range(6)]

    assert [finish(process).code for process in processes] == [0] * 6
    status = program.run("auth", "status", "--json").json
    assert sorted(row["profile"] for row in status if row["state"] == "stored") == [f"p{number}" for number in range(6)]


@pytest.mark.slow
def test_one_of_two_concurrent_logins_wins_completely(program: Program, serve: Serve) -> None:
    """Both keys are taken, and both answers wait for each other: both logins come to storing at once."""
    both = threading.Barrier(2)

    def behave(_seen: Seen, connection: socket.socket) -> None:
        both.wait(timeout=30)
        connection.sendall(http_reply("200 OK", b"[]"))

    url = serve(behave).base_url
    keys = {"test": "sk_test_0123456789abcdef", "live": "sk_live_0123456789abcdef"}
    processes = [start_with_key(program, keys[mode], "--base-url", url, "--mode", mode, "-p", "one") for mode in keys]
    codes = [finish(process).code for process in processes]

    assert sorted(codes) == [0, 2]
    won = list(keys)[codes.index(0)]
    profile = tomllib.loads((program.config / "config.toml").read_text())["profiles"]["one"]
    stored = tomllib.loads((program.config / "credentials.toml").read_text())
    assert (profile, stored) == ({"base_url": url, "mode": won}, {"one": {"origin": url, "key": keys[won]}})
