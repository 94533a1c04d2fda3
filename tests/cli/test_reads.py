"""Reads: sent once, shown unchanged, reported as a failed read when they fail, and with the announced end of a call."""

import json

import pytest
from conftest import ServiceAndRun

from cli.conftest import Journal
from cli.replies import json_reply

GET = ("tx", "get", "tx_1")


@pytest.mark.representative("302*", "401*", "404*", "503*")
@pytest.mark.parametrize(
    ("status", "code", "exit_code", "outcome"),
    [
        ("301 Moved", "redirected", 8, "refused"),
        ("302 Found", "refused", 8, "refused"),
        ("304 Not Modified", "refused", 8, "refused"),
        ("400 Bad Request", "refused", 8, "refused"),
        ("401 Unauthorized", "not_authenticated", 4, "refused"),
        ("403 Forbidden", "forbidden", 5, "refused"),
        ("404 Not Found", "not_found", 6, "refused"),
        ("409 Conflict", "conflict", 7, "refused"),
        ("422 Unprocessable", "refused", 8, "refused"),
        ("501 Not Implemented", "read_failed", 10, None),
        ("429 Too Many Requests", "rate_limited", 9, "refused"),
        ("408 Request Timeout", "read_failed", 10, None),
        ("503 Busy", "read_failed", 10, None),
    ],
)
def test_a_read_that_was_refused_ends_by_its_status(
    status: str, code: str, exit_code: int, outcome: str | None, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(json_reply(b"", status))

    result = run(*GET, "--json", new_uuid=lambda: "a-uuid")

    number = int(status[:3])
    facts = {"code": code, "exit_code": exit_code, "http_status": number, "outcome": outcome, "id": "tx_1"}
    assert (result.code, result.out, result.error | facts) == (exit_code, "", result.error)
    assert result.error["request_id"] == "a-uuid"
    assert len(server.seen) == (3 if number in (408, 429, 503) else 1)
    assert journal() == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"id":17,"n":12345678901234567890.10}', '{"id": 17, "n": 12345678901234567890.10}'),
        (b'{"transaction":{"id":"a"}}', '{"id": "a"}'),
        (b'{"id":"a","data":{"id":"b"}}', '{"id": "a", "data": {"id": "b"}}'),
        (b'{"\xc3\xbc":"\xe4\xb8\xad\\u007f"}', '{"\\u00fc": "\\u4e2d\\u007f"}'),
        (b"[1e2,-0,0.10]", "[1e2, -0, 0.10]"),
        (b"null", "null"),
    ],
)
def test_json_that_is_no_escrow_is_shown_unchanged(body: bytes, shown: str, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(body))

    result = run(*GET, "--json")

    assert (result.code, result.out) == (16, f"{shown}\n")


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_service_text_is_shown_without_controls_or_markup(*, terminal: bool, service_and_run: ServiceAndRun) -> None:
    body = json.dumps({"id": "[bold]tx_1[/bold]", "note": "\x1b[2J\u202eevil\r\n\x9b31m", "\x1b]0;x\x07": "key"})
    _server, run = service_and_run(json_reply(body.encode()))

    shown = run(*GET, "--color", "never", terminal=terminal)
    ids = run("api", "GET", "/transactions/tx_1", "-q", terminal=terminal)

    assert (shown.code, ids.code) == (16, 0)
    assert "[bold]tx_1[/bold]" in shown.out
    assert r"\u{1b}[2J\u{202e}evil\u{d}\u{a}\u{9b}31m" in shown.out
    assert ids.out == "[bold]tx_1[/bold]\n"
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown.out + shown.err)
    assert len(shown.out.splitlines()) == 3
