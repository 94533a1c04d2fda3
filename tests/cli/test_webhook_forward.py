"""Events are forwarded to an application: at once by `webhook listen`, again by `webhook replay`."""

import contextlib
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Result, Run, Serve
from e2e.script import Program
from webhook_sender import OTHER_SECRET, SECRET, body_of, headers_of, post, send
from webhooks.listener import wait_until
from wire_server import Behave, WireServer, answering, hang_up, http_reply, say_nothing

from cli.events import Application, Listen, lines_of, rows_of

pytestmark = pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options

LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_application_gets_the_original_bytes_and_headers(listen: Listen, application: Application, target: str) -> None:
    body = b'{ "type":"a",\n "data": {"id": "tx_\\u00e9"} }  '
    headers = headers_of("msg_1", body) | {"Content-Type": "application/json; x=1", "X-Shop": "a, b"}

    def act(port: int) -> None:
        post(port, body, headers, path="/some/where?else")
        wait_until(lambda: application.seen)

    result = listen(act, "--forward-to", target, "--json")

    (seen,) = application.seen
    assert (result.code, seen.method, seen.target, seen.body) == (130, "POST", "/hooks?a=1", body)
    assert {name: seen.header(name) for name in headers} == headers
    assert (seen.header("Host") or "").startswith("127.0.0.1:")
    assert [line["forward"]["http_status"] for line in lines_of(result)] == [200]


def test_failed_attempt_is_repeated_before_the_next_event(
    listen: Listen, application: Application, target: str
) -> None:
    application.statuses = [500, 302, 200]

    def act(port: int) -> None:
        for number in (1, 2):
            send(port, number)
        wait_until(lambda: len(application.seen) == 4)

    result = listen(act, "--forward-to", target, "--json", sleep=lambda seconds: time.sleep(seconds / 1000))

    assert application.ids == ["msg_1", "msg_1", "msg_1", "msg_2"]
    shown = [(line["id"], line["forward"]["http_status"], line["forward"]["attempt"]) for line in lines_of(result)]
    assert (result.code, shown) == (130, [("msg_1", 500, 1), ("msg_1", 302, 2), ("msg_1", 200, 3), ("msg_2", 200, 1)])


@pytest.mark.slow
def test_event_that_is_always_refused_is_given_up_after_ten_attempts(
    listen: Listen, run: Run, application: Application, target: str
) -> None:
    application.statuses = [*[400] * 10, 200]

    def act(port: int) -> None:
        for number in (1, 2):
            send(port, number)
        wait_until(lambda: "msg_2" in application.ids)

    result = listen(act, "--forward-to", target, sleep=lambda seconds: time.sleep(seconds / 1000))
    again = run("webhook", "replay", "--failed", "--forward-to", target, "-q")
    never = run("webhook", "replay", "--failed", "--forward-to", target, "-q")

    assert application.ids == [*["msg_1"] * 10, "msg_2", "msg_1"]
    assert (result.code, again.code, again.out, never.out) == (14, 0, "msg_1\n", "")


def test_events_that_wait_are_forwarded_by_the_next_listener(listen: Listen, application: Application) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as reserved:
        port_of_application = reserved.getsockname()[1]
    target = f"http://localhost:{port_of_application}/"

    first = listen(lambda port: [send(port, number) for number in (1, 2)], "--forward-to", target, "--json")
    with contextlib.closing(WireServer(application, port=port_of_application)):
        second = listen(lambda _port: wait_until(lambda: len(application.seen) == 2), "--forward-to", target)

    assert (first.code, first.error["code"], first.error["left"]) == (14, "not_forwarded", 2)
    assert (second.code, application.ids) == (130, ["msg_1", "msg_2"])


@pytest.mark.slow
def test_two_listeners_do_not_forward_to_one_application(listen: Listen, target: str) -> None:
    seconds: list[Result] = []
    program = Program(dict(os.environ) | {"ESCROWCTL_WEBHOOK_SECRET": SECRET})
    line = ("webhook", "listen", "--port", "0", "--forward-to", target, "--json")

    listen(lambda _port: seconds.append(program.run(*line)), "--forward-to", target)

    assert [(result.code, result.error["code"]) for result in seconds] == [(7, "busy")]


