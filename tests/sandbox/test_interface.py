"""The published interface, call by call. Every expected body is written by hand, from INTERFACE.md and from the
choices that the sandbox documents.
"""

import re

import httpx
import pytest

from escrowctl.sandbox.service import Sandbox

BODY = b'{"amount": 100, "currency": "USD"}'
JSON = {"Content-Type": "application/json"}


def create(client: httpx.Client, body: bytes = BODY) -> httpx.Response:
    return client.post("/transactions", content=body, headers=JSON)


def test_create_is_200_and_returns_the_complete_record(client: httpx.Client) -> None:
    reply = create(client)

    record = reply.json()
    assert re.fullmatch(r"tx_[0-9A-HJKMNP-TV-Z]{8}", record["id"])
    assert record == {
        "id": record["id"],
        "status": "held",
        "amount": 100,
        "currency": "USD",
        "payer": "usr_PAYER001",
        "payee": "usr_PAYEE001",
        "created_at": "2026-11-21T03:12:45.000Z",
        "updated_at": "2026-11-21T03:12:45.000Z",
    }
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")


def test_release_without_a_body_is_200_with_the_released_record(client: httpx.Client) -> None:
    made = create(client).json()

    reply = client.put(f"/transactions/{made['id']}/release")

    expected = {**made, "status": "released", "updated_at": "2026-11-21T03:12:46.000Z"}
    assert (reply.status_code, reply.json()) == (200, expected)
    assert client.get(f"/transactions/{made['id']}").json() == expected


@pytest.mark.parametrize(("body", "headers", "status"), [(b"[]", JSON, 400), (b"{", JSON, 400), (b"{}", {}, 415)])
def test_release_with_a_bad_body_releases_nothing(
    client: httpx.Client, body: bytes, headers: dict[str, str], status: int
) -> None:
    made = create(client).json()

    reply = client.put(f"/transactions/{made['id']}/release", content=body, headers=headers)

    assert reply.status_code == status
    kept = client.get(f"/transactions/{made['id']}")
    assert (kept.status_code, kept.json()) == (200, made)


def test_second_release_is_409_and_names_the_state(client: httpx.Client) -> None:
    made = create(client).json()
    client.put(f"/transactions/{made['id']}/release")

    reply = client.put(f"/transactions/{made['id']}/release", headers={"X-Request-Id": "again-1"})

    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert (reply.status_code, problem["status"], problem["request_id"]) == (409, 409, "again-1")
    assert f"Transaction {made['id']} is released" in problem["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/transactions/tx_00000000"),
        ("PUT", "/transactions/tx_00000000"),
        ("PUT", "/transactions/tx_00000000/release"),
        ("GET", "/users/usr_00000000"),
    ],
)
def test_unknown_id_is_404(client: httpx.Client, method: str, path: str) -> None:
    reply = client.request(method, path, headers={"X-Request-Id": "r1"})

    assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json")
    assert reply.json() == {
        "type": "urn:escrowctl:sandbox:not-found",
        "title": "No such record",
        "status": 404,
        "detail": reply.json()["detail"],
        "request_id": "r1",
    }
    assert path.split("/")[2] in reply.json()["detail"]


def test_seeded_users_can_be_read(client: httpx.Client) -> None:
    replies = [client.get(f"/users/{name}") for name in ("usr_PAYER001", "usr_PAYEE001")]

    assert [(reply.status_code, reply.json()["status"]) for reply in replies] == [(200, "active")] * 2


@pytest.mark.parametrize("body", [b"", b'{"status": "released"}'])
def test_update_is_400_and_changes_nothing(client: httpx.Client, body: bytes) -> None:
    made = create(client).json()

    reply = client.put(f"/transactions/{made['id']}", content=body, headers=JSON if body else {})

    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert reply.json()["type"] == "urn:escrowctl:sandbox:update-not-shown"
    assert client.get(f"/transactions/{made['id']}").json() == made


def test_idempotency_key_is_accepted_and_has_no_effect(client: httpx.Client) -> None:
    headers = {**JSON, "Idempotency-Key": "5e0c2f4e"}

    replies = [client.post("/transactions", content=BODY, headers=headers) for _ in range(2)]

    assert [reply.status_code for reply in replies] == [200, 200]
    assert replies[0].json()["id"] != replies[1].json()["id"]


def test_recognised_key_gets_the_first_reply_and_nothing_happens_again(client: httpx.Client, sandbox: Sandbox) -> None:
    held = create(client).json()["id"]
    sandbox.rehearsal.change({"variant.idempotent": "on"})
    calls = [
        ("POST", "/transactions", BODY),
        ("PUT", f"/transactions/{held}/release", b"{}"),
        ("POST", "/webhooks", b'{"url": "http://127.0.0.1:3000/hooks"}'),
    ]

    def send(call: int) -> httpx.Response:
        method, path, body = calls[call]
        return client.request(method, path, content=body, headers={**JSON, "Idempotency-Key": f"key-{call}"})

    replies = [(send(call), send(call)) for call in range(3)]

    assert [first.text for first, _ in replies] == [again.text for _, again in replies]
    assert [first.status_code for first, _ in replies] == [200, 200, 201]
    assert [len(client.get(path).json()["data"]) for path in ("/transactions", "/webhooks")] == [2, 1]
    # Another operation with the same body is another request.
    body, headers = (
        b'{"url": "http://127.0.0.1:3000/x", "amount": 1, "currency": "USD"}',
        {**JSON, "Idempotency-Key": "k"},
    )
    both = [client.post(path, content=body, headers=headers).status_code for path in ("/transactions", "/webhooks")]
    assert both == [200, 422]


def make(client: httpx.Client, count: int) -> list[str]:
    """Create transactions and return their ids, newest first."""
    replies = [client.post("/transactions", json={"amount": 1, "currency": "USD"}) for _ in range(count)]
    return [reply.json()["id"] for reply in reversed(replies)]


def ids(reply: httpx.Response) -> list[str]:
    assert reply.status_code == 200
    return [record["id"] for record in reply.json()["data"]]


def test_list_returns_the_newest_fifty_first(client: httpx.Client) -> None:
    made = make(client, 51)

    reply = client.get("/transactions")

    assert (ids(reply), reply.json()["has_more"]) == (made[:50], True)


def test_pages_have_no_gap_and_no_overlap(client: httpx.Client) -> None:
    made = make(client, 6)

    starts = ("", f"&after={made[2]}", f"&after={made[5]}")
    pages = [client.get(f"/transactions?limit=3{start}") for start in starts]

    assert [ids(page) for page in pages] == [made[:3], made[3:], []]
    assert [page.json()["has_more"] for page in pages] == [True, False, False]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        *((f"limit={value}", "limit") for value in ("0", "101", "", "1.0", "%D9%A1", "9" * 5000)),
        *((f"after={value}", "after") for value in ("tx_00000000", "%00%FF")),
        *(("status=held", "status"), ("%23/amount=1", "#/amount"), ("=1", ""), ("limit=1&limit=2", "limit")),
    ],
)
def test_list_with_a_bad_parameter_is_400(client: httpx.Client, query: str, parameter: str) -> None:
    make(client, 1)

    reply = client.get(f"/transactions?{query}")

    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    assert [error["parameter"] for error in reply.json()["errors"]] == [parameter]
