"""`tx list` and `user get`: any envelope, pages where the replies lead to them, filters that apply here."""

import json
import socket
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import NOW, Run, Serve, ServiceAndRun
from wire_server import Behave, Seen, WireServer, http_reply

from cli.conftest import Profile
from cli.replies import CREATE, in_turn, json_reply

ROWS = [
    {"id": "tx_5", "status": "held", "amount": 5, "currency": "USD", "created_at": "2026-11-21T03:00:00Z"},
    {"id": "tx_4", "status": "Released", "amount": 4, "currency": "USD", "created_at": "2026-11-20T23:00:00-05:00"},
    {"id": "tx_3", "status": "held", "amount": 3, "currency": "EUR", "created_at": "2026-11-14T03:12:43Z"},
    {"id": "tx_2", "status": "disputed", "amount": 2, "currency": "EUR", "created_at": "never"},
    {"id": "tx_1", "status": "held", "amount": 1, "currency": "EUR"},
]


def paged(form: str) -> Behave:
    """Answer with two rows a page; the way to the next page is said in this form."""

    def answer(seen: Seen, connection: socket.socket) -> None:
        asked = parse_qs(urlsplit(seen.target).query)
        start = int(asked["cursor"][0].removeprefix("c/+")) if "cursor" in asked else 0
        if "after" in asked:
            start = [row["id"] for row in ROWS].index(asked["after"][0]) + 1
        end = start + 2
        is_last, cursor = end >= len(ROWS), f"c/+{end}"
        url = f"https://elsewhere.example.com/stolen?cursor=c/%2B{end}"
        ways: dict[str, dict[str, object]] = {
            "has_more": {"has_more": not is_last},
            "cursor": {"next_cursor": None if is_last else cursor},
            "old cursor": {"pagination": {"nextCursor": cursor, "has_more": not is_last}},
            "URL": {"links": {"next": None if is_last else url}},
            "HAL": {} if is_last else {"_links": {"next": {"href": url}}},
        }
        connection.sendall(http_reply("200 OK", json.dumps({"data": ROWS[start:end]} | ways[form]).encode()))

    return answer


FORMS = ["has_more", "cursor", "old cursor", "URL", "HAL"]


def ids(text: str) -> list[str]:
    return [record["id"] for record in json.loads(text)]


