"""`--fields` and `--raw`: parts of a record, and complete replies; lists at three widths."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from conftest import Run, ServiceAndRun
from wire_server import by_method

from cli.replies import CREATE, HELD, RELEASE, RELEASED, holding, json_reply
from escrowctl.commands.rows import COLUMNS

RECORD = (
    b'{"id":17,"state":"held","amount":{"value":"100.00","currency":"EUR"},"createdAt":"2026-11-21T03:00:00Z",'
    b'"fee":{"bp":150}}'
)
ENVELOPE = b'{"data":%s,"took":3}' % RECORD
LIST = b"""{"data":[
 {"id":"tx_0190c2a8_5a3e_7bb1_9d0e_2f6a4c81e7d5","status":"held","amount":1284.5,"currency":"EUR","created_at":"2026-11-21T03:59:20Z"},
 {"id":"tx_2","status":"awaiting_counterparty_signature_and_documents","amount":99999999999999999.005,"currency":"KWD",
  "created_at":"2026-11-18T04:00:00+00:00"},
 {"id":"tx_3","status":"released","amount":100,"currency":"JPY","created_at":"yesterday"},
 {"id":"tx_4","status":"held","created_at":"2026-13-41T04:00:00Z"}],"next":null}"""
NOON = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("--fields", "id,status,amount,currency"), "id\t17\nstatus\theld\namount\t100.00\ncurrency\tEUR\n"),
        (("--fields", "created,id", "--json"), '{"created": "2026-11-21T03:00:00Z", "id": "17"}\n'),
        (("--fields", "id, /fee/bp,/took,url", "--json"), '{"id": "17", "/fee/bp": 150, "/took": null, "url": null}\n'),
        (("--fields", "/fee"), '/fee\t{"bp":150}\n'),
        (("--fields", "status", "-q"), "held\n"),
        (("--fields", "status,/fee/bp,url", "-q"), "held\t150\t\n"),
        (("--raw", "--json"), json.dumps(json.loads(ENVELOPE)) + "\n"),
        (("--raw", "-q"), "17\n"),
    ],
)
def test_a_record_is_shown_in_part_or_with_its_envelope(
    words: tuple[str, ...], out: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(ENVELOPE))

    results = [run("tx", "get", "17", *words), run(*words, "tx", "get", "17")]

    assert [(result.code, result.out) for result in results] == [(0, out)] * 2


def test_fields_select_list_columns_and_item_members(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(LIST))

    piped = run("tx", "list", "--fields", "amount,id")
    as_json = run("tx", "list", "--fields", "id,amount", "--json")
    shown = run("tx", "list", "--fields", "id,currency", terminal=True)

    assert piped.out.splitlines()[1] == "99999999999999999.005\ttx_2"
    assert as_json.out.endswith('{"id": "tx_3", "amount": 100}, {"id": "tx_4", "amount": null}]\n')
    assert [line.split() for line in shown.out.splitlines()][-3:] == [["tx_2", "KWD"], ["tx_3", "JPY"], ["tx_4"]]


def test_quiet_prints_the_values_of_chosen_fields_of_each_item(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(LIST))

    listed = run("tx", "list", "--fields", "amount,id", "-q", terminal=True)
    called = run("api", "GET", "/transactions", "--fields", "amount,id", "-q")

    assert listed.out.splitlines()[1:3] == ["99999999999999999.005\ttx_2", "100\ttx_3"]
    assert (called.out, listed.err) == (listed.out, "")


def test_quiet_with_a_field_that_is_no_id_needs_no_id(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(ODD))
    words = ("webhook", "create", "--url", "https://hooks.example.net/x", "-q", "--fields")

    assert [(one.code, one.out) for one in (run(*words, "/escrowRef"), run(*words, "id"))] == [
        (0, "A-10977\n"),
        (12, ""),
    ]


ODD = b'{"escrowRef":"A-10977"}'
WHOLE = "The reply below has no field that escrowctl recognises as the id."
PART = "escrowctl found no id in the reply. To see the reply: escrowctl journal show j1."


@pytest.mark.parametrize(
    ("reply", "words", "out", "sentence"),
    [
        (ODD, (), "escrowRef\tA-10977\n", WHOLE),
        (ODD, ("--fields", "id"), "id\t\n", PART),
        (ODD, ("--fields", "/escrowRef"), "/escrowRef\tA-10977\n", PART),
        (b'{"data":%s,"took":3}' % ODD, (), "escrowRef\tA-10977\n", PART),
        (b'{"data":%s,"took":3}' % ODD, ("--raw",), '{"data": {"escrowRef": "A-10977"}, "took": 3}\n', WHOLE),
    ],
)
def test_missing_id_note_depends_on_the_complete_reply(
    reply: bytes, words: tuple[str, ...], out: str, sentence: str, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(json_reply(reply))

    result = run("webhook", "create", "--url", "https://hooks.example.net/x", *words)

    # The first line is about the reply's text: under an unusual name, it may be the endpoint's secret.
    assert (result.code, result.out) == (0, out)
    assert (len(result.err.splitlines()), sentence in result.err) == (2, True)


def test_raw_keeps_the_envelope_of_a_list_and_of_several(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(by_method(GET=json_reply(ENVELOPE)))

    several = run("tx", "get", "17", "17", "--raw", "--json")

    assert [json.loads(line)["record"] for line in several.out.splitlines()] == [json.loads(ENVELOPE)] * 2
    _server, run = service_and_run(json_reply(LIST))
    assert run("tx", "list", "--raw", "--json").json == json.loads(LIST)


def test_raw_prints_the_complete_document_as_json_in_every_format(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    _server, run = service_and_run(
        by_method(GET=json_reply(ENVELOPE), POST=json_reply(b'{"data":{"id":"wh_1"},"took":2}'))
    )

    piped = run("tx", "get", "17", "--raw")
    shown = run("tx", "get", "17", "--raw", terminal=True)
    made = run("webhook", "create", "--url", "https://hooks.example.net/x", "--raw")
    several = run("tx", "get", "17", "17", "--raw", terminal=True)
    chosen = run("tx", "get", "17", "--raw", "--fields", "id,/fee/bp")

    assert piped.out == json.dumps(json.loads(ENVELOPE)) + "\n"
    assert shown.out == json.dumps(json.loads(ENVELOPE), indent=2) + "\n"
    assert made.out == '{"data": {"id": "wh_1"}, "took": 2}\n'
    assert [json.loads(line)["record"] for line in several.out.splitlines()] == [json.loads(ENVELOPE)] * 2
    assert chosen.out == '{"id": "17", "/fee/bp": 150}\n'


def test_raw_shows_a_list_in_its_envelope_in_every_format(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"data":[{"id":"a"}],"next":null}'))

    assert run("tx", "list", "--raw").out == '{"data": [{"id": "a"}], "next": null}\n'
    assert run("webhook", "list", "--raw", terminal=True).json == {"data": [{"id": "a"}], "next": None}
    assert run("tx", "list", "--raw", "-q").out == "a\n"
    assert run("tx", "list", "--raw", "--fields", "id").out == '[{"id": "a"}]\n'


def test_raw_prints_stored_records_as_json(run: Run) -> None:
    made = run("--sandbox", *CREATE, "-q").out.strip()

    (listed,) = run("--sandbox", "journal", "list", "--raw").json
    entry = run("--sandbox", "journal", "show", "j1", "--raw").json
    released = run("--sandbox", "tx", "release", made, "--yes", "--raw").json

    assert (listed["entry"], entry["entry"], entry["id"]) == ("j1", "j1", made)
    assert (released["id"], released["verified"], released["reply"]["status"]) == (made, True, "released")


def test_lines_of_several_show_outcome_and_selected_fields(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(by_method(GET=json_reply(HELD), PUT=json_reply(b"{}")))

    read = run("tx", "get", "tx_1", "tx_1", "--fields", "status,amount", "--json")
    released = run("tx", "release", "tx_1", "--yes", "--fields", "id,verified,status_after")

    assert read.out == '{"outcome": "read", "status": "held", "amount": 100}\n' * 2
    assert released.out == "id\ttx_1\nverified\t\nstatus_after\theld\n"


@pytest.mark.parametrize("given", ["amounts", "id,", "ID", "/"])
def test_unknown_field_is_refused_before_anything_is_sent(given: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    results = [run(*CREATE, "--fields", given, "--json"), run("--fields", given, *RELEASE, "--json")]

    assert [(result.code, result.out, result.error["code"]) for result in results] == [(2, "", "bad_value")] * 2
    if given == "ID":
        assert results[0].error["message"].startswith('--fields "ID": "ID" is not one of id, status, amount, ')
    assert server.seen == []


@pytest.mark.parametrize(
    ("given", "pointer"), [("created_at", "/created_at"), ("fee.bp", "/fee/bp"), ("id;status", "/created_at")]
)
def test_field_not_found_is_reported_with_a_pointer_to_set(given: str, pointer: str, run: Run) -> None:
    result = run("tx", "get", "tx_1", "--fields", given)

    assert result.code == 2
    assert result.err.endswith(
        f"failed, unknown, not_sent; name any other field by its JSON Pointer, such as {pointer}. Nothing was sent.\n"
    )


def test_dry_run_ignores_selected_fields(run: Run) -> None:
    result = run("--sandbox", *CREATE, "--dry-run", "--fields", "id", "--json")

    assert list(result.json) == ["dry_run", "method", "url", "headers", "body"]


def test_every_column_of_the_journal_can_be_chosen(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    _server, run = service_and_run(by_method(POST=json_reply(HELD), GET=json_reply(RELEASED)))
    assert run(*CREATE, "--reference", "order-1", "--reason", "refund").code == 0

    result = run("journal", "list", "--fields", ",".join((*COLUMNS, "operator", "reason")), "--json")

    chosen = {name: value for name, value in result.json[0].items() if name != "sent"}
    assert chosen == {
        "id": "tx_1",
        "amount": 100,
        "currency": "USD",
        "entry": "j1",
        "operation": "create",
        "state": "done",
        "reference": "order-1",
        "profile": "127.0.0.1",
        "operator": "anna",
        "reason": "refund",
    }


def test_journal_list_shows_every_field_that_an_entry_has(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "anna")
    _server, run = service_and_run(json_reply(HELD))
    assert run(*CREATE, "--reason", "refund").code == 0
    entry = run("journal", "show", "j1", "--json").json

    listed = run("journal", "list", "--fields", ",".join(f"/{name}" for name in entry), "--json").json[0]
    detail = run("journal", "list", "--fields", "/history/1/detail,/history/7", "-q")
    sent = run("journal", "show", "j1", "--fields", "sent,operator", "-q")

    assert listed == {f"/{name}": value for name, value in entry.items()}
    assert (detail.out, sent.out) == ("200\t\n", f"{entry['sent_at']}\tanna\n")


@pytest.mark.parametrize("name", ["status", "/sent", "/reply/id", "/history/0/by"])
@pytest.mark.parametrize("command", [("list",), ("show", "j1")], ids=" ".join)
def test_field_that_no_entry_can_have_is_refused(command: tuple[str, ...], name: str, run: Run) -> None:
    result = run("journal", *command, "--fields", f"entry,{name}", "--json")

    assert (result.code, result.out, result.error["code"]) == (2, "", "bad_value")
    assert all(known in result.error["message"] for known in ("operator", "/settled_at", "/history"))


def test_journal_list_shows_and_filters_who_and_why(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _server, run = service_and_run(holding())
    for operator, reason in (("anna", "refund 1"), ("ben", "refund 2"), ("anna", "=1+1")):
        monkeypatch.setenv("LOGNAME", operator)
        assert run(*CREATE, "--reason", reason).code == 0

    listed, table = run("journal", "list", "--json"), run("journal", "list", "--csv")
    hers, nobodys = (
        run("journal", "list", "--operator", "anna", "-q"),
        run("journal", "list", "--operator", "Ann", "-q"),
    )
    first = run("journal", "list", "--operator", "anna", "--limit", "1", "-q")

    who = [("anna", "=1+1"), ("ben", "refund 2"), ("anna", "refund 1")]
    assert [(entry["operator"], entry["reason"]) for entry in listed.json] == who
    rows = csv.DictReader(io.StringIO(table.out))
    assert [(row["operator"], row["reason"]) for row in rows] == [("anna", "'=1+1"), *who[1:]]
    assert (hers.out, nobodys.out, first.out) == ("j3\nj1\n", "", "j3\n")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_list_reads_well_at_every_width(
    columns: int, service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _server, run = service_and_run(json_reply(LIST))

    lines = run("tx", "list", terminal=True, now=lambda: NOON, environ={"NO_COLOR": "1"}).out.splitlines()

    rows = {line.split()[0]: line for line in lines if line.startswith("tx_")}
    assert list(rows) == ["tx_0190c2a8_5a3e_7bb1_9d0e_2f6a4c81e7d5", "tx_2", "tx_3", "tx_4"]
    first = rows["tx_0190c2a8_5a3e_7bb1_9d0e_2f6a4c81e7d5"]
    points = {first.index(".5"), rows["tx_2"].index(".005"), rows["tx_3"].index("100") + 3}
    assert len(points) == 1, "the decimal points are aligned"
    assert len({row.index(code) for row, code in zip(rows.values(), ("EUR", "KWD", "JPY"), strict=False)}) == 1
    assert (max(map(len, lines)) <= columns, len(lines)) == (True, {80: 8, 120: 6, 200: 5}[columns])
    created = ("40 s ago", "3 d ago", "yesterday", "2026-13-41T04:00:00Z")
    amounts = ("1284.5   EUR", "99999999999999999.005 KWD", "100     JPY", "   held")
    assert lines[0].split()[-1] == ("AMOUNT" if columns == 80 else "CREATED")
    assert [
        row.endswith(end) for row, end in zip(rows.values(), amounts if columns == 80 else created, strict=True)
    ] == [True] * 4


def test_time_shows_its_age_at_a_terminal_only(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(
        json_reply(b'{"id":"a","created_at":"2026-11-21T03:00:00.250Z","due":"2026-11-23T04:00:01Z"}')
    )

    shown = run("tx", "get", "a", terminal=True, now=lambda: NOON, environ={"NO_COLOR": "1"}).out
    piped = run("tx", "get", "a", now=lambda: NOON).out

    assert shown == (
        "id          a\ncreated_at  2026-11-21T03:00:00.250Z   59 min ago\ndue         2026-11-23T04:00:01Z   in 2 d\n"
    )
    assert piped == "id\ta\ncreated_at\t2026-11-21T03:00:00.250Z\ndue\t2026-11-23T04:00:01Z\n"
