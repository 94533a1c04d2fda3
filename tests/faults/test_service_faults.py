"""Every fault of a service, with every command: the right exit code, and at most one write.

The fake service counts on raw sockets; the expected results are in `faults.service_faults`, by hand. The same
again through a proxy's tunnel, and in-process.
"""

import random
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from conftest import KEY, Run
from wire_server import Seen, WireServer, answering, http_reply, serving

from faults import reply_variants
from faults.case_runner import HOST, LINES, READING, Answers, Application, CaseRunner, Command, faults_of
from faults.misbehaving_service import Connection, MisbehavingServer, record
from faults.proxy_faults import AT_THE_PROXY, reset_tunnel
from faults.seeds import draw_seed
from faults.service_faults import (
    COMMANDS,
    IN_PROCESS,
    NEVER_SENT,
    ROWS,
    WRITES,
    Row,
    answer_in_tls,
    complete,
    every,
    says,
)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    return context


@pytest.fixture
def case_runner(run: Run, tmp_path: Path, authority: trustme.CA, tls: ssl.SSLContext) -> Iterator[CaseRunner]:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    other_server = WireServer(answering(http_reply("200 OK", record("tx_1"))))
    yield CaseRunner(run, other_server, tls, bundle)
    other_server.close()


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> Application:
    made = Application()
    monkeypatch.setattr("escrowctl.sandbox.service.open_sandbox", lambda *_words, **_keywords: made)
    return made


def meetings(row: Row) -> list[tuple[Command, int]]:
    """Return the commands that meet a row, with their right exit codes."""
    every = [(LINES[name], end) for name, end in zip(COMMANDS, row.ends, strict=True)]
    if row.ends_reading():
        every.append((READING, row.ends_reading()))
    return every


def drawn(rows: tuple[Row, ...], count: int | None) -> list[tuple[Row, Command, int]]:
    """Return all meetings of these rows, or as many drawn by the seed."""
    every = [(row, *meeting) for row in rows for meeting in meetings(row)]
    return every if count is None else random.Random(draw_seed()).sample(every, count)


# Straight


DEFAULT_ROWS = (
    *("silence", "429, wait for nonsense", "401", "404", "408", "504", "302 elsewhere", "an error and 200"),
    *("HTML and 200", "two replies at once", "hang up after reading", "reset after reading", "a chunk cut short"),
    *("half a status line", "100 Continue without end", "500 after the commit", "not gzip", "TLS on the plain port"),
)


@pytest.mark.representative(*(f"{name}-45" for name in DEFAULT_ROWS))
@pytest.mark.parametrize("count", [45, pytest.param(len(ROWS), id="all", marks=pytest.mark.long)])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_command_ends_as_expected_and_writes_at_most_once(row: Row, count: int, case_runner: CaseRunner) -> None:
    """The writes of money meet every row; the other commands as many as the seed draws."""
    drawn_rows = random.Random(draw_seed()).sample(ROWS, count)
    for command, end in meetings(row):
        if row in drawn_rows or command.name in ("create", "release"):
            case_runner.run_case(row, command, expected=end)
    case_runner.finish()


def test_fault_table_has_enough_rows() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 40


@pytest.mark.parametrize("command", LINES.values(), ids=LINES)
def test_closed_port_is_sent_nothing(command: Command, case_runner: CaseRunner) -> None:
    row = Row("refused", Connection.reset, NEVER_SENT)
    with closing(case_runner.make_server(row, command, tunnel=False)) as server:
        pass  # closed again: the port refuses
    case_runner.check(row, command, case_runner.run_against(server, row, command, tunnel=False), NEVER_SENT[0])
    case_runner.finish()


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES.values(), ids=LINES)
def test_server_that_never_accepts_is_sent_nothing(command: Command, case_runner: CaseRunner) -> None:
    row = Row("a full backlog", Connection.reset, NEVER_SENT)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        environ = {"ESCROWCTL_BASE_URL": f"http://127.0.0.1:{listener.getsockname()[1]}", "ESCROWCTL_API_KEY": KEY}
        result = case_runner.run(*command.line, "--timeout", "0.3", "--json", environ=environ)
    case_runner.check(row, command, result, NEVER_SENT[0])
    case_runner.finish()


# A connection that outlives its reply


@pytest.mark.parametrize("name", ["release", "update"])
def test_second_reply_to_the_read_is_not_the_write_reply(name: str, case_runner: CaseRunner) -> None:
    command = LINES[name]

    def behave(seen: Seen, connection: socket.socket) -> None:
        if seen.is_write:
            connection.sendall(http_reply("400 Bad Request", b'{"detail":"beneficiary blocked"}'))
        else:
            connection.sendall(complete(command.right) + complete(command.right.replace(b"held", b"released")))

    with serving(behave) as server:
        environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
        result = case_runner.run(*command.line, "--json", environ=environ)

    assert [*faults_of(result, 8, writes=True)] == []
    assert len(server.writes) == 1


# Through a proxy


def renumbered(command: Command, number: int) -> Command:
    """Return a line that is no other's equal: an unknown write holds back its equals."""
    line = tuple(
        f"{word}{number}" if word.startswith("tx_") else word.replace("/x", f"/{number}") for word in command.line
    )
    if command.name == "create":
        line += ("--data", f'{{"n":{number}}}')
    # A service gives each escrow a new id.
    right = command.right.replace(b'"tx_made"', b'"tx_made%d"' % number)
    for word, renamed in zip(command.line, line, strict=False):
        right = right.replace(b'"id":"%s"' % word.encode(), b'"id":"%s"' % renamed.encode())
    return replace(command, line=line, right=right)


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 50, pytest.param(None, id="all", marks=pytest.mark.long)])
def test_a_tunnel_changes_nothing(case_runner: CaseRunner, count: int | None) -> None:
    rows = tuple(row for row in ROWS if not row.https and row.what is not answer_in_tls)
    for number, (row, command, end) in enumerate(drawn(rows, count)):
        case_runner.run_case(row, renumbered(command, number), expected=end, tunnel=True)
    case_runner.finish()


