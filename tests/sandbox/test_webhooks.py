"""POST and GET /webhooks: 201 was observed; every field is the sandbox's documented choice."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

JSON = {"Content-Type": "application/json"}
PROBLEM = "application/problem+json"
URL = "http://127.0.0.1:3000/hooks"
LONGEST = "\u20ac\U0001f600" * 250
EVERY = ["transaction.created", "transaction.updated", "transaction.released", "transaction.expired"]


def create(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/webhooks", json={"url": URL, **body})


def test_create_is_201_and_returns_the_record_with_its_secret(client: httpx.Client) -> None:
    reply = create(client, events=["transaction.released"], description=LONGEST)

    record = reply.json()
    assert (reply.status_code, reply.headers["content-type"]) == (201, "application/json")
    assert re.fullmatch(r"wh_[0-9A-HJKMNP-TV-Z]{8}", record.pop("id"))
    assert record.pop("secret").startswith("whsec_")
    assert record == {
        "url": URL,
        "events": ["transaction.released"],
        "description": LONGEST,
        "status": "enabled",
        "created_at": "2026-11-21T03:12:45.000Z",
    }


def test_secret_is_shown_once_and_stored(client: httpx.Client, folder: Path) -> None:
    made = create(client).json()
    secret = made.pop("secret")

    listed = client.get("/webhooks")

    assert listed.json() == {"data": [made], "has_more": False}
    assert "whsec" not in listed.text
    with closing(sqlite3.connect(folder / "sandbox.db")) as store:
        assert store.execute("SELECT id, secret FROM webhook_endpoints").fetchall() == [(made["id"], secret)]


def test_unknown_fields_are_returned_unchanged(client: httpx.Client) -> None:
    extra = '"metadata":{"rate":1.10,"big":1e400,"list":[-0,true,null]},"targetUrl":"x"'

    made = client.post("/webhooks", content=f'{{"url":"{URL}",{extra}}}'.encode(), headers=JSON)

    assert made.status_code == 201
    assert extra in made.text
    assert extra in client.get("/webhooks").text


GOOD_URLS = [
    *("http://a", "http://localhost:65535/", "http://[::1]:3000/hooks", "http://10.0.0.1?q"),
    *("https://hooks.example.net/escrow?x=1&y=%20", "https://a.b/" + "x" * 2036),
]
BAD_URLS = [
    *("", "a", "//a/b", "ftp://a", "http:///x", "http://user:word@a/", "http://a/#part", "http://a/?q#part"),
    *("http://a:655360/", "http://a:x/", "http://[::1/", "http://[fe80::1%eth0]/", "http://a\\b/", "http://a b/"),
    *("http://a\n", "http://a/\u0000", "http://b\u00fccher.example/", "https://a.b/" + "x" * 2037),
]


@pytest.mark.parametrize("url", GOOD_URLS, ids=lambda url: url[:40])
def test_valid_address_is_returned_and_gets_every_kind_of_event(client: httpx.Client, url: str) -> None:
    reply = create(client, url=url)

    assert (reply.status_code, reply.json()["url"], reply.json()["events"]) == (201, url, EVERY)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("url", [*BAD_URLS, None, 1, [URL]]),
        ("events", [[], None, "transaction.created", {}, [1], ["transaction.refunded"], ["transaction.created"] * 2]),
        ("description", [LONGEST + "x", None, 1]),
        *((name, ["x"]) for name in ("id", "status", "secret", "created_at")),
    ],
)
def test_invalid_field_is_400_with_a_pointer(client: httpx.Client, field: str, values: list[object]) -> None:
    for value in values:
        reply = create(client, **{field: value})

        assert (reply.status_code, reply.headers["content-type"]) == (400, PROBLEM), value
        assert [error["pointer"] for error in reply.json()["errors"]] == [f"#/{field}"]
    assert client.get("/webhooks").json()["data"] == []


def test_body_with_several_flaws_names_them_all(client: httpx.Client) -> None:
    reply = client.post("/webhooks", json={"secret": "s", "events": [], "description": 1})

    assert [error["pointer"] for error in reply.json()["errors"]] == ["#/secret", "#/url", "#/events", "#/description"]
