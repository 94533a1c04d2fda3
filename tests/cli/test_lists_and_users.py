"""Lists in any envelope, and users."""

import json

import pytest
from conftest import ServiceAndRun

from cli.replies import json_reply

ITEMS = b'[{"id":"tx_2","status":"held","amount":1.50,"currency":"EUR"},{"id":"tx_1","state":"released"}]'


@pytest.mark.parametrize(
    "body",
    [
        ITEMS,
        b'{"data":%s,"has_more":false}' % ITEMS,
        b'{"transactions":%s,"warnings":[]}' % ITEMS,
        b'{"data":{"items":%s,"total":2}}' % ITEMS,
        b'{"anything":%s,"page":1}' % ITEMS,
    ],
    ids=["bare", "data", "the noun's plural", "two envelopes", "the only array"],
)
def test_list_is_printed_as_an_array_from_any_envelope(body: bytes, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(body))

    as_json, piped, quiet = run("tx", "list", "--json"), run("tx", "list"), run("tx", "list", "-q")

    assert (as_json.code, as_json.json) == (0, json.loads(ITEMS))
    assert '"amount": 1.50' in as_json.out
    assert piped.out == "tx_2\theld\t1.50\tEUR\t\ntx_1\treleased\t\t\t\n"
    assert (piped.err.count("note: "), quiet.out, quiet.err) == (1, "tx_2\ntx_1\n", "")
    assert [(seen.method, seen.target) for seen in server.seen] == [("GET", "/api/v1/transactions")] * 3


def test_list_may_be_larger_than_a_record(service_and_run: ServiceAndRun) -> None:
    items = json.dumps([{"id": f"tx_{number}", "status": "held", "note": "x" * 1000} for number in range(1100)])
    _server, run = service_and_run(json_reply(items.encode()))

    results = [run(*line, "--json") for line in (("tx", "list"), ("tx", "get", "tx_1"))]

    assert [result.code for result in results] == [0, 10]
    assert len(results[0].json) == 1100


def test_an_empty_list_is_a_success(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"data":[]}'))

    results = [run("tx", "list", *words) for words in ((), ("--json",), ("--csv",))]

    assert [result.code for result in results] == [0, 0, 0]
    assert [result.out for result in results] == ["", "[]\n", "id,status,amount,currency,created\n"]


@pytest.mark.parametrize("body", [b'{"id":"tx_1"}', b'{"a":[],"b":[]}', b'"none"', b"[1,"])
def test_a_reply_without_a_list_is_an_unreadable_reply(body: bytes, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(body))

    result = run("tx", "list", "--json")

    assert (result.code, result.out, result.error["code"]) == (10, "", "unreadable_reply")


def test_a_user_is_shown_as_the_service_describes_it(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"user":{"user_id":42,"name":"Ada \\u001b[31m","kyc":{"level":2}}}'))

    as_json, piped, quiet = run("user", "get", "42", "--json"), run("user", "get", "42"), run("user", "get", "42", "-q")

    assert as_json.json == {"user_id": 42, "name": "Ada \x1b[31m", "kyc": {"level": 2}}
    assert piped.out == "user_id\t42\nname\tAda \\u{1b}[31m\nkyc.level\t2\n"
    assert quiet.out == "42\n"
    assert {(seen.method, seen.target) for seen in server.seen} == {("GET", "/api/v1/users/42")}
