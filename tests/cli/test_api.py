"""`api`: replies are shown completely, and writes that a command knows are refused."""

import json

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import answering, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import HELD, json_reply


@pytest.mark.parametrize(
    ("body", "out"),
    [
        (
            b'{"data":{"id":17,"amount":1.50},"n":12345678901234567890.10}',
            '{"data": {"id": 17, "amount": 1.50}, "n": 12345678901234567890.10}\n',
        ),
        (b"[]", "[]\n"),
        (b'"pong"', '"pong"\n'),
        (b"null", "null\n"),
    ],
)
def test_api_get_prints_the_complete_reply_in_a_pipe(body: bytes, out: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(body))

    results = [run("api", "GET", "/anything/else?page=2", *words) for words in ((), ("--json",))]

    assert [(result.code, result.out, result.err) for result in results] == [(0, out, "")] * 2
    assert [seen.target for seen in server.seen] == ["/api/v1/anything/else?page=2"] * 2


def test_a_reading_is_indented_at_a_terminal(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"a","list":[1.50,{"x":[]}],"none":{}}'))

    result = run("api", "GET", "/x", terminal=True)

    assert result.out == (
        '{\n  "id": "a",\n  "list": [\n    1.50,\n    {\n      "x": []\n    }\n  ],\n  "none": {}\n}\n'
    )


TWO = b'[{"id":"tx_1","status":"held","fee":{"bp":5}},{"id":"tx_2","status":"released"}]'


@pytest.mark.parametrize(
    ("reply", "words", "out"),
    [
        (HELD, ("-q",), "tx_1\n"),
        (TWO, ("-q",), "tx_1\ntx_2\n"),
        (b'{"status":"success","data":%s,"next":null}' % TWO, ("-q",), "tx_1\ntx_2\n"),
        (b'{"transactions":%s}' % TWO, ("-q",), "tx_1\ntx_2\n"),
        (b'{"id":"tx_9","items":%s}' % TWO, ("-q",), "tx_9\n"),
        (b"[]", ("-q",), ""),
        (TWO, ("--fields", "status,id,/fee/bp"), "held\ttx_1\t5\nreleased\ttx_2\t\n"),
        (
            TWO,
            ("--fields", "id,amount", "--json"),
            '[{"id": "tx_1", "amount": null}, {"id": "tx_2", "amount": null}]\n',
        ),
        (b'{"data":%s,"next":"abc"}' % TWO, ("--fields", "id"), "tx_1\ntx_2\n"),
        (b'{"data":%s,"next":"abc"}' % TWO, ("--fields", "/next,/data/1/id"), "/next\tabc\n/data/1/id\ttx_2\n"),
        (b'{"amount":5,"items":%s}' % TWO, ("--fields", "amount,id"), "amount\t5\nid\t\n"),
        (b'{"ref":"A","parties":%s}' % TWO, ("--fields", "/ref"), "/ref\tA\n"),
        (b'{"ref":"A","state":"held"}', ("--fields", "id,status"), "id\t\nstatus\theld\n"),
        (b"[]", ("--fields", "id", "--json"), "[]\n"),
    ],
)
def test_ids_and_fields_of_a_list_come_from_its_items(
    reply: bytes, words: tuple[str, ...], out: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(reply))

    result = run("api", "GET", "/transactions", *words)

    assert (result.code, result.out, result.err) == (0, out, "")


@pytest.mark.parametrize("reply", [b'{"no":"A-1","at":"held"}', b'{"data":[{"no":"A-1","at":"held"}],"more":false}'])
def test_ids_and_fields_are_where_the_profile_points(reply: bytes, profile: Profile, run: Run) -> None:
    profile('reply.id = "/no"', 'reply.status = "/at"', behave=json_reply(reply))

    quiet, chosen = (run("api", "GET", "/transactions", *words) for words in (("-q",), ("--fields", "id,status")))

    assert (quiet.code, quiet.out) == (0, "A-1\n")
    assert (chosen.code, chosen.out.split()[-1]) == (0, "held")


