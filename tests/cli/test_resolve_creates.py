"""`journal resolve` of a create: what a list of the service proves, and which id the create gets."""

import json
import socket
from typing import Any

import pytest
from conftest import NOW, Run, ServiceAndRun
from wire_server import Behave, Seen, by_method, hang_up

from cli.conftest import Journal, Profile, UnknownWrite
from cli.replies import CREATE, HELD, WEBHOOK, in_turn, json_reply, writes_meet
from cli.unknown_writes import APPLIED, NOT_APPLIED, UUID, WHY, by_path, item, listing


def test_create_stays_unknown_when_only_its_amount_is_found(unknown_write: UnknownWrite, journal: Journal) -> None:
    listed = listing(item("tx_88F2"), item("tx_other", 7))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: UUID)

    result = run("journal", "resolve", "j1", "--json", now=lambda: NOW)

    assert (result.code, result.out, server.writes) == (12, "", [])
    assert (result.error["code"], result.error["idempotency_key"]) == ("outcome_unknown", UUID)
    for decision in ("--applied --id tx_88F2", "--not-applied"):
        assert f"journal resolve j1 {decision} --reason TEXT" in result.error["hint"]
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize(
    "place", [{"idempotencyKey": UUID}, {"meta": {"request": {"key": UUID}}}, {"keys": ["x", UUID]}]
)
def test_a_create_whose_key_a_record_carries_is_settled(
    unknown_write: UnknownWrite, journal: Journal, place: dict[str, Any]
) -> None:
    listed = listing(item("tx_other"), item("tx_88F2", **place))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: UUID)

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.json["state"], result.json["id"]) == (0, "done", "tx_88F2")
    assert "contains the idempotency key of this create" in result.json["detail"]
    assert (journal(), server.writes) == ([("create_transaction", "done")], [])
    # Done is done: the same line is another escrow now, and asked for on purpose.
    assert run("journal", "resolve", "j1").code == 0


KEYED = ("--idempotency-key", UUID)


@pytest.mark.representative("*")
@pytest.mark.parametrize(
    ("options", "items"),
    [
        (("--idempotency-key", "order-1"), (item("tx_1", key="order-1"),)),
        ((), (item("tx_1", note=f"x{UUID}"), item("tx_2"))),
        ((), (item("tx_1", key=UUID), item("tx_2", key=UUID))),
        ((), ()),
        ((*KEYED, "--data", f'{{"order":"{UUID}"}}'), (item("tx_old", order=UUID),)),
        ((*KEYED, "--data", "{}"), (item("tx_1", 999, metadata=UUID),)),
        ((*KEYED, "--data", "{}"), (item("tx_1", currency="EUR", metadata=UUID),)),
    ],
    ids=[
        *("a key of the operator's own", "part of a text", "two carry it", "none"),
        *("the key is in the request", "another amount", "another currency"),
    ],
)
def test_listing_without_the_key_in_one_record_alone_proves_nothing(
    unknown_write: UnknownWrite, journal: Journal, options: tuple[str, ...], items: tuple[dict[str, Any], ...]
) -> None:
    answers = by_path(listed=listing(*items), one=json_reply(HELD))
    _, run = unknown_write((*CREATE, *options), answers, new_uuid=lambda: UUID)

    assert run("journal", "resolve", "j1").code == 12
    assert journal() == [("create_transaction", "unknown")]


BEFORE, AFTER = "2026-11-21T03:00:00Z", "2026-11-21T03:12:45Z"
"""A quarter of an hour before NOW, and a second after it."""


def test_older_escrow_is_not_the_result_of_a_create(unknown_write: UnknownWrite, journal: Journal) -> None:
    earlier = item("tx_7", created_at=BEFORE)
    _, run = unknown_write(CREATE, by_path(listed=listing(earlier), one=json_reply(json.dumps(earlier).encode())))

    looked = run("journal", "resolve", "j1", "--json")
    applied = run(*APPLIED, "--id", "tx_7")
    not_applied = run(*NOT_APPLIED)

    assert (looked.code, applied.code, not_applied.code) == (12, 3, 0)
    assert "--id ID" in looked.error["hint"]
    assert journal() == [("create_transaction", "not_applied")]


