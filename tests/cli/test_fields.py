"""`--fields` and `--raw`: parts of a record, and complete replies."""

import csv
import io
import json
import os
from datetime import UTC, datetime

import pytest
from conftest import Run, ServiceAndRun
from wire_server import by_method

from cli.replies import CREATE, HELD, RELEASE, holding, json_reply

RECORD = (
    b'{"id":17,"state":"held","amount":{"value":"100.00","currency":"EUR"},"createdAt":"2026-11-21T03:00:00Z",'
    b'"fee":{"bp":150}}'
)
ENVELOPE = b'{"data":%s,"took":3}' % RECORD
LIST = b"""{"data":[
 {"id":"tx_2","status":"held","amount":99999999999999999.005,"currency":"KWD"},
 {"id":"tx_3","status":"released","amount":100},{"id":"tx_4","status":"held"}],"next":null}"""
NOON = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("--fields", "id,status,amount,currency"), "id\t17\nstatus\theld\namount\t100.00\ncurrency\tEUR\n"),
        (("--fields", "created,id", "--json"), '{"created": "2026-11-21T03:00:00Z", "id": "17"}\n'),
        (("--fields", "id, /fee/bp,/took,url", "--json"), '{"id": "17", "/fee/bp": 150, "/took": null, "url": null}\n'),
        (("--fields", "/fee"), '/fee\t{"bp":150}\n'),
        (("--fields", "status,/fee/bp,url", "-q"), "held\t150\t\n"),
        (("--raw",), json.dumps(json.loads(ENVELOPE)) + "\n"),
        (("--raw", "-q"), "17\n"),
        (("--raw", "--fields", "id,/fee/bp"), '{"id": "17", "/fee/bp": 150}\n'),
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

    assert piped.out.splitlines()[0] == "99999999999999999.005\ttx_2"
    assert as_json.out.endswith('{"id": "tx_3", "amount": 100}, {"id": "tx_4", "amount": null}]\n')


def test_raw_keeps_the_envelope_of_a_list_and_of_several(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(by_method(GET=json_reply(ENVELOPE)))

    several = run("tx", "get", "17", "17", "--raw", "--json")

    assert [json.loads(line)["record"] for line in several.out.splitlines()] == [json.loads(ENVELOPE)] * 2
    _server, run = service_and_run(json_reply(LIST))
    assert run("tx", "list", "--raw", "--json").json == json.loads(LIST)


def test_raw_keeps_the_envelope_of_a_stored_reply(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(b'{"data":%s,"took":3}' % HELD))
    line = (*CREATE, "--idempotency-key", "k")
    run(*line)

    raw, plain = run(*line, "--raw"), run(*line, "--json")

    assert (raw.json, plain.json) == ({"data": json.loads(HELD), "took": 3}, json.loads(HELD))
    assert len(server.writes) == 1


def test_lines_of_several_show_outcome_and_selected_fields(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(by_method(GET=json_reply(HELD), PUT=json_reply(b"{}")))

    read = run("tx", "get", "tx_1", "tx_1", "--fields", "status,amount", "--json")
    released = run("tx", "release", "tx_1", "--yes", "--fields", "id,verified,status_after")

    assert read.out == '{"outcome": "read", "status": "held", "amount": 100}\n' * 2
    assert released.out == "id\ttx_1\nverified\t\nstatus_after\theld\n"


@pytest.mark.parametrize("given", ["amounts", "id,", "ID"])
def test_unknown_field_is_refused_before_anything_is_sent(given: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))

    results = [run(*CREATE, "--fields", given, "--json"), run("--fields", given, *RELEASE, "--json")]

    assert [(result.code, result.out, result.error["code"]) for result in results] == [(2, "", "bad_value")] * 2
    assert server.seen == []


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


@pytest.mark.parametrize("name", ["status", "/reply/id"])
@pytest.mark.parametrize("command", [("list",), ("show", "j1")], ids=" ".join)
def test_field_that_no_entry_can_have_is_refused(command: tuple[str, ...], name: str, run: Run) -> None:
    result = run("journal", *command, "--fields", f"entry,{name}", "--json")

    assert (result.code, result.out, result.error["code"]) == (2, "", "bad_value")


def test_journal_list_has_who_and_why(service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch) -> None:
    _server, run = service_and_run(holding())
    for operator, reason in (("anna", "refund 1"), ("ben", "refund 2"), ("anna", "=1+1")):
        monkeypatch.setenv("LOGNAME", operator)
        assert run(*CREATE, "--reason", reason).code == 0

    listed, table = run("journal", "list", "--json"), run("journal", "list", "--csv")
    hers = run("journal", "list", "--operator", "anna", "-q")

    who = [("anna", "=1+1"), ("ben", "refund 2"), ("anna", "refund 1")]
    assert [(entry["operator"], entry["reason"]) for entry in listed.json] == who
    rows = csv.DictReader(io.StringIO(table.out))
    assert [(row["operator"], row["reason"]) for row in rows] == [("anna", "'=1+1"), *who[1:]]
    assert hers.out == "j3\nj1\n"
    host = os.uname().nodename
    assert {
        (entry["host"], run("journal", "show", entry["entry"], "--json").json["process"]) for entry in listed.json
    } == {(host, os.getpid())}
    assert run("journal", "list", "--host", host, "-q").out == "j3\nj2\nj1\n"
    assert run("journal", "list", "--host", "another", "-q").out == ""


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
