"""Deliveries: signed, attempted five times, dead, replayed; real sockets, a clock that is set.

The meaning of each status is that of Standard Webhooks 1.0.0, "Operational considerations".
"""

import base64
import json
import socket
import time as clock
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import standardwebhooks
from conftest import Serve
from webhook_sender import sign
from wire_server import Behave, Seen, WireServer, answering, hang_up, http_reply, say_nothing

from escrowctl.post_once import Target, post_once
from escrowctl.sandbox.ownership import claim_store
from escrowctl.sandbox.service import Sandbox
from escrowctl.sandbox.store import open_store
from sandbox.conftest import Connect, Time, fetch_document, rows

OK = http_reply("200 OK")
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
DELAYS = [5, 15, 30, 60]


@pytest.fixture
def sandbox(folder: Path, time: Time) -> Iterator[Sandbox]:
    opened = Sandbox(open_store(folder, now=time), claim_store(folder))
    yield opened
    opened.close()


class Shop:
    """A receiver, its endpoint, and the calls that the tests make."""

    def __init__(self, client: httpx.Client, server: WireServer) -> None:
        self.client = client
        self.server = server
        made = client.post("/webhooks", json={"url": f"{server.base_url}/hooks?a=1"}).json()
        self.secret = made["secret"]

    @property
    def seen(self) -> list[Seen]:
        return self.server.seen

    @property
    def ids(self) -> list[str | None]:
        return [seen.header("webhook-id") for seen in self.seen]

    def create(self, **fields: object) -> Any:
        return self.client.post("/transactions", json={"amount": 100, "currency": "USD", **fields}).json()

    def call(self, method: str, path: str, **body: object) -> Any:
        reply = self.client.request(method, f"http://sandbox.invalid/sandbox{path}", json=body or None)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def advance(self, **duration: int) -> Any:
        return self.call("POST", "/clock", advance_seconds=int(timedelta(**duration).total_seconds()))

    @property
    def deliveries(self) -> list[Any]:
        listed: list[Any] = self.call("GET", "/deliveries")["data"]
        return listed[::-1]

    @property
    def states(self) -> list[str]:
        return [one["state"] for one in self.deliveries]


Open = Callable[[Behave], Shop]


@pytest.fixture
def shop(client: httpx.Client, serve: Serve) -> Open:
    """Start a receiver and register it."""
    return lambda behave: Shop(client, serve(behave))


def statuses(*numbers: int) -> Behave:
    """Reply with these statuses in turn, the last one for ever."""
    return answering(*(http_reply(f"{number} X") if number != 204 else NO_CONTENT for number in numbers))