@pytest.mark.parametrize("form", FORMS)
def test_all_follows_pages_to_the_last(form: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(paged(form))

    result = run("tx", "list", "--all", "--json")

    assert (result.code, ids(result.out)) == (0, ["tx_5", "tx_4", "tx_3", "tx_2", "tx_1"])
    assert [seen.target.partition("?")[0] for seen in server.seen] == ["/api/v1/transactions"] * 3


@pytest.mark.parametrize(
    ("limit", "found", "pages"),
    [((), 2, 1), (("--limit", "2"), 2, 1), (("--limit", "3"), 3, 2), (("--limit", "5"), 5, 3)],
    ids=["one page", "2", "3", "5"],
)
def test_limit_reads_as_many_pages_as_it_takes(
    limit: tuple[str, ...], found: int, pages: int, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(paged("has_more"))

    result, noted = run("tx", "list", *limit, "-q"), run("tx", "list", *limit)

    assert (result.out.split(), len(server.seen)) == ([f"tx_{5 - n}" for n in range(found)], 2 * pages)
    assert ("--all" in noted.err) == (found < 5)


@pytest.mark.parametrize(
    "body",
    [
        *(b'{"data":[{"id":"tx_1"}],"has_more":true}', b'{"data":[{"no":"id"}],"has_more":true}'),
        *(b'{"id":"tx_1"}', b'{"a":[],"b":[]}', b'"none"', b"[1,"),
        b'{"data":[{"id":"tx_1"}],"links":{"next":"https://escrow.example.com/page/2"}}',
    ],
)
def test_pages_without_an_end_or_a_list_are_unreadable(body: bytes, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(body))

    result = run("tx", "list", "--all", "--json")

    assert (result.code, result.out, result.error["code"]) == (10, "", "unreadable_reply")
    assert len(server.seen) <= 2


def test_page_that_fails_prints_no_part_of_the_list(service_and_run: ServiceAndRun) -> None:
    first = json_reply(b'{"data":[{"id":"tx_1"}],"has_more":true}')
    _server, run = service_and_run(in_turn(first, json_reply(b"{}", "404 Not Found")))

    result = run("tx", "list", "--all", "--json")

    assert (result.code, result.out) == (6, "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--status", "RELEASED,disputed"), ["tx_4", "tx_2"]),
        (("--since", "7d", "--status", "held"), ["tx_5"]),
        (("--status", "held", "--limit", "2"), ["tx_5", "tx_3"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_filters_apply_to_what_was_read(
    words: tuple[str, ...], found: list[str], service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(json.dumps(ROWS).encode()))

    result = run("tx", "list", *words, "--json", now=lambda: NOW)

    assert (result.code, ids(result.out)) == (0, found)
    assert [seen.target for seen in server.seen] == ["/api/v1/transactions"]
    assert ("undated" in result.err) == ("--since" in words)


def test_reference_is_found_in_the_journal_and_in_the_field_of_the_profile(profile: Profile, run: Run) -> None:
    listed = b'[{"id":"tx_9","ref":"order-9"},{"id":"tx_1","ref":"order-8"},{"id":"tx_7"}]'

    def behave(seen: Seen, connection: socket.socket) -> None:
        made = b'{"id":"tx_7","status":"held","amount":100,"currency":"USD"}'
        connection.sendall(http_reply("200 OK", made if seen.method == "POST" else listed))

    profile('reference_field = "ref"', behave=behave)
    run(*CREATE, "--reference", "order-7")

    found = {name: run("tx", "list", "--reference", name, "-q").out for name in ("order-7", "order-9", "order-0")}

    assert found == {"order-7": "tx_7\n", "order-9": "tx_9\n", "order-0": ""}


def test_reference_of_another_service_is_not_found(serve: Serve, service_and_run: ServiceAndRun) -> None:
    _server, create = service_and_run(json_reply(b'{"id":"tx_7","amount":100,"currency":"USD"}', "201 Created"))
    create(*CREATE, "--reference", "order-7")
    other: WireServer = serve(json_reply(b'[{"id":"tx_7"}]'))

    result = create("tx", "list", "--reference", "order-7", "-q", environ={"ESCROWCTL_BASE_URL": other.base_url})

    assert (result.code, result.out) == (0, "")


@pytest.mark.parametrize(
    ("rows", "code", "shown"),
    [
        ([{"id": "tx_1", "stage": "held"}, {"id": "tx_2", "stage": "paid"}], 10, ""),
        ([{"id": "tx_1", "stage": "held"}, {"id": "tx_2", "status": "held"}], 0, "tx_2"),
        ([], 0, ""),
    ],
    ids=["no status at all", "one without", "no escrow"],
)
def test_status_that_cannot_be_read_is_not_taken_for_another(
    rows: list[dict[str, str]], code: int, shown: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(json.dumps({"data": rows}).encode()))

    result = run("tx", "list", "--all", "--status", "held", "-q")

    assert (result.code, result.out.strip()) == (code, shown)
    assert ("doctor --tx ID" in result.err) == bool(rows)


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


def test_a_user_is_shown_as_the_service_describes_it(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"user":{"user_id":42,"name":"Ada \\u001b[31m","kyc":{"level":2}}}'))

    as_json, piped, quiet = run("user", "get", "42", "--json"), run("user", "get", "42"), run("user", "get", "42", "-q")

    assert as_json.json == {"user_id": 42, "name": "Ada \x1b[31m", "kyc": {"level": 2}}
    assert piped.out == "user_id\t42\nname\tAda \\u{1b}[31m\nkyc.level\t2\n"
    assert quiet.out == "42\n"
    assert {(seen.method, seen.target) for seen in server.seen} == {("GET", "/api/v1/users/42")}
