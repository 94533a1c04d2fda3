"""`sandbox serve` delivers in the background, keeps what it could not deliver, and ends without waiting for it."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Serve
from e2e.script import Program
from wire_server import answering, http_reply, say_nothing

from sandbox.serving import serving

pytestmark = pytest.mark.slow

BODY = '{"amount":1,"currency":"USD"}'


def test_server_delivers_in_the_background_and_ends_while_a_receiver_is_silent(
    program: Program, tmp_path: Path, serve: Serve
) -> None:
    good, silent = serve(answering(http_reply("200 OK"))), serve(say_nothing)
    with serving(program, tmp_path) as served:
        for server in (good, silent):
            served.call("POST", "/webhooks", json.dumps({"url": server.base_url}))
        start = time.monotonic()
        served.call("POST", "/transactions", BODY)
        assert time.monotonic() - start < 2
        while not (good.seen and silent.seen):
            time.sleep(0.01)
        start = time.monotonic()
        assert served.end(signal.SIGTERM) == 0
        assert time.monotonic() - start < 10

    left = program.run("sandbox", "deliveries", "--json").json
    assert [(one["state"], one["attempts"]) for one in left] == [("waiting", 0), ("delivered", 1)]


def test_server_ends_with_1_when_it_can_deliver_no_more(program: Program, tmp_path: Path, serve: Serve) -> None:
    receiver = serve(answering(http_reply("200 OK")))
    with serving(program, tmp_path, broken="cannot settle") as served:
        served.call("POST", "/webhooks", json.dumps({"url": receiver.base_url}))
        served.call("POST", "/transactions", BODY)
        _, printed = served.process.communicate(timeout=10)

    assert served.process.returncode == 1
    assert "error: internal error in escrowctl (RuntimeError)." in printed
    assert not served.ready_file.exists()


def test_advance_of_a_served_clock_returns_when_all_that_was_due_has_happened(
    program: Program, tmp_path: Path, serve: Serve
) -> None:
    server = serve(answering(http_reply("500 X"), http_reply("200 OK")))
    with serving(program, tmp_path) as served:
        served.call("POST", "/webhooks", json.dumps({"url": server.base_url}))
        _, made = served.call("POST", "/transactions", '{"amount":1,"currency":"USD","expires_in":"7d"}')
        advanced = program.run("sandbox", "clock", "advance", "8d", "--json")
        listed = program.run("sandbox", "deliveries")

        assert advanced.json["ahead_seconds"] == 8 * 86_400
        assert [line.split("\t")[1:5:2] for line in listed.out.splitlines()] == [
            ["transaction.expired", "delivered"],
            ["transaction.created", "delivered"],
        ]
        assert served.call("GET", f"/transactions/{made['id']}")[1]["status"] == "expired"


def test_commands_at_the_same_time_deliver_each_event_once(program: Program, serve: Serve) -> None:
    server = serve(answering(http_reply("200 OK")))
    program.run("--sandbox", "webhook", "create", "--url", server.base_url)
    line = ("--sandbox", "tx", "create", "--amount", "1", "--currency", "USD", "-q", "--reference")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: program.run(*line, f"A-{number}"), range(6)))
    program.run("sandbox", "status")

    ids = [seen.header("webhook-id") for seen in server.seen]
    assert (len(ids), len(set(ids))) == (6, 6)