def signature(secret: str, seen: Seen) -> str:
    """Sign what was received, as the specification says it: nothing here comes from the sandbox."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return sign(seen.header("webhook-id") or "", int(seen.header("webhook-timestamp") or 0), seen.body, key)


def moments(sandbox: Sandbox) -> list[datetime]:
    found = rows(sandbox, "SELECT attempted_at FROM delivery_attempts ORDER BY position")
    return [datetime.fromisoformat(moment) for (moment,) in found]


def waits(sandbox: Sandbox) -> list[float]:
    """Return the seconds from the end of each attempt to the next one."""
    attempted = moments(sandbox)
    took = rows(sandbox, "SELECT milliseconds FROM delivery_attempts ORDER BY position")
    ends = [at + timedelta(milliseconds=one) for at, (one,) in zip(attempted, took, strict=True)]
    return [(after - end).total_seconds() for end, after in zip(ends, attempted[1:], strict=False)]


def test_event_is_sent_signed_with_the_stored_body(sandbox: Sandbox, shop: Open, time: Time) -> None:
    there = shop(statuses(200))
    made = there.create(reference="A-1")

    sandbox.sender.deliver()

    (seen,) = there.seen
    ((event_id, body),) = rows(sandbox, "SELECT id, body FROM events")
    assert (seen.method, seen.target, seen.header("host")) == ("POST", "/hooks?a=1", f"127.0.0.1:{there.server.port}")
    assert (seen.body.decode(), seen.header("content-type")) == (body, "application/json")
    assert made["id"] in body
    assert (seen.header("webhook-id"), seen.header("webhook-timestamp")) == (event_id, f"{time().timestamp():.0f}")
    assert seen.header("webhook-signature") == signature(there.secret, seen)
    assert there.states == ["delivered"]


def test_delivery_verifies_with_the_python_library(folder: Path, connect: Connect, serve: Serve) -> None:
    # The library compares the time with its own.
    sandbox = Sandbox(open_store(folder, now=lambda: datetime.now(UTC)), claim_store(folder))
    there = Shop(connect(sandbox), serve(statuses(200)))
    there.create(note='\u20ac \U0001f600 "quoted" <&>', metadata={"rate": 1.10, "list": [None, True]})
    there.advance(days=30)
    there.create()
    sandbox.sender.deliver()
    sandbox.close()

    assert len(there.seen) == 2
    for seen in there.seen:
        verifier, headers = standardwebhooks.Webhook(there.secret), dict(seen.headers)
        assert verifier.verify(seen.body, headers) == json.loads(seen.body)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            verifier.verify(seen.body + b" ", headers)


def test_body_and_headers_are_those_of_the_document(sandbox: Sandbox, shop: Open) -> None:
    document = fetch_document(sandbox)
    (described,) = (item["post"] for item in document["webhooks"].values())
    there = shop(statuses(200))
    made = there.create(expires_in="7d", reference="A-1")
    there.client.put(f"/transactions/{made['id']}/release")
    sandbox.sender.deliver()

    schema = described["requestBody"]["content"]["application/json"]["schema"] | {"components": document["components"]}
    for seen in there.seen:
        jsonschema_rs.validate(schema, json.loads(seen.body))
        assert [name["name"] for name in described["parameters"] if not seen.header(name["name"])] == []


def test_failing_delivery_follows_the_schedule_and_ends_dead(sandbox: Sandbox, shop: Open) -> None:
    there = shop(statuses(500))
    there.create()

    there.advance(minutes=3)

    assert waits(sandbox) == pytest.approx(DELAYS, abs=0.002)
    assert (set(there.ids), len(there.seen)) == ({there.deliveries[0]["id"]}, 5)
    found = there.deliveries[0]
    assert (found["state"], found["attempts"], found["next_attempt"], found["last_status"]) == ("dead", 5, None, 500)
    assert there.advance(days=30)["advancing_to"] is None
    assert len(there.seen) == 5


def test_retry_has_the_time_of_the_machine_and_a_new_signature(sandbox: Sandbox, shop: Open, time: Time) -> None:
    there = shop(statuses(500, 200))
    there.create()
    sandbox.sender.deliver()
    time.pass_by(seconds=6)

    sandbox.sender.deliver()

    first, second = there.seen
    assert (second.body, second.header("webhook-id")) == (first.body, first.header("webhook-id"))
    stamps = [int(seen.header("webhook-timestamp") or 0) for seen in there.seen]
    assert (stamps[1] - stamps[0], stamps[1]) == (6, int(time().timestamp()))
    assert second.header("webhook-signature") == signature(there.secret, second) != first.header("webhook-signature")


def test_advanced_clock_does_not_change_what_receivers_compare_with_theirs(
    sandbox: Sandbox, shop: Open, time: Time
) -> None:
    there = shop(statuses(200))
    there.advance(days=7)
    there.create()

    sandbox.sender.deliver()

    assert there.seen[0].header("webhook-timestamp") == f"{time().timestamp():.0f}"
    assert b'"timestamp":"2026-11-28T03:12:44' in there.seen[0].body


@pytest.mark.representative("200-*", "410-*")
@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "delivered"), (204, "delivered"), (304, "waiting"), (410, "waiting"), (429, "waiting"), (503, "waiting")],
)
def test_only_a_2xx_is_a_success(sandbox: Sandbox, shop: Open, status: int, state: str) -> None:
    there = shop(statuses(status))
    there.create()
    sandbox.sender.deliver()

    assert [(one["state"], one["last_status"]) for one in there.deliveries] == [(state, status)]


def test_redirect_is_a_failure_and_not_followed(sandbox: Sandbox, shop: Open, serve: Serve) -> None:
    elsewhere = serve(answering(OK))
    there = shop(answering(http_reply("307 X", b"", f"Location: {elsewhere.base_url}/x")))
    there.create()

    sandbox.sender.deliver()

    assert (there.states, len(there.seen), elsewhere.seen) == (["waiting"], 1, [])


@pytest.mark.representative("closed", "no listener")
@pytest.mark.parametrize(
    "behave",
    [hang_up, answering(b"hello\r\n\r\n"), answering(b"HTTP/1.1 abc X\r\n\r\n"), None],
    ids=["closed", "no HTTP", "no status", "no listener"],
)
def test_missing_reply_is_a_failure_with_its_reason(sandbox: Sandbox, shop: Open, behave: Behave | None) -> None:
    there = shop(behave or answering(OK))
    if behave is None:
        there.server.close()
    there.create()
    sandbox.sender.deliver()

    expected = ("waiting", None, "no valid answer" if behave else "no connection")
    assert [(one["state"], one["last_status"], one["last_error"]) for one in there.deliveries] == [expected]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_event_goes_to_this_machine(sandbox: Sandbox, client: httpx.Client, serve: Serve, host: str) -> None:
    server = serve(answering(OK))
    client.post("/webhooks", json={"url": f"http://{host}:{server.port}/hooks"})
    client.post("/transactions", json={"amount": 1, "currency": "USD"})
    sandbox.sender.deliver()

    assert [seen.target for seen in server.seen] == ["/hooks"]


ELSEWHERE = (
    *("http://10.0.0.1", "http://10.1", "http://169.254.169.254", "http://0", "http://[::]", "http://[fe80::1]"),
    *("http://[::ffff:a9fe:a9fe]", "http://2130706433", "http://shop.example.net"),
    *("http://127.0.0.1.example.net", "https://127.0.0.1"),
)


def test_event_for_another_machine_connects_to_nothing(
    sandbox: Sandbox, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[Any] = []
    monkeypatch.setattr(socket, "create_connection", lambda *words, **_: dialled.append(words))
    for url in ELSEWHERE:
        assert client.post("/webhooks", json={"url": url}).status_code == 201, url
    client.post("/transactions", json={"amount": 1, "currency": "USD"})
    sandbox.sender.deliver()

    errors = [error for (error,) in rows(sandbox, "SELECT error FROM delivery_attempts")]
    assert (dialled, len(errors), len(set(errors))) == ([], len(ELSEWHERE), 1)
    assert "only" in errors[0]


def drip(_seen: Seen, connection: socket.socket) -> None:
    """Send a head that never ends, a byte now and then."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(200):
        connection.sendall(b"x")
        clock.sleep(0.01)


