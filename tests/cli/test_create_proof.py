"""What proves a create: an id that the service gave, in the reply or in a Location."""

import json
import socket
from typing import Any

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import Behave, Seen, hang_up, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, RELEASE, in_turn, json_reply, writes_meet

UNNAMED = b'{"escrowNo":"A-10977","escrowState":"AWAITING_DEPOSIT","value":{"amt":100.00,"ccy":"USD"}}'
KEYED = (*CREATE, "--idempotency-key", "order-8841-key")
UPDATE = ("tx", "update", "tx_1", "--data", '{"note":"x"}', "--yes")


@pytest.mark.parametrize(
    ("reply", "pointer", "name"),
    [
        (UNNAMED, "/escrowNo", "A-10977"),
        # A code is data once the profile finds the id.
        (b'{"id":"tx_1","code":"ESC-1","status":"held"}', "/id", "tx_1"),
    ],
    ids=["no id", "code"],
)
def test_unknown_create_is_settled_once_the_profile_names_the_id(
    reply: bytes, pointer: str, name: str, profile: Profile, run: Run
) -> None:
    reads = json_reply(b'{"%s":"%s","amount":100,"currency":"USD"}' % (pointer[1:].encode(), name.encode()))
    server = profile(behave=writes_meet(json_reply(reply), reads=reads))
    first = run(*KEYED, "--json")

    saved = run("config", "set", "reply.id", pointer)
    settled = run("journal", "resolve", "j1", "-q")
    replayed = run(*KEYED, "-q")

    assert [first.code, saved.code, settled.code, replayed.code] == [12, 0, 0, 0]
    assert (first.out, first.error["body"], replayed.out) == ("", json.loads(reply), f"{name}\n")
    # The stored reply was judged, and what it names was read; nothing was sent again.
    assert [seen.method for seen in server.seen] == ["POST", "GET"]


def test_create_recorded_with_a_wrong_id_is_put_right(profile: Profile, run: Run, journal: Journal) -> None:
    record = b'{"id":9011,"ref":"tx_11","status":"held","amount":100,"currency":"USD"}'
    reads = in_turn(json_reply(b"", "403 Forbidden"), json_reply(record))
    server = profile(behave=writes_meet(json_reply(record), reads=reads))
    keyed = (*CREATE, "--idempotency-key", "order-1", "-q")
    first = run(*keyed)
    run("config", "set", "reply.id", "/ref")

    refused = run(*keyed, "--json")
    unread = run("journal", "resolve", "j1", "--json")
    resolved = run("journal", "resolve", "j1", "-q")
    again = run(*keyed)

    assert (first.out, refused.code, refused.out, unread.code) == ("9011\n", 16, "", 16)
    assert (resolved.code, again.code, again.out, len(server.writes)) == (0, 0, "tx_11\n", 1)
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        (b'{"id":"tx_whsec_55","status":"held","amount":100,"currency":"USD"}', ()),
        (b'{"escrow_access_key":"tx_55","status":"held","amount":100,"currency":"USD"}', ("/escrow_access_key",)),
    ],
    ids=["looks like a secret", "named like one"],
)
def test_id_that_is_hidden_in_the_stored_reply_is_no_other_one(
    profile: Profile, run: Run, record: bytes, lines: tuple[str, ...]
) -> None:
    server = profile(*(f'reply.id = "{pointer}"' for pointer in lines), behave=json_reply(record))
    keyed = (*CREATE, "--idempotency-key", "order-1", "-q")

    first, again, looked = run(*keyed), run(*keyed), run("journal", "resolve", "j1")

    assert (first.code, again.code, looked.code, len(server.writes)) == (0, 0, 0, 1)
    assert first.out == again.out != ""


