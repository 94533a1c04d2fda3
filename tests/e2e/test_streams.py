"""Pipes that close early, streams that are closed or full, encodings that lack a letter."""

import json
import os
import socket
from itertools import count

import pytest
from conftest import Serve
from wire_server import Seen, by_method, http_reply

from e2e.script import Program, finish

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
CREATE = "tx create --amount 100 --currency USD"
CREATED = "created tx_1 (200), but escrowctl could not print the result:"
AGAIN = "Do not repeat this command."


@pytest.fixture
def connected_program(program: Program, serve: Serve) -> Program:
    """The program, pointed at a server that creates tx_1, then tx_2, and has a record of every id that is read."""
    numbers = count(1)

    def answer(seen: Seen, connection: socket.socket) -> None:
        resource_id = seen.target.rpartition("/")[2].encode() if seen.method == "GET" else b"tx_%d" % next(numbers)
        connection.sendall(http_reply("200 OK", HELD.replace(b"tx_1", resource_id)))

    return program.at(serve(answer))


# A reader that leaves early


@pytest.mark.representative("seq*")
@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("escrowctl --help", "Usage: escrowctl [OPTIONS] COMMAND [ARGS]..."),
        ("escrowctl tx get tx_{1..40}", "tx_1\theld\t100\tUSD\t"),
        ("escrowctl tx get tx_{1..40} -q", "tx_1"),
        ("seq -f tx_%g 40 | escrowctl tx get -", "tx_1\theld\t100\tUSD\t"),
    ],
)
def test_pipe_closed_by_head_is_not_an_error(connected_program: Program, line: str, first: str) -> None:
    ended = connected_program.bash(f'{line} | head -1; echo "${{PIPESTATUS[@]: -2:1}}"')
    assert (ended.out, ended.err) == (f"{first}\n0\n", "")


@pytest.mark.thorough
def test_head_takes_the_newest_entry_of_the_journal(connected_program: Program) -> None:
    for _ in range(2):
        assert connected_program.run(*CREATE.split(), "-q").code == 0
    ended = connected_program.bash('escrowctl journal list -q | head -1; echo "${PIPESTATUS[0]}"')
    assert (ended.out, ended.err) == ("j2\n0\n", "")


def test_a_create_whose_reader_has_left_names_the_id(connected_program: Program) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    process = connected_program.start(*CREATE.split(), "-q", stdout=writable)
    os.close(writable)
    ended = finish(process)
    assert (ended.code, ended.err) == (12, f"error: {CREATED} the output was closed. {AGAIN}\n")
    assert connected_program.journal() == [("create_transaction", "done")]


# Closed and full


def test_a_create_whose_stdout_is_closed_names_the_id(connected_program: Program) -> None:
    ended = connected_program.bash(f"escrowctl {CREATE} >&-")
    assert (ended.code, ended.out) == (12, "")
    assert ended.err.startswith(f"error: {CREATED}"), ended.err
    assert connected_program.journal() == [("create_transaction", "done")]


def test_a_create_whose_stdout_is_full_names_the_id(connected_program: Program) -> None:
    ended = connected_program.bash(f"escrowctl {CREATE} > /dev/full")
    assert (ended.code, ended.err) == (
        12,
        f"error: {CREATED} the output could not be written: No space left on device. {AGAIN}\n",
    )
    assert connected_program.journal() == [("create_transaction", "done")]


@pytest.mark.thorough
def test_create_whose_stdout_is_full_is_reported_as_json(connected_program: Program) -> None:
    ended = connected_program.bash(f"escrowctl {CREATE} --json > /dev/full")
    error = json.loads(ended.err.splitlines()[-1])["error"]
    assert ended.code == 12
    assert error["message"] == f"{CREATED} the output could not be written: No space left on device. {AGAIN}"
    facts = {"code": "result_not_printed", "outcome": "done", "exit_code": 12, "hint": None, "http_status": 200}
    # What a log needs to know what was created.
    assert facts | {"id": "tx_1", "entry": "j1"} == {name: error[name] for name in (*facts, "id", "entry")}
    assert error["request"]["method"] == "POST"


@pytest.mark.representative("escrowctl tx get tx_1", "escrowctl --version")
@pytest.mark.parametrize(
    "line", ["escrowctl tx get tx_1", "escrowctl journal list", "escrowctl --help", "escrowctl --version"]
)
def test_read_whose_stdout_is_full_is_a_local_error(connected_program: Program, line: str) -> None:
    assert connected_program.run("tx", "create", "--amount", "100", "--currency", "USD").code == 0
    ended = connected_program.bash(f"{line} > /dev/full")
    assert (ended.code, ended.err) == (17, "error: the output could not be written: No space left on device.\n")


@pytest.mark.representative("tx get tx_1", "journal list")
@pytest.mark.parametrize("line", ["--version", "--help", "tx get tx_1", "journal list", "help exit-codes"])
def test_a_read_whose_stdout_is_closed_is_no_defect(connected_program: Program, line: str) -> None:
    assert connected_program.run("tx", "create", "--amount", "100", "--currency", "USD").code == 0
    ended = connected_program.bash(f"escrowctl {line} >&-")
    assert ended.code in (0, 17), ended.err
    assert "Traceback" not in ended.err
    assert "defect" not in ended.err


