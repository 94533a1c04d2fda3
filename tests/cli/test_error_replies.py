"""What a refusal shows of the service's reply: each field in error, the service's request id, and the whole body."""

import json

import pytest
from conftest import KEY, Run, Serve, ServiceAndRun
from wire_server import Behave, answering, http_reply

from cli.replies import CREATE, json_reply, writes_meet

GET = ("user", "get", "usr_1")
SERVICE = {"ESCROWCTL_BASE_URL": "https://escrow.example.com", "ESCROWCTL_API_KEY": KEY}
TWO = "amount: too low; currency: unsupported"
SHAPES = {
    "fields in a list": (
        {"errors": [{"field": "amount", "message": "too low"}, {"field": "currency", "message": "unsupported"}]},
        TWO,
    ),
    "texts by field": ({"errors": {"amount": ["too low"], "currency": "unsupported"}}, TWO),
    "texts by field, and no more": ({"amount": ["too low"], "currency": ["unsupported"]}, TWO),
    "RFC 9457": (
        {
            "type": "about:blank",
            "title": "Invalid",
            "detail": "Wrong.",
            "errors": [{"pointer": "#/a", "detail": "low"}],
        },
        "Wrong; #/a: low",
    ),
    "JSON:API": ({"errors": [{"source": {"pointer": "/data/amount"}, "detail": "too low"}]}, "/data/amount: too low"),
    "paths": ({"detail": [{"loc": ["body", "amount"], "msg": "is required"}]}, "body.amount: is required"),
    "one field": ({"error": {"message": "too low", "param": "amount", "code": "low"}}, "amount: too low"),
    "a code alone": ({"error": {"code": "insufficient_funds"}}, "code: insufficient_funds"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_refusal_names_each_field_and_each_message(shape: str, service_and_run: ServiceAndRun) -> None:
    document, says = SHAPES[shape]
    _server, run = service_and_run(json_reply(json.dumps(document).encode(), "422 No"))

    read, created = run(*GET, "--json"), run(*CREATE, "--json")

    assert (read.code, created.code) == (8, 8)
    assert all(f'422 "{says}"' in result.error["message"] for result in (read, created))
    assert read.error["body"] == created.error["body"] == document


@pytest.mark.parametrize("line", [GET, CREATE], ids=["read", "write"])
def test_raw_prints_the_body_of_an_error_on_stderr(line: tuple[str, ...], service_and_run: ServiceAndRun) -> None:
    body = '{"detail":"no","extra":{"n":1.50}}'
    _server, run = service_and_run(json_reply(body.encode(), "422 No"))

    plain, raw = run(*line), run(*line, "--raw")

    assert (plain.code, raw.code, raw.out) == (8, 8, "")
    assert (body in plain.err, body in raw.err) == (False, True)


@pytest.mark.parametrize(
    ("behave", "found"),
    [
        (json_reply(b"{}", "500 Oh No", "X-Request-Id: req_1"), "req_1"),
        (json_reply(b"{}", "422 No", "Request-Id: req_2"), "req_2"),
        (json_reply(b'{"error":"internal","request_id":"req_3"}', "500 Oh No"), "req_3"),
        (json_reply(b'{"error":{"message":"m","traceId":"req_4"}}', "422 No"), "req_4"),
        (json_reply(b"{}", "422 No", "X-Request-Id: a-uuid"), None),
        (json_reply(b"{}", "422 No"), None),
    ],
    ids=["header", "other header", "body", "within an error", "ours returned", "none"],
)
@pytest.mark.parametrize("line", [GET, CREATE], ids=["read", "write"])
def test_error_has_the_request_id_of_the_service(
    line: tuple[str, ...], behave: Behave, found: str | None, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(behave)

    error = run(*line, "--json", new_uuid=lambda: "a-uuid", sleep=lambda _: None).error

    assert error.get("service_request_id") == found


@pytest.mark.parametrize(
    ("behave", "hint"),
    [
        (json_reply(b'{"error":"no such user"}', "404 Not Found"), None),
        (json_reply(b'{"error":"Not Found"}', "404 Not Found"), "API prefix (/api/v1)"),
        (answering(http_reply("404 No", b"<h1>Not Found</h1>", content_type="text/html")), "API prefix (/api/v1)"),
        (json_reply(b"", "404 Not Found"), "API prefix (/api/v1)"),
    ],
    ids=["no such user", "two words", "HTML", "empty"],
)
@pytest.mark.parametrize("line", [GET, CREATE], ids=["read", "write"])
def test_prefix_is_doubted_only_where_a_404_does_not_say_what_is_missing(
    line: tuple[str, ...], behave: Behave, hint: str | None, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(behave)

    error = run(*line, "--json").error

    assert (hint in error["hint"]) if hint else error["hint"] is None


@pytest.mark.parametrize("line", [GET, CREATE], ids=["read", "write"])
def test_refusing_proxy_is_named_as_the_proxy(line: tuple[str, ...], run: Run) -> None:
    error = run(
        *line, "--json", environ=SERVICE | {"HTTPS_PROXY": "http://user:pass@127.0.0.1:9"}, sleep=lambda _: None
    ).error

    assert error["code"] == "no_connection"
    assert "the proxy refused the connection or failed (http://127.0.0.1:9" in error["message"]
    assert "base URL" not in error["hint"]
    assert "check the proxy" in error["hint"]
    assert "pass" not in json.dumps(error)


def test_debug_shows_requests_and_replies_as_they_are(service_and_run: ServiceAndRun) -> None:
    reply = b'{"errors":[{"field":"amount","message":"low"}],"request_id":"req_9","client_secret":"correct horse"}'
    behave = json_reply(reply, "422 No", "X-Odd: as it is", "Set-Cookie: session=abc123")
    server, run = service_and_run(writes_meet(behave))

    told = run(*CREATE, "--data", '{"note":"for order 17"}', "--debug").err
    host = server.base_url.removeprefix("http://")

    assert f"* attempt 1, to {host}" in told
    assert '> {"amount":100,"currency":"USD","note":"for order 17"}' in told
    assert '< {"errors":[{"field":"amount","message":"low"}],"request_id":"req_9","client_secret":"***"}' in told
    assert "< x-odd: as it is" in told
    assert "< set-cookie: ***" in told
    assert "> Authorization: Bearer ***" in told
    assert [word for word in ("sha256", "abc123", "correct horse", KEY) if word in told] == []


def test_debug_names_the_proxy(run: Run, serve: Serve) -> None:
    address = serve(answering(http_reply("407 Proxy Authentication Required", b""))).base_url.removeprefix("http://")
    environ = SERVICE | {"HTTPS_PROXY": f"http://user:s3cr3t@{address}"}

    told = run(*GET, "--debug", environ=environ, sleep=lambda _: None).err

    assert f"* attempt 1, to {address}, through the proxy http://{address}" in told
    assert ("s3cr3t" in told, "put the proxy's user and password" in told) == (False, True)