def test_field_that_is_no_id_settles_nothing(profile: Profile, run: Run, journal: Journal) -> None:
    reply = b'{"trace":"req-991","result":{"escrow_no":"esc_621","state":"held","value":100}}'
    not_found = json_reply(b"", "404 Not Found")
    profile(
        behave=writes_meet(json_reply(reply, "201 Created"), reads=in_turn(not_found, not_found, json_reply(reply)))
    )
    assert run(*CREATE).code == 12

    run("config", "set", "reply.id", "/result/value")
    wrong = run("journal", "resolve", "j1")
    unread = journal()
    run("config", "set", "reply.id", "/result/escrow_no")

    assert (wrong.code, unread) == (12, [("create_transaction", "unknown")])
    assert run("journal", "resolve", "j1", "-q").code == 0
    assert run("journal", "show", "j1", "--json").json["id"] == "esc_621"
    assert journal() == [("create_transaction", "done")]


@pytest.mark.parametrize("pointer", ["/ref", "/data/ref"])
def test_id_pointer_counts_from_the_record_or_from_the_reply(pointer: str, profile: Profile, run: Run) -> None:
    profile(f'reply.id = "{pointer}"', behave=json_reply(b'{"data":{"ref":"A-1","status":"held"}}'))

    assert [run(*CREATE, "-q").out, run("tx", "get", "A-1", "-q").out] == ["A-1\n", "A-1\n"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"data":{"no":"A-10977"},"took":3}', "/no"),
        (b'{"a/b":{"c~d":"A-10977"}}', "'/c~0d'"),
        (b'{"at":"2026-11-21T03:12:44Z","no":"A-10977","state":"NEW","amt":"100.00"}', "/no"),
        (b'{"id":"tx_1","code":"ESC-1","status":"held"}', "/id"),
        (b'{"first":"A-1","second":"B-2"}', "/FIELD"),
    ],
)
def test_hint_names_the_field_that_proves_the_create(body: bytes, pointer: str, profile: Profile, run: Run) -> None:
    profile(behave=json_reply(body))

    assert f"config set reply.id {pointer}\n" in run(*CREATE, "--json").error["hint"]


@pytest.mark.parametrize("said", ['"error_code":"NO_FUNDS"', '"type":"error"', '"title":"No","detail":"no funds"'])
def test_reply_like_an_error_outranks_its_id(said: str, service_and_run: ServiceAndRun, journal: Journal) -> None:
    """Which replies look so: unit/test_contract.py."""
    server, run = service_and_run(writes_meet(json_reply(b'{"id":"tx_1",%s}' % said.encode())))

    assert [run(*CREATE).code, run(*RELEASE).code, len(server.writes)] == [12, 12, 2]
    assert journal() == [("create_transaction", "unknown"), ("release_transaction", "unknown")]


def test_escrow_that_failed_is_created_whatever_its_errors(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(b'{"id":"tx_1","status":"failed","error_code":"E1","success":false}'))

    result = run(*CREATE, "-q")

    assert (result.code, result.out) == (16, "tx_1\n")


@pytest.mark.parametrize(
    ("line", "reply", "code"),
    [
        (RELEASE, b'{"id":"tx_1","status":"rejected","success":false,"error":{"code":"NO_FUNDS"}}', 12),
        (UPDATE, b'{"id":"tx_1","status":"rejected","success":false,"error":{"code":"NO_FUNDS"}}', 12),
        (RELEASE, b'{"id":"tx_1","status":"rejected"}', 16),
    ],
    ids=["release", "update", "status alone"],
)
def test_release_or_update_with_a_failed_status_is_not_accepted(
    line: tuple[str, ...], reply: bytes, code: int, service_and_run: ServiceAndRun
) -> None:
    _, run = service_and_run(writes_meet(json_reply(reply)))

    assert run(*line).code == code


def test_echoed_field_is_not_an_error(run: Run) -> None:
    data = '{"code":"SUMMER","status_code":404,"errors":["x"],"success":false}'

    assert run("--sandbox", *CREATE, "--data", data).code == 0


