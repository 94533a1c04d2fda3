"""A write that is done, and whose result cannot be shown: it is reported as done."""

from collections.abc import Callable

import pytest
from conftest import KEY, ServiceAndRun
from wire_server import by_method

from cli.replies import CREATE, HELD, RELEASE, RELEASED, in_turn, json_reply
from escrowctl.output.view import View


def _failing_to_show(name: str) -> Callable[..., object]:
    def fail(*_args: object, **_named: object) -> object:
        raise ValueError(name)

    return fail


@pytest.mark.parametrize(
    ("line", "done"),
    [
        (CREATE, "created tx_1 (200)"),
        (RELEASE, "the service accepted the release of tx_1 (200)"),
        ((*RELEASE[:2], "tx_1", "tx_2", "--yes"), "the release of tx_1 was accepted"),
        (("tx", "update", "tx_1", "--data", '{"note":"x"}', "--yes"), "the service accepted the update of tx_1"),
    ],
)
def test_done_write_that_cannot_be_shown_is_reported_as_done(
    line: tuple[str, ...], done: str, service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(View, "only", _failing_to_show("cannot be shown"))
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server, run = service_and_run(by_method(GET=reads, POST=json_reply(HELD), PUT=json_reply(HELD)))

    result = run(*line, "--fields", "id", "--json")
    debugged = run("tx", "get", "tx_1", "--fields", "id", "--json")

    assert (result.code, result.error["code"], result.error["outcome"]) == (12, "result_not_printed", "done")
    why = "internal error in escrowctl (ValueError)."
    failed = f"{done}, but escrowctl could not print the result: {why} Do not repeat this command."
    assert result.error["message"] == failed
    if line is CREATE:
        assert (result.error["id"], result.error["entry"]) == ("tx_1", "j1")
    assert (debugged.code, debugged.error["code"]) == (1, "defect")
    assert len(server.writes) == 1


def test_debug_shows_why_a_done_write_could_not_be_shown(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(View, "only", _failing_to_show(f"the key is {KEY}"))
    _server, run = service_and_run(json_reply(HELD))

    result = run(*CREATE, "--fields", "id", "--debug")

    assert result.code == 12
    assert "ValueError: the key is ***\n" in result.err


def test_pointer_with_a_huge_index_is_not_found(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"id":"tx_1","items":[1]}'))
    pointer = f"/items/{'9' * 5000}"

    made, read = run(*CREATE, "--fields", pointer, "--json"), run("tx", "get", "tx_1", "--fields", pointer)

    assert (made.code, made.json) == (0, {pointer: None})
    assert (read.code, read.out) == (0, f"{pointer}\t\n")
    assert len(server.writes) == 1
