"""The outcome table of writes, end to end: one request, one outcome, and nothing reported that is not known.

The classes are those of RFC 9110 section 9.2.2 read with caution: a write is sent once; what proves
that it was not applied is a refusal, what proves that no byte left is "not sent", all else is unknown.
"""

import atexit
import gzip
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, NOW, Run, ServiceAndRun
from wire_server import Behave, Seen, WireServer, hang_up, http_reply, keep_port, reset, say_nothing

from cli.conftest import Journal
from cli.replies import CREATE, HELD, RELEASE, RELEASED, bytes_then_close, json_reply, writes_meet

QUICK = ("--timeout", "0.6")


def drip(data: bytes, *, every: float = 0.06) -> Behave:
    """Return a behaviour that sends a byte at a time, each well within any timeout."""
    never = threading.Event()

    def behave(_seen: Seen, connection: socket.socket) -> None:
        for byte in data:
            connection.sendall(bytes([byte]))
            never.wait(every)

    return behave


def flood_of_early_hints(_seen: Seen, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 200)


SQUEEZED = gzip.compress(HELD)

UNKNOWN_EITHER_WAY: dict[str, Behave] = {
    "hang up": hang_up,
    "reset": reset,
    "silence": say_nothing,
    "drip in the head": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "early hints and no answer": flood_of_early_hints,
    "not HTTP": bytes_then_close(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    "HTML": json_reply(b"<!doctype html><title>Maintenance</title>"),
    "half a body": bytes_then_close(http_reply("200 OK", HELD)[:-9]),
    "half a body, no length": bytes_then_close(b"HTTP/1.1 200 OK\r\n\r\n" + HELD[:-9]),
    "half a gzip": json_reply(SQUEEZED[:-12], "200 OK", "Content-Encoding: gzip"),
    "over a megabyte": json_reply(b'{"id":"' + b"x" * 1_048_576 + b'"}'),
    "a key twice": json_reply(b'{"id":"tx_1","id":"tx_2"}'),
    "half a character": json_reply(rb'{"id":"\udc00"}'),
    "ok false": json_reply(b'{"ok":false,"id":"tx_1"}'),
    "an error in an envelope": json_reply(b'{"data":{"error":"insufficient funds"}}'),
    "303": json_reply(b"", "303 See Other", "Location: /v1/transactions/tx_1"),
    "408": json_reply(b"", "408 Request Timeout"),
    "502": json_reply(b"<html>Bad Gateway", "502 Bad Gateway"),
    "503": json_reply(b"", "503 Service Unavailable", "Retry-After: 1"),
    "an unlisted status": json_reply(b"", "999 Odd"),
}
"""Every fault of a service, by command: faults/service_faults.py."""
UNKNOWN_CREATES = {
    "200 and nothing": json_reply(b""),
    "204": json_reply(b"", "204 No Content"),
    "an empty record": json_reply(b"{}"),
    "a list": json_reply(b"[]"),
    "null": json_reply(b"null"),
    "409": json_reply(b"", "409 Conflict"),
}


def facts_of(server: WireServer, verb: str) -> dict[str, Any]:
    """Return what the error of a write has, whatever its outcome: all that a log needs to settle it."""
    url = f"{server.base_url}/api/v1/transactions"
    request: dict[str, Any] = {"method": "PUT", "url": f"{url}/tx_1/release", "body": None}
    if verb == "create":
        request = {"method": "POST", "url": url, "body": '{"amount":100,"currency":"USD"}'}
    ids = {"request_id": "a-uuid", "entry": "j1", "idempotency_key": "a-uuid"}
    return ids | {"sent_at": "2026-11-21T03:12:44.000Z", "request": request}


@pytest.mark.representative(
    "create-r*", "create-h*", "create-HTML", "create-20*", "create-409", "create-503", "release-s*", "release-a*"
)
@pytest.mark.parametrize(
    ("line", "behave"),
    [
        *(
            pytest.param(CREATE, one, id=f"create-{name}")
            for name, one in (UNKNOWN_EITHER_WAY | UNKNOWN_CREATES).items()
        ),
        *(pytest.param(RELEASE, one, id=f"release-{name}") for name, one in UNKNOWN_EITHER_WAY.items()),
    ],
)
def test_unclear_write_is_unknown_and_sent_once(
    line: tuple[str, ...], behave: Behave, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(writes_meet(behave))

    result = run(*line, "--json", *QUICK, now=lambda: NOW, new_uuid=lambda: "a-uuid")

    error, facts = result.error, facts_of(server, line[1])
    assert (result.code, result.out, len(server.writes)) == (12, "", 1)
    assert (error["code"], error["outcome"], error["exit_code"]) == ("outcome_unknown", "unknown", 12)
    assert {name: error[name] for name in facts} == facts
    assert "escrowctl journal resolve j1" in error["hint"]
    # Where a status came, reading back might have settled a release; its record is still held.
    reads = [seen.method for seen in server.seen if not seen.is_write]
    assert reads == ([] if line == CREATE else ["GET", "GET"] if error["http_status"] else ["GET"])
    assert journal() == [(f"{line[1]}_transaction", "unknown")]


@pytest.mark.representative("*-400 *", "*-401 *", "*-404 *", "*-429 *", "create-307 *")
@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        ("307 Temporary Redirect", "redirected", 8),
        ("400 Bad Request", "refused", 8),
        ("401 Unauthorized", "not_authenticated", 4),
        ("403 Forbidden", "forbidden", 5),
        ("404 Not Found", "not_found", 6),
        ("425 Too Early", "rate_limited", 9),
        ("429 Too Many Requests", "rate_limited", 9),
        ("501 Not Implemented", "refused", 8),
    ],
)
@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_a_refusal_is_a_refusal_and_not_sent_again(
    line: tuple[str, ...], status: str, code: str, exit_code: int, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    """The outcome of every status: unit/test_contract.py."""
    problem = b'{"type":"about:blank","title":"No","detail":"beneficiary blocked"}'
    server, run = service_and_run(writes_meet(json_reply(problem, status)))

    result = run(*line, "--json", now=lambda: NOW, new_uuid=lambda: "a-uuid")

    error, facts = result.error, facts_of(server, line[1])
    assert (result.code, result.out, len(server.writes)) == (exit_code, "", 1)
    assert (error["code"], error["outcome"], error["exit_code"]) == (code, "refused", exit_code)
    assert (error["http_status"], error["body"]) == (int(status[:3]), json.loads(problem))
    assert {name: error[name] for name in facts} == facts
    assert journal() == [(f"{line[1]}_transaction", "refused")]


def test_refusal_text_is_escaped_and_cut(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b"\x1b[2J\xe2\x80\xae" + b"x" * 5000, "400 Bad Request"))

    result = run(*CREATE)

    assert result.code == 8
    assert "\x1b" not in result.err
    assert "\u202e" not in result.err
    assert r"\u{1b}[2J\u{202e}xxx" in result.err
    assert len(result.err) < 400