@pytest.fixture
def stored(listen: Listen) -> None:
    """Three events: msg_1 and msg_3, and msg_2 without a signature."""
    listen(lambda port: (send(port, 1), post(port, body_of(2), {"webhook-id": "msg_2"}), send(port, 3)), "--unverified")


def test_replay_sends_what_was_received(stored: None, run: Run, application: Application, target: str) -> None:
    result = run("webhook", "replay", "msg_3", "msg_1", "--forward-to", target, "--json")

    assert (result.code, application.ids) == (0, ["msg_3", "msg_1"])
    assert [seen.body for seen in application.seen] == [body_of(3), body_of(1)]
    assert [line["forward"][0]["http_status"] for line in lines_of(result)] == [200, 200]


def test_replay_leaves_unverified_events_out_unless_asked(
    stored: None, run: Run, application: Application, target: str
) -> None:
    replay = ("webhook", "replay", "--forward-to", target)
    named = run(*replay, "msg_1", "msg_2", "--json")
    assert (named.code, named.error["code"], application.seen) == (14, "bad_signature", [])

    careful = run(*replay, "--since", "1h")
    asked = run(*replay, "--since", "1h", "--unverified")

    assert (careful.code, "left out: 1" in careful.err, asked.code) == (0, True, 0)
    assert application.ids == ["msg_1", "msg_3", "msg_1", "msg_2", "msg_3"]


def test_duplicate_shows_both_answers(stored: None, run: Run, application: Application, target: str) -> None:
    application.statuses = [200, 409]

    result = run("webhook", "replay", "msg_1", "--duplicate", "--forward-to", target)

    assert (result.code, application.ids) == (14, ["msg_1", "msg_1"])
    assert result.out.endswith("\tsent twice: 200, 409\n")


def test_sign_renews_the_timestamp_and_nothing_that_is_stored(
    stored: None, run: Run, application: Application, target: str, spool: Path
) -> None:
    environ = {"ESCROWCTL_WEBHOOK_SECRET": f"{OTHER_SECRET} {SECRET}"}
    before = rows_of(spool)
    line = ("webhook", "replay", "msg_1", "msg_2", "--unverified", "--sign", "--forward-to", target)

    result = run(*line, environ=environ, now=lambda: LATER)

    signed, unsigned = application.seen
    assert result.code == 0
    renewed = headers_of("msg_1", body_of(1), sent_at=int(LATER.timestamp()))
    assert {name: signed.header(name) for name in renewed} == renewed
    assert unsigned.header("webhook-signature") is None
    assert rows_of(spool) == before


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        (hang_up, "no valid answer"),
        (say_nothing, "no answer within 0.2 s"),
        (answering(http_reply("400 Said")), "400"),
        (None, "no connection"),
    ],
)
def test_application_that_does_not_accept_is_reported(
    behave: Behave | None, said: str, stored: None, run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.webhooks.forward.ATTEMPT_SECONDS", 0.2)
    target = serve(behave).base_url if behave else "http://127.0.0.1:9/"

    result = run("webhook", "replay", "msg_1", "--forward-to", target, now=lambda: LATER)

    assert (result.code, result.out.split("\t")[-1].startswith(said)) == (14, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--forward-to", "http://127.0.0.1:9/"), 2),
        (("msg_1", "--failed", "--forward-to", "http://127.0.0.1:9/"), 2),
        (("--since", "yesterday", "--forward-to", "http://127.0.0.1:9/"), 2),
        (("msg_404", "--forward-to", "http://127.0.0.1:9/"), 6),
        (("msg_1", "--sign", "--forward-to", "http://127.0.0.1:9/"), 4),
    ],
)
def test_line_of_replay_that_cannot_be_meant_is_refused(words: tuple[str, ...], code: int, run: Run) -> None:
    assert run("webhook", "replay", *words).code == code
