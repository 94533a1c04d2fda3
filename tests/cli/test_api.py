"""`api`: replies are shown completely, and writes that a command knows are refused."""

import json

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import answering, http_reply

from cli.conftest import Profile
from cli.replies import HELD, json_reply


@pytest.mark.parametrize(
    "out", ['{"data": {"id": 17, "amount": 1.50}, "n": 12345678901234567890.10}', '"pong"', "null"]
)
def test_api_get_prints_the_complete_reply_in_a_pipe(out: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(out.encode()))

    results = [run("api", "GET", "/anything/else?page=2", *words) for words in ((), ("--json",))]

    assert [(result.code, result.out, result.err) for result in results] == [(0, f"{out}\n", "")] * 2
    assert [seen.target for seen in server.seen] == ["/api/v1/anything/else?page=2"] * 2


TWO = b'[{"id":"tx_1","status":"held","fee":{"bp":5}},{"id":"tx_2","status":"released"}]'


@pytest.mark.parametrize(
    ("reply", "words", "out"),
    [
        (HELD, ("-q",), "tx_1\n"),
        (TWO, ("-q",), "tx_1\ntx_2\n"),
        (b'{"status":"success","data":%s,"next":null}' % TWO, ("-q",), "tx_1\ntx_2\n"),
        (b'{"id":"tx_9","items":%s}' % TWO, ("-q",), "tx_9\n"),
        (TWO, ("--fields", "status,id,/fee/bp"), "held\ttx_1\t5\nreleased\ttx_2\t\n"),
        (b'{"data":%s,"next":"abc"}' % TWO, ("--fields", "/next,/data/1/id"), "/next\tabc\n/data/1/id\ttx_2\n"),
        (b'{"amount":5,"items":%s}' % TWO, ("--fields", "amount,id"), "amount\t5\nid\t\n"),
    ],
)
def test_ids_and_fields_of_a_list_come_from_its_items(
    reply: bytes, words: tuple[str, ...], out: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(reply))

    result = run("api", "GET", "/transactions", *words)

    assert (result.code, result.out, result.err) == (0, out, "")


def test_ids_and_fields_are_where_the_profile_points(profile: Profile, run: Run) -> None:
    reply = json_reply(b'{"data":[{"no":"A-1","at":"held"}],"more":false}')
    profile('reply.id = "/no"', 'reply.status = "/at"', behave=reply)

    quiet, chosen = (run("api", "GET", "/transactions", *words) for words in (("-q",), ("--fields", "id,status")))

    assert (quiet.code, quiet.out) == (0, "A-1\n")
    assert (chosen.code, chosen.out.split()[-1]) == (0, "held")


@pytest.mark.parametrize("reply", [b'{"ok":true}', b"null", b'{"ref":"A-1","parties":[{"id":"usr_1"}]}'])
def test_quiet_never_prints_nothing_for_a_reply_without_an_id(reply: bytes, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(reply))

    result = run("api", "GET", "/transactions", "-q")

    assert (result.code, result.out) == (2, "")


def test_a_reply_that_is_text_is_text(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(answering(http_reply("200 OK", b"ready \x1b[31m\nyes\n", content_type="text/plain")))

    piped, shown = run("api", "GET", "/x"), run("api", "GET", "/x", terminal=True)

    assert (piped.out, shown.out) == ("ready \x1b[31m\nyes\n", "ready \\u{1b}[31m\nyes\n")


def test_the_prefix_may_be_typed_and_is_not_doubled(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    found = run("api", "get", "/api/v1/transactions/tx_1", "--fields", "id,amount", "--json")

    assert found.json == {"id": "tx_1", "amount": 100}
    assert [(seen.method, seen.target) for seen in server.seen] == [("GET", "/api/v1/transactions/tx_1")]


@pytest.mark.parametrize(
    "words",
    [
        ("HEAD", "/x"),
        ("GET", "https://evil.example/x"),
        ("GET", "/a/../b"),
        ("GET", "//evil.example"),
        ("GET", "/a%2e%2e/b"),
        ("GET", "/a\r\nX: y"),
        ("GET", "/a?b=c d"),
        ("GET", f"/x?key={KEY}"),
        ("DELETE", f"/x/{KEY}", "--yes"),
        ("GET", "/x", "--data", "{}"),
        ("GET", "/x", "--dry-run"),
        ("PUT", "/escrows/tx_1?force=1", "--yes"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_api_call_that_leaves_the_service_is_refused(words: tuple[str, ...], service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("api", *words)

    assert (result.code, result.out, server.seen, KEY in result.err) == (2, "", [], False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/transactions/tx_1/release"),
        ("put", "/api/v1/transactions/tx_1/release"),
        ("PATCH", "/Transactions.xml/tx_1/RELEASE.json"),
        ("POST", "/escrow/v2/transactions/tx_1/actions/release-funds"),
        ("PUT", "/transactions/tx_1/%72elease"),
        ("PUT", "/transactions%2Ftx_1%2Frelease"),
        ("PUT", "/x/../transactions/tx_1/release"),
        ("PUT", "//transactions/tx_1/release"),
        ("PUT", "/transactions;v=1/tx_1/release"),
        ("POST", "/transactions"),
        ("POST", "/webhooks"),
    ],
)
def test_write_that_a_command_knows_is_refused(method: str, path: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("api", method, path, "--data", '{"amount":1,"currency":"USD"}', "--yes", "--json")

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert result.error["code"] == "bad_value"


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", "/hooks/wh_1/rotate"), ("DELETE", "/hooks/wh_1/rotate"), ("POST", "/escrows/tx_1/release")],
)
def test_raw_write_is_confirmed_and_sent_once(method: str, path: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(lambda _seen, connection: connection.sendall(http_reply("204 No Content")))

    refused = run("api", method, path, "--json")
    typed = run("api", method, path, terminal=True, stdin="yes\n", environ={"NO_COLOR": "1"})
    declined = run("api", method, path, terminal=True, stdin="y\n")

    assert (refused.code, refused.error["code"], declined.code) == (3, "confirmation_needed", 3)
    assert (typed.code, typed.out) == (0, "null\n")
    assert f"{method} {server.base_url}/api/v1{path}" in typed.err
    assert [(seen.method, seen.body, seen.header("content-type")) for seen in server.seen] == [(method, b"", None)]


def test_raw_write_is_recorded_without_texts_that_may_be_secret(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"k_1","token":"not-for-logs","count":3}'))

    result = run("api", "POST", "/keys", "--data", '{"password":"hunter2","type":"x"}', "--yes")
    entry = run("journal", "show", "j1", "--json").json

    assert result.out == '{"id": "k_1", "token": "not-for-logs", "count": 3}\n'
    assert (entry["operation"], entry["id"], entry["state"]) == ("call_post", "k_1", "done")
    assert [word in json.dumps(entry) for word in ("hunter2", "not-for-logs")] == [False, False]
    assert json.loads(entry["reply"])["count"] == 3


@pytest.mark.parametrize(("field", "code"), [("message", 0), ("success", 12)])
def test_an_echo_of_a_text_that_may_be_secret_proves_nothing(
    field: str, code: int, service_and_run: ServiceAndRun
) -> None:
    body = f'{{"{field}":"false"}}'
    _server, run = service_and_run(json_reply(body.encode()))

    result = run("api", "POST", "/labels", "--data", body, "--yes")

    assert result.code == code
