"""What proves a create, and what is reported of one that is done but not as it was sent."""

import json
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Result, Run
from wire_server import Behave, Seen, WireServer, answering, by_method, hang_up, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, in_turn, json_reply

At = Callable[[Behave], tuple[WireServer, Run]]
UNNAMED = b'{"escrowNo":"A-10977","escrowState":"AWAITING_DEPOSIT","value":{"amt":100.00,"ccy":"USD"}}'
KEYED = (*CREATE, "--idempotency-key", "order-8841-key")
WEBHOOK = ("webhook", "create", "--url", "https://hooks.example.net/x")


def hints(result: Result) -> list[str]:
    hint: str = result.error["hint"]
    return hint.splitlines()


# No id


def test_create_without_an_id_is_unknown_and_shows_the_reply(profile: Profile, run: Run, journal: Journal) -> None:
    server = profile(behave=json_reply(UNNAMED))

    result = run("-p", "a", *CREATE)

    assert (result.code, result.out, len(server.writes)) == (12, "", 1)
    assert result.err.startswith(
        "unknown: the create was sent, and the service answered 200, but escrowctl found no id in the reply. "
        "The escrow may exist, or not. It was not sent again.\n"
        f"  reply   {UNNAMED.decode()}\n"
        "  sent    "
    )
    assert result.err.endswith(
        "hint: if /escrowNo is the id:  escrowctl -p a config set reply.id /escrowNo\n"
        "      then settle this one:    escrowctl -p a journal resolve j1\n"
    )
    assert journal() == [("create_transaction", "unknown")]


def test_unknown_create_has_the_reply_in_its_json_error(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(UNNAMED))

    error = run(*CREATE, "--json").error

    assert (error["code"], error["outcome"], error["body"]) == ("outcome_unknown", "unknown", json.loads(UNNAMED))


def test_unknown_create_is_settled_once_the_profile_names_the_id(profile: Profile, run: Run) -> None:
    server = profile(behave=json_reply(UNNAMED))
    first = run(*KEYED)

    saved = run("config", "set", "reply.id", "/escrowNo")
    settled = run("journal", "resolve", "j1", terminal=True, environ={"NO_COLOR": "1"})
    replayed = run(*KEYED, "-q")

    assert [first.code, saved.code, settled.code, replayed.code] == [12, 0, 0, 0]
    assert settled.out == "j1   create   100 USD   A-10977   done, id found in the stored reply\n"
    assert replayed.out == "A-10977\n"
    # The stored reply was judged: nothing was read, and nothing was sent again.
    assert [seen.method for seen in server.seen] == ["POST"]


@pytest.mark.parametrize("pointer", ["/ref", "/data/ref"])
def test_id_pointer_counts_from_the_record_or_from_the_reply(pointer: str, profile: Profile, run: Run) -> None:
    profile(f'reply.id = "{pointer}"', behave=json_reply(b'{"data":{"ref":"A-1","status":"held"}}'))

    assert [run(*CREATE, "-q").out, run("tx", "get", "A-1", "-q").out] == ["A-1\n", "A-1\n"]


def test_id_pointer_at_the_top_outranks_an_envelope_beside_it(profile: Profile, run: Run) -> None:
    profile('reply.id = "/escrowNo"', behave=json_reply(b'{"escrowNo":"A-1","data":{"fee":1}}'))

    result = run(*CREATE, "--json")

    assert (result.code, result.json) == (0, {"escrowNo": "A-1", "data": {"fee": 1}})


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"escrowNo":"A-10977"}', "/escrowNo"),
        (b'{"data":{"no":"A-10977"},"took":3}', "/no"),
        (b'{"escrowNo":"A-10977","data":{"fee":1}}', "/escrowNo"),
        (b'{"a/b":{"c~d":"A-10977"}}', "/c~0d"),
        (b'{"at":"2026-11-21T03:12:44Z","no":"A-10977","state":"NEW","amt":"100.00"}', "/no"),
        (b'{"id":"tx_1","code":"ESC-1","status":"held"}', "/id"),
        (b'{"first":"A-1","second":"B-2"}', "/FIELD"),
        (b'{"number":10977}', "/FIELD"),
        (b"{}", "/FIELD"),
    ],
)
def test_hint_names_the_one_field_that_would_prove_the_create(
    body: bytes, pointer: str, profile: Profile, run: Run
) -> None:
    profile(behave=json_reply(body))

    first, then = hints(run(*CREATE, "--json"))

    assert first.split("escrowctl ")[1] == f"config set reply.id {pointer if '~' not in pointer else repr(pointer)}"
    assert then.split("escrowctl ")[1] == "journal resolve j1"


