"""GET /transactions: observed, not published; its envelope and parameters are the sandbox's documented choice."""

import httpx
import pytest


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
    made = make(client, 7)
    seen: list[str] = []
    more = True

    while more:
        after = {"after": seen[-1]} if seen else {}
        reply = client.get("/transactions", params={"limit": "3", **after})
        seen += ids(reply)
        more = reply.json()["has_more"]

    assert seen == made


def test_page_with_the_last_record_has_no_more(client: httpx.Client) -> None:
    made = make(client, 2)

    assert client.get("/transactions", params={"limit": "2"}).json()["has_more"] is False
    assert ids(client.get("/transactions", params={"limit": "100", "after": made[1]})) == []


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
