"""Events: one for each change, in the same database transaction, for the endpoints that want its kind."""

import json
from typing import Any

import httpx
import pytest

from escrowctl.sandbox import events
from escrowctl.sandbox.service import Sandbox
from sandbox.conftest import Time, balances, rows


@pytest.fixture
def now(time: Time) -> Time:
    return time


def bodies(sandbox: Sandbox) -> list[Any]:
    return [json.loads(body) for (body,) in rows(sandbox, "SELECT body FROM events ORDER BY position")]


def kinds(sandbox: Sandbox) -> list[tuple[Any, ...]]:
    return rows(sandbox, "SELECT transaction_id, sequence, kind FROM events ORDER BY position")


def create(client: httpx.Client, **fields: object) -> Any:
    reply = client.post("/transactions", json={"amount": 12.50, "currency": "USD", **fields})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_each_change_has_an_event_with_the_record_as_it_was(sandbox: Sandbox, client: httpx.Client, time: Time) -> None:
    made = create(client, reference="A-1")
    time.pass_by(minutes=1)
    released = client.put(f"/transactions/{made['id']}/release").json()

    assert bodies(sandbox) == [
        {"type": "transaction.created", "timestamp": made["created_at"], "sequence": 1, "data": made},
        {"type": "transaction.released", "timestamp": released["updated_at"], "sequence": 2, "data": released},
    ]


def test_refused_call_has_no_event(sandbox: Sandbox, client: httpx.Client) -> None:
    made = create(client)
    client.put(f"/transactions/{made['id']}/release")
    before = kinds(sandbox)

    assert client.put(f"/transactions/{made['id']}/release").status_code == 409
    assert client.post("/transactions", json={"amount": 0, "currency": "USD"}).status_code == 400
    assert client.put(f"/transactions/{made['id']}", json={}).status_code == 400
    assert kinds(sandbox) == before


def test_change_and_event_are_stored_together_or_not_at_all(
    sandbox: Sandbox, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(client)
    monkeypatch.setattr(events, "ADD_DELIVERIES", "INSERT INTO missing VALUES (1)")

    assert client.put(f"/transactions/{made['id']}/release").status_code == 500

    assert client.get(f"/transactions/{made['id']}").json() == made
    assert kinds(sandbox) == [(made["id"], 1, "transaction.created")]


def test_events_of_each_transaction_are_numbered_from_one(sandbox: Sandbox, client: httpx.Client) -> None:
    one, other = create(client)["id"], create(client)["id"]
    for transaction_id in (other, one):
        client.put(f"/transactions/{transaction_id}/release")

    assert [(name, sequence) for name, sequence, _ in kinds(sandbox)] == [(one, 1), (other, 1), (other, 2), (one, 2)]


def test_event_waits_for_each_endpoint_that_wants_its_kind(sandbox: Sandbox, client: httpx.Client) -> None:
    url = "http://127.0.0.1:3000/hooks"
    every, releases = (
        client.post("/webhooks", json={"url": url, **events}).json()["id"]
        for events in ({}, {"events": ["transaction.released"]})
    )
    client.put(f"/transactions/{create(client)['id']}/release")
    client.post("/webhooks", json={"url": url})

    joined = "SELECT kind, endpoint_id, state FROM events JOIN deliveries ON event = events.position"
    assert rows(sandbox, f"{joined} ORDER BY deliveries.position") == [
        ("transaction.created", every, "waiting"),
        ("transaction.released", every, "waiting"),
        ("transaction.released", releases, "waiting"),
    ]


@pytest.mark.parametrize(
    ("field", "moment", "status", "kind"),
    [
        ("expires_in", "expires_at", "expired", "transaction.expired"),
        ("auto_release_in", "auto_release_at", "released", "transaction.released"),
    ],
)
def test_held_money_moves_by_itself_at_its_moment(
    sandbox: Sandbox, client: httpx.Client, time: Time, field: str, moment: str, status: str, kind: str
) -> None:
    made = create(client, **{field: "90m"})
    assert made[moment] == "2026-11-21T04:42:44.000Z"
    time.pass_by(minutes=89)
    assert client.get(f"/transactions/{made['id']}").json() == made

    time.pass_by(minutes=5)

    moved = client.get(f"/transactions/{made['id']}").json()
    assert moved == {**made, "status": status, "updated_at": made[moment]}
    assert bodies(sandbox)[1:] == [{"type": kind, "timestamp": made[moment], "sequence": 2, "data": moved}]
    assert [(balance.is_consistent, balance.hold_balance) for balance in balances(sandbox)] == [(True, 0)]


@pytest.mark.parametrize(
    ("times", "status"),
    [
        ({"expires_in": "2h", "auto_release_in": "1h"}, "released"),
        ({"expires_in": "1h", "auto_release_in": "2h"}, "expired"),
        ({"auto_release_in": "1h", "expires_in": "1h"}, "expired"),
    ],
)
def test_earlier_moment_decides(client: httpx.Client, time: Time, times: dict[str, str], status: str) -> None:
    made = create(client, **times)
    time.pass_by(days=1)

    assert client.get(f"/transactions/{made['id']}").json()["status"] == status


def test_only_held_money_moves(sandbox: Sandbox, client: httpx.Client, time: Time) -> None:
    released, expired = create(client, expires_in="1h")["id"], create(client, expires_in="30m")["id"]
    client.put(f"/transactions/{released}/release")
    time.pass_by(minutes=40)

    assert client.put(f"/transactions/{expired}/release").status_code == 409
    time.pass_by(days=1)
    assert client.get(f"/transactions/{released}").json()["status"] == "released"
    assert [kind for name, _, kind in kinds(sandbox) if name == released][1:] == ["transaction.released"]


def test_money_held_again_after_its_moment_moves_then(client: httpx.Client, time: Time) -> None:
    made = create(client, expires_in="1h")["id"]
    moves = "http://sandbox.invalid/sandbox/moves"
    client.post(moves, json={"id": made, "status": "disputed"})
    time.pass_by(hours=2)
    assert client.get(f"/transactions/{made}").json()["status"] == "disputed"

    held = client.post(moves, json={"id": made, "status": "held"}).json()

    moved = client.get(f"/transactions/{made}").json()
    assert (moved["status"], moved["updated_at"]) == ("expired", held["updated_at"])


@pytest.mark.representative("1w", "7")
@pytest.mark.parametrize("value", ["1", "0d", "1w", "1.5h", "10000d", " 1d", 7, None])
def test_duration_of_another_form_is_400(client: httpx.Client, value: object) -> None:
    reply = client.post("/transactions", json={"amount": 1, "currency": "USD", "expires_in": value})

    assert reply.status_code == 400
    assert [error["pointer"] for error in reply.json()["errors"]] == ["#/expires_in"]