@pytest.mark.parametrize(
    "body", [b'{"error":"no","ref":"A-1"}', b'{"success":false,"id":"tx_1"}', b'{"message":"A-1"}']
)
def test_hint_of_an_error_names_no_field(body: bytes, profile: Profile, run: Run) -> None:
    profile(behave=json_reply(body))

    assert hints(run(*CREATE, "--json")) == ["settle it before doing it again: escrowctl journal resolve j1"]


def test_hint_without_a_profile_names_no_setting(at: At) -> None:
    _server, run = at(json_reply(UNNAMED))

    assert hints(run(*CREATE, "--json")) == ["settle it before doing it again: escrowctl journal resolve j1"]


def test_code_is_data_where_the_profile_finds_the_id(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"id":"tx_1","code":"ESC-1","status":"held"}'))
    first = run(*CREATE)

    run("config", "set", "reply.id", "/id")
    codes = [run("journal", "resolve", "j1").code, run(*CREATE).code]

    assert (first.code, codes) == (12, [0, 0])
    assert 'the reply is shaped like an error (field "code").' in first.err


def test_stored_reply_with_the_id_of_another_create_settles_nothing(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"merchant":"M-1"}'))
    for reference in ("a", "b"):
        run(*CREATE, "--reference", reference)
    run("config", "set", "reply.id", "/merchant")

    first, second = run("journal", "resolve", "j1"), run("journal", "resolve", "j2")

    assert (first.code, second.code) == (0, 12)
    assert "found: the stored reply has the id M-1, which j1 made\n" in second.err


# Ids that are none of the service's


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b'{"id":"KEY"}', ("--idempotency-key", "order-8841-key")),
        (b'{"uuid":"REQUEST"}', ()),
        (b'{"data":{"transactionId":"order-8841"}}', ("--reference", "order-8841")),
        (b'{"id":"mine","amount":100,"currency":"USD"}', ("--data", '{"id":"mine"}')),
        (b'{"data":{"id":17}}', ("--data", '{"id":17}')),
    ],
    ids=["key", "request id", "reference", "id in the body", "number in the body"],
)
def test_id_that_was_sent_proves_nothing_when_it_comes_back(body: bytes, line: tuple[str, ...], at: At) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        key, request = seen.header("Idempotency-Key") or "", seen.header("X-Request-Id") or ""
        # Upper case: some echoes write a UUID so.
        said = body.replace(b"KEY", key.encode()).replace(b"REQUEST", request.upper().encode())
        connection.sendall(http_reply("200 OK", said))

    _server, run = at(behave)

    result = run(*CREATE, *line, "--json")

    assert (result.code, result.out) == (12, "")
    assert "is one that the request itself held." in result.error["message"]


@pytest.mark.parametrize(
    "value", ["0", "-1", '"0"', '""', '" "', '"null"', '"None"', '"undefined"', "true", "{}", "[1]"]
)
def test_id_that_stands_for_none_proves_nothing(value: str, at: At) -> None:
    _server, run = at(json_reply(b'{"id":%s,"status":"held"}' % value.encode()))

    assert run(*CREATE).code == 12


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "Uuid", "GUID", "uid", "_id", "transactionId", "TransactionID", "transaction_id", "escrowId", "tx_id"],
)
@pytest.mark.parametrize("envelope", ["%s", '{"data":%s,"took":3}', '{"escrow":%s,"took":3}', '{"only":%s}'])
def test_id_is_found_in_any_case_and_one_envelope(name: str, envelope: str, at: At) -> None:
    _server, run = at(json_reply((envelope % f'{{"{name}":"A-1"}}').encode()))

    assert (run(*CREATE, "-q").out) == "A-1\n"


def test_id_in_two_envelopes_is_not_found(at: At) -> None:
    _server, run = at(json_reply(b'{"data":{"transaction":{"id":"tx_1"},"took":3}}'))

    assert run(*CREATE).code == 12


# 201 and Location


def located(place: str, body: bytes = b"", status: str = "201 Created") -> Behave:
    def behave(seen: Seen, connection: socket.socket) -> None:
        origin = f"http://{seen.header('Host')}"
        connection.sendall(http_reply(status, body, f"Location: {place.replace('ORIGIN', origin)}"))

    return behave


