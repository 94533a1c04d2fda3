"""Several releases are shown in one table and confirmed once; each is read again before it is released."""

import json
import socket

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, Seen, WireServer, by_method, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import STATUS_RELEASED, in_turn, json_reply

ASK = ("tx", "release", "tx_1", "tx_2", "tx_3")
MONEY = {"tx_1": (b"100", b"USD"), "tx_2": (b"2000.50", b"USD"), "tx_3": (b"7", b"EUR")}


def record(resource_id: str, status: bytes = b"held", *, amount: bytes | None = None) -> bytes:
    """Return the record of one of the three escrows."""
    known, currency = MONEY[resource_id]
    fields = (resource_id.encode(), status, amount or known, currency)
    return b'{"id":"%s","status":"%s","amount":%s,"currency":"%s"}' % fields


def escrows(**reads: Behave) -> Behave:
    """Answer each read with the escrow as held, or as `reads` says; each release with the escrow as released."""

    def answer(seen: Seen, connection: socket.socket) -> None:
        resource_id = seen.target.removesuffix("/release").rpartition("/")[2]
        if seen.method == "GET" and resource_id in reads:
            reads[resource_id](seen, connection)
        else:
            status = b"held" if seen.method == "GET" else b"released"
            connection.sendall(http_reply("200 OK", record(resource_id, status)))

    return answer


def released(server: WireServer) -> list[str]:
    """Return the ids that were released, in order."""
    return [seen.target.split("/")[-2] for seen in server.writes]


def test_several_releases_are_shown_and_confirmed_once(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(escrows())

    result = run(*ASK, stdin="3\n", terminal=True)

    shown = [line.split() for line in result.err.splitlines()]
    assert (result.code, result.err.count("> ")) == (0, 1)
    assert ["tx_2", "2000.50", "USD", "held"] in shown
    assert [line for line in shown if line[0] in ("EUR", "USD")] == [
        ["EUR", "1", "escrow", "7"],
        ["USD", "2", "escrows", "2,100.50"],
    ]
    assert released(server) == ["tx_1", "tx_2", "tx_3"]


def test_number_is_typed_on_a_live_service_too(profile: Profile, run: Run) -> None:
    server = profile('mode = "live"', behave=escrows())

    by_amount, by_number = (run(*ASK, stdin=f"{word}\n", terminal=True) for word in ("2107.50", "3"))

    assert (by_amount.code, by_number.code) == (3, 0)
    assert f"release 3 escrows   profile a   host {server.base_url}" in by_number.err
    assert released(server) == ["tx_1", "tx_2", "tx_3"]


@pytest.mark.parametrize(
    ("answer", "terminal"),
    [("2\n", True), ("\n", True), ("", True), ("3\n", False)],
    ids=["another number", "nothing", "end of input", "no terminal"],
)
def test_releases_that_are_not_confirmed_send_nothing(
    answer: str, service_and_run: ServiceAndRun, *, terminal: bool
) -> None:
    server, run = service_and_run(escrows())

    result = run(*ASK, stdin=answer, terminal=terminal)

    assert (result.code, result.out, server.writes) == (3, "", [])
    assert "Nothing was sent." in result.err


def test_escrow_that_changes_during_the_question_is_not_released(service_and_run: ServiceAndRun) -> None:
    changed = in_turn(json_reply(record("tx_2")), json_reply(record("tx_2", amount=b"9")))
    server, run = service_and_run(escrows(tx_2=changed))

    result = run(*ASK, stdin="3\n", terminal=True)

    assert (result.code, released(server)) == (15, ["tx_1", "tx_3"])
    assert "it was held 2000.50 USD, it is held 9 USD" in result.err


def test_escrow_that_cannot_be_released_is_named_before_the_question(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(escrows(tx_2=json_reply(b"{}", "404 Not Found")))

    result = run(*ASK, stdin="2\n", terminal=True)

    asked, _, told = result.err.partition("> ")
    assert (result.code, released(server)) == (15, ["tx_1", "tx_3"])
    assert "left out: get transaction tx_2" in asked
    assert "get transaction tx_2" in told
    assert [seen.target[-4:] for seen in server.seen].count("tx_2") == 1


def then(resource_id: str, *statuses: bytes) -> Behave:
    """Answer reads of an escrow with these statuses in turn, the last one for ever."""
    return in_turn(*(json_reply(record(resource_id, status)) for status in statuses))


def test_released_escrow_is_left_out_of_the_question_and_no_failure(profile: Profile, run: Run) -> None:
    first, third = (then(name, b"held", b"held", b"released") for name in ("tx_1", "tx_3"))
    server = profile(STATUS_RELEASED, behave=escrows(tx_1=first, tx_2=then("tx_2", b"released"), tx_3=third))

    result = run(*ASK, "--skip-released", stdin="2\n", terminal=True)

    assert (result.code, released(server)) == (0, ["tx_1", "tx_3"])
    assert "left out: tx_2 is already released." in result.err


def test_escrow_that_becomes_held_after_the_question_is_not_released(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=escrows(tx_2=then("tx_2", b"released", b"held")))

    result = run(*ASK, "--skip-released", stdin="2\n", terminal=True)

    assert "tx_2 changed after the question" in result.err
    assert released(server) == ["tx_1", "tx_3"]


@pytest.mark.parametrize("terminal", [False, True])
def test_release_of_ids_from_stdin_needs_yes(service_and_run: ServiceAndRun, *, terminal: bool) -> None:
    server, run = service_and_run(json_reply(record("tx_1")))

    result = run("tx", "release", "-", "--json", stdin="tx_1\ntx_2\n", terminal=terminal)

    assert (result.code, result.out, server.seen) == (3, "", [])
    assert result.error["code"] == "confirmation_needed"


@pytest.mark.parametrize(
    ("puts", "code", "outcomes"),
    [
        ([hang_up, hang_up], 12, ["unknown", "unknown"]),
        ([json_reply(b"{}", "400 No"), json_reply(b"")], 15, ["refused", "done"]),
        ([json_reply(b"{}", "400 No"), hang_up], 12, ["refused", "unknown"]),
    ],
)
def test_each_release_of_several_has_its_own_outcome(
    puts: list[Behave], code: int, outcomes: list[str], service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(by_method(GET=escrows(), PUT=in_turn(*puts)))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    assert (result.code, [json.loads(line)["outcome"] for line in result.out.splitlines()]) == (code, outcomes)
