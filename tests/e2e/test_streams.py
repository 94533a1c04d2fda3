"""Pipes that close early, streams that are closed or full, encodings that lack a letter."""

import os
import socket
from itertools import count

import pytest
from conftest import Serve
from wire_server import Seen, answering, by_method, hang_up, http_reply

from e2e.script import Program, finish

HELD = b'{"id":"tx_1","status":"held","amount":100,"currency":"USD"}'
CREATE = "tx create --amount 100 --currency USD"


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


@pytest.mark.slow
def test_a_create_whose_reader_has_left_names_the_id(connected_program: Program) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    process = connected_program.start(*CREATE.split(), "-q", stdout=writable)
    os.close(writable)
    ended = finish(process)
    assert (ended.code, "created tx_1 (200)" in ended.err) == (12, True)
    assert connected_program.journal() == [("create_transaction", "done")]


# Closed and full


@pytest.mark.parametrize("stdout", [">&-", "> /dev/full"], ids=["closed", "full"])
def test_create_whose_stdout_takes_nothing_names_the_id(connected_program: Program, stdout: str) -> None:
    ended = connected_program.bash(f"escrowctl {CREATE} --json {stdout}")
    facts = {"code": "result_not_printed", "outcome": "done", "exit_code": 12, "hint": None, "http_status": 200}
    assert ended.code == 12
    # What a log needs to know what was created.
    assert ended.error.items() >= (facts | {"id": "tx_1", "entry": "j1"}).items()
    assert ended.error["request"]["method"] == "POST"
    assert connected_program.journal() == [("create_transaction", "done")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["escrowctl tx get tx_1", "escrowctl journal list", "escrowctl --help", "escrowctl --version"]
)
def test_read_whose_stdout_is_full_is_a_local_error(connected_program: Program, line: str) -> None:
    assert connected_program.run("tx", "create", "--amount", "100", "--currency", "USD").code == 0
    ended = connected_program.bash(f"{line} > /dev/full")
    assert (ended.code, "No space left on device" in ended.err) == (17, True)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["--version", "--help", "tx get tx_1", "journal list", "help exit-codes"])
def test_a_read_whose_stdout_is_closed_is_no_defect(connected_program: Program, line: str) -> None:
    assert connected_program.run("tx", "create", "--amount", "100", "--currency", "USD").code == 0
    ended = connected_program.bash(f"escrowctl {line} >&-")
    assert ended.code in (0, 17), ended.err
    assert "Traceback" not in ended.err
    assert "defect" not in ended.err


@pytest.mark.slow
def test_closed_stdin_and_stderr_do_not_change_result_or_exit_code(connected_program: Program) -> None:
    ended = connected_program.bash(
        f"escrowctl {CREATE} -q <&- 2>&-; echo $?; escrowctl --sandbox tx get tx_0 2>&-; echo $?"
    )
    assert (ended.out, ended.err) == ("tx_1\n0\n6\n", "")
    assert connected_program.journal() == [("create_transaction", "done")]


@pytest.mark.parametrize("stderr", ["2>&-", "2> /dev/full"])
def test_stderr_that_takes_nothing_leaves_the_exit_code_of_an_unknown(
    program: Program, serve: Serve, stderr: str
) -> None:
    there = program.at(serve(hang_up))
    assert there.bash(f"escrowctl {CREATE} {stderr}").code == 12
    assert there.journal() == [("create_transaction", "unknown")]


@pytest.mark.slow
def test_unknown_write_with_both_readers_gone_ends_with_12(program: Program, serve: Serve) -> None:
    there = program.at(serve(hang_up))
    readable, writable = os.pipe()
    os.close(readable)
    process = there.start(*CREATE.split(), stdout=writable, stderr=writable)
    os.close(writable)
    assert finish(process).code == 12


@pytest.mark.slow
@pytest.mark.parametrize(("line", "code"), [("tx release tx_1", 3), ("tx get -", 2)])
def test_closed_stdin_has_no_confirmation_and_no_ids(connected_program: Program, line: str, code: int) -> None:
    ended = connected_program.bash(f"escrowctl {line} <&-")
    assert (ended.code, ended.out) == (code, "")


# Encodings


@pytest.fixture
def non_ascii_program(program: Program, serve: Serve) -> Program:
    """The program, pointed at a server whose records have letters that ASCII lacks, one of them two code units wide."""
    record = '{"id":"tx_1","payee":"Łódź \U0001f4b6"}'.encode()
    refusal = '{"detail":"Łódź is closed"}'.encode()
    replies = {"GET": http_reply("200 OK", record), "POST": http_reply("422 Unprocessable", refusal)}
    return program.at(serve(by_method(**{method: answering(reply) for method, reply in replies.items()})))


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_letters_that_the_locale_lacks_are_shown_by_their_codes(
    non_ascii_program: Program, variables: dict[str, str]
) -> None:
    there = non_ascii_program.with_environ(**variables)
    shown, as_json, refused = (there.run(*line.split()) for line in ("tx get tx_1", "tx get tx_1 --json", CREATE))
    assert (shown.code, shown.out) == (0, "id\ttx_1\npayee\t\\u0141\\xf3d\\u017a \\U0001f4b6\n")
    assert (as_json.code, as_json.json["payee"]) == (0, "Łódź \U0001f4b6")
    assert (refused.code, "\\u0141\\xf3d\\u017a is closed" in refused.err) == (8, True)


# What a pipe never gets


@pytest.mark.slow
def test_no_piped_output_has_an_escape_byte(connected_program: Program) -> None:
    program = connected_program.with_environ(COLUMNS="20", COLORTERM="truecolor")
    assert program.run(*CREATE.split()).code == 0
    lines = ("--help", "tx get tx_1", "tx get tx_1 tx_2", "tx get tx_1 --json", "journal list", "journal show j1", "tx")
    ended = [program.run(*line.split()) for line in (*lines, "tx get ..", "--sandbox tx get tx_0", "nonsense")]
    assert [result.code for result in ended] == [0] * len(lines) + [2, 6, 2]
    assert ["\x1b" in result.out + result.err for result in ended] == [False] * len(ended)