@pytest.mark.parametrize(
    ("place", "body"),
    [
        ("/api/v1/transactions/tx_9", b""),
        ("ORIGIN/v2/transactions/tx_9/", b""),
        ("transactions/tx%5F9?expand=1", b'{"status":"held"}'),
        ("//127.0.0.1:PORT/transactions/tx_9", b"null"),
    ],
)
def test_location_of_a_201_names_what_was_created(place: str, body: bytes, serve: Any, run: Run) -> None:
    server = serve(hang_up)
    server.behave = located(place.replace("PORT", str(server.port)), body)
    environ = {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}

    first, again = run(*KEYED, "-q", environ=environ), run(*KEYED, "--json", environ=environ)

    assert (first.code, first.out, again.code, len(server.writes)) == (0, "tx_9\n", 0, 1)


@pytest.mark.parametrize(
    ("place", "status", "body"),
    [
        ("https://elsewhere.test/transactions/tx_9", "201 Created", b""),
        ("http://127.0.0.1:1/transactions/tx_9", "201 Created", b""),
        ("http://127.0.0.1:x/transactions/tx_9", "201 Created", b""),
        ("/api/v1/jobs/9", "201 Created", b""),
        ("/api/v1/transactions/", "201 Created", b""),
        ("/api/v1/transactions/tx_9/events", "201 Created", b""),
        ("/api/v1/transactions/tx_9", "200 OK", b"{}"),
        ("/api/v1/transactions/tx_9", "202 Accepted", b"{}"),
        ("/api/v1/transactions/tx_9", "201 Created", b'{"error":"no"}'),
        ("/api/v1/transactions/tx_9", "201 Created", b"<html>"),
        ("/api/v1/transactions/order-8841-key", "201 Created", b""),
    ],
)
def test_location_that_names_no_escrow_here_proves_nothing(place: str, status: str, body: bytes, at: At) -> None:
    _server, run = at(located(place, body, status))

    assert run(*KEYED).code == 12


# 202


def accepted(reads: Behave) -> Behave:
    return by_method(GET=reads, POST=json_reply(b'{"id":"tx_1","state":"queued"}', "202 Accepted"))


def test_accepted_create_is_done_once_its_id_can_be_read(at: At, journal: Journal) -> None:
    server, run = at(accepted(json_reply(HELD)))

    result = run(*CREATE, "--json")

    assert (result.code, result.json) == (0, json.loads(HELD))
    assert [(seen.method, seen.target) for seen in server.seen] == [
        ("POST", "/api/v1/transactions"),
        ("GET", "/api/v1/transactions/tx_1"),
    ]
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize(
    "reads",
    [
        json_reply(b'{"detail":"no"}', "404 Not Found"),
        json_reply(b"{}"),
        json_reply(b'{"id":"tx_2","status":"held"}'),
        json_reply(b'{"message":"Welcome to the API"}'),
        json_reply(b"<html>"),
    ],
    ids=["404", "no id", "another", "start page", "HTML"],
)
def test_accepted_create_that_cannot_be_read_is_unknown(reads: Behave, at: At, journal: Journal) -> None:
    server, run = at(accepted(reads))

    result = run(*CREATE)

    assert (result.code, result.out, len(server.seen)) == (12, "", 2)
    assert "the service answered 202, but tx_1 has not been read yet." in result.err
    assert journal() == [("create_transaction", "unknown")]


def test_accepted_create_is_settled_later_by_its_id(at: At) -> None:
    server, run = at(accepted(in_turn(json_reply(b"", "404 Not Found"), json_reply(HELD))))
    first = run(*KEYED)

    settled, replayed = run("journal", "resolve", "j1", "--json"), run(*KEYED, "--json")

    assert (first.code, settled.code, settled.json["state"], settled.json["id"]) == (12, 0, "done", "tx_1")
    assert (replayed.code, replayed.json, len(server.writes)) == (0, json.loads(HELD), 1)


def test_accepted_create_with_an_id_that_fits_no_path_is_unknown(at: At) -> None:
    server, run = at(json_reply(b'{"id":"tx/1"}', "202 Accepted"))

    codes = [run(*CREATE).code, run("journal", "resolve", "j1").code]

    assert (codes, [seen.method for seen in server.seen]) == ([12, 12], ["POST", "GET"])


