"""`--data`: sources of the body, and bodies that are not JSON."""

import os
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from conftest import ServiceAndRun

from cli.replies import HELD, json_reply
from escrowctl.commands.writing import read_data

CREATE = ("webhook", "create", "--url", "https://hooks.example.net/x")


def test_data_is_read_from_stdin(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"id":"wh_1"}'))

    result = run(*CREATE, "--data", "@-", stdin='{"note": "x",\n "n": 1.50}\n')

    assert result.code == 0
    assert [seen.body for seen in server.writes] == [b'{"url":"https://hooks.example.net/x","note":"x","n":1.50}']


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (("tx", "create", "--amount", "100", "--currency", "USD"), b'{"amount":100,"currency":"USD","note":"x"}'),
        (("tx", "update", "tx_1", "--yes"), b'{"note":"x"}'),
        (("tx", "release", "tx_1", "--yes"), b'{"note":"x"}'),
        (("api", "POST", "/payouts", "--yes"), b'{"note":"x"}'),
    ],
)
def test_every_write_takes_its_data_from_stdin(
    line: tuple[str, ...], body: bytes, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*line, "--data", "@-", stdin='{"note": "x"}')

    assert (result.code, [seen.body for seen in server.writes]) == (0, [body])


def test_ids_and_data_cannot_both_come_from_stdin(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "-", "--yes", "--data", "@-", stdin="tx_1\n")

    assert (result.code, server.seen) == (2, [])
    assert result.err.startswith("error: --data is empty: ")


def test_data_from_stdin_is_read_as_bytes() -> None:
    stdin = TextIOWrapper(BytesIO('{"note":"\u00fc"}'.encode()), encoding="ascii")

    assert read_data("@-", stdin) == {"note": "\u00fc"}


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [
        ("", "--data is empty: give a JSON object"),
        ('{"a": 1,\n "b" 2}', "--data is not JSON at line 2, column 6: give a JSON object"),
    ],
)
def test_stdin_that_is_no_json_is_refused(stdin: str, sentence: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b"{}"))

    result = run(*CREATE, "--data", "@-", stdin=stdin)

    assert (result.code, server.seen) == (2, [])
    assert result.err.startswith(f"error: {sentence}")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("{bad", "is not JSON at line 1, column 2: "),
        ('{"a":', "was truncated at line 1, column 6: "),
        ("{\x00\x00", "is not JSON at line 1, column 2: "),
        ('{"a":1}}', "is not JSON at line 1, column 8: "),
        ('{"a":1,"a":2}', "has a duplicate field in one object: "),
        ("<a>", "is HTML, not JSON: "),
    ],
)
def test_data_that_is_not_json_is_refused_with_the_position(
    data: str, sentence: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(b"{}"))

    result = run(*CREATE, "--data", data)

    assert (result.code, server.seen) == (2, [])
    assert result.err.startswith(f"error: --data {sentence}")


def test_data_from_a_special_file_is_refused_without_waiting(tmp_path: Path, service_and_run: ServiceAndRun) -> None:
    os.mkfifo(tmp_path / "fifo")
    server, run = service_and_run(json_reply(b"{}"))

    fifo, folder = (run(*CREATE, "--data", f"@{path}") for path in (tmp_path / "fifo", tmp_path))

    for result, path, kind in ((fifo, tmp_path / "fifo", "a named pipe"), (folder, tmp_path, "a folder")):
        sentence = (
            f"--data @{path} is {kind}, not a regular file: write @FILE, or @- for standard input. Nothing was sent."
        )
        assert (result.code, result.err) == (2, f"error: {sentence}\n")
    assert server.seen == []


def test_data_from_a_file_is_read(tmp_path: Path, service_and_run: ServiceAndRun) -> None:
    (tmp_path / "body.json").write_text('{"n": 1.50}')
    server, run = service_and_run(json_reply(b'{"id":"wh_1"}'))

    assert run(*CREATE, "--data", f"@{tmp_path / 'body.json'}").code == 0
    assert [seen.body for seen in server.writes] == [b'{"url":"https://hooks.example.net/x","n":1.50}']
