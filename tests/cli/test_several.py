"""Several ids in one command: the counts at the end add up, and an unknown is not counted as failed."""

import socket
from datetime import UTC, datetime

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, Seen, by_method, hang_up, http_reply

from cli.replies import CREATE, HELD, RELEASED, in_turn, json_reply


def _named(record: bytes) -> Behave:
    """Answer with this record under the id that the path ends with."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        named = record.replace(b"tx_1", seen.target.removesuffix("/release").rpartition("/")[2].encode())
        connection.sendall(http_reply("200 OK", named))

    return behave


def _by_id(**behaviours: Behave) -> Behave:
    """Answer a write of each id as it says; any other is released."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        resource_id = seen.target.removesuffix("/release").rpartition("/")[2]
        behaviours.get(resource_id, _named(RELEASED))(seen, connection)

    return behave


REFUSE = json_reply(b'{"detail":"disputed"}', "400 Bad Request")


@pytest.mark.parametrize(
    ("puts", "code", "counts"),
    [
        ({"tx_1": hang_up, "tx_2": hang_up}, 12, "2 ids: 0 done, 0 failed, 2 unknown, 0 not attempted."),
        ({"tx_2": REFUSE}, 15, "2 ids: 1 done, 1 failed, 0 unknown, 0 not attempted."),
        ({"tx_1": REFUSE, "tx_2": hang_up}, 12, "2 ids: 0 done, 1 failed, 1 unknown, 0 not attempted."),
    ],
)
def test_the_counts_of_several_releases_add_up(
    puts: dict[str, Behave], code: int, counts: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(by_method(GET=_named(HELD), PUT=_by_id(**puts)))

    result = run("tx", "release", "tx_1", "tx_2", "--yes")

    assert (result.code, result.err.splitlines()[-1]) == (code, f"error: {counts}")


@pytest.mark.parametrize("words", [(), ("--expect-amount", "100")], ids=["released earlier", "another amount"])
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["words", "JSON"])
def test_refusal_of_one_id_says_nothing_of_the_others(
    words: tuple[str, ...], json: tuple[str, ...], service_and_run: ServiceAndRun
) -> None:
    reads = _by_id(tx_1=_named(HELD), tx_2=_named(HELD.replace(b"100", b"7")))
    server, run = service_and_run(by_method(GET=reads, PUT=_named(RELEASED)))
    assert words or run("tx", "release", "tx_2", "--yes").code == 0
    sent = len(server.writes)

    result = run("tx", "release", "tx_1", "tx_2", "--yes", *words, *json)

    effect = "Nothing was sent for tx_2." if words else "This command sent nothing for tx_2."
    assert (result.code, len(server.writes) - sent, effect in result.err) == (15, 1, True)
    assert "sent nothing." not in result.err + result.out
    assert "Nothing was sent." not in result.err + result.out


def test_skipped_release_of_several_says_nothing_of_the_others(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(by_method(GET=in_turn(*[_named(RELEASED)] * 2, _named(HELD)), PUT=_named(RELEASED)))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--skip-released")

    assert ("This command sent nothing for tx_1." in result.err, "sent nothing." in result.err) == (True, False)


def test_counts_of_several_reads_show_how_many_succeeded(service_and_run: ServiceAndRun) -> None:
    def get(seen: Seen, connection: socket.socket) -> None:
        missing = seen.target.endswith("tx_2")
        (json_reply(b"{}", "404 Not Found") if missing else _named(HELD))(seen, connection)

    _server, run = service_and_run(get)

    result = run("tx", "get", "tx_1", "tx_2", "tx_3")

    assert (result.code, result.err.splitlines()[-1]) == (15, "error: 3 ids: 2 read, 1 failed.")


def test_several_releases_at_a_terminal_print_a_line_each(run: Run) -> None:
    ids = [run("--sandbox", *CREATE[:3], amount, *CREATE[4:], "-q").out.strip() for amount in ("100", "200")]

    result = run("--sandbox", "tx", "release", *ids, "--yes", terminal=True)

    assert result.out == "".join(f"{one}   held -> released   confirmed by reading the escrow\n" for one in ids)


def test_several_reads_at_a_terminal_are_rows_under_one_header(service_and_run: ServiceAndRun) -> None:
    record = b'{"id":"tx_1","status":"released","amount":100,"currency":"USD","created_at":"2026-11-21T03:59:20Z"}'
    noon = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC)
    _server, run = service_and_run(in_turn(_named(record), _named(HELD)))

    def shown(*words: str) -> list[str]:
        return run(*words, terminal=True, now=lambda: noon, environ={"NO_COLOR": "1"}).out.splitlines()

    assert shown("tx", "get", "tx_1", "tx_20") == [
        "ID    STATUS    AMOUNT  CURRENCY  CREATED",
        "tx_1  released  100     USD       40 s ago",
        "tx_20  held      100     USD",
    ]
    assert shown("tx", "get", "tx_1", "tx_20", "--fields", "id,status") == ["ID    STATUS", "tx_1  held", "tx_20  held"]


@pytest.mark.parametrize("terminal", [False, True])
def test_release_of_ids_from_stdin_needs_yes(service_and_run: ServiceAndRun, *, terminal: bool) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("tx", "release", "-", "--json", stdin="tx_1\ntx_2\n", terminal=terminal)

    assert (result.code, result.out, server.seen) == (3, "", [])
    assert (result.error["code"], result.error["hint"]) == (
        "confirmation_needed",
        "to confirm without a question: repeat the command with --yes",
    )
    assert result.error["message"] == (
        "ids come from standard input, so escrowctl cannot ask for confirmation. Nothing was sent."
    )
