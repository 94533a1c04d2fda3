"""Results of several ids, and results that cannot be shown: the write is still reported."""

import io
import json
import socket

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import Seen, by_method, hang_up, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, in_turn, json_reply
from escrowctl.output.view import View


def test_several_ids_are_a_line_each_and_one_exit_code(service_and_run: ServiceAndRun) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        found = seen.target.endswith(("tx_1", "tx_3"))
        record = HELD.replace(b"tx_1", seen.target[-4:].encode())
        reply = http_reply("200 OK", record) if found else http_reply("404 Not Found", b'{"detail":"no"}')
        connection.sendall(reply)

    _server, run = service_and_run(behave)

    lines = run("tx", "get", "-", "--json", stdin="\ufeff tx_1\r\ntx_2\r\n\r\ntx_3\r\n")
    table = run("tx", "get", "tx_1", "tx_3")

    assert [json.loads(line)["outcome"] for line in lines.out.splitlines()] == ["read", "refused", "read"]
    assert (lines.code, lines.error["code"], lines.error["exit_code"]) == (15, "some_failed", 15)
    assert (table.code, table.out) == (0, "tx_1\theld\t100\tUSD\t\ntx_3\theld\t100\tUSD\t\n")


def test_reading_of_a_user_warns_of_another_id_than_asked(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"id":"usr_2"}'))

    one, several = run("user", "get", "usr_1", "-q"), run("user", "get", "usr_1", "usr_2")

    assert (one.code, several.code) == (0, 0)
    assert [result.err.count("the service answered for usr_1 with the id usr_2") for result in (one, several)] == [1, 1]


def test_write_result_that_cannot_be_printed_is_reported(service_and_run: ServiceAndRun, journal: Journal) -> None:
    class Full(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise OSError(28, "No space left on device")

    writes = in_turn(json_reply(HELD), hang_up)
    server, run = service_and_run(by_method(GET=json_reply(HELD), POST=writes, DELETE=json_reply(b"{}")))
    decision = ("journal", "resolve", "j2", "--not-applied", "--allow-unreadable", "--reason", "x")

    first, read = (run(*line, "--json", stdout=Full()) for line in (CREATE, ("tx", "get", "tx_1")))
    assert run(*CREATE).code == 12
    others = [run(*line, "--json", stdout=Full()) for line in (("api", "DELETE", "/x/1", "--yes"), decision)]

    assert [(one.code, one.error["code"]) for one in (first, *others)] == [(12, "result_not_printed")] * 3
    assert "created tx_1 (200)" in first.error["message"]
    assert (read.code, read.error["code"], len(server.writes)) == (17, "output_unusable", 3)
    assert [state for _, state in journal()] == ["done", "not_applied", "done"]


@pytest.mark.parametrize(
    "line",
    [CREATE, RELEASE, (*RELEASE[:2], "tx_1", "tx_2", "--yes"), ("tx", "update", "tx_1", "--data", "{}", "--yes")],
)
def test_done_write_that_cannot_be_shown_is_reported_as_done(
    line: tuple[str, ...], service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_named: object) -> object:
        raise ValueError(f"the key is {KEY}")

    monkeypatch.setattr(View, "select_fields", fail)
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server, run = service_and_run(by_method(GET=reads, POST=json_reply(HELD), PUT=json_reply(HELD)))

    result = run(*line, "--fields", "id", "--json", "--debug")

    assert (result.code, result.error["code"], result.error["outcome"]) == (12, "result_not_printed", "done")
    assert (len(server.writes), KEY in result.err) == (1, False)
    if line is CREATE:
        assert (result.error["id"], result.error["entry"]) == ("tx_1", "j1")


def test_pointer_with_a_huge_index_is_not_found(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"id":"tx_1","items":[1]}'))
    pointer = f"/items/{'9' * 5000}"

    made = run(*CREATE, "--fields", pointer, "--json")

    assert (made.code, made.json, len(server.writes)) == (0, {pointer: None}, 1)