@pytest.mark.representative("dripping")
@pytest.mark.parametrize("behave", [say_nothing, drip], ids=["silent", "dripping"])
def test_attempt_ends_in_time(serve: Serve, behave: Behave) -> None:
    start = clock.monotonic()

    target = Target("127.0.0.1", serve(behave).port, "/")
    reply = post_once(target, [], b"{}", seconds=0.1, monotonic=clock.monotonic)

    assert reply.error == "no answer within 0.1 s"
    assert clock.monotonic() - start < 2


def test_replay_of_a_dead_delivery_starts_the_schedule_again(sandbox: Sandbox, shop: Open) -> None:
    there = shop(statuses(*[500] * 6, 200))
    there.create()
    there.advance(minutes=3)
    (dead,) = there.deliveries

    assert [one["state"] for one in there.call("POST", f"/events/{dead['id']}/replay")["deliveries"]] == ["waiting"]
    there.advance(seconds=6)

    assert there.states == ["delivered"]
    assert set(there.ids) == {dead["id"]}
    log = there.call("GET", f"/events/{dead['id']}")["deliveries"][0]["attempts"]
    assert [attempt["status"] for attempt in log] == [500] * 6 + [200]


def test_what_is_due_happens_in_order_each_at_its_own_time(sandbox: Sandbox, shop: Open) -> None:
    there = shop(statuses(500, 200))
    made = [
        there.create(**times)["id"]
        for times in ({"auto_release_in": "2h"}, {"expires_in": "1h"}, {"expires_in": "30d"})
    ]

    there.advance(days=7)

    query = "SELECT transaction_id, kind, created_at FROM events ORDER BY position"
    created = "2026-11-21T03:12:44.000Z"
    assert rows(sandbox, query) == [
        *((name, "transaction.created", created) for name in made),
        (made[1], "transaction.expired", "2026-11-21T04:12:44.000Z"),
        (made[0], "transaction.released", "2026-11-21T05:12:44.000Z"),
    ]
    after = [(at - moments(sandbox)[0]).total_seconds() for at in moments(sandbox)]
    assert after == pytest.approx([0, 0, 0, 5, 3600, 7200], abs=2)
    clock = there.call("GET", "/clock")
    assert clock["ahead_seconds"] == timedelta(days=7).total_seconds()
    assert clock["now"].startswith("2026-11-28T03:12:44.0")


def test_receiver_may_call_the_sandbox_before_it_replies(sandbox: Sandbox, client: httpx.Client, serve: Serve) -> None:
    read: list[int] = []

    def fetch_first(seen: Seen, connection: socket.socket) -> None:
        transaction = seen.body.decode().partition('"data":{"id":"')[2][:11]
        read.append(client.put(f"/transactions/{transaction}/release").status_code)
        connection.sendall(OK)

    there = Shop(client, serve(fetch_first))
    there.create()
    sandbox.sender.deliver()

    assert read[0] == 200
    assert there.states == ["delivered"] * 2


def test_call_of_a_receiver_while_the_clock_advances_has_the_time_of_its_event(
    sandbox: Sandbox, client: httpx.Client, serve: Serve
) -> None:
    made: list[Any] = []

    def create_another(seen: Seen, connection: socket.socket) -> None:
        if b'"type":"transaction.expired"' in seen.body:
            made.append(client.post("/transactions", json={"amount": 1, "currency": "USD"}).json())
        connection.sendall(OK)

    there = Shop(client, serve(create_another))
    there.create(expires_in="1h")
    there.advance(days=7)

    assert [one["created_at"][:19] for one in made] == ["2026-11-21T04:12:44"]