@pytest.mark.parametrize(
    "reply",
    [
        *(b'{"ok":true}', b'{"ok":true,"ref":"A-1"}', b'[{"x":1}]', b'"pong"', b"null"),
        b'{"ref":"A-1","parties":[{"id":"usr_1"}]}',
    ],
)
def test_quiet_never_prints_nothing_for_a_reply_without_an_id(reply: bytes, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(reply))

    result = run("api", "GET", "/transactions", "-q")

    said = "error: -q prints ids, and no field of this reply is known to be an id: leave -q out.\n"
    assert (result.code, result.out, result.err) == (2, "", said)


def test_raw_write_without_an_id_is_done(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"ok":true}'))

    result = run("api", "DELETE", "/hooks/wh_1", "--yes", "-q")

    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_reply_that_is_text_is_text(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(answering(http_reply("200 OK", b"ready \x1b[31m\nyes\n", content_type="text/plain")))

    piped, shown, as_json = (
        run("api", "GET", "/x"),
        run("api", "GET", "/x", terminal=True),
        run("api", "GET", "/x", "--json"),
    )

    assert (piped.out, shown.out) == ("ready \x1b[31m\nyes\n", "ready \\u{1b}[31m\nyes\n")
    assert as_json.json == "ready \x1b[31m\nyes\n"


def test_the_prefix_may_be_typed_and_is_not_doubled(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    assert run("api", "get", "/api/v1/transactions/tx_1", "--fields", "id,amount", "--json").json == {
        "id": "tx_1",
        "amount": 100,
    }
    assert [(seen.method, seen.target) for seen in server.seen] == [("GET", "/api/v1/transactions/tx_1")]


BAD = (
    (("HEAD", "/x"), "METHOD 'HEAD' is not one of 'get', 'post', 'put', 'patch', 'delete'."),
    (("GET", "x"), '"x" is not a path of this service: write one such as /transactions/tx_1.'),
    (("GET", "https://evil.example/x"), '"https://evil.example/x" is not a path of this service: write one such as'),
    (("GET", "/a/../b"), '"/a/../b" has a part that is empty'),
    (("GET", "//evil.example"), '"//evil.example" has a part that is empty'),
    (("GET", "/a/"), '"/a/" has a part that is empty'),
    (("GET", "/a%2e%2e/b"), '"/a%2e%2e/b" has a part that is empty'),
    (("GET", "/a\r\nX: y"), "has a part that is empty"),
    (("GET", "/a?b=c d"), 'the query "b=c d" is empty or has characters that need percent-encoding.'),
    (("GET", f"/x/{KEY}"), "the API key is on the command line"),
    (("GET", f"/x?key={KEY}"), "the API key is on the command line"),
    (("DELETE", f"/x/{KEY}", "--yes"), "the API key is on the command line"),
    (("GET", "/x", "--data", "{}"), "--data is only for writes: leave it out for a GET."),
    (("GET", "/x", "--dry-run"), "--dry-run is only for writes: leave it out for a GET."),
    (("PUT", "/escrows/tx_1?force=1"), "has a query, which a write cannot have"),
)


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words)[:40] for words, _ in BAD])
def test_api_call_that_leaves_the_service_is_refused(
    words: tuple[str, ...], message: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("api", *words)

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert message in result.err
    assert result.err.count("Nothing was sent.") == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/transactions/tx_1/release"),
        ("put", "/api/v1/transactions/tx_1/release"),
        ("PATCH", "/Transactions.xml/tx_1/RELEASE.json"),
        ("POST", "/escrow/v2/transactions/tx_1/actions/release-funds"),
        ("PUT", "/transaction/tx_1"),
        ("PUT", "/transactions/tx_1/%72elease"),
        ("PUT", "/%54ransactions/tx_1/release"),
        ("PUT", "/transactions%2Ftx_1%2Frelease"),
        ("PUT", "/x/../transactions/tx_1/release"),
        ("PUT", "//transactions/tx_1/release"),
        ("PUT", "/transactions/tx_1/release/"),
        ("PUT", "/transactions;v=1/tx_1/release"),
        ("POST", "/transactions"),
        ("DELETE", "/transactions/tx_1/notes/1"),
        ("POST", "/webhooks"),
    ],
)
def test_write_that_a_command_knows_is_refused(method: str, path: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("api", method, path, "--data", '{"amount":1,"currency":"USD"}', "--yes", "--json")

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert result.error["code"] == "bad_value"
    assert run("journal", "list", "-q").out == ""


def test_refused_write_names_the_commands_to_use(run: Run) -> None:
    result = run("--sandbox", "api", "PUT", "/transactions/tx_1/release", "--yes")

    assert (result.code, result.err.count("tx release"), result.err.count("Nothing was sent.")) == (2, 1, 1)


def test_base_url_with_the_first_part_of_a_path_refuses_the_write(profile: Profile, run: Run) -> None:
    server = profile('api_prefix = "/api/v1/transactions/tx_9"')

    assert (run("api", "PUT", "/release", "--yes").code, server.seen) == (2, [])


@pytest.mark.parametrize("path", ["/escrows/tx_1/release", "/users/usr_1"])
def test_other_writes_need_yes_and_are_sent(path: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b"{}"))

    codes = [run("api", "POST", path, *words).code for words in ((), ("--yes",))]

    assert (codes, [seen.target for seen in server.seen]) == ([3, 0], [f"/api/v1{path}"])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_raw_write_is_confirmed_and_sent_once(method: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(lambda _seen, connection: connection.sendall(http_reply("204 No Content")))

    refused = run("api", method, "/hooks/wh_1/rotate", "--json")
    typed = run("api", method, "/hooks/wh_1/rotate", terminal=True, stdin="yes\n", environ={"NO_COLOR": "1"})
    declined = run("api", method, "/hooks/wh_1/rotate", terminal=True, stdin="y\n")

    assert (refused.code, refused.error["code"]) == (3, "confirmation_needed")
    assert (typed.code, typed.out) == (0, "null\n")
    assert typed.err == (
        f"  {method} {server.base_url}/api/v1/hooks/wh_1/rotate\n"
        "The service does not document this call. To send it, type yes:\n> "
    )
    assert declined.code == 3
    assert [(seen.method, seen.body, seen.header("content-type")) for seen in server.seen] == [(method, b"", None)]


def test_raw_write_is_recorded_without_texts_that_may_be_secret(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"k_1","token":"not-for-logs","count":3}'))

    result = run("api", "POST", "/keys", "--data", '{"password":"hunter2","type":"x"}', "--yes")
    entry = run("journal", "show", "j1", "--json").json

    assert result.out == '{"id": "k_1", "token": "not-for-logs", "count": 3}\n'
    assert (entry["operation"], entry["id"], entry["state"]) == ("call_post", "k_1", "done")
    assert [word in json.dumps(entry) for word in ("hunter2", "not-for-logs")] == [False, False]
    assert json.loads(entry["reply"])["count"] == 3


def test_raw_write_without_a_reply_blocks_identical_ones(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(hang_up)

    first = run("api", "DELETE", "/hooks/wh_1", "--yes", "--json")
    again = run("api", "DELETE", "/hooks/wh_1", "--yes", "--json")
    other = run("api", "DELETE", "/hooks/wh_2", "--yes", "--json")

    assert [result.code for result in (first, again, other)] == [12, 12, 12]
    assert [result.error["code"] for result in (first, again, other)] == [
        "outcome_unknown",
        "earlier_unknown",
        "outcome_unknown",
    ]
    assert first.error["message"].startswith("the DELETE call was sent, but the connection broke")
    assert len(server.writes) == 2


def test_api_dry_run_sends_and_reads_nothing(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    result = run("api", "DELETE", "/x", "--data", '{"a":1.50}', "--dry-run", "--json")

    assert (result.code, result.json["method"], result.json["body"]) == (0, "DELETE", '{"a":1.50}')
    assert (result.json["url"], server.seen) == (f"{server.base_url}/api/v1/x", [])