@pytest.mark.slow
@pytest.mark.parametrize("row", AT_THE_PROXY, ids=lambda row: row.name)
def test_a_proxy_that_makes_no_tunnel_is_no_service(row: Row, case_runner: CaseRunner) -> None:
    for command, end in meetings(row):
        case_runner.run_case_at_proxy(row, command, expected=end)
    case_runner.finish()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "get"])
def test_a_tunnel_that_was_reset_leaves_room_for_another_try(name: str, case_runner: CaseRunner) -> None:
    command = LINES[name]
    with closing(MisbehavingServer(reset_tunnel, command.right, at_proxy=reset_tunnel)) as server:
        row = Row("a tunnel that is reset", reset_tunnel, NEVER_SENT, tries=3)
        result = case_runner.run_against(server, row, command, tunnel=True, timeout="1")

    assert (result.code, len(server.tunnels)) == (11, 3)


# In-process


@pytest.mark.representative("15")
@pytest.mark.parametrize("count", [15, 50, pytest.param(None, id="all", marks=pytest.mark.long)])
def test_the_sandbox_meets_the_same_in_process(
    case_runner: CaseRunner, application: Application, count: int | None
) -> None:
    for number, (row, command, end) in enumerate(drawn(IN_PROCESS, count)):
        # The sandbox's word for released is known, and this application keeps reading as held.
        right = 16 if (command.name, end) == ("release", 0) else end
        case_runner.run_case_in_process(row, renumbered(command, number), application, expected=right)
    case_runner.finish("--sandbox")


@pytest.mark.representative("create-*", "release-raises")
@pytest.mark.parametrize("how", ["raises", "raises half-way", "never starts", "no status", "no bytes", "nothing"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_the_application_itself_fails_is_unknown(
    how: str, name: str, case_runner: CaseRunner, application: Application
) -> None:
    application.instead = fails(how)

    case_runner.run_case_in_process(Row(how, says(b""), every(12)), LINES[name], application, expected=12)

    case_runner.finish("--sandbox")


def fails(how: str) -> Answers:
    """Return how an application fails that breaks the rules of WSGI itself."""

    def fail(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if how == "raises":
            raise OSError("the application failed")
        if how == "never starts":
            return []
        start_response("OK" if how == "no status" else "200 OK", [])
        return {"raises half-way": raising(), "no bytes": ["text"], "nothing": None}.get(how, [])

    return fail


def raising() -> Iterator[bytes]:
    yield b'{"id":'
    raise OSError("the application failed half-way")


# Broken variants: the harness must notice them

MEETINGS: dict[str, Callable[[CaseRunner, Row, Command, Application], None]] = {
    "straight": lambda case_runner, row, command, _: case_runner.run_case(row, command, expected=end_of(row, command)),
    "at the proxy": lambda case_runner, row, command, _: case_runner.run_case_at_proxy(
        row, command, expected=end_of(row, command)
    ),
    "in-process": lambda case_runner, row, command, application: case_runner.run_case_in_process(
        row, command, application, expected=end_of(row, command)
    ),
}


def end_of(row: Row, command: Command) -> int:
    return row.ends[COMMANDS.index(command.name)]


RAISING = Row("raises", says(b""), every(12))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "how", "name", "command", "noticed"),
    [
        (reply_variants.judges_by_exception, "straight", "reset after reading", "create", "exit 11, right is 12"),
        (reply_variants.judges_by_status_alone, "straight", "HTML and 200", "release", "exit 0, right is 12"),
        (reply_variants.takes_errors_for_refusals, "straight", "502 in HTML", "update", "exit 8, right is 12"),
        (
            reply_variants.sends_again_after_a_reset,
            "straight",
            "reset after reading",
            "create",
            "3 writes, 1 to 1 were right",
        ),
        (
            reply_variants.follows_redirects,
            "straight",
            "307 elsewhere",
            "create",
            "the key or the request went elsewhere",
        ),
        (reply_variants.lets_decoding_raise, "straight", "not gzip", "get", "exit 1, right is 10"),
        (reply_variants.tells_less_than_was_said, "straight", "two replies at once", "update", "it prints"),
        (reply_variants.counts_the_tunnel_as_sent, "at the proxy", "hang up", "create", "exit 12, right is 11"),
        (
            *(reply_variants.forgets_the_call, "in-process", "raises", "create"),
            r"the journal says \['not_sent'\], right is \['unknown'\]",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.usefixtures("time_limit")
def test_the_harness_notices_a_broken_variant(
    variant: reply_variants.Variant,
    how: str,
    name: str,
    command: str,
    noticed: str,
    case_runner: CaseRunner,
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    reached: reply_variants.Reached,
) -> None:
    variant(monkeypatch, reached)
    application.instead = fails("raises")
    row = next(row for row in (*ROWS, *AT_THE_PROXY, RAISING) if row.name == name)

    MEETINGS[how](case_runner, row, LINES[command], application)

    with pytest.raises(AssertionError, match=noticed):
        case_runner.finish(*(["--sandbox"] if how == "in-process" else []))
