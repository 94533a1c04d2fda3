"""A reply that names another write is not the answer to this one."""

import json
import socket

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Seen, http_reply

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, in_turn, json_reply, writes_meet

KEYED = (*CREATE, "--idempotency-key", "order-8841", "--reference", "R-1")
ELSEWHERE = "2f0c6a1e-5e1b-4a53-9a55-0d6c1f7c2b11"


def held(**fields: str) -> bytes:
    return json.dumps(json.loads(HELD) | fields).encode()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (HELD, ("Idempotency-Key: order-8840",)),
        (held(idempotency_key="order-8840"), ()),
        (b'{"data":{"id":"tx_1","idempotencyKey":"order-8840"},"took":3}', ()),
        (held(ref="R-2"), ()),
        (b'{"data":{"id":"tx_1","Ref":"R-2"},"took":3}', ()),
    ],
)
@pytest.mark.parametrize("status", ["201 Created", "400 Bad Request"])
def test_reply_with_the_key_or_reference_of_another_write_proves_nothing(
    body: bytes, headers: tuple[str, ...], status: str, profile: Profile, run: Run, journal: Journal
) -> None:
    server = profile('reference_field = "ref"', behave=json_reply(body, status, *headers))

    result, resolved = run(*KEYED, "--json"), run("journal", "resolve", "j1")

    assert (result.code, result.error["code"], result.out) == (12, "outcome_unknown", "")
    assert status[:3] in str(result.error["message"])
    # What the reply says of the other write settles nothing later.
    assert (resolved.code, len(server.writes)) == (12, 1)
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (HELD, (f"X-Request-Id: {ELSEWHERE}",)),
        (held(request_id=ELSEWHERE), ()),
        (HELD, ('Idempotency-Key: "order-8841"',)),
        (held(idempotency_key="ORDER-8841", ref=" r-1"), ()),
        (held(reference="R-2"), ()),
    ],
    ids=["request id of the service", "the same in the body", "quoted key", "another case", "another field"],
)
def test_reply_with_names_of_the_service_or_this_write_is_its_reply(
    body: bytes, headers: tuple[str, ...], profile: Profile, run: Run
) -> None:
    profile('reference_field = "ref"', behave=json_reply(body, "201 Created", *headers))

    assert run(*KEYED).code == 0


@pytest.mark.parametrize("change", ["{0}-1", "{0}, {0}", "{1}0{2}"], ids=["retried", "joined", "marked"])
def test_own_request_id_that_a_proxy_changed_is_no_other(change: str, service_and_run: ServiceAndRun) -> None:
    def behave(seen: Seen, connection: socket.socket) -> None:
        own = seen.header("X-Request-Id") or ""
        connection.sendall(http_reply("201 Created", HELD, f"X-Request-Id: {change.format(own, own[:14], own[15:])}"))

    _, run = service_and_run(behave)

    assert run(*CREATE).code == 0


def test_key_in_the_body_that_was_sent_is_no_other(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(held(idempotency_key="order-9")))

    assert run(*CREATE, "--data", '{"idempotency_key":"order-9"}').code == 0


def test_reply_with_the_request_id_of_another_release_proves_nothing(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    sent: list[str] = []

    def behave(seen: Seen, connection: socket.socket) -> None:
        resource_id = "tx_1" if "tx_1" in seen.target else "tx_2"
        if seen.is_write:
            sent.append(seen.header("X-Request-Id") or "")
        echoed = f"X-Request-Id: {sent[0]}" if seen.is_write else "Via: 1.1 proxy"
        connection.sendall(http_reply("200 OK", held(id=resource_id), echoed))

    server, run = service_and_run(behave)

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    assert (result.code, len(server.writes)) == (12, 2)
    assert journal() == [("release_transaction", "unconfirmed"), ("release_transaction", "unknown")]


def test_reply_with_the_request_id_of_a_read_proves_no_release(service_and_run: ServiceAndRun) -> None:
    read: list[str] = []

    def behave(seen: Seen, connection: socket.socket) -> None:
        read.append(seen.header("X-Request-Id") or "")
        connection.sendall(http_reply("200 OK", HELD, f"X-Request-Id: {read[0]}"))

    server, run = service_and_run(behave)

    assert (run("tx", "release", "tx_1", "--yes").code, len(server.writes)) == (12, 1)


def test_reply_to_an_earlier_attempt_of_the_same_write_is_its_reply(profile: Profile, run: Run) -> None:
    sent: list[str] = []

    def stored(seen: Seen, connection: socket.socket) -> None:
        sent.append(seen.header("X-Request-Id") or "")
        status = "503 Busy" if len(sent) == 1 else "201 Created"
        connection.sendall(http_reply(status, HELD, f"X-Request-Id: {sent[0]}"))

    profile('idempotency = "header"', behave=stored)

    assert (run(*CREATE, sleep=lambda _: None).code, len(set(sent))) == (0, 2)


def test_throttled_reply_to_another_write_is_not_sent_again(profile: Profile, run: Run) -> None:
    server = profile("retry_throttled = true", behave=json_reply(b"", "429 Slow Down", "Idempotency-Key: order-8840"))

    assert (run(*KEYED, sleep=lambda _: None).code, len(server.writes)) == (12, 1)


def test_read_without_the_id_on_a_shared_connection_is_read_again(service_and_run: ServiceAndRun) -> None:
    """A late reply to the first read, without an id, must not be shown as the second record."""
    late = http_reply("200 OK", b'{"status":"of the first"}')
    ports: list[int] = []

    def behave(seen: Seen, connection: socket.socket) -> None:
        ports.append(connection.getpeername()[1])
        own = b'{"status":"of %s"}' % seen.target.rpartition("/")[2].encode()
        connection.sendall(late if len(ports) == 2 else http_reply("200 OK", own))

    _, run = service_and_run(behave)

    result = run("tx", "get", "tx_1", "tx_2", "--json")

    assert [json.loads(line)["record"]["status"] for line in result.out.splitlines()] == ["of tx_1", "of tx_2"]
    assert (ports[0] == ports[1], ports[2] == ports[1]) == (True, False)


def test_partial_reply_confirms_no_release(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"released"), "206 Partial Content"))
    profile('status.released = ["released"]', behave=writes_meet(json_reply(b""), reads=reads))

    assert run("tx", "release", "tx_1", "--yes").code == 16
