"""The outcome table of writes, end to end: one request, one outcome, and nothing reported that is not known.

The classes are those of RFC 9110 section 9.2.2 read with caution: a write is sent once; what proves
that it was not applied is a refusal, what proves that no byte left is "not sent", all else is unknown.
"""

import atexit
import gzip
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, NOW, Run, Serve, ServiceAndRun
from wire_server import Behave, Seen, WireServer, answering, hang_up, http_reply, keep_port, say_nothing

from cli.conftest import Journal
from cli.replies import CREATE, HELD, RELEASE, RELEASED, break_off, bytes_then_close, json_reply, writes_meet

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


NO_BODY = object()


@dataclass(frozen=True)
class Unknown:
    """A behaviour after which the outcome is unknown: `why` completes "the create was sent, but ..."."""

    name: str
    behave: Behave
    why: str
    status: int | None = None
    """The status that arrived, where one did."""
    body: object = NO_BODY
    """The document that a create's error shows, where one was read."""


HTML = b"<!doctype html><title>Maintenance</title>"
SQUEEZED = gzip.compress(HELD)
SAID_200 = "the service replied 200, but the reply "
LIKE_AN_ERROR = "looks like an error"
NO_ID = "the service replied 200, but escrowctl found no id in the reply"

UNKNOWN_EITHER_WAY = (
    Unknown(
        "hang up",
        hang_up,
        "the connection broke before a reply came (Server disconnected without sending a response)",
    ),
    Unknown("reset", break_off, "the connection broke before a reply came ([Errno 104] Connection reset by peer)"),
    Unknown("silence", say_nothing, "no reply came within 0.6 s"),
    Unknown("drip in the head", drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "no reply came within 0.6 s"),
    Unknown("early hints and no answer", flood_of_early_hints, "no reply came within 0.6 s"),
    Unknown(
        "not HTTP",
        bytes_then_close(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        "the reply was not HTTP",
    ),
    Unknown("HTML", json_reply(HTML), f"{SAID_200}is HTML, not JSON", 200),
    Unknown("half a body", bytes_then_close(http_reply("200 OK", HELD)[:-9]), f"{SAID_200}was truncated", 200),
    Unknown("half a body, no length", bytes_then_close(b"HTTP/1.1 200 OK\r\n\r\n" + HELD[:-9]),
            f"{SAID_200}was truncated", 200),
    Unknown("half a body, whole length", json_reply(HELD[:-9]), f"{SAID_200}was truncated", 200),
    Unknown("half a gzip", json_reply(SQUEEZED[:-12], "200 OK", "Content-Encoding: gzip"),
            f"{SAID_200}was truncated", 200),
    Unknown("not gzip", json_reply(HELD, "200 OK", "Content-Encoding: gzip"),
            f"{SAID_200}has a content encoding that cannot be decoded", 200),
    Unknown("another encoding", json_reply(HELD, "200 OK", "Content-Encoding: br"),
            f"{SAID_200}has a content encoding that cannot be decoded", 200),
    Unknown("over a megabyte", json_reply(b'{"id":"' + b"x" * 1_048_576 + b'"}'),
            f"{SAID_200}is larger than the limit", 200),
    Unknown("a gzip bomb", json_reply(gzip.compress(b" " * 4_000_000 + b"{}"), "200 OK", "Content-Encoding: gzip"),
            f"{SAID_200}is larger than the limit", 200),
    Unknown("not UTF-8", json_reply(b'{"id":"\xff"}'), f"{SAID_200}is not UTF-8", 200),
    Unknown("a byte order mark", json_reply(b"\xef\xbb\xbf" + HELD), f"{SAID_200}starts with a byte order mark", 200),
    Unknown("a key twice", json_reply(b'{"id":"tx_1","id":"tx_2"}'),
            f"{SAID_200}has a duplicate field in one object", 200),
    Unknown("half a character, upper case", json_reply(rb'{"id":"\uDC00"}'),
            f"{SAID_200}has an invalid Unicode character (a lone surrogate)", 200),
    Unknown("half a character, lower case", json_reply(rb'{"id":"\udc00"}'),
            f"{SAID_200}has an invalid Unicode character (a lone surrogate)", 200),
    Unknown("success false", json_reply(b'{"success":false}'), f"{SAID_200}{LIKE_AN_ERROR} (field \"success\")", 200,
            {"success": False}),
    Unknown("ok false", json_reply(b'{"ok":false,"id":"tx_1"}'), f"{SAID_200}{LIKE_AN_ERROR} (field \"ok\")", 200,
            {"ok": False, "id": "tx_1"}),
    Unknown("an error", json_reply(b'{"error":{"code":"insufficient_funds"}}'),
            f"{SAID_200}{LIKE_AN_ERROR} (field \"error\")", 200, {"error": {"code": "insufficient_funds"}}),
    Unknown("an error in an envelope", json_reply(b'{"data":{"error":"insufficient funds"}}'),
            f"{SAID_200}{LIKE_AN_ERROR} (field \"error\")", 200, {"data": {"error": "insufficient funds"}}),
    Unknown("302", json_reply(b"", "302 Found", "Location: /elsewhere"),
            'the service replied 302, a redirect to "/elsewhere"', 302),
    Unknown("303", json_reply(b"", "303 See Other", "Location: /v1/transactions/tx_1"),
            'the service replied 303, a redirect to "/v1/transactions/tx_1"', 303),
    Unknown("408", json_reply(b"", "408 Request Timeout"), "the service replied 408", 408),
    Unknown("418", json_reply(b'"teapot"', "418 I'm a teapot"), 'the service replied 418 "teapot"', 418),
    Unknown("500", json_reply(b'{"message":"oh no"}', "500 Oh No"), 'the service replied 500 "oh no"', 500),
    Unknown("502", json_reply(b"<html>Bad Gateway", "502 Bad Gateway"),
            'the service replied 502 "Bad Gateway"', 502),
    Unknown("503", json_reply(b"", "503 Service Unavailable", "Retry-After: 1"),
            "the service replied 503 (Retry-After: 1)", 503),
    Unknown("504", json_reply(b"", "504 Gateway Timeout"), "the service replied 504", 504),
    Unknown("an unlisted status", json_reply(b"", "999 Odd"), "the service replied 999", 999),
)  # fmt: skip

UNKNOWN_CREATES = (
    Unknown("200 and nothing", json_reply(b""), f"{SAID_200}is empty", 200),
    Unknown("200 and spaces", json_reply(b" \n"), f"{SAID_200}is empty", 200),
    Unknown("204", json_reply(b"", "204 No Content"), "the service replied 204, but the reply is empty", 204),
    Unknown("an empty record", json_reply(b"{}"), NO_ID, 200, {}),
    Unknown("a list", json_reply(b"[]"), NO_ID, 200, []),
    Unknown("a text", json_reply(b'"OK"'), NO_ID, 200, "OK"),
    Unknown("null", json_reply(b"null"), NO_ID, 200, None),
)

A_WEB_PAGE = "the reply is a web page: to check base URL and API prefix:"
IS_IT_RIGHT = "\nis the base URL right? It came from ESCROWCTL_BASE_URL; escrowctl does not follow redirects"


def unknown_error(server: WireServer, case: Unknown, *, creates: bool) -> dict[str, Any]:
    """Return the error, without its message, that an unknown write must print: all that a log needs to settle it."""
    place = "/api/v1/transactions" if creates else "/api/v1/transactions/tx_1/release"
    is_redirect, is_page = case.status in range(300, 400), case.name == "HTML"
    resolve = f"resolve j1 before you repeat the {'create' if creates else 'release'}:"
    if is_page:
        hint = f"{resolve:<{len(A_WEB_PAGE)}}  escrowctl journal resolve j1\n{A_WEB_PAGE}  escrowctl doctor"
    else:
        gap, redirect = ("  ", IS_IT_RIGHT) if is_redirect else (" ", "")
        hint = f"{resolve}{gap}escrowctl journal resolve j1{redirect}"
    return {
        "code": "outcome_unknown",
        "hint": hint,
        "http_status": case.status,
        "request_id": "a-uuid",
        "outcome": "unknown",
        "exit_code": 12,
        "entry": "j1",
        "idempotency_key": "a-uuid",
        "sent_at": "2026-11-21T03:12:44.000Z",
        "request": {
            "method": "POST" if creates else "PUT",
            "url": f"{server.base_url}{place}",
            "body": '{"amount":100,"currency":"USD"}' if creates else None,
        },
        **({} if creates else {"id": "tx_1"}),
    }


@pytest.mark.representative(
    "reset",
    "hang up",
    "half a body",
    "half a gzip",
    "an error",
    "ok false",
    "500",
    "504",
    "303",
    "HTML",
    "204",
    "200 and nothing",
    "null",
    "not UTF-8",
    "half a character, lower case",
)
@pytest.mark.parametrize("case", [*UNKNOWN_EITHER_WAY, *UNKNOWN_CREATES], ids=lambda case: case.name)
def test_unclear_create_is_unknown_and_sent_once(
    case: Unknown, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(writes_meet(case.behave))

    result = run(*CREATE, "--json", *QUICK, now=lambda: NOW, new_uuid=lambda: "a-uuid")

    assert (result.code, result.out) == (12, "")
    error = result.error
    assert case.why in error.pop("message")
    body = error.pop("body", NO_BODY)
    assert case.body in (NO_BODY, body)
    assert error == unknown_error(server, case, creates=True)
    assert [seen.method for seen in server.seen] == ["POST"]
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.representative(
    "silence",
    "reset",
    "hang up",
    "half a body",
    "an error",
    "502",
    "302",
    "HTML",
    "not HTTP",
    "a key twice",
    "an unlisted status",
)
@pytest.mark.parametrize("case", UNKNOWN_EITHER_WAY, ids=lambda case: case.name)
def test_unclear_release_is_unknown_and_sent_once(
    case: Unknown, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(writes_meet(case.behave))

    result = run(*RELEASE, "--json", *QUICK, now=lambda: NOW, new_uuid=lambda: "a-uuid")

    assert (result.code, result.out) == (12, "")
    error = result.error
    assert case.why in error.pop("message")
    error.pop("body", "")
    assert error == unknown_error(server, case, creates=False)
    # Where a status came, reading back might have settled it; this record is still held.
    assert [seen.method for seen in server.seen] == ["GET", "PUT"] + (["GET"] if case.status else [])
    assert journal() == [("release_transaction", "unknown")]


@pytest.mark.representative("*-400 *", "*-401 *", "*-404 *", "*-429 *", "create-307 *")
@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        ("301 Moved Permanently", "redirected", 8),
        ("307 Temporary Redirect", "redirected", 8),
        ("308 Permanent Redirect", "redirected", 8),
        ("400 Bad Request", "refused", 8),
        ("401 Unauthorized", "not_authenticated", 4),
        ("402 Payment Required", "refused", 8),
        ("403 Forbidden", "forbidden", 5),
        ("404 Not Found", "not_found", 6),
        ("405 Method Not Allowed", "refused", 8),
        ("410 Gone", "refused", 8),
        ("415 Unsupported Media Type", "refused", 8),
        ("422 Unprocessable Content", "refused", 8),
        ("425 Too Early", "rate_limited", 9),
        ("429 Too Many Requests", "rate_limited", 9),
        ("451 Unavailable For Legal Reasons", "refused", 8),
        ("501 Not Implemented", "refused", 8),
    ],
)
@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_a_refusal_is_a_refusal_and_not_sent_again(
    line: tuple[str, ...], status: str, code: str, exit_code: int, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    problem = b'{"type":"about:blank","title":"No","detail":"beneficiary blocked"}'
    server, run = service_and_run(writes_meet(json_reply(problem, status)))

    result = run(*line, "--json", now=lambda: NOW, new_uuid=lambda: "a-uuid")

    verb, number = line[1], int(status[:3])
    assert (result.code, result.out) == (exit_code, "")
    error = result.error
    error.pop("hint")
    assert error == {
        "code": code,
        "message": f'the service refused the {verb}: {number} "beneficiary blocked".',
        "http_status": number,
        "request_id": "a-uuid",
        "outcome": "refused",
        "exit_code": exit_code,
        "entry": "j1",
        "idempotency_key": "a-uuid",
        "sent_at": "2026-11-21T03:12:44.000Z",
        "request": {
            "method": server.writes[0].method,
            "url": f"{server.base_url}{server.writes[0].target}",
            "body": server.writes[0].body.decode() or None,
        },
        **({"id": "tx_1"} if verb == "release" else {}),
        "body": json.loads(problem),
    }
    assert len(server.writes) == 1
    assert journal() == [(f"{verb}_transaction", "refused")]


@pytest.mark.parametrize(
    "body",
    [
        b'{"message":"beneficiary blocked"}',
        b'{"error":"beneficiary blocked"}',
        b'{"error":{"code":17,"message":"beneficiary blocked"}}',
        b'{"errors":[{"detail":"beneficiary blocked"}]}',
        b'{"errors":["beneficiary blocked"]}',
        b'{"title":"No","detail":"beneficiary blocked"}',
        b'"beneficiary blocked"',
        b"beneficiary\nblocked\n",
    ],
)
def test_refusal_shows_the_service_message_of_any_shape(body: bytes, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(body, "422 No"))

    result = run(*CREATE)

    assert (result.code, result.out) == (8, "")
    assert result.err == 'error: the service refused the create: 422 "beneficiary blocked".\n'


def test_half_a_character_in_a_refusal_leaves_it_a_refusal(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(json_reply(rb'{"detail":"\udc00"}', "400 Bad Request"))

    result = run(*CREATE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (8, "refused", 1)
    assert journal() == [("create_transaction", "refused")]


def test_refusal_text_is_escaped_and_cut(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b"\x1b[2J\xe2\x80\xae" + b"x" * 5000, "400 Bad Request"))

    result = run(*CREATE)

    assert result.code == 8
    assert "\x1b" not in result.err
    assert "\u202e" not in result.err
    assert r"\u{1b}[2J\u{202e}xxx" in result.err
    assert len(result.err) < 400


@pytest.mark.representative("create-302 Found", "release-307 Moved")
@pytest.mark.parametrize("status", ["301 Moved", "307 Moved", "308 Moved", "302 Found", "303 See Other"])
@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_no_redirect_is_followed_and_the_key_goes_nowhere_else(
    line: tuple[str, ...], status: str, service_and_run: ServiceAndRun, serve: Serve
) -> None:
    elsewhere = serve(json_reply(RELEASED))
    server, run = service_and_run(
        writes_meet(json_reply(b"", status, f"Location: {elsewhere.base_url}/api/v1/transactions"))
    )

    result = run(*line)

    assert result.code in (8, 12)
    assert elsewhere.base_url in result.err
    assert len(server.writes) == 1
    assert elsewhere.seen == []


_KEPT = keep_port()
atexit.register(_KEPT.close)


def closed_port() -> str:
    return f"http://127.0.0.1:{_KEPT.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (closed_port(), "no connection could be opened ([Errno 111] Connection refused)"),
        ("https://nosuch.invalid", "the host name could not be resolved"),
    ],
    ids=["closed port", "unresolvable name"],
)
def test_create_without_a_connection_is_not_sent_and_is_repeatable(
    url: str, why: str, run: Run, journal: Journal
) -> None:
    environ = {"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY}

    results = [run(*CREATE, "--json", environ=environ, now=lambda: NOW) for _ in range(2)]

    for number, result in enumerate(results, start=1):
        error = result.error
        assert (result.code, result.out) == (11, "")
        message, key, request_id = error.pop("message"), error.pop("idempotency_key"), error.pop("request_id")
        assert message.startswith(f"the create failed after 3 attempts: {why}")
        assert message.endswith(". Nothing was sent.")
        assert key != request_id
        assert error == {
            "code": "no_connection",
            "hint": "check the base URL (from ESCROWCTL_BASE_URL)",
            "http_status": None,
            "outcome": "not_sent",
            "exit_code": 11,
            "entry": f"j{number}",
            "sent_at": "2026-11-21T03:12:44.000Z",
            "request": {
                "method": "POST",
                "url": f"{url}/api/v1/transactions",
                "body": '{"amount":100,"currency":"USD"}',
            },
        }
    assert journal() == [("create_transaction", "not_sent")] * 2


def test_release_without_a_connection_stops_at_the_read(run: Run, journal: Journal) -> None:
    url = closed_port()

    result = run(*RELEASE, "--json", environ={"ESCROWCTL_BASE_URL": url, "ESCROWCTL_API_KEY": KEY})

    assert (result.code, result.out) == (11, "")
    error = result.error
    assert error.pop("request_id")
    assert error == {
        "code": "no_connection",
        "message": f"{url}: no connection could be opened ([Errno 111] Connection refused) after 3 attempts. "
        "The release was not sent.",
        "hint": "check the base URL (from ESCROWCTL_BASE_URL)",
        "http_status": None,
        "outcome": "not_sent",
        "exit_code": 11,
        "id": "tx_1",
    }
    assert journal() == []


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
    assert result.json == {
        "id": "tx_1",
        "http_status": status,
        "reply": shown,
        "status_before": "held",
        "status_after": "held",
        "verified": None,
    }
    assert [json.loads(line) for line in result.err.splitlines()] == [
        {
            "note": {
                "code": "not_confirmed",
                "message": "the release of tx_1 was accepted, but is not confirmed: the status is still held",
                "hint": "to check again: escrowctl tx get tx_1",
            }
        }
    ]
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "GET"]
    assert journal() == [("release_transaction", "unconfirmed")]


def test_unknown_release_is_reported_with_the_commands_to_settle_it(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(hang_up))

    result = run(*RELEASE, "--reason", "order 8841", now=lambda: NOW, new_uuid=lambda: "a-uuid")

    assert (result.code, result.out) == (12, "")
    assert result.err.splitlines() == [
        "unknown: the release was sent, but the connection broke before a reply came (Server disconnected without "
        "sending a response). tx_1 may or may not be released. escrowctl sent the release once.",
        f"  sent             2026-11-21T03:12:44.000Z  PUT {server.base_url}/api/v1/transactions/tx_1/release",
        "  idempotency key  a-uuid  (this service is not known to deduplicate by it)",
        '  entry            j1  "order 8841"   request id a-uuid',
        "hint: resolve j1 before you repeat the release: escrowctl journal resolve j1",
    ]


@pytest.mark.thorough
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


def test_interim_replies_before_the_final_one_are_skipped(service_and_run: ServiceAndRun) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3
    _server, run = service_and_run(answering(early + http_reply("200 OK", HELD)))

    result = run(*CREATE, "-q")

    assert (result.code, result.out, result.err) == (0, "tx_1\n", "")


@pytest.mark.thorough
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


@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized", "500 Oh No"])
def test_echoed_key_is_neither_shown_nor_stored(status: str, service_and_run: ServiceAndRun, home: Path) -> None:
    echo = f'{{"id":"tx_1","detail":"no such key: {KEY}"}}'.encode()
    _server, run = service_and_run(json_reply(echo, status, f"X-Request-Id: {KEY}", f"Location: https://x/{KEY}"))

    results = [run(*CREATE, "--debug"), run("tx", "get", "tx_1", "--json"), run("journal", "show", "j1", "--json")]

    assert not any(KEY in result.out + result.err for result in results)
    assert not any(KEY.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_unknown_write_reports_that_the_service_deduplicates(
    service_and_run: ServiceAndRun, write_config: Callable[[str], Path]
) -> None:
    server, run = service_and_run(hang_up)
    write_config(f'[profiles.p]\nbase_url = "{server.base_url}"\nidempotency = "header"\n')
    around = {"ESCROWCTL_PROFILE": "p"}

    shown = run(*CREATE, environ=around, new_uuid=lambda: "a-uuid")

    assert (shown.code, len(server.writes)) == (12, 3)
    assert "escrowctl made 3 attempts with the same idempotency key." in shown.err
    assert "  idempotency key  a-uuid  (this service deduplicates by it)\n" in shown.err
