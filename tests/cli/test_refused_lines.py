"""Command lines that cannot be carried out, and results that cannot be shown: each ends with its code."""

import errno
import io
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import by_method, hang_up

from cli.replies import HELD, RELEASE, json_reply


class Line(NamedTuple):
    """A command line, its exit code, and its standard input; `terminal`: it is typed at one."""

    words: str
    code: int
    stdin: str = ""
    terminal: bool = False
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed
    config: str = ""
    credentials: str = ""


ACCOUNT = "https://escrow.example.com\ntest\n"
PROFILE = '[profiles.a]\nbase_url = "https://a.example.com"\nmode = "test"\n'

LINES = (
    Line("auth login", 3, ACCOUNT + "a\n", terminal=True),
    Line("auth switch", 2, config="[profiles]\n"),
    Line("auth logout", 2),
    Line(
        "-p a tx release tx_1 --wait", 2, config=PROFILE, environ={"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_PROFILE": "a"}
    ),
    Line("-p a tx get tx_1", 2, config=PROFILE, credentials="x = ["),
    Line("-p a tx get tx_1", 2, config=PROFILE, credentials='[a]\norigin = "https://a.example.com"\n'),
    Line("--base-url https://a.example.com sandbox status", 2),
    Line("sandbox set fault.create=drop-reply*3", 2),
    Line("sandbox set variant.prefix=/v2", 2),
    Line("sandbox move tx_DISPUTED held", 7),
    Line("sandbox reset", 3),
    Line("sandbox reset", 3, "no\n", terminal=True),
    Line("tx get tx_1", 2, environ={"ESCROWCTL_PROFILE": KEY, "ESCROWCTL_API_KEY": KEY}),
    Line("tx get tx_1", 2, environ={"ESCROWCTL_BASE_URL": f"https://h/{KEY}", "ESCROWCTL_API_KEY": KEY}),
    Line("auth login --base-url https://a.example.com --mode test -p sk_test_0123456789abcdef --no-check", 2, KEY),
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.words[:60])
def test_line_that_cannot_be_carried_out_ends_with_its_code(line: Line, run: Run, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    for name, text in (("config.toml", line.config), ("credentials.toml", line.credentials)):
        if text:
            (home / name).write_text(text)
            (home / name).chmod(0o600)

    result = run(*line.words.split(), stdin=line.stdin, terminal=line.terminal, environ=line.environ)

    assert result.code == line.code, result.err


@pytest.mark.parametrize("name", ["config.toml", "credentials.toml"])
def test_file_that_is_no_text_is_refused(name: str, run: Run, home: Path) -> None:
    home.mkdir(mode=0o700, parents=True)
    (home / "config.toml").write_text(PROFILE)
    (home / name).write_bytes(b"\xff\xfe")
    (home / name).chmod(0o600)

    assert run("-p", "a", "tx", "get", "tx_1").code == 2


def test_decision_about_another_escrow_is_refused(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(by_method(GET=json_reply(HELD), PUT=hang_up))
    assert run(*RELEASE).code == 12

    result = run("journal", "resolve", "j1", "--applied", "--id", "tx_2", "--reason", "x")

    assert result.code == 2


def test_head_of_another_journal_is_refused(service_and_run: ServiceAndRun, tmp_path: Path) -> None:
    _, run = service_and_run(json_reply(HELD))
    assert run("tx", "create", "--amount", "100", "--currency", "USD").code == 0
    path = tmp_path / "head.json"
    path.write_text('{"journal_id": "x", "sequence": 1, "digest": "y"}')

    assert run("journal", "verify", "--head", str(path)).code == 2


class FullDisk(io.StringIO):
    """A stream that takes nothing."""

    def write(self, _text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_result_that_cannot_be_printed_is_in_the_error(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(by_method(GET=json_reply(HELD), PUT=hang_up, DELETE=json_reply(b"{}")))
    assert run(*RELEASE).code == 12
    decision = ("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", "--reason", "x")
    lines = (("api", "DELETE", "/x/1", "--yes"), decision)

    results = [run(*line, "--json", stdout=FullDisk()) for line in lines]

    assert [(result.code, result.error["code"]) for result in results] == [(12, "result_not_printed")] * 2