@pytest.mark.parametrize(
    "created",
    [
        *(AFTER, 1801010112345, "1801010112345", "yesterday", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
    ],
)
def test_escrow_that_was_not_certainly_there_before_is_offered(created: str | int, unknown_write: UnknownWrite) -> None:
    since = item("tx_7", created_at=created)
    _, run = unknown_write(CREATE, by_path(listed=listing(since, item("tx_6", created_at=BEFORE)), one=hang_up))

    looked = run("journal", "resolve", "j1", "--json")

    assert (looked.code, "--id tx_7" in looked.error["hint"]) == (12, True)


def test_escrow_created_shortly_before_is_shown_as_older(unknown_write: UnknownWrite, journal: Journal) -> None:
    older = item("tx_7", created_at="2026-11-21T03:08:30Z")
    server, run = unknown_write(CREATE, by_path(listed=listing(older), one=json_reply(json.dumps(older).encode())))

    looked = run("journal", "resolve", "j1", "--json")
    decided = run(*NOT_APPLIED)

    assert (looked.code, "before j1 was sent (or the clocks differ)" in looked.err) == (12, True)
    assert "--id ID" in looked.error["hint"]
    # It may be the result: a service's clock may be some minutes behind.
    assert (decided.code, journal(), server.writes) == (3, [("create_transaction", "unknown")], [])


@pytest.mark.parametrize(
    "record",
    [{"escrowRef": "tx_7", "money": {"val": 100, "cur": "USD"}}, {"id": "tx_7", "amount": "ten", "currency": "USD"}],
    ids=["unknown names", "no amount"],
)
def test_list_that_cannot_be_read_proves_nothing(unknown_write: UnknownWrite, record: dict[str, Any]) -> None:
    _, run = unknown_write(CREATE, by_path(listed=listing(record, item("tx_6", 5)), one=hang_up))

    looked = run("journal", "resolve", "j1", "--json")
    not_applied = run(*NOT_APPLIED)

    assert (looked.code, not_applied.code) == (12, 3)


def test_create_that_was_answered_is_not_decided_as_not_applied_unasked(service_and_run: ServiceAndRun) -> None:
    body = b'{"escrowRef":"tx_7","state":"open"}'
    _, run = service_and_run(by_path(listed=listing(), one=hang_up, write=json_reply(body, "201 Created")))
    assert run(*CREATE).code == 12

    looked = run("journal", "resolve", "j1", "--json")
    not_applied = run(*NOT_APPLIED)

    assert (looked.code, not_applied.code, "replied 201" in not_applied.err) == (12, 3, True)
    assert "reply.id" in looked.error["hint"]


def test_create_that_differs_is_not_called_done(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD.replace(b"100", b"7")))
    assert run(*CREATE).code == 16

    refused = run(*APPLIED, "--id", "tx_1")

    assert refused.code == 7


@pytest.mark.parametrize(("echoed", "code"), [(b"tx_1", 7), (b"tx_9", 10)])
def test_resolved_create_gets_the_id_that_the_record_echoes(
    service_and_run: ServiceAndRun, journal: Journal, echoed: bytes, code: int
) -> None:
    write, one = in_turn(json_reply(HELD), hang_up), json_reply(HELD.replace(b"tx_1", echoed))
    _, run = service_and_run(by_path(listed=listing(), one=one, write=write))
    assert [run(*CREATE).code, run(*CREATE).code] == [0, 12]

    result = run("journal", "resolve", "j2", "--applied", "--id", "TX_1", *WHY, "--json")

    assert result.code == code
    assert journal() == [("create_transaction", "done"), ("create_transaction", "unknown")]


def test_one_escrow_cannot_settle_two_creates(service_and_run: ServiceAndRun, journal: Journal) -> None:
    listed, write = listing(item("tx_1", metadata=UUID)), in_turn(json_reply(HELD), hang_up)
    server, run = service_and_run(by_path(listed=listed, one=json_reply(HELD), write=write))
    assert [run(*CREATE).code, run(*CREATE, new_uuid=lambda: UUID).code] == [0, 12]

    looked = run("journal", "resolve", "j2")
    applied = run("journal", "resolve", "j2", "--applied", "--id", "tx_1", *WHY, "--allow-unreadable", "--json")

    assert (looked.code, applied.code, applied.error["code"], len(server.writes)) == (12, 7, "already_done", 2)
    assert journal() == [("create_transaction", "done"), ("create_transaction", "unknown")]


def test_repeated_command_prints_what_resolve_found(service_and_run: ServiceAndRun) -> None:
    failed = json_reply(b'{"error":"internal","id":"err_77"}', "500 Oh")
    server, run = service_and_run(by_path(listed=listing(), one=json_reply(HELD), write=failed))
    keyed = (*CREATE, "--idempotency-key", "order-9")
    assert run(*keyed).code == 12
    assert run("journal", "list", "--json").json[0]["id"] is None
    assert run(*APPLIED, "--id", "tx_1").code == 0

    again, quiet = run(*keyed, "--json"), run(*keyed, "-q")

    assert (again.code, again.json, quiet.code, quiet.out) == (0, {"id": "tx_1"}, 0, "tx_1\n")
    assert "The journal has no copy of the reply." in again.err
    assert len(server.writes) == 1


def with_integer_ids(create: str) -> Behave:
    """A service that numbers each table from 1; a create is answered with this status."""
    made = b'{"id":1,"status":"held","amount":100,"currency":"USD"}'

    def post(seen: Seen, connection: socket.socket) -> None:
        is_create = "transactions" in seen.target
        json_reply(made if is_create else b'{"id":1}', create if is_create else "201 Created")(seen, connection)

    return by_method(GET=json_reply(made), POST=post)


@pytest.mark.parametrize("status", ["201 Created", "202 Accepted"])
@pytest.mark.parametrize("before", [WEBHOOK, ("api", "POST", "/invoices", "--yes")], ids=["webhook", "raw call"])
def test_create_is_settled_although_another_table_has_its_id(
    service_and_run: ServiceAndRun, journal: Journal, before: tuple[str, ...], status: str
) -> None:
    _, run = service_and_run(with_integer_ids(status))
    assert run(*before).code == 0

    result = run(*CREATE, "--json")

    assert (result.code, result.err) == (0, "")
    assert journal()[1:] == [("create_transaction", "done")]


def test_create_found_by_its_key_but_failed_ends_with_16(profile: Profile, run: Run) -> None:
    listed = f'[{{"id":"tx_7","status":"failed","amount":100,"currency":"usd","key":"{UUID}"}}]'.encode()
    profile(behave=writes_meet(hang_up, reads=json_reply(listed)))
    assert run(*CREATE, new_uuid=lambda: UUID).code == 12

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.error["code"]) == (16, "check_failed")
