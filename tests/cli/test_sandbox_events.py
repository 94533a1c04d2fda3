"""`sandbox deliveries|trigger|clock`, and what a --sandbox command delivers at its end."""

import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from conftest import Run, Serve
from wire_server import Behave, WireServer, answering, http_reply, say_nothing

from escrowctl.sandbox.ownership import lock_deliveries

OK, FAILED = http_reply("200 OK"), http_reply("500 X")
CREATE = ("--sandbox", "tx", "create", "--amount", "100", "--currency", "USD", "-q")

Register = Callable[[Behave], tuple[WireServer, str]]


@pytest.fixture
def register(run: Run, serve: Serve) -> Register:
    """Start a receiver, register it, and return it with its endpoint's id."""

    def start(behave: Behave) -> tuple[WireServer, str]:
        server = serve(behave)
        made = run("--sandbox", "webhook", "create", "--url", f"{server.base_url}/hooks", "-q")
        assert made.code == 0, made.err
        return server, made.out.strip()

    return start


def create(run: Run, *words: str) -> str:
    made = run(*CREATE, *words)
    assert made.code == 0, made.err
    return made.out.strip()


def test_command_delivers_its_event_after_its_output(run: Run, register: Register) -> None:
    received_before_a_write: set[int] = set()

    class Stdout(StringIO):
        def write(self, text: str) -> int:
            received_before_a_write.add(len(server.seen))
            return super().write(text)

    server, _ = register(answering(OK))
    result = run(*CREATE, stdout=Stdout())

    assert (result.code, received_before_a_write, len(server.seen)) == (0, {0}, 1)
    assert b'"type":"transaction.created"' in server.seen[0].body


