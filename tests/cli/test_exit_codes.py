"""The exit codes: a command that ends in each, and the rows of `help exit-codes`."""

import os
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, Serve, ServiceAndRun, Terminal
from wire_server import Behave, Seen, hang_up, http_reply

from cli.replies import CREATE, HELD, RELEASE, RELEASED, WEBHOOK, create, in_turn, json_reply, writes_meet
from escrowctl.errors import ExitCode
from escrowctl.main import main
from escrowctl.runtime import Runtime

GET = ("tx", "get", "tx_1")


class _Stopping(Terminal):
    """A keyboard at which a signal arrives in place of an answer."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self._number = number

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override] # as StringIO itself does
        signal.raise_signal(self._number)
        return ""


@dataclass(frozen=True)
class Row:
    """One way to end in a code, and how many writes the service saw."""

    code: ExitCode
    line: tuple[str, ...]
    behave: Behave
    writes: int = 0
    before: tuple[str, ...] = ()
    injected: dict[str, Any] = field(default_factory=dict)
    word: str = ""
    """The `error.code` that says it finer; empty for exit 0."""


def _fail() -> str:
    raise RuntimeError("as a defect would")


def _answered(status: str) -> Behave:
    return writes_meet(json_reply(b"", status))


NAMELESS = writes_meet(hang_up, reads=json_reply(b'{"status":"held"}'))
"""Each id is printed as typed: the record echoes none."""

ROWS = (
    Row(ExitCode.OK, CREATE, json_reply(HELD), 1),
    Row(ExitCode.OK, ("journal", "list"), json_reply(HELD), 1, before=CREATE),
    Row(ExitCode.DEFECT, GET, json_reply(HELD), injected={"new_uuid": _fail}, word="defect"),
    Row(ExitCode.USAGE, ("tx", "create", "--amount", "1"), json_reply(HELD), word="usage"),
    Row(ExitCode.USAGE, (*GET, "-p", "nowhere"), json_reply(HELD), word="bad_config"),
    Row(ExitCode.DECLINED, RELEASE[:3], json_reply(HELD), word="confirmation_needed"),
    Row(ExitCode.DECLINED, (*RELEASE, "--expect-amount", "7"), json_reply(HELD), word="expectation_failed"),
    Row(ExitCode.UNAUTHENTICATED, CREATE, _answered("401 No"), 1, word="not_authenticated"),
    Row(ExitCode.FORBIDDEN, RELEASE, _answered("403 No"), 1, word="forbidden"),
    Row(ExitCode.NOT_FOUND, ("journal", "show", "j9"), hang_up, word="not_found"),
    Row(ExitCode.CONFLICT, RELEASE, _answered("409 No"), 1, word="conflict"),
    Row(ExitCode.CONFLICT, RELEASE, writes_meet(json_reply(RELEASED)), 1, before=RELEASE, word="already_done"),
    Row(ExitCode.REFUSED, CREATE, _answered("422 No"), 1, word="refused"),
    Row(ExitCode.RATE_LIMITED, CREATE, _answered("429 No"), 1, word="rate_limited"),
    Row(ExitCode.READ_FAILED, GET, json_reply(b"", "500 No"), word="read_failed"),
    Row(ExitCode.READ_FAILED, GET, hang_up, word="read_failed"),
    Row(ExitCode.READ_FAILED, GET, json_reply(b"<html>"), word="unreadable_reply"),
    Row(ExitCode.NO_CONNECTION, (*GET, "--base-url", "CLOSED"), hang_up, word="no_connection"),
    Row(ExitCode.NO_CONNECTION, (*CREATE, "--base-url", "CLOSED"), hang_up, word="no_connection"),
    Row(ExitCode.UNKNOWN, CREATE, hang_up, 1, word="outcome_unknown"),
    Row(ExitCode.UNKNOWN, CREATE, hang_up, 1, before=create("100.00"), word="earlier_unknown"),
    Row(ExitCode.UNKNOWN, CREATE, json_reply(b'{"ref":"A"}'), 1, word="outcome_unknown"),
    Row(ExitCode.UNKNOWN, (*WEBHOOK, "-q"), json_reply(b'{"ref":"A"}'), 1, word="id_unknown"),
    Row(ExitCode.CHECK_FAILED, CREATE, json_reply(b'{"id":"A","status":"declined"}'), 1, word="check_failed"),
    Row(ExitCode.UNKNOWN, ("tx", "release", "tx_1", "tx_2", "--yes"), NAMELESS, 2, word="some_unknown"),
    Row(
        ExitCode.PARTIAL,
        ("tx", "get", "tx_1", "tx_2"),
        in_turn(json_reply(HELD), json_reply(b"", "404 No")),
        word="some_failed",
    ),
    Row(ExitCode.LOCAL_STATE, (*CREATE, "HOME IS A FILE"), json_reply(HELD), word="state_unusable"),
)


def test_every_reachable_exit_code_has_a_case() -> None:
    """WAIT_EXPIRED needs a profile and a clock: the guards' tests have it. SIGNATURE: those of webhooks have it.

    The signals follow below.
    """
    elsewhere = {ExitCode.WAIT_EXPIRED, ExitCode.SIGNATURE, ExitCode.INTERRUPTED, ExitCode.TERMINATED}
    assert {row.code for row in ROWS} | elsewhere == set(ExitCode)


@pytest.mark.representative("*")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code.name}-{row.word or 'done'}-{row.line[1]}")
def test_a_command_ends_in_the_code_of_its_row(row: Row, serve: Serve, run: Run, tmp_path: Path) -> None:
    server = serve(row.behave)
    closed = serve(hang_up)
    closed.close()
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": "sk_test_1"}
    line = tuple(word for word in row.line if word != "HOME IS A FILE")
    if line != row.line:
        (tmp_path / "file").write_text("no folder")
        environ["ESCROWCTL_HOME"] = str(tmp_path / "file")
    if "CLOSED" in line:
        line = tuple(closed.base_url if word == "CLOSED" else word for word in line)
        environ["ESCROWCTL_BASE_URL"] = closed.base_url
    if row.before:
        run(*row.before, environ=environ)

    result = run(*line, "--json", environ=environ, **row.injected)

    assert (result.code, len(server.writes)) == (row.code, row.writes), result.err
    if row.word:
        assert (result.error["code"], result.error["exit_code"]) == (row.word, row.code)
    else:
        assert result.err == ""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_signal_at_the_confirmation_exits_with_its_code(
    number: signal.Signals, code: ExitCode, home: Path, serve: Serve
) -> None:
    server = serve(json_reply(HELD))
    environ = {"ESCROWCTL_HOME": str(home), "ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": "sk_test_1"}
    out, err = Terminal(), Terminal()

    ended = main(RELEASE[:3], Runtime(environ=environ, stdin=_Stopping(number), stdout=out, stderr=err))

    assert (ended, out.getvalue(), server.writes) == (code, "", [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ignored_at_the_start_stays_ignored(number: signal.Signals, service_and_run: ServiceAndRun) -> None:
    def answer(_seen: Seen, connection: socket.socket) -> None:
        os.kill(os.getpid(), number)
        connection.sendall(http_reply("200 OK", b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'))

    before = signal.signal(number, signal.SIG_IGN)
    try:
        _server, run = service_and_run(answer)
        result = run("tx", "create", "--amount", "100", "--currency", "USD", "-q")
        assert (result.code, result.out, signal.getsignal(number)) == (0, "tx_1\n", signal.SIG_IGN)
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("line", [(), ("tx",), ("--help",), ("tx", "create", "-h")])
def test_help_is_data_and_success(line: tuple[str, ...], run: Run) -> None:
    result = run(*line)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: escrowctl")
