"""`journal resolve` looks for what a create made on each page of the list that can have it."""

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import Run
from wire_server import Behave, Seen, WireServer, hang_up, http_reply

from cli.conftest import UnknownWrite
from cli.replies import CREATE, json_reply, writes_meet
from cli.unknown_writes import NOT_APPLIED, UUID

AFTER, BEFORE = "2026-11-21T03:13:00Z", "2026-11-20T03:13:00Z"

Resolve = Callable[..., tuple[WireServer, Run]]


def escrow(number: int, created: str | None = AFTER, amount: int = 7, **fields: Any) -> dict[str, Any]:
    return {"id": f"tx_{number}", "status": "held", "amount": amount, "currency": "USD", "created_at": created} | fields


def pages(*rows: dict[str, Any], known: bool = True) -> Behave:
    """Answer with two rows a page; not `known`: what is asked for the next page is not followed."""

    def answer(seen: Seen, connection: socket.socket) -> None:
        after = parse_qs(urlsplit(seen.target).query).get("after")
        start = [row["id"] for row in rows].index(after[0]) + 1 if after and known else 0
        page = {"data": rows[start : start + 2], "has_more": start + 2 < len(rows)}
        connection.sendall(http_reply("200 OK", json.dumps(page).encode()))

    return answer


@pytest.fixture
def unknown_create(unknown_write: UnknownWrite) -> Resolve:
    """Return what starts a server with this list, on which a create of 100 USD has become unknown, as j1."""
    return lambda listed: unknown_write(CREATE, writes_meet(hang_up, reads=listed), new_uuid=lambda: UUID)


def test_create_may_have_made_what_is_on_a_later_page(unknown_create: Resolve) -> None:
    _server, run = unknown_create(pages(escrow(4), escrow(3), escrow(2), escrow(1, amount=100)))

    looked, decided = run("journal", "resolve", "j1", "--json"), run(*NOT_APPLIED, "--json")

    assert (looked.code, "tx_1 matches the request" in looked.error["message"]) == (12, True)
    assert (decided.code, decided.error["code"], "tx_1 matches" in decided.err) == (3, "confirmation_needed", True)


def test_create_may_be_on_a_page_that_cannot_be_followed(unknown_create: Resolve) -> None:
    page = {"data": [escrow(1)], "links": {"next": "https://escrow.example.com/page/2"}}
    _server, run = unknown_create(json_reply(json.dumps(page).encode()))

    assert run(*NOT_APPLIED).code == 3


def test_create_is_settled_by_its_key_on_a_later_page(unknown_create: Resolve) -> None:
    _server, run = unknown_create(pages(escrow(4), escrow(3), escrow(2), escrow(1, amount=100, key=UUID)))

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.json["state"], result.json["id"]) == (0, "done", "tx_1")


@pytest.mark.parametrize(
    ("created", "read"),
    [
        ((AFTER, AFTER, AFTER, BEFORE, BEFORE, BEFORE, BEFORE, BEFORE), 3),
        # Oldest first, or in no order: the newest may be on the last page.
        ((BEFORE, BEFORE, BEFORE, BEFORE, BEFORE, AFTER, AFTER, AFTER), 4),
        ((AFTER, BEFORE, BEFORE, AFTER, BEFORE, BEFORE, AFTER, AFTER), 4),
        ((None, None, BEFORE, BEFORE, BEFORE, BEFORE, BEFORE, BEFORE), 4),
    ],
    ids=["newest first", "oldest first", "mixed", "no times"],
)
def test_list_is_read_back_to_what_is_older_than_the_create(
    unknown_create: Resolve, created: tuple[str | None, ...], read: int
) -> None:
    server, run = unknown_create(pages(*[escrow(number, at) for number, at in enumerate(created)]))

    result = run(*NOT_APPLIED)

    assert (result.code, len(server.seen)) == (0, read)


def test_list_without_an_end_is_read_up_to_a_bound(unknown_create: Resolve, monkeypatch: pytest.MonkeyPatch) -> None:
    # Old records in no order: nothing shows that those to come are older than the create.
    rows = [escrow(number, BEFORE if number % 2 else AFTER) for number in range(200)]
    server, run = unknown_create(pages(*rows))
    monkeypatch.setattr("escrowctl.writes.candidates.MAX_PAGES", 5, raising=False)

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, result.error["code"], len(server.seen)) == (3, "confirmation_needed", 5)


def test_list_that_cannot_be_read_to_its_end_speaks_against_not_applied(unknown_create: Resolve) -> None:
    _server, run = unknown_create(pages(escrow(4), escrow(3), escrow(2), known=False))

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, result.error["code"]) == (3, "confirmation_needed")
    assert "the service has more" in result.err
    assert run(*NOT_APPLIED, "--yes").code == 0
