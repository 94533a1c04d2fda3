"""`tx list`: pages where the replies lead to them, filters that apply here, CSV."""

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
            "hasMore": {"meta": {"hasMore": not is_last}},
            "cursor": {"next_cursor": None if is_last else cursor},
            "old cursor": {"pagination": {"nextCursor": cursor, "has_more": not is_last}},
            "URL": {"links": {"next": None if is_last else url}},
            "HAL": {} if is_last else {"_links": {"next": {"href": url}}},
        }
        connection.sendall(http_reply("200 OK", json.dumps({"data": ROWS[start:end]} | ways[form]).encode()))

    return answer


FORMS = ["has_more", "hasMore", "cursor", "old cursor", "URL", "HAL"]


def ids(text: str) -> list[str]:
    return [record["id"] for record in json.loads(text)]


@pytest.mark.parametrize("form", FORMS)
def test_all_follows_pages_to_the_last(form: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(paged(form))

    result = run("tx", "list", "--all", "--json")

    assert (result.code, ids(result.out)) == (0, ["tx_5", "tx_4", "tx_3", "tx_2", "tx_1"])
    assert [seen.target.partition("?")[0] for seen in server.seen] == ["/api/v1/transactions"] * 3


@pytest.mark.parametrize("form", ["has_more", "HAL"])
def test_one_page_is_read_and_the_note_names_the_way_to_more(form: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(paged(form))

    result = run("tx", "list")

    assert (result.code, result.out.count("\n"), len(server.seen)) == (0, 2, 1)
    assert "the service has more escrows than these; --all lists them all" in result.err
    assert [seen.target for seen in server.seen] == ["/api/v1/transactions"]


@pytest.mark.parametrize(("limit", "pages", "is_cut"), [(1, 1, True), (2, 1, True), (3, 2, True), (5, 3, False)])
def test_limit_reads_as_many_pages_as_it_takes(
    limit: int, pages: int, service_and_run: ServiceAndRun, *, is_cut: bool
) -> None:
    server, run = service_and_run(paged("has_more"))

    result = run("tx", "list", "--limit", str(limit), "-q")
    noted = run("tx", "list", "--limit", str(limit))

    assert (result.out.split(), len(server.seen)) == ([f"tx_{5 - n}" for n in range(limit)], 2 * pages)
    assert ("--all lists them all" in noted.err) == is_cut


@pytest.mark.parametrize(
    "behave",
    [
        json_reply(b'{"data":[{"id":"tx_1"}],"has_more":true}'),
        json_reply(b'{"data":[{"id":"tx_1"}],"next":"/transactions?page=2"}'),
        json_reply(b'{"data":[{"no":"id"}],"has_more":true}'),
    ],
    ids=["the parameter has no effect", "the URL has no effect", "no id to go on from"],
)
def test_all_fails_where_the_pages_lead_nowhere(behave: Behave, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(behave)

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
        (("--status", "held"), ["tx_5", "tx_3", "tx_1"]),
        (("--status", "RELEASED,disputed"), ["tx_4", "tx_2"]),
        (("--since", "7d"), ["tx_5", "tx_4"]),
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


def test_reference_of_another_service_is_not_found(serve: Serve, service_and_run: ServiceAndRun, run: Run) -> None:
    _server, create = service_and_run(json_reply(b'{"id":"tx_7","amount":100,"currency":"USD"}', "201 Created"))
    create(*CREATE, "--reference", "order-7")
    other: WireServer = serve(json_reply(b'[{"id":"tx_7"}]'))

    result = create("tx", "list", "--reference", "order-7", "-q", environ={"ESCROWCTL_BASE_URL": other.base_url})

    assert (result.code, result.out) == (0, "")


def test_csv_has_a_header_and_no_formulas(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'[{"id":"=1+1","status":"a,b","amount":1.50,"currency":"EUR"}]'))

    whole, chosen = run("tx", "list", "--csv"), run("tx", "list", "--csv", "--fields", "id,/amount", terminal=True)

    assert whole.out == 'id,status,amount,currency,created\n\'=1+1,"a,b",1.50,EUR,\n'
    assert chosen.out == "id,/amount\n'=1+1,1.50\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--limit", "0"), "--limit 0 is not in the range 1<=x<=100000."),
        (("--limit", "2", "--all"), "--limit or --all, not both"),
        (("--status", "held,"), '--status "held," has an empty status'),
        (("--since", "soon"), '--since "soon" is not a time'),
        (("--csv", "-q"), "--csv cannot be combined"),
        (("--raw", "--all"), "--raw shows one page unchanged"),
        (("--raw", "--status", "held"), "--raw shows one page unchanged"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_list_options_that_cannot_be_meant_send_nothing(
    words: tuple[str, ...], sentence: str, service_and_run: ServiceAndRun
) -> None:
    server, run = service_and_run(json_reply(b"[]"))

    result = run("tx", "list", *words)

    assert (result.code, result.out, server.seen) == (2, "", [])
    assert sentence in result.err


@pytest.mark.parametrize(
    ("rows", "code", "shown", "error"),
    [
        ([{"id": "tx_1", "stage": "held"}, {"id": "tx_2", "stage": "paid"}], 10, "", "unreadable_reply"),
        ([{"id": "tx_1", "stage": "held"}, {"id": "tx_2", "status": "held"}], 0, "tx_2", None),
        ([], 0, "", None),
    ],
    ids=["no status at all", "one without", "no escrow"],
)
def test_status_that_cannot_be_read_is_not_taken_for_another(
    rows: list[dict[str, str]], code: int, shown: str, error: str | None, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(json.dumps({"data": rows}).encode()))

    result = run("tx", "list", "--all", "--status", "held", "-q")
    said = run("tx", "list", "--all", "--status", "held", "--json").err

    assert (result.code, result.out.strip()) == (code, shown)
    assert (error is None) or error in said
    assert ("doctor --tx ID" in result.err) == bool(rows)


def test_list_without_ids_leads_to_doctor(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"data":[{"ref_no":"a"},{"ref_no":"b"},{"id":"tx_1"}]}'))

    result = run("tx", "list", "-q")

    assert (result.code, result.out) == (0, "tx_1\n")
    assert "escrowctl finds no id in 2 of the 3 escrows listed" in result.err
    assert "doctor --tx ID" in result.err


def test_sandbox_lists_all_its_pages(run: Run) -> None:
    rows = "".join(f"{number},USD\n" for number in range(1, 53))
    run("--sandbox", "batch", "create", "-", "--yes", stdin=f"amount,currency\n{rows}")

    page, everything = (run("--sandbox", "tx", "list", *words, "-q").out.split() for words in ((), ("--all",)))

    assert (len(page), len(everything), len(set(everything))) == (50, 52, 52)


def test_filter_says_that_it_searched_one_page(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(paged("has_more"))

    notes = [run("tx", "list", "--status", "held", "-q", *words).err for words in ((), ("--all",))]

    assert ["--all searches them all" in note for note in notes] == [True, False]
