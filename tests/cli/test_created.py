"""A create that was only accepted, one whose record differs from the request, and webhooks, which need no proof."""

import json
import signal
import socket
import threading

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, Seen, answering, by_method, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, WEBHOOK, in_turn, json_reply

KEYED = (*CREATE, "--idempotency-key", "order-8841-key")


def accepted(reads: Behave) -> Behave:
    return by_method(GET=reads, POST=json_reply(b'{"id":"tx_1","state":"queued"}', "202 Accepted"))


@pytest.mark.parametrize(
    ("reads", "code"),
    [
        (json_reply(HELD), 0),
        (json_reply(b'{"detail":"no"}', "404 Not Found"), 12),
        (json_reply(b"{}"), 12),
        (json_reply(b'{"id":"tx_2","status":"held"}'), 12),
        (json_reply(b'{"message":"Welcome to the API"}'), 12),
        (json_reply(b'{"data":[{"id":"tx_1","status":"failed"}]}'), 12),
        (json_reply(b"<html>"), 12),
    ],
    ids=["the record", "404", "no id", "another", "start page", "list", "HTML"],
)
def test_accepted_create_is_done_only_if_its_id_can_be_read(
    reads: Behave, code: int, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(accepted(reads))

    result = run(*CREATE, "--json")

    assert (result.code, json.loads(result.out or "null")) == (code, json.loads(HELD) if code == 0 else None)
    calls = [("POST", "/api/v1/transactions"), ("GET", "/api/v1/transactions/tx_1")]
    assert [(seen.method, seen.target) for seen in server.seen] == calls
    assert journal() == [("create_transaction", "unknown" if code else "done")]


def test_accepted_create_is_settled_later_by_its_id(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(accepted(in_turn(json_reply(b"", "404 Not Found"), json_reply(HELD))))
    first = run(*KEYED)

    settled, replayed = run("journal", "resolve", "j1", "--json"), run(*KEYED, "--json")

    assert (first.code, settled.code, settled.json["state"], settled.json["id"]) == (12, 0, "done", "tx_1")
    assert (replayed.code, replayed.json, len(server.writes)) == (0, json.loads(HELD), 1)


def test_accepted_create_interrupted_at_its_read_is_unknown(service_and_run: ServiceAndRun, journal: Journal) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(_seen: Seen, _connection: socket.socket) -> None:
        signal.pthread_kill(main, signal.SIGINT)

    server, run = service_and_run(accepted(interrupt))

    result = run(*CREATE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize(
    "record",
    [
        b'{"data":{"id":"tx_1","state":"Declined"}}',
        b'{"Id":"tx_1","Status":"REJECTED"}',
        b'{"id":"tx_1","status":"canceled"}',
        b'{"ID":"tx_1","Amount":{"Value":"90","Currency":"USD"}}',
        b'{"id":"tx_1","amount":100,"currency":"EUR"}',
    ],
)
def test_create_with_another_record_prints_its_id_and_fails(
    record: bytes, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(json_reply(record))

    first, again = run(*KEYED, "-q"), run(*KEYED, "--json")

    assert (first.code, first.out) == (16, "tx_1\n")
    # The same line replays the stored result: it is no better now.
    assert (again.code, len(server.writes)) == (16, 1)
    assert again.json in (json.loads(record), json.loads(record).get("data"))
    error = again.error
    assert (error["code"], error["outcome"], error["id"], error["exit_code"]) == ("check_failed", "done", "tx_1", 16)
    assert journal() == [("create_transaction", "unconfirmed")]


@pytest.mark.parametrize(
    "fields",
    [
        *(f'"amount":{value},"currency":"USD"' for value in ('"1,000"', '" 100 "', '"+100"', '"100."', '"$100"')),
        *(f'"amount":{value},"currency":"USD"' for value in ('"0100"', "[100]", '{"units":100}', "true", "1e2000000")),
        *('"amount":"\\u0661\\u0660\\u0660","currency":"USD"', '"amount":100,"currency":{"code":"USD"}'),
        *('"amount":100,"Amount":99,"currency":"USD"', '"amount":100,"currency":"USD","Currency":"EUR"'),
        '"amount":{"value":100,"currency":"EUR"},"currency":"USD"',
        *('"status":"FAILED "', '"status":"failed: no funds"', '"status":"declined\\u200b"'),
        *('"status":["failed"]', '"status":{"name":"failed"}'),
    ],
)
def test_create_whose_money_or_status_cannot_be_as_sent_fails(
    fields: str, service_and_run: ServiceAndRun, journal: Journal
) -> None:
    _, run = service_and_run(json_reply(b'{"id":"tx_1",%s}' % fields.encode()))

    result = run(*CREATE, "-q")

    assert (result.code, result.out, journal()) == (16, "tx_1\n", [("create_transaction", "unconfirmed")])


@pytest.mark.parametrize("fields", ['"amount":null,"currency":""', '"amount":{"amount":"100.00","currency":"usd"}'])
def test_create_whose_money_is_empty_or_as_sent_is_done(fields: str, service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(b'{"id":"tx_1",%s}' % fields.encode()))

    assert run(*CREATE).code == 0


def test_id_from_the_service_is_quoted_in_the_hint(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":"tx_1; reboot","status":"failed"}'))

    assert run(*CREATE, "--json").error["hint"] == "escrowctl tx get 'tx_1; reboot'"


def test_failed_statuses_of_the_profile_replace_the_built_in_ones(profile: Profile, run: Run) -> None:
    ids = {b"tx_1": b"void", b"tx_2": b"declined"}
    replies = [json_reply(b'{"id":"%s","status":"%s"}' % one) for one in ids.items()]
    profile('status.failed = ["VOID"]', behave=in_turn(*replies))

    assert [run(*CREATE).code, run(*CREATE).code] == [16, 12]


def test_accepted_create_that_reads_as_failed_fails_at_replay_too(service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(accepted(json_reply(b'{"id":"tx_1","status":"declined"}')))

    assert [run(*KEYED).code, run(*KEYED).code] == [16, 16]


def test_resolve_fails_when_the_record_differs_from_the_request(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"escrowNo":"A-1","status":"declined"}'))
    run(*CREATE)
    run("config", "set", "reply.id", "/escrowNo")

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.json["state"], result.error["code"]) == (16, "unconfirmed", "check_failed")


def test_second_create_with_the_id_of_the_first_ends_with_16(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(json_reply(HELD))
    keyed = (*CREATE, "--idempotency-key", "order-2")

    codes = [run(*CREATE, "--idempotency-key", "order-1").code, run(*keyed).code]
    again = run(*keyed, "--json")

    assert (codes, len(server.writes)) == ([0, 16], 2)
    assert (again.code, again.json["id"], again.error["code"]) == (16, "tx_1", "check_failed")
    assert journal() == [("create_transaction", "done"), ("create_transaction", "unconfirmed")]
    # The first is what it was.
    assert run(*CREATE, "--idempotency-key", "order-1").code == 0


@pytest.mark.representative("204", "202", "code", "409")
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (json_reply(b"", "204 No Content"), 0),
        (json_reply(b"", "201 Created"), 0),
        (json_reply(b"{}"), 0),
        (json_reply(b'{"hookRef":"h"}', "202 Accepted"), 0),
        (json_reply(b'{"id":"wh_1","code":"W1"}'), 12),
        (json_reply(b'{"success":false}'), 12),
        (json_reply(b'{"message":"no such event"}'), 12),
        (json_reply(b"<html>"), 12),
        (json_reply(b"", "409 Conflict"), 12),
        (answering(http_reply("200 OK", b'{"id":"wh_1"}')[:-4]), 12),
    ],
    ids=["204", "201 empty", "{}", "202", "code", "success false", "message alone", "HTML", "409", "cut short"],
)
def test_webhook_is_registered_by_any_valid_2xx(reply: Behave, code: int, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(reply)

    assert run(*WEBHOOK, "--timeout", "0.5").code == code


def test_stored_reply_of_a_webhook_is_not_judged_again(profile: Profile, run: Run) -> None:
    profile(behave=by_method(POST=json_reply(b'{"id":"wh_1","code":"W1"}'), GET=json_reply(b"[]")))
    run(*WEBHOOK)
    run("config", "set", "reply.id", "/id")

    assert run("journal", "resolve", "j1").code == 12


@pytest.mark.parametrize(
    ("now", "passes"),
    [
        (b'{"id":"tx_1","status":"held","amount":1000,"currency":"USD"}', "--expect-amount 1000 --expect-currency USD"),
        (b'{"id":"tx_1","status":"held","amount":100,"currency":"EUR"}', "--expect-amount 100 --expect-currency EUR"),
    ],
    ids=["amount", "currency"],
)
def test_release_of_what_was_created_here_with_other_money_is_refused(
    service_and_run: ServiceAndRun, now: bytes, passes: str
) -> None:
    server, run = service_and_run(by_method(POST=json_reply(HELD), GET=json_reply(now), PUT=json_reply(b"")))
    run(*CREATE)

    refused = run(*RELEASE, "--json")
    expected = run(*RELEASE, *passes.split())

    assert (refused.code, refused.error["code"], refused.error["expected"]) == (3, "expectation_failed", "100 USD")
    assert passes in refused.error["hint"]
    assert (expected.code, [seen.method for seen in server.writes]) == (0, ["POST", "PUT"])


@pytest.mark.parametrize(
    "money",
    [
        b'"amount":"1,000","currency":"USD"',
        b'"amount":100,"Amount":99999,"currency":"USD"',
        b'"amount":{"value":100,"currency":"JPY"},"currency":"USD"',
    ],
    ids=["unreadable", "two amounts", "two currencies"],
)
@pytest.mark.parametrize("expected", [(), ("--expect-amount", "100", "--expect-currency", "USD")], ids=["", "expected"])
def test_release_of_an_escrow_with_unreadable_money_is_refused(
    service_and_run: ServiceAndRun, money: bytes, expected: tuple[str, ...]
) -> None:
    now = json_reply(b'{"id":"tx_1","status":"held",%s}' % money)
    server, run = service_and_run(by_method(POST=json_reply(HELD), GET=now, PUT=json_reply(b"")))
    if not expected:
        run(*CREATE)

    refused = run(*RELEASE, *expected, "--json")

    assert (refused.code, refused.error["code"]) == (3, "expectation_failed")
    assert "PUT" not in [seen.method for seen in server.writes]