def test_signal_while_an_accepted_create_is_read_leaves_it_unknown(at: At, journal: Journal) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(_seen: Seen, _connection: socket.socket) -> None:
        signal.pthread_kill(main, signal.SIGINT)

    server, run = at(accepted(interrupt))

    result = run(*CREATE, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert journal() == [("create_transaction", "unknown")]


# Created, but wrong


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (b'{"id":"tx_1","status":"failed"}', "its status is failed"),
        (b'{"data":{"id":"tx_1","state":"Declined"}}', "its status is Declined"),
        (b'{"Id":"tx_1","Status":"REJECTED"}', "its status is REJECTED"),
        (b'{"id":"tx_1","status":"cancelled"}', "its status is cancelled"),
        (b'{"id":"tx_1","status":"canceled"}', "its status is canceled"),
        (b'{"id":"tx_1","amount":1.00,"currency":"USD"}', "its amount is 1.00 (100 was sent)"),
        (b'{"ID":"tx_1","Amount":{"Value":"90","Currency":"USD"}}', "its amount is 90 (100 was sent)"),
        (b'{"id":"tx_1","amount":100,"currency":"EUR"}', "its currency is EUR (USD was sent)"),
        (
            b'{"id":"tx_1","status":"failed","amount":90,"currency":"EUR"}',
            "its status is failed and its amount is 90 (100 was sent) and its currency is EUR (USD was sent)",
        ),
    ],
)
def test_create_that_is_not_as_sent_prints_its_id_and_fails(record: bytes, why: str, at: At, journal: Journal) -> None:
    server, run = at(json_reply(record))

    first, again = run(*KEYED, "-q"), run(*KEYED, "--json")

    assert (first.code, first.out) == (16, "tx_1\n")
    assert first.err == f"error: tx_1 was created, but {why}.\nhint: escrowctl tx get tx_1\n"
    # The same line replays the stored result: it is no better now.
    assert (again.code, len(server.writes)) == (16, 1)
    assert again.json in (json.loads(record), json.loads(record).get("data"))
    error = again.error
    assert (error["code"], error["outcome"], error["id"], error["exit_code"]) == ("check_failed", "done", "tx_1", 16)
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize(
    "record", [b'{"id":"tx_1","amount":"100.00","currency":"usd"}', b'{"id":"tx_1","state":"held"}']
)
def test_create_as_sent_in_another_spelling_is_done(record: bytes, at: At) -> None:
    _server, run = at(json_reply(record))

    assert run(*CREATE).code == 0


def test_failed_statuses_of_the_profile_replace_the_built_in_ones(profile: Profile, run: Run) -> None:
    replies = [json_reply(b'{"id":"tx_1","status":"%s"}' % status) for status in (b"void", b"declined")]
    profile('status.failed = ["VOID"]', behave=in_turn(*replies))

    assert [run(*CREATE).code, run(*CREATE).code] == [16, 0]


def test_accepted_create_that_reads_as_failed_fails_now_and_when_replayed(at: At) -> None:
    _server, run = at(accepted(json_reply(b'{"id":"tx_1","status":"declined"}')))

    assert [run(*KEYED).code, run(*KEYED).code] == [16, 16]


def test_resolve_fails_where_what_was_created_is_not_as_sent(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"escrowNo":"A-1","status":"declined"}'))
    run(*CREATE)
    run("config", "set", "reply.id", "/escrowNo")

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.json["state"], result.error["code"]) == (16, "done", "check_failed")


# Webhooks move no money


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
        (answering(http_reply("200 OK", b'{"id":"wh_1"}')[:-4]), 12),
    ],
    ids=["204", "201 empty", "{}", "202", "code", "success false", "message alone", "HTML", "cut short"],
)
def test_webhook_is_registered_by_any_2xx_that_is_no_error(reply: Behave, code: int, at: At) -> None:
    _server, run = at(reply)

    assert run(*WEBHOOK, "--timeout", "0.5").code == code


def test_webhook_without_a_reply_body_is_registered_without_an_id(at: At) -> None:
    _server, run = at(json_reply(b"", "204 No Content"))

    shown, quiet = run(*WEBHOOK), run(*WEBHOOK, "-q", "--json")

    assert (shown.code, shown.out) == (0, "id\t\n")
    assert shown.err == "note: registered (204). The reply has no body. Do not do it again.\n"
    assert (quiet.code, quiet.out, quiet.error["code"]) == (12, "", "id_unknown")


def test_stored_reply_of_a_webhook_is_not_judged_again(profile: Profile, run: Run, tmp_path: Path) -> None:
    profile(behave=by_method(POST=json_reply(b'{"id":"wh_1","code":"W1"}'), GET=json_reply(b"[]")))
    run(*WEBHOOK)
    run("config", "set", "reply.id", "/id")

    assert run("journal", "resolve", "j1").code == 12
