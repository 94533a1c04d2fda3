"""`tx wait` and `tx watch`: what ends them, in which exit code, and what is shown meanwhile."""

import json
import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from batch.conftest import Clock
from conftest import NOW, Result, Run
from wire_server import Behave, Seen, WireServer, by_method

from cli.conftest import Profile
from cli.replies import in_turn, json_reply

RELEASED = 'status.released = ["SETTLED", "paid_out"]'


def named(status: str, resource_id: str = "tx_1") -> Behave:
    return json_reply(b'{"id":"%s","status":"%s"}' % (resource_id.encode(), status.encode()))


def by_id(**reads: Behave) -> Behave:
    """Answer a read of each id as it says."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        reads[seen.target.rpartition("/")[2]](seen, connection)

    return behave


RunTx = Callable[..., Result]


@pytest.fixture
def run_tx(run: Run) -> RunTx:
    """Run a command of tx with a clock of its own."""

    def run_with_clock(*words: str, **keywords: Any) -> Result:
        return run("tx", *words, **Clock(start=NOW).injected, **keywords)

    return run_with_clock


@pytest.mark.parametrize("goal", ["released", "held,SETTLED"])
def test_wait_ends_with_the_status_and_prints_the_record(goal: str, profile: Profile, run: Run) -> None:
    clock = Clock(start=NOW)
    server = profile(RELEASED, behave=in_turn(named("new"), named("queued"), named("SETTLED")))

    result = run("tx", "wait", "tx_1", "--for", goal, **clock.injected)

    assert (result.code, result.out, clock.now) == (0, "id\ttx_1\nstatus\tSETTLED\n", 4)
    assert [(seen.method, seen.header("Cache-Control")) for seen in server.seen] == [("GET", "no-cache")] * 3
    notes = [re.findall("new|queued|SETTLED", note) for note in result.err.splitlines()]
    assert notes == [["new"], ["new", "queued"], ["queued", "SETTLED"]]


def test_status_that_fails_ends_the_wait_with_16(profile: Profile, run_tx: RunTx) -> None:
    profile(RELEASED, behave=in_turn(named("held"), named("Disputed")))

    result = run_tx("wait", "tx_1", "--for", "released", "--fail-on", "refunded,disputed", "--json")

    assert (result.code, result.out) == (16, "")
    assert (result.error["code"], result.error["id"], result.error["status"]) == ("check_failed", "tx_1", "Disputed")


def test_deadline_names_the_status_and_how_to_accept_it(profile: Profile, run: Run) -> None:
    clock = Clock(start=NOW)
    profile('status.released = ["PAID"]', behave=in_turn(named("queued"), named("SETTLED")))

    result = run("tx", "wait", "tx_1", "--for", "released", "--deadline", "1m", "--json", **clock.injected)

    assert (result.code, result.out, clock.now) == (13, "", 60)
    assert (result.error["code"], result.error["statuses"]) == ("wait_expired", {"tx_1": "SETTLED"})
    assert result.error["hint"].endswith("repeat the command with --for SETTLED")


def test_several_are_waited_for_together(profile: Profile, run_tx: RunTx) -> None:
    first = in_turn(*[named("held", "tx_1")] * 3, named("SETTLED", "tx_1"))
    server = profile(RELEASED, behave=by_id(tx_1=first, tx_2=named("SETTLED", "tx_2")))

    result = run_tx("wait", "tx_1", "tx_2", "--for", "released", "--json")

    lines = [json.loads(line) for line in result.out.splitlines()]
    assert (result.code, [(line["id"], line["outcome"]) for line in lines]) == (0, [("tx_2", "read"), ("tx_1", "read")])
    assert [seen.target[-4:] for seen in server.seen] == ["tx_1", "tx_2", "tx_1", "tx_1", "tx_1"]


@pytest.mark.parametrize(
    "trouble",
    [json_reply(b"", "503 Busy"), json_reply(b"<html>"), json_reply(b'{"id":"tx_1"}')],
    ids=["503", "HTML", "no status"],
)
def test_reading_that_fails_for_a_while_does_not_end_the_wait(trouble: Behave, profile: Profile, run_tx: RunTx) -> None:
    profile(behave=in_turn(named("new"), *[trouble] * 3, named("held")))

    result = run_tx("wait", "tx_1", "--for", "held")

    assert (result.code, result.out) == (0, "id\ttx_1\nstatus\theld\n")


def test_deadline_after_readings_that_all_failed_has_no_status(profile: Profile, run_tx: RunTx) -> None:
    server = profile(behave=named("held"))
    server.close()

    result = run_tx("wait", "tx_1", "--for", "held", "--deadline", "30s", "--json")

    assert (result.code, result.error["statuses"], result.error["hint"]) == (13, {"tx_1": None}, None)


def test_refused_reading_ends_the_wait_at_once(profile: Profile, run_tx: RunTx) -> None:
    server = profile(behave=json_reply(b"{}", "404 Not Found"))

    codes = [run_tx("wait", "tx_1", "--for", "held").code, run_tx("watch", "tx_1").code]

    assert (codes, len(server.seen)) == ([6, 6], 2)


def test_record_of_another_escrow_is_not_waited_for(profile: Profile, run_tx: RunTx) -> None:
    profile(behave=named("held", "tx_99"))

    result = run_tx("wait", "tx_1", "--for", "held", "--json")

    assert (result.code, result.out, result.error["code"]) == (10, "", "unreadable_reply")


def changes(result: Result) -> list[tuple[str, str | None, str]]:
    lines = [json.loads(line) for line in result.out.splitlines()]
    return [(line["id"], line["status_before"], line["status_after"]) for line in lines]


def test_watch_prints_each_change_until_all_have_ended(profile: Profile, run: Run) -> None:
    clock = Clock(start=NOW)
    first = in_turn(named("held"), named("queued"), named("queued"), named("SETTLED"))
    profile(RELEASED, behave=by_id(tx_1=first, tx_2=named("Cancelled", "tx_2")))

    result = run("tx", "watch", "tx_1", "tx_2", "--json", **clock.injected)

    assert (result.code, clock.now) == (0, 15)
    assert changes(result) == [
        ("tx_1", None, "held"),
        ("tx_2", None, "Cancelled"),
        ("tx_1", "held", "queued"),
        ("tx_1", "queued", "SETTLED"),
    ]
    assert json.loads(result.out.splitlines()[3])["at"] == "2026-11-21T03:12:59.000Z"


def test_watch_ends_at_its_deadline(profile: Profile, run_tx: RunTx) -> None:
    server: WireServer = profile(behave=named("held"))

    result = run_tx("watch", "tx_1", "--deadline", "12s", "--json")

    assert (result.code, changes(result), len(server.seen)) == (13, [("tx_1", None, "held")], 4)


def test_wait_for_a_release_ends_where_it_has_failed(profile: Profile, run_tx: RunTx) -> None:
    reads = in_turn(named("held"), named("processing"), named("processing"), named("FAILED"))
    server = profile(RELEASED, behave=by_method(GET=reads, PUT=json_reply(b"")))

    result = run_tx("release", "tx_1", "--yes", "--wait", "--deadline", "1h", "--json")

    assert (result.code, result.error["status_after"], len(server.seen)) == (16, "FAILED", 5)