def test_closed_stderr_does_not_change_result_or_exit_code(connected_program: Program) -> None:
    ended = connected_program.bash(
        f"escrowctl {CREATE} -q 2>&-; echo $?; escrowctl --sandbox tx get tx_0 2>&-; echo $?"
    )
    assert (ended.out, ended.err) == ("tx_1\n0\n6\n", "")


def test_with_stderr_closed_an_unknown_is_still_12(program: Program, serve: Serve) -> None:
    server = serve(lambda _seen, connection: connection.shutdown(2))
    ended = program.at(server).bash(f"escrowctl {CREATE} 2>&-")
    assert (ended.code, ended.out, ended.err) == (12, "", "")
    assert program.journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--sandbox tx create --amount 100 --currency USD", 0),
        ("tx create --amount 1,000 --currency USD", 2),
        ("--sandbox tx get tx_0", 6),
        (CREATE, 12),
    ],
)
def test_full_stderr_leaves_the_exit_code(program: Program, serve: Serve, line: str, code: int) -> None:
    there = program.at(serve(lambda _seen, connection: connection.shutdown(2)))
    assert there.bash(f"escrowctl {line} 2> /dev/full").code == code


def test_unknown_write_with_both_readers_gone_ends_with_12(program: Program, serve: Serve) -> None:
    there = program.at(serve(lambda _seen, connection: connection.shutdown(2)))
    readable, writable = os.pipe()
    os.close(readable)
    process = there.start(*CREATE.split(), stdout=writable, stderr=writable)
    os.close(writable)
    assert finish(process).code == 12


def test_closed_stdin_cannot_confirm(connected_program: Program) -> None:
    ended = connected_program.bash("escrowctl tx release tx_1 <&-")
    assert (ended.code, ended.out, ended.err) == (
        3,
        "",
        "error: the release of tx_1 needs confirmation, but there is no terminal. Nothing was sent.\n"
        "hint: to confirm without a question: repeat the command with --yes\n",
    )


def test_closed_stdin_has_no_ids(connected_program: Program) -> None:
    ended = connected_program.bash("escrowctl tx get - <&-")
    assert (ended.code, ended.out, ended.err) == (
        2,
        "",
        "error: standard input has no id: write one id per line. Nothing was sent.\n",
    )


def test_a_create_needs_no_stream_but_stdout(connected_program: Program) -> None:
    ended = connected_program.bash(f"escrowctl {CREATE} -q <&- 2>&-")
    assert (ended.code, ended.out) == (0, "tx_1\n")
    assert connected_program.journal() == [("create_transaction", "done")]


# Encodings


@pytest.fixture
def non_ascii_program(program: Program, serve: Serve) -> Program:
    """The program, pointed at a server whose records have letters that ASCII lacks, one of them two code units wide."""
    record = '{"id":"tx_1","payee":"Łódź \U0001f4b6"}'.encode()
    refusal = '{"detail":"Łódź is closed"}'.encode()
    return program.at(
        serve(
            by_method(
                GET=lambda _seen, connection: connection.sendall(http_reply("200 OK", record)),
                POST=lambda _seen, connection: connection.sendall(http_reply("422 Unprocessable", refusal)),
            )
        )
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_letters_that_the_locale_lacks_are_shown_by_their_codes(
    non_ascii_program: Program, variables: dict[str, str]
) -> None:
    there = non_ascii_program.with_environ(**variables)
    shown = there.run("tx", "get", "tx_1")
    assert (shown.code, shown.out, shown.err) == (0, "id\ttx_1\npayee\t\\u0141\\xf3d\\u017a \\U0001f4b6\n", "")
    refused = there.run(*CREATE.split())
    assert (refused.code, refused.out, refused.err) == (
        8,
        "",
        'error: the service refused the create: 422 "\\u0141\\xf3d\\u017a is closed".\n',
    )


@pytest.mark.representative("variables0")
@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}])
def test_json_is_ascii_and_complete_in_every_locale(non_ascii_program: Program, variables: dict[str, str]) -> None:
    ended = non_ascii_program.with_environ(**variables).run("tx", "get", "tx_1", "--json")
    assert (ended.code, ended.out, ended.err) == (
        0,
        '{"id": "tx_1", "payee": "\\u0141\\u00f3d\\u017a \\ud83d\\udcb6"}\n',
        "",
    )


# What a pipe never gets


@pytest.mark.thorough
def test_no_piped_output_has_an_escape_byte(connected_program: Program) -> None:
    program = connected_program.with_environ(COLUMNS="20", COLORTERM="truecolor")
    assert program.run(*CREATE.split()).code == 0
    lines = ("--help", "tx get tx_1", "tx get tx_1 tx_2", "tx get tx_1 --json", "journal list", "journal show j1", "tx")
    ended = [program.run(*line.split()) for line in (*lines, "tx get ..", "--sandbox tx get tx_0", "nonsense")]
    assert [result.code for result in ended] == [0] * len(lines) + [2, 6, 2]
    assert ["\x1b" in result.out + result.err for result in ended] == [False] * len(ended)