@pytest.mark.parametrize("part", ["post_once", "make_signed_headers"])
def test_defect_of_a_delivery_is_reported_and_changes_no_exit_code(
    part: str, run: Run, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(answering(OK))
    monkeypatch.setattr(f"escrowctl.sandbox.sender.{part}", lambda *_, **__: 1 / 0)

    result = run(*CREATE)

    assert (result.code, result.out[:3], "internal error (ZeroDivisionError)" in result.err) == (0, "tx_", True)
    (left,) = run("sandbox", "deliveries", "--json").json
    assert left["state"] == "waiting"


@pytest.mark.slow
def test_command_that_fails_delivers_too(run: Run, register: Register, home: Path) -> None:
    server, _ = register(answering(OK))
    with lock_deliveries(home / "state" / "sandbox", 0):
        create(run)
    assert run("--sandbox", "tx", "get", "tx_00000000").code == 6

    assert [seen.header("webhook-id") for seen in server.seen] == [run("sandbox", "deliveries", "-q").out.strip()]


@pytest.mark.slow
def test_receiver_that_never_replies_does_not_hang_a_command(run: Run, register: Register) -> None:
    register(say_nothing)
    start = time.monotonic()
    create(run)

    assert time.monotonic() - start < 8
    (found,) = run("sandbox", "deliveries", "--json").json
    assert (found["state"], found["attempts"], found["last_error"]) == ("waiting", 1, "no answer within 1 s")


def test_deliveries_are_listed_newest_first(run: Run, register: Register) -> None:
    _, endpoint = register(answering(OK, FAILED))
    escrow = create(run)
    run("--sandbox", "tx", "release", escrow, "--yes")

    listed = run("sandbox", "deliveries")
    documents = run("sandbox", "deliveries", "--json").json

    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert [row[1:5] + row[6:] for row in rows] == [
        ["transaction.released", endpoint, "waiting", "1", "500"],
        ["transaction.created", endpoint, "delivered", "1", "200"],
    ]
    assert [(one["id"], one["transaction"], one["sequence"], one["triggered"]) for one in documents] == [
        (rows[0][0], escrow, 2, False),
        (rows[1][0], escrow, 1, False),
    ]
    assert run("sandbox", "deliveries", "--undelivered", "-q").out.split() == [rows[0][0]]
    limited = [run("sandbox", "deliveries", "--limit", limit).err for limit in ("1", "2")]
    assert ["only the newest" in err for err in limited] == [True, False]


def test_deliveries_fit_in_80_columns(run: Run, register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, endpoint = register(answering(FAILED))
    run("--sandbox", "tx", "release", create(run), "--yes")

    title, *rows = run("sandbox", "deliveries", "--table").out.splitlines()

    assert title.split() == ["ID", "EVENT", "ENDPOINT", "STATE", "TRIES", "NEXT", "LAST"]
    assert [len(row) <= 80 and endpoint in row for row in rows] == [True, True]


@pytest.mark.slow
def test_event_is_shown_with_its_body_and_every_attempt(run: Run, register: Register) -> None:
    register(answering(FAILED, OK))
    escrow = create(run)
    name = run("sandbox", "deliveries", "-q").out.strip()
    run("sandbox", "clock", "advance", "10s")

    event = run("sandbox", "deliveries", name, "--json").json

    assert (event["event"], event["body"]["data"]["id"]) == ("transaction.created", escrow)
    assert [attempt["status"] for attempt in event["deliveries"][0]["attempts"]] == [500, 200]


@pytest.mark.slow
def test_replay_sends_the_same_event_again(run: Run, register: Register) -> None:
    server, _ = register(answering(OK))
    create(run)
    name = run("sandbox", "deliveries", "-q").out.strip()

    replayed = run("sandbox", "deliveries", name, "--replay", terminal=True)

    assert (replayed.code, name in replayed.out) == (0, True)
    first, second = server.seen
    assert (first.body, first.header("webhook-id")) == (second.body, second.header("webhook-id")) == (second.body, name)


def test_triggered_event_is_marked_and_changes_nothing(run: Run, register: Register) -> None:
    server, _ = register(answering(OK))
    escrow = create(run)

    result = run("sandbox", "trigger", "transaction.released", "--id", escrow, "--json")

    assert (result.code, result.json["triggered"], result.json["sequence"]) == (0, True, 2)
    assert len(server.seen) == 2
    assert f"without a change of the escrow: {result.json['id']}" in run("sandbox", "deliveries").err
    assert run("--sandbox", "tx", "get", escrow, "--json").json["status"] == "held"


@pytest.mark.slow
def test_event_that_another_process_delivers_is_not_sent_twice(run: Run, register: Register, home: Path) -> None:
    server, _ = register(answering(OK))
    with lock_deliveries(home / "state" / "sandbox", 0) as is_theirs:
        create(run)
        advanced = run("sandbox", "clock", "advance", "1h")
        during = len(server.seen)
    run("--sandbox", "tx", "list")

    assert (is_theirs, advanced.code, during, len(server.seen)) == (True, 7, 0, 1)


def test_clock_is_shown_and_advanced(run: Run, register: Register) -> None:
    register(answering(OK))
    escrow = create(run, "--data", '{"expires_in":"2h"}')
    before = run("sandbox", "clock", "--json").json

    after = run("sandbox", "clock", "advance", "3h", "--json").json

    assert (before["ahead_seconds"], after["ahead_seconds"]) == (0, 10_800)
    assert after.keys() == before.keys() == {"now", "ahead_seconds"}
    assert run("--sandbox", "tx", "get", escrow, "--json").json["status"] == "expired"
    found = [(one["event"], one["state"]) for one in run("sandbox", "deliveries", "--json").json]
    assert found == [("transaction.expired", "delivered"), ("transaction.created", "delivered")]


@pytest.mark.representative("deliveries msg_00000000-6", "clock back 7d-2")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("deliveries --limit 1001", 2),
        ("deliveries --replay", 2),
        ("deliveries msg_00000000", 6),
        ("trigger transaction.lost --id tx_00000000", 2),
        ("trigger transaction.released --id tx_00000000", 6),
        ("clock advance 1w", 2),
        ("clock advance 3651d", 2),
        ("clock back 7d", 2),
        ("-p test deliveries", 2),
    ],
)
def test_line_that_cannot_be_carried_out_is_refused(run: Run, words: str, code: int) -> None:
    result = run("sandbox", *words.split())

    assert (result.code, result.out) == (code, "")


@pytest.mark.slow
def test_replay_of_an_event_for_no_endpoint_is_a_conflict(run: Run) -> None:
    name = run("sandbox", "trigger", "transaction.updated", "--id", create(run), "-q").out.strip()

    result = run("sandbox", "deliveries", name, "--replay", "--json")

    assert (result.code, result.error["code"]) == (7, "conflict")
