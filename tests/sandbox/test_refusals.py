"""Requests that the sandbox refuses before their handler, and its answers."""

import logging
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from escrowctl.sandbox import seed
from escrowctl.sandbox.ownership import claim_store
from escrowctl.sandbox.service import Sandbox
from escrowctl.sandbox.store import open_store
from sandbox.conftest import balances

JSON = {"Content-Type": "application/json"}
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer wrong", "Basic {key}", "{key}", "Bearer {key}x", "Bearer  {key}"]
)
def test_every_path_without_the_key_is_401(sandbox: Sandbox, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.format(key=sandbox.key)}
    with httpx.Client(transport=httpx.WSGITransport(app=sandbox.app), headers=headers) as anonymous:
        replies = [
            anonymous.get("http://sandbox.invalid/api/v1/users/usr_PAYER001"),
            anonymous.post("http://sandbox.invalid/api/v1/transactions", content=b"{"),
            anonymous.get("http://sandbox.invalid/nowhere"),
        ]

    for reply in replies:
        assert (reply.status_code, reply.headers["content-type"]) == (401, PROBLEM)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.json()["type"] == "urn:escrowctl:sandbox:unauthenticated"
        assert sandbox.key not in reply.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/transactions", "GET, POST"),
        ("BREW", "/transactions", "GET, POST"),
        ("POST", "/transactions/tx_1/release", "PUT"),
    ],
)
def test_unlisted_method_is_405_and_names_the_allowed_ones(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    reply = client.request(method, path)

    assert (reply.status_code, reply.headers["content-type"]) == (405, PROBLEM)
    assert reply.headers["allow"] == allowed


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api/v1", "//api/v1/transactions", "/api/v1/transactions/", "/api/v1/transactions//release"),
        *("/api/v1/transactions/a/b/c", "/api/v2/transactions", "/api/v1/Transactions", "/openapiXjson"),
    ],
)
def test_unlisted_path_is_404(client: httpx.Client, path: str) -> None:
    for method in ("GET", "PUT"):
        reply = client.request(method, f"http://sandbox.invalid{path}")

        assert (reply.status_code, reply.headers["content-type"]) == (404, PROBLEM)
        assert reply.json()["type"] == "urn:escrowctl:sandbox:no-such-path"


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/jsonp"])
def test_body_without_the_json_type_is_415(client: httpx.Client, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}

    reply = client.post("/transactions", content=b'{"amount":1,"currency":"USD"}', headers=headers)

    assert (reply.status_code, reply.headers["content-type"]) == (415, PROBLEM)
    assert client.get("/transactions").json()["data"] == []


def test_json_type_with_parameters_is_accepted(client: httpx.Client) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}

    assert client.post("/transactions", content=b'{"amount":1,"currency":"USD"}', headers=headers).is_success


def test_body_of_more_than_one_mebibyte_is_413(client: httpx.Client) -> None:
    start, end = b'{"amount":1,"currency":"USD","note":"', b'"}'
    full = start + b"x" * (1024 * 1024 - len(start) - len(end)) + end

    assert client.post("/transactions", content=full, headers=JSON).status_code == 200
    reply = client.post("/transactions", content=full + b" ", headers=JSON)
    assert (reply.status_code, reply.headers["content-type"]) == (413, PROBLEM)


def test_every_answer_contains_its_request_id(client: httpx.Client) -> None:
    replies = [client.get(path) for path in ("/transactions", "/nowhere", "/users/usr_0")]

    names = [reply.headers["x-request-id"] for reply in replies]
    assert all(re.fullmatch(r"req_[0-9a-f]{16}", name) for name in names)
    assert len(set(names)) == len(names)
    assert [reply.json()["request_id"] for reply in replies[1:]] == names[1:]


@pytest.mark.parametrize(
    ("offered", "kept"), [("01JD3Q8V", True), ("a" * 128, True), ("a" * 129, False), ("a b", False)]
)
def test_valid_request_id_is_returned(client: httpx.Client, offered: str, *, kept: bool) -> None:
    reply = client.get("/users/usr_0", headers={"X-Request-Id": offered})

    assert (reply.headers["x-request-id"] == offered) is kept
    assert reply.json()["request_id"] == reply.headers["x-request-id"]


def test_unexpected_failure_is_500_without_details_and_stores_nothing(
    sandbox: Sandbox, client: httpx.Client, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(folder / "sandbox.db")) as other:
        other.execute("ALTER TABLE ledger_entries RENAME TO elsewhere")

        with caplog.at_level(logging.ERROR):
            reply = client.post("/transactions", json={"amount": 1, "currency": "USD"})

        other.execute("ALTER TABLE elsewhere RENAME TO ledger_entries")
    assert (reply.status_code, reply.headers["content-type"]) == (500, PROBLEM)
    assert reply.json()["type"] == "urn:escrowctl:sandbox:internal"
    assert "ledger_entries" not in reply.text
    assert reply.headers["x-request-id"] in caplog.text
    assert client.get("/transactions").json()["data"] == []


def test_locked_store_is_503_and_changes_nothing(
    folder: Path,
    now: Callable[[], datetime],
    connect: Callable[[Sandbox], httpx.Client],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("escrowctl.sandbox.store.BUSY_SECONDS", 0.01)
    sandbox = Sandbox(open_store(folder, now=now), claim_store(folder))
    client = connect(sandbox)
    made = client.post("/transactions", json={"amount": 1, "currency": "USD"}).json()
    with closing(sqlite3.connect(folder / "sandbox.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        reply = client.put(f"/transactions/{made['id']}/release")

        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        assert reply.json()["type"] == "urn:escrowctl:sandbox:store-busy"
        assert client.get(f"/transactions/{made['id']}").json() == made
        other.execute("ROLLBACK")
    assert client.put(f"/transactions/{made['id']}/release").status_code == 200
    sandbox.close()


def test_duplicate_id_is_drawn_again(sandbox: Sandbox, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["0000000A", "MESSAGE1", "0000000A", "0000000B", "MESSAGE2"])
    monkeypatch.setattr(seed, "draw_letters", lambda _connection: next(drawn))

    ids = [client.post("/transactions", json={"amount": 1, "currency": "USD"}).json()["id"] for _ in "12"]

    assert ids == ["tx_0000000A", "tx_0000000B"]
    assert [balance.is_consistent for balance in balances(sandbox)] == [True]
