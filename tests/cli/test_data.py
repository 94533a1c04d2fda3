"""`--data`: sources of the body, and bodies that are not JSON."""

import os
from pathlib import Path

import pytest
from conftest import ServiceAndRun

from cli.replies import CREATE, HELD, RELEASE, WEBHOOK, json_reply


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (CREATE, b'{"amount":100,"currency":"USD","note":"x"}'),
        (WEBHOOK, b'{"url":"https://hooks.example.net/x","note":"x"}'),
        (("tx", "update", "tx_1", "--yes"), b'{"note":"x"}'),
        (RELEASE, b'{"note":"x"}'),
        (("api", "POST", "/payouts", "--yes"), b'{"note":"x"}'),
    ],
)
def test_every_write_takes_data_from_stdin(line: tuple[str, ...], body: bytes, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run(*line, "--data", "@-", stdin='{"note": "x"}')

    assert (result.code, [seen.body for seen in server.writes]) == (0, [body])


def test_ids_and_data_cannot_both_come_from_stdin(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "-", "--yes", "--data", "@-", stdin="tx_1\n")

    assert (result.code, server.seen) == (2, [])


@pytest.mark.parametrize("data", ["{bad", '{"a":', '{"a":1}}', '{"a":1,"a":2}', "<a>", "[]", ""])
def test_data_that_is_no_json_object_is_refused(data: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b"{}"))

    results = [run(*WEBHOOK, "--data", data), run(*WEBHOOK, "--data", "@-", stdin=data)]

    assert ([result.code for result in results], server.seen) == ([2, 2], [])


def test_data_from_a_special_file_is_refused_without_waiting(tmp_path: Path, service_and_run: ServiceAndRun) -> None:
    os.mkfifo(tmp_path / "fifo")
    server, run = service_and_run(json_reply(b"{}"))

    results = [run(*WEBHOOK, "--data", f"@{path}") for path in (tmp_path / "fifo", tmp_path)]

    assert [result.code for result in results] == [2, 2]
    assert server.seen == []


def test_data_from_a_file_is_read(tmp_path: Path, service_and_run: ServiceAndRun) -> None:
    (tmp_path / "body.json").write_text('{"n": 1.50}')
    server, run = service_and_run(json_reply(b'{"id":"wh_1"}'))

    assert run(*WEBHOOK, "--data", f"@{tmp_path / 'body.json'}").code == 0
    assert [seen.body for seen in server.writes] == [b'{"url":"https://hooks.example.net/x","n":1.50}']
