"""POST and GET /webhooks: 201 was observed; every field is the sandbox's documented choice."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

JSON = {"Content-Type": "application/json"}
PROBLEM = "application/problem+json"
URL = "http://127.0.0.1:3000/hooks"
URL_FLAW = {
    "pointer": "#/url",
    "detail": "url must be an absolute http or https URL in ASCII, without user name, password or fragment,"
    " of at most 2048 characters.",
}
EVENTS_FLAW = {
    "pointer": "#/events",
    "detail": "events must be a list of one or more of transaction.created, transaction.updated,"
    " transaction.released, transaction.expired, none twice.",
}


def create(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/webhooks", json={"url": URL, **body})


def test_create_is_201_and_returns_the_record_with_its_secret(client: httpx.Client) -> None:
    reply = create(client, events=["transaction.released"], description="my shop")

    record = reply.json()
    assert re.fullmatch(r"wh_[0-9A-HJKMNP-TV-Z]{8}", record["id"])
    assert (reply.status_code, reply.headers["content-type"], record) == (
        201,
        "application/json",
        {
            "id": record["id"],
            "url": URL,
            "events": ["transaction.released"],
            "description": "my shop",
            "status": "enabled",
            "created_at": "2026-11-21T03:12:45.000Z",
            "secret": record["secret"],
        },
    )


def test_secret_is_shown_once_and_stored(client: httpx.Client, folder: Path) -> None:
    made = create(client).json()
    secret = made.pop("secret")

    listed = client.get("/webhooks")

    assert listed.json() == {"data": [made], "has_more": False}
    assert "whsec" not in listed.text
    with closing(sqlite3.connect(folder / "sandbox.db")) as store:
        assert store.execute("SELECT id, secret FROM webhook_endpoints").fetchall() == [(made["id"], secret)]


def test_endpoint_without_events_gets_every_kind(client: httpx.Client, folder: Path) -> None:
    all_of_them, one = create(client).json(), create(client, events=["transaction.created"]).json()

    every = ["transaction.created", "transaction.updated", "transaction.released", "transaction.expired"]
    assert all_of_them["events"] == every
    assert one["events"] == ["transaction.created"]
    with closing(sqlite3.connect(folder / "sandbox.db")) as store:
        kept = store.execute("SELECT events FROM webhook_endpoints ORDER BY position").fetchall()
    assert kept == [(json.dumps(every),), ('["transaction.created"]',)]


def test_unknown_fields_are_returned_unchanged(client: httpx.Client) -> None:
    extra = '"metadata":{"rate":1.10,"big":1e400,"list":[-0,true,null]},"targetUrl":"x"'

    made = client.post("/webhooks", content=f'{{"url":"{URL}",{extra}}}'.encode(), headers=JSON)

    assert made.status_code == 201
    assert extra in made.text
    assert extra in client.get("/webhooks").text


GOOD_URLS = [
    *("http://a", "http://localhost:1", "http://localhost:65535/", "http://[::1]:3000/hooks", "http://10.0.0.1?q"),
    *("https://hooks.example.net/escrow?x=1&y=%20", "http://xn--bcher-kva.example/", "https://a.b/" + "x" * 2036),
]

BAD_URLS = [
    *("a", "/hooks", "//a/b", "ftp://a", "HTTP//a", "http:a", "http:///x", "http://", "http://user@a/"),
    *("http://user:word@a/", "http://a/#part", "http://-a/", "http://a-/", "http://a..b/", "http://a:0/"),
    *("http://a:65536/", "http://a:/", "http://a:x/", "http://[::1/"),
    *("http://[fe80::1%eth0]/", "http://a/%", "http://a/%2", "http://a/%zz", "http://a\\b/", "javascript:alert(1)"),
    *("", "http://a b/", "http://a/ b", "http://a\n", "\nhttp://a", "http://a/\u0000", "http://b\u00fccher.example/"),
    *("http://\uff41/", "http://" + "a" * 64 + "/", "https://a.b/" + "x" * 2037),
]


@pytest.mark.parametrize("url", GOOD_URLS, ids=lambda url: url[:40])
def test_valid_address_is_returned(client: httpx.Client, url: str) -> None:
    reply = create(client, url=url)

    assert (reply.status_code, reply.json()["url"]) == (201, url)


@pytest.mark.parametrize("url", [*BAD_URLS, None, 1, True, [], {}, [URL]], ids=lambda url: repr(url)[:40])
def test_invalid_address_is_400_with_a_pointer(client: httpx.Client, url: object) -> None:
    reply = create(client, url=url)

    assert (reply.status_code, reply.headers["content-type"]) == (400, PROBLEM)
    assert reply.json()["errors"] == [URL_FLAW]
    assert client.get("/webhooks").json()["data"] == []


@pytest.mark.parametrize(
    "events",
    [
        *([], None, "transaction.created", {}, {"transaction.created": True}, 1, [1], [None], ["transaction.refunded"]),
        *(["transaction.created", "transaction.created"], ["transaction.created", "x"]),
    ],
    ids=repr,
)
def test_unknown_events_are_400(client: httpx.Client, events: object) -> None:
    reply = create(client, events=events)

    assert (reply.status_code, reply.json()["errors"]) == (400, [EVENTS_FLAW])


def test_description_over_500_characters_is_400(client: httpx.Client) -> None:
    longest = "\u20ac\U0001f600" * 250

    assert create(client, description=longest).json()["description"] == longest
    for wrong in (longest + "x", None, 1, ["x"]):
        reply = create(client, description=wrong)
        assert reply.status_code == 400
        assert reply.json()["errors"] == [
            {"pointer": "#/description", "detail": "description must be text of at most 500 characters."}
        ]


@pytest.mark.parametrize("name", ["id", "status", "secret", "created_at"])
def test_reserved_field_in_a_body_is_refused(client: httpx.Client, name: str) -> None:
    reply = create(client, **{name: "x"})

    assert reply.status_code == 400
    assert reply.json()["errors"] == [{"pointer": f"#/{name}", "detail": f"{name} is set by the service."}]


def test_body_with_several_flaws_names_them_all(client: httpx.Client) -> None:
    reply = client.post("/webhooks", json={"secret": "s", "events": [], "description": 1})

    assert [error["pointer"] for error in reply.json()["errors"]] == ["#/secret", "#/url", "#/events", "#/description"]