_KEPT = keep_port()
atexit.register(_KEPT.close)


def closed_port() -> str:
    return f"http://127.0.0.1:{_KEPT.getsockname()[1]}"


@pytest.mark.parametrize("url", [closed_port(), "https://nosuch.invalid"], ids=["closed port", "unresolvable name"])
def test_create_without_a_connection_is_not_sent_and_is_repeatable(url: str, run: Run, journal: Journal) -> None:
    environ = {"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY}

    errors = [run(*CREATE, "--json", environ=environ).error for _ in range(2)]

    found = [(error["code"], error["outcome"], error["exit_code"]) for error in errors]
    assert found == [("no_connection", "not_sent", 11)] * 2
    assert [error["entry"] for error in errors] == ["j1", "j2"]
    assert journal() == [("create_transaction", "not_sent")] * 2


def test_release_without_a_connection_stops_at_the_read(run: Run, journal: Journal) -> None:
    result = run(*RELEASE, "--json", environ={"ESCROWCTL_BASE_URL": closed_port(), "ESCROWCTL_API_KEY": KEY})

    assert (result.code, result.out, result.error["code"]) == (11, "", "no_connection")
    assert (result.error["outcome"], result.error["id"], journal()) == ("not_sent", "tx_1", [])


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted"])
@pytest.mark.parametrize("squeezed", [False, True], ids=["plain", "gzip, unasked"])
def test_a_create_that_was_answered_with_its_record_is_done(
    status: str, *, squeezed: bool, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    reply = json_reply(SQUEEZED, status, "Content-Encoding: gzip") if squeezed else json_reply(HELD, status)
    server, run = service_and_run(reply)

    result = run(*CREATE, "--json")

    assert (result.code, result.err) == (0, "")
    assert result.json == {"id": "tx_1", "status": "held", "amount": 100, "currency": "USD"}
    # What was only accepted is read once by its id.
    assert [seen.method for seen in server.seen] == (["POST", "GET"] if status.startswith("202") else ["POST"])
    assert server.seen[0].header("Accept-Encoding") == "identity"
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize(
    ("reply", "status", "shown"),
    [
        (json_reply(RELEASED), 200, {"id": "tx_1", "status": "released", "amount": 100, "currency": "USD"}),
        (json_reply(b'{"data":{"ok":true}}'), 200, {"data": {"ok": True}}),
        (json_reply(b"null", "202 Accepted"), 202, None),
        (json_reply(b'"accepted"', "202 Accepted"), 202, "accepted"),
        (json_reply(b""), 200, None),
        (json_reply(b"", "204 No Content"), 204, None),
    ],
    ids=["record", "envelope", "null", "text", "200 empty", "204"],
)
def test_accepted_release_without_known_status_is_done_not_confirmed(
    reply: Behave, status: int, shown: object, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(writes_meet(reply))

    result = run(*RELEASE, "--json")

    assert result.code == 0
    statuses = {"status_before": "held", "status_after": "held", "verified": None}
    assert result.json == {"id": "tx_1", "http_status": status, "reply": shown} | statuses
    assert [json.loads(line)["note"]["code"] for line in result.err.splitlines()] == ["not_confirmed"]
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "GET"]
    assert journal() == [("release_transaction", "unconfirmed")]


@pytest.mark.slow
def test_a_drip_in_the_body_ends_at_the_total_deadline(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(drip(http_reply("200 OK", HELD), every=0.02))
    looks: list[float] = []

    def monotonic() -> float:
        looks.append(len(looks) * 0.005)
        return looks[-1]

    result = run(*CREATE, "--json", *QUICK, monotonic=monotonic)

    # The clock that was handed in decides, not how long each single byte took.
    assert (result.code, result.error["outcome"], len(server.writes)) == (12, "unknown", 1)
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.slow
def test_unresolved_host_name_ends_at_the_deadline_not_sent(
    run: Run, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_words, **_keywords: resolved.wait(20) and [])
    environ = {"ESCROWCTL_BASE_URL": "https://slow.example", "ESCROWCTL_API_KEY": KEY}

    result = run(*CREATE, "--json", *QUICK, environ=environ)

    resolved.set()
    assert (result.code, result.error["outcome"]) == (11, "not_sent")
    assert "slow.example was not resolved in time" in result.error["message"]
    assert journal() == [("create_transaction", "not_sent")]


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_without_a_usable_journal_nothing_is_sent(
    line: tuple[str, ...], service_and_run: ServiceAndRun, home: Path
) -> None:
    server, run = service_and_run(json_reply(HELD))
    state = home / "state"
    state.mkdir(mode=0o700, parents=True)
    (state / "journal.db").write_bytes(b"this was a journal once " * 500)

    result = run(*line, "--json")

    assert (result.code, result.out, server.writes) == (17, "", [])
    assert (result.error["code"], result.error["outcome"]) == ("journal_unusable", "not_sent")
    assert str(state / "journal.db") in result.error["message"]


def test_a_defect_after_the_bytes_left_is_recorded_as_unknown(
    service_and_run: ServiceAndRun, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, run = service_and_run(json_reply(HELD))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr("escrowctl.writes.writer.judge_write", fail)
        result = run(*CREATE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert journal() == [("create_transaction", "unknown")]