def test_stored_reply_with_the_id_of_another_create_settles_nothing(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"merchant":"M-1"}'))
    for reference in ("a", "b"):
        run(*CREATE, "--reference", reference)
    run("config", "set", "reply.id", "/merchant")

    first, second = run("journal", "resolve", "j1"), run("journal", "resolve", "j2")

    assert (first.code, second.code) == (0, 12)


@pytest.mark.representative("key", "request id", "reference", "*in the body")
@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b'{"id":"KEY"}', ("--idempotency-key", "order-8841-key")),
        (b'{"uuid":"REQUEST"}', ()),
        (b'{"data":{"transactionId":"order-8841"}}', ("--reference", "order-8841")),
        (b'{"id":"mine","amount":100,"currency":"USD"}', ("--data", '{"id":"mine"}')),
        (b'{"data":{"id":17}}', ("--data", '{"id":17}')),
        (b'{"buyer":{"id":"u_1"}}', ("--data", '{"parties":[{"buyer":{"id":"u_1"}}]}')),
    ],
    ids=["key", "request id", "reference", "id in the body", "number in the body", "deep in the body"],
)
def test_echoed_id_proves_nothing(body: bytes, line: tuple[str, ...], service_and_run: ServiceAndRun) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        key, request = seen.header("Idempotency-Key") or "", seen.header("X-Request-Id") or ""
        # Upper case: some echoes write a UUID so.
        said = body.replace(b"KEY", key.encode()).replace(b"REQUEST", request.upper().encode())
        connection.sendall(http_reply("200 OK", said))

    _server, run = service_and_run(behave)

    result = run(*CREATE, *line, "--json")

    assert (result.code, result.out) == (12, "")


@pytest.mark.parametrize(
    "value",
    [
        *("0", "-1", '"0"', '""', '" "', '"null"', '"None "', '"undefined"', '"NaN"', "true", "{}", "[1]"),
        *('"\\u200b"', '"\\u00a0"', '"\\u2800"', '"\\udb40\\udd00"', '"tx\\u0000"'),
    ],
)
def test_placeholder_id_proves_nothing(value: str, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply(b'{"id":%s,"status":"held"}' % value.encode()))

    assert run(*CREATE).code == 12


@pytest.mark.parametrize(
    "body",
    [
        *('{"data":{"transaction":{"id":"tx_1"},"took":3}}', '{"user":{"id":"A-1"}}', '{"fault":{"id":"A-1"}}'),
        *('{"failure":{"id":"A-1"}}', '{"duplicate_of":{"id":"A-1"}}'),
    ],
)
def test_id_in_two_envelopes_or_in_something_else_proves_nothing(body: str, service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(body.encode()))

    assert (run(*CREATE).code, len(server.writes)) == (12, 1)


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "Uuid", "GUID", "uid", "_id", "transactionId", "TransactionID", "transaction_id", "escrowId", "tx_id"],
)
@pytest.mark.parametrize("envelope", ["%s", '{"data":%s,"took":3}', '{"escrow":%s,"took":3}', '{"only":%s}'])
def test_id_is_found_in_any_case_and_one_envelope(name: str, envelope: str, service_and_run: ServiceAndRun) -> None:
    _server, run = service_and_run(json_reply((envelope % f'{{"{name}":"A-1"}}').encode()))

    assert (run(*CREATE, "-q").out) == "A-1\n"


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
def test_location_of_a_201_names_the_created_escrow(place: str, body: bytes, serve: Any, run: Run) -> None:
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
def test_location_that_names_no_escrow_here_proves_nothing(
    place: str, status: str, body: bytes, service_and_run: ServiceAndRun
) -> None:
    _server, run = service_and_run(located(place, body, status))

    assert run(*KEYED).code == 12


def test_id_that_only_the_location_names_is_shown(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(b'{"state":"held"}', "201 Created", "Location: /api/v1/transactions/tx_9"))

    assert run(*CREATE, "--json").json == {"id": "tx_9", "state": "held"}
