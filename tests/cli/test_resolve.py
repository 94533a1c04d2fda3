"""`journal resolve`: reads that settle an unknown write, decisions of operators, and resends."""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY as API_KEY
from conftest import NOW, Run, Serve, ServiceAndRun
from wire_server import Behave, Seen, WireServer, by_method, hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, STATUS_RELEASED, holding, in_turn, json_reply, writes_meet
from escrowctl.journal.model import DECIDED_APPLIED, Intent
from escrowctl.journal.opening import open_journal

KEY = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"
WHY = ("--reason", "desk ticket 5512")


def test_hint_of_a_job_runs_where_its_variables_are_not_set(run: Run, serve: Serve, tmp_path: Path) -> None:
    server = serve(writes_meet(hang_up, reads=listing()))
    journal_id = run("journal", "init", "-q").out.strip()
    job = {"CI": "true", "ESCROWCTL_MODE": "live", "ESCROWCTL_JOURNAL_ID": journal_id}
    job |= {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": API_KEY}
    failed = run(*CREATE, "--json", environ=job)
    (tmp_path / "key").write_text(API_KEY)
    (tmp_path / "key").chmod(0o600)

    words = shlex.split(failed.error["hint"].partition(": ")[2].replace("=FILE", f"={tmp_path / 'key'}"))
    given = dict(word.split("=", 1) for word in words if word.startswith("ESCROWCTL_"))
    pasted = run(*words[words.index("escrowctl") + 1 :], "--json", environ=given)

    assert (failed.code, given["ESCROWCTL_JOURNAL_ID"], pasted.error["code"]) == (12, journal_id, "outcome_unknown")


def listing(*items: dict[str, Any]) -> Behave:
    return json_reply(json.dumps({"data": list(items)}).encode())


def item(resource_id: str, amount: int = 100, **fields: Any) -> dict[str, Any]:
    return {"id": resource_id, "status": "held", "amount": amount, "currency": "USD", **fields}


def by_path(*, listed: Behave, one: Behave, write: Behave = hang_up) -> Behave:
    """Reads of the collection, reads of one record, and writes."""

    def read(seen: Any, connection: Any) -> None:
        (listed if seen.target.endswith(("/transactions", "/webhooks")) else one)(seen, connection)

    return by_method(GET=read, POST=write, PUT=write, DELETE=write)


UnknownWrite = Callable[..., tuple[WireServer, Run]]


@pytest.fixture
def unknown_write(service_and_run: ServiceAndRun) -> UnknownWrite:
    """Start a server on which one write has become unknown, as j1."""

    def start(line: tuple[str, ...], behave: Behave, **keywords: Any) -> tuple[WireServer, Run]:
        server, run = service_and_run(behave)
        result = run(*line, now=lambda: NOW, **keywords)
        assert result.code == 12, result.err
        server.seen.clear()
        return server, run

    return start


# Reading


def test_create_stays_unknown_when_only_its_amount_is_found(unknown_write: UnknownWrite, journal: Journal) -> None:
    listed = listing(item("tx_88F2"), item("tx_other", 7))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: KEY)

    result = run("journal", "resolve", "j1", "--json", now=lambda: NOW)

    assert (result.code, result.out, server.writes) == (12, "", [])
    assert (result.error["code"], result.error["idempotency_key"]) == ("outcome_unknown", KEY)
    for decision in ("--applied --id tx_88F2", "--not-applied"):
        assert f"journal resolve j1 {decision} --reason TEXT" in result.error["hint"]
    assert journal() == [("create_transaction", "unknown")]


@pytest.mark.parametrize("place", [{"idempotencyKey": KEY}, {"meta": {"request": {"key": KEY}}}, {"keys": ["x", KEY]}])
def test_a_create_whose_key_a_record_carries_is_settled(
    unknown_write: UnknownWrite, journal: Journal, place: dict[str, Any]
) -> None:
    listed = listing(item("tx_other"), item("tx_88F2", **place))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: KEY)

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.json["state"], result.json["id"]) == (0, "done", "tx_88F2")
    assert (result.json["detail"], server.writes) == (
        "tx_88F2 contains the idempotency key of this create (found in the list)",
        [],
    )
    assert journal() == [("create_transaction", "done")]
    # Done is done: the same line is another escrow now, and asked for on purpose.
    assert run("journal", "resolve", "j1").code == 0


@pytest.mark.parametrize(
    "items",
    [
        (item("tx_1", key="order-1"),),
        (item("tx_1", note=f"x{KEY}"), item("tx_2")),
        (item("tx_1", key=KEY), item("tx_2", key=KEY)),
        (),
    ],
    ids=["a key of the operator's own", "part of a text", "two carry it", "none"],
)
def test_listing_without_the_key_in_one_record_proves_nothing(
    unknown_write: UnknownWrite, journal: Journal, items: tuple[dict[str, Any], ...]
) -> None:
    own = ("--idempotency-key", "order-1") if items and items[0].get("key") == "order-1" else ()
    line = (*CREATE, *own)
    _, run = unknown_write(line, by_path(listed=listing(*items), one=json_reply(HELD)), new_uuid=lambda: KEY)

    assert run("journal", "resolve", "j1").code == 12
    assert journal() == [("create_transaction", "unknown")]


def test_a_release_that_reads_as_released_is_settled(run: Run, serve: Any, write_config: Any) -> None:
    server = serve(writes_meet(hang_up, reads=in_turn(json_reply(HELD), json_reply(RELEASED))))
    write_config(f'[profiles.a]\nbase_url = "{server.base_url}"\nstatus.released = ["Released"]\n')
    around = {"ESCROWCTL_API_KEY": "sk_test_1", "ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_PROFILE": "a"}
    assert run(*RELEASE, environ=around).code == 12

    result = run("journal", "resolve", "j1", environ=around, terminal=True)

    assert result.code == 0
    assert [seen.method for seen in server.seen] == ["GET", "PUT", "GET"]
    assert run(*RELEASE, environ=around).code == 7


@pytest.mark.parametrize(
    "behave", [json_reply(HELD), json_reply(b"", "404 No"), json_reply(b"", "500 Oh"), hang_up, json_reply(b"<html>")]
)
def test_any_other_reading_of_a_release_proves_nothing(
    unknown_write: UnknownWrite, journal: Journal, behave: Behave
) -> None:
    server, run = unknown_write(RELEASE, writes_meet(hang_up, reads=in_turn(json_reply(HELD), behave)))

    result = run("journal", "resolve", "j1")

    assert (result.code, result.out, server.writes) == (12, "", [])
    assert journal() == [("release_transaction", "unknown")]


@pytest.mark.parametrize("answer", [hang_up, json_reply(b"", "500 Oh"), json_reply(b"<html>")])
def test_status_of_another_escrow_settles_no_release(
    profile: Profile, run: Run, journal: Journal, answer: Behave
) -> None:
    another = json_reply(RELEASED.replace(b"tx_1", b"tx_2"))
    server = profile(STATUS_RELEASED, behave=writes_meet(answer, reads=in_turn(json_reply(HELD), another)))

    assert run(*RELEASE).code == 12
    result = run("journal", "resolve", "j1")

    assert (result.code, len(server.writes)) == (12, 1)
    assert "the service answered for tx_1 with the id tx_2" in result.err
    assert journal() == [("release_transaction", "unknown")]


def test_a_webhook_and_a_raw_call_stay_unknown(service_and_run: ServiceAndRun, journal: Journal) -> None:
    endpoint = {"id": "wh_1", "url": "https://hooks.example.net/x"}
    server, run = service_and_run(by_path(listed=listing(endpoint), one=json_reply(HELD)))
    run("webhook", "create", "--url", "https://hooks.example.net/x")
    run("api", "DELETE", "/hooks/wh_9", "--yes")
    sent = len(server.writes)

    results = [run("journal", "resolve", name) for name in ("j1", "j2")]

    assert ([result.code for result in results], len(server.writes)) == ([12, 12], sent)


# What a list shows


BEFORE, AFTER = "2026-11-21T03:00:00Z", "2026-11-21T03:12:45Z"
"""A quarter of an hour before NOW, and a second after it."""


def test_escrow_that_was_there_before_is_not_the_result_of_a_create(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    earlier = item("tx_7", created_at=BEFORE)
    one = json_reply(json.dumps(earlier).encode())
    _, run = unknown_write(CREATE, by_path(listed=listing(earlier), one=one))

    looked = run("journal", "resolve", "j1", "--json")
    applied = run("journal", "resolve", "j1", "--applied", "--id", "tx_7", *WHY)
    not_applied = run("journal", "resolve", "j1", "--not-applied", *WHY)

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


def test_escrow_created_shortly_before_is_shown_as_older_and_not_filled_in(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    older = item("tx_7", created_at="2026-11-21T03:08:30Z")
    server, run = unknown_write(CREATE, by_path(listed=listing(older), one=json_reply(json.dumps(older).encode())))

    looked = run("journal", "resolve", "j1", "--json")
    decided = run("journal", "resolve", "j1", "--not-applied", *WHY)

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
    not_applied = run("journal", "resolve", "j1", "--not-applied", *WHY)

    assert (looked.code, not_applied.code) == (12, 3)


def test_create_that_was_answered_is_not_decided_as_not_applied_unasked(service_and_run: ServiceAndRun) -> None:
    body = b'{"escrowRef":"tx_7","state":"open"}'
    _, run = service_and_run(by_path(listed=listing(), one=hang_up, write=json_reply(body, "201 Created")))
    assert run(*CREATE).code == 12

    looked = run("journal", "resolve", "j1", "--json")
    not_applied = run("journal", "resolve", "j1", "--not-applied", *WHY)

    assert (looked.code, not_applied.code, "replied 201" in not_applied.err) == (12, 3, True)
    assert "reply.id" in looked.error["hint"]


def test_create_that_differs_is_not_called_done(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD.replace(b"100", b"7")))
    assert run(*CREATE).code == 16

    refused = run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *WHY)

    assert refused.code == 7


# Verdicts


def test_operator_decision_applied_is_recorded_after_reading_the_id(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    one = json_reply(HELD.replace(b"tx_1", b"tx_88F2"))
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=one))

    result = run("journal", "resolve", "j1", "--applied", "--id", "tx_88F2", *WHY, "--json")

    assert (result.code, result.json["state"], result.json["id"]) == (0, "done", "tx_88F2")
    assert [(seen.method, seen.target) for seen in server.seen] == [("GET", "/api/v1/transactions/tx_88F2")]
    last = run("journal", "show", "j1", "--json").json["history"][-1]
    assert re.fullmatch(DECIDED_APPLIED + r" \(\S+: desk ticket 5512\)", last["detail"])
    assert journal() == [("create_transaction", "done")]


def test_operator_decision_without_a_user_name_records_the_uid(
    unknown_write: UnknownWrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)  # no passwd entry
    one = json_reply(HELD.replace(b"tx_1", b"tx_88F2"))
    _, run = unknown_write(CREATE, by_path(listed=listing(), one=one))

    run("journal", "resolve", "j1", "--applied", "--id", "tx_88F2", *WHY)

    last = run("journal", "show", "j1", "--json").json["history"][-1]
    assert last["detail"] == f"{DECIDED_APPLIED} (uid={os.geteuid()}: desk ticket 5512)"


@pytest.mark.parametrize("keys", [(), ("--idempotency-key", "order-1")], ids=["a new key", "the same key"])
def test_operator_decision_not_applied_allows_the_same_command(
    unknown_write: UnknownWrite, journal: Journal, keys: tuple[str, ...]
) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write((*CREATE, *keys), by_path(listed=listing(), one=json_reply(HELD), write=write))
    assert run(*CREATE, *keys).code == 12

    result = run("journal", "resolve", "j1", "--not-applied", *WHY)

    assert (result.code, server.writes) == (0, [])
    assert journal() == [("create_transaction", "not_applied")]
    assert (run(*CREATE, *keys).code, len(server.writes)) == (0, 1)
    assert (server.writes[0].header("Idempotency-Key") == "order-1") == bool(keys)


def test_create_sent_again_after_a_wrong_decision_is_reported_as_done_twice(unknown_write: UnknownWrite) -> None:
    create = (*CREATE, "--reference", "R-1")
    write = in_turn(hang_up, json_reply(HELD.replace(b"tx_1", b"tx_2")))
    server, run = unknown_write(create, by_path(listed=listing(), one=json_reply(HELD), write=write))
    decided = [run("journal", "resolve", "j1", "--not-applied", *WHY).code, run(*create).code]

    result = run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *WHY, "--json")

    assert (decided, len(server.writes), result.code, result.error["code"]) == ([0, 0], 1, 16, "check_failed")
    assert json.loads(result.out)["state"] == "done"
    assert "journal list --duplicates" in result.error["hint"]


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (json_reply(b'{"id":"tx_2","amount":99,"currency":"USD"}'), 3),
        (json_reply(b'{"id":"tx_2","amount":100,"currency":"EUR"}'), 3),
        (json_reply(b"", "404 No"), 6),
        (hang_up, 10),
    ],
)
def test_decision_that_a_read_contradicts_needs_allow_unreadable(
    unknown_write: UnknownWrite, journal: Journal, one: Behave, code: int
) -> None:
    _, run = unknown_write(CREATE, by_path(listed=listing(), one=one))
    line = ("journal", "resolve", "j1", "--applied", "--id", "tx_2", *WHY)

    result = run(*line, "--json")

    assert (result.code, result.out) == (code, "")
    assert journal() == [("create_transaction", "unknown")]
    assert run(*line, "--allow-unreadable").code == 0
    assert journal() == [("create_transaction", "done")]


def test_not_applied_is_refused_when_a_record_has_the_key(unknown_write: UnknownWrite, journal: Journal) -> None:
    listed = listing(item("tx_88F2", metadata={"key": KEY}))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: KEY)
    line = ("journal", "resolve", "j1", "--not-applied", *WHY)

    result = run(*line, "--json")

    assert (result.code, result.error["code"]) == (3, "expectation_failed")
    assert "tx_88F2" in result.error["message"]
    assert journal() == [("create_transaction", "unknown")]
    assert (run(*line, "--allow-unreadable").code, server.writes) == (0, [])
    assert journal() == [("create_transaction", "not_applied")]


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
    listed, write = listing(item("tx_1", metadata=KEY)), in_turn(json_reply(HELD), hang_up)
    server, run = service_and_run(by_path(listed=listed, one=json_reply(HELD), write=write))
    assert [run(*CREATE).code, run(*CREATE, new_uuid=lambda: KEY).code] == [0, 12]

    looked = run("journal", "resolve", "j2")
    applied = run("journal", "resolve", "j2", "--applied", "--id", "tx_1", *WHY, "--allow-unreadable", "--json")

    assert (looked.code, applied.code, applied.error["code"], len(server.writes)) == (12, 7, "already_done", 2)
    assert journal() == [("create_transaction", "done"), ("create_transaction", "unknown")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("j1", "--applied", *WHY), 2),
        (("j1", "--applied", "--id", "tx_1"), 2),
        (("j1", "--not-applied"), 2),
        (("j1", "--resend"), 2),
        (("j1", "--applied", "--resend", *WHY), 2),
        (("j1", "--not-applied", "--id", "tx_1", *WHY), 2),
        (("j1", "--applied", "--id", "tx_1", "--reason", " "), 2),
        (("j1", "--allow-unreadable"), 2),
        (("1",), 2),
        (("j9",), 6),
    ],
)
def test_contradictory_resolve_options_read_and_record_nothing(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...], code: int
) -> None:
    server, run = unknown_write(CREATE, hang_up)

    result = run("journal", "resolve", *line, "--json")

    assert (result.code, result.out, server.seen) == (code, "", [])
    assert journal() == [("create_transaction", "unknown")]


def test_settled_entry_is_shown_and_takes_no_other_decision(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(json_reply(HELD))
    run(*CREATE)

    shown = run("journal", "resolve", "j1", terminal=True)
    refused = run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *WHY, "--json")

    assert shown.code == 0
    assert (refused.code, refused.error["code"], len(server.seen)) == (7, "already_done", 1)


def test_entry_is_settled_only_at_its_own_service(unknown_write: UnknownWrite, serve: Any, run: Run) -> None:
    unknown_write(CREATE, hang_up)
    other = serve(json_reply(HELD))
    around = {"ESCROWCTL_BASE_URL": other.base_url, "ESCROWCTL_API_KEY": "sk_test_1"}

    for verdict in ((), ("--not-applied", *WHY), ("--resend", "--yes", *WHY)):
        result = run("journal", "resolve", "j1", *verdict, "--json", environ=around)
        assert (result.code, result.out, other.seen) == (2, "", [])
        assert "j1 was sent to http://127.0.0.1:" in result.error["message"]


def test_applied_is_refused_when_the_release_reads_held(profile: Profile, run: Run, journal: Journal) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(hang_up))
    run(*RELEASE)
    line = ("journal", "resolve", "j1", "--applied", *WHY)

    result = run(*line, "--json")

    assert (result.code, result.error["code"]) == (3, "expectation_failed")
    assert journal() == [("release_transaction", "unknown")]
    assert run(*line, "--allow-unreadable").code == 0
    again = run(*RELEASE, "--json")
    assert (again.code, again.error["code"], again.error["entry"]) == (7, "already_done", "j1")


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_not_applied_without_a_read_needs_allow_unreadable(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...]
) -> None:
    refused = json_reply(b"", "404 No")
    one = in_turn(json_reply(HELD), refused) if line == RELEASE else refused
    server, run = unknown_write(line, by_path(listed=refused, one=one))
    verdict = ("journal", "resolve", "j1", "--not-applied", *WHY)

    result = run(*verdict, "--json")

    assert (result.code, "--allow-unreadable" in result.error["hint"]) == (6, True)
    assert journal() == [(f"{line[1]}_transaction", "unknown")]
    assert (run(*verdict, "--allow-unreadable").code, server.writes) == (0, [])


@pytest.mark.parametrize(
    ("data", "record"),
    [
        (f'{{"order":"{KEY}"}}', item("tx_old", order=KEY)),
        ("{}", item("tx_1", 999, metadata=KEY)),
        ("{}", item("tx_1", currency="EUR", metadata=KEY)),
    ],
    ids=["the key is in the request", "another amount", "another currency"],
)
def test_key_with_another_explanation_proves_nothing(
    unknown_write: UnknownWrite, journal: Journal, data: str, record: dict[str, Any]
) -> None:
    line = (*CREATE, "--data", data, "--idempotency-key", KEY)
    _, run = unknown_write(line, by_path(listed=listing(record), one=json_reply(HELD)))

    assert run("journal", "resolve", "j1").code == 12
    assert journal() == [("create_transaction", "unknown")]


def test_repeated_command_prints_what_resolve_found(service_and_run: ServiceAndRun) -> None:
    failed = json_reply(b'{"error":"internal","id":"err_77"}', "500 Oh")
    server, run = service_and_run(by_path(listed=listing(), one=json_reply(HELD), write=failed))
    keyed = (*CREATE, "--idempotency-key", "order-9")
    assert run(*keyed).code == 12
    assert run("journal", "list", "--json").json[0]["id"] is None
    assert run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *WHY).code == 0

    again, quiet = run(*keyed, "--json"), run(*keyed, "-q")

    assert (again.code, again.json, quiet.code, quiet.out) == (0, {"id": "tx_1"}, 0, "tx_1\n")
    assert "The journal has no copy of the reply." in again.err
    assert len(server.writes) == 1


def test_key_in_a_reason_or_id_is_refused(unknown_write: UnknownWrite, home: Path, journal: Journal) -> None:
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD)))

    told = run("journal", "resolve", "j1", "--not-applied", "--reason", f"oops {API_KEY}", "--json")
    named = run("journal", "resolve", "j1", "--applied", "--id", API_KEY, *WHY, "--json")

    assert (told.code, named.code, server.seen) == (2, 2, [])
    assert API_KEY not in told.out + told.err + named.out + named.err
    assert API_KEY.encode() not in (home / "state" / "journal.db").read_bytes()
    assert journal() == [("create_transaction", "unknown")]


def test_read_does_not_overwrite_a_newer_record(unknown_write: UnknownWrite, home: Path, journal: Journal) -> None:
    word = ("journal", "resolve", "j1", "--applied", "--id", "tx_9", "--allow-unreadable", *WHY)

    def list_late(seen: Any, connection: Any) -> None:
        environ = {**os.environ, "ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": API_KEY}
        subprocess.run([sys.executable, "-m", "escrowctl", *word], env=environ, check=True, stdout=subprocess.DEVNULL)
        listing(item("tx_8", metadata=KEY))(seen, connection)

    server, run = unknown_write(CREATE, by_path(listed=list_late, one=json_reply(HELD)), new_uuid=lambda: KEY)

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.error["code"]) == (7, "busy")
    shown = run("journal", "show", "j1", "--json").json
    assert (shown["state"], shown["id"]) == ("done", "tx_9")


def test_signal_during_a_resolve_reports_the_state_of_the_entry(unknown_write: UnknownWrite) -> None:
    def interrupt(_seen: Any, _connection: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

    _, run = unknown_write(CREATE, by_path(listed=interrupt, one=json_reply(HELD)))

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, "j1" in result.error["message"]) == (130, True)


def test_entry_is_resolved_only_with_the_profile_that_sent_it(
    serve: Any, run: Run, write_config: Any, journal: Journal
) -> None:
    server = serve(by_path(listed=listing(), one=json_reply(HELD)))
    write_config(
        f'[profiles.a]\nbase_url = "{server.base_url}"\n[profiles.b]\nbase_url = "{server.base_url}"\n'
        'service_id = "new"\n'
    )
    around = {"ESCROWCTL_API_KEY": API_KEY, "ESCROWCTL_BASE_URL": server.base_url}
    assert run(*CREATE, environ=around | {"ESCROWCTL_PROFILE": "a"}).code == 12
    sent = len(server.seen)
    other = around | {"ESCROWCTL_PROFILE": "b", "ESCROWCTL_API_KEY": "sk_test_of_b"}

    for verdict in ((), ("--resend", "--yes", *WHY), ("--resend", "--yes", "--allow-unreadable", *WHY)):
        result = run("journal", "resolve", "j1", *verdict, "--json", environ=other)
        assert (result.code, result.error["hint"].splitlines()[0]) == (2, "escrowctl -p a journal resolve j1")

    assert len(server.seen) == sent
    assert run("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", *WHY, environ=other).code == 0


@pytest.mark.parametrize(
    "now",
    ['[profiles.new]\nbase_url = "{url}"\n', '[profiles.a]\nbase_url = "{local}"\n'],
    ids=["the profile has another name", "its host is spelled otherwise"],
)
def test_entry_is_settled_after_its_profile_changed(
    serve: Any, run: Run, write_config: Any, journal: Journal, now: str
) -> None:
    server = serve(by_path(listed=listing(), one=json_reply(HELD)))
    local = server.base_url.replace("127.0.0.1", "localhost")
    write_config(f'[profiles.a]\nbase_url = "{server.base_url}"\n')
    around = {"ESCROWCTL_API_KEY": API_KEY, "ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_PROFILE": "a"}
    assert run(*CREATE, environ=around).code == 12
    text = now.format(url=server.base_url, local=local)
    write_config(text)
    around |= {"ESCROWCTL_PROFILE": text[10:].partition("]")[0], "ESCROWCTL_BASE_URL": text.split('"')[1]}

    assert run("journal", "resolve", "j1", environ=around).code == 12
    assert run("journal", "resolve", "j1", "--not-applied", *WHY, environ=around).code == 0
    assert journal() == [("create_transaction", "not_applied")]


# Sending it again


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_resend_is_confirmed_and_sent_once_with_the_same_key(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...]
) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write(
        line, by_path(listed=listing(), one=json_reply(HELD), write=write), new_uuid=lambda: KEY
    )

    result = run("journal", "resolve", "j1", "--resend", *WHY, stdin="j1\n", terminal=True)

    assert (result.code, len(server.writes)) == (0, 1)
    assert server.writes[0].header("Idempotency-Key") == KEY
    assert "To send it again, type j1:" in result.err
    assert journal() == [(f"{line[1]}_transaction", "done" if line is CREATE else "unconfirmed")]
    states = [event["state"] for event in run("journal", "show", "j1", "--json").json["history"]]
    assert states == ["in_flight", "unknown", "unknown", "in_flight", "done"]


@pytest.mark.parametrize(
    ("after", "code", "state"),
    [
        (json_reply(RELEASED), 0, "done"),
        (json_reply(HELD.replace(b"held", b"failed")), 16, "unconfirmed"),
        (json_reply(b"", "503 Later"), 16, "unconfirmed"),
        (json_reply(HELD.replace(b"held", b"processing")), 0, "unconfirmed"),
    ],
    ids=["released", "failed", "unreadable", "pending"],
)
def test_resent_release_is_confirmed_by_a_reading(
    profile: Profile, run: Run, journal: Journal, after: Behave, code: int, state: str
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD), after)
    lines = (STATUS_RELEASED, 'status.pending = ["processing"]')
    server = profile(*lines, behave=writes_meet(in_turn(hang_up, json_reply(HELD)), reads=reads))
    assert run(*RELEASE).code == 12

    result = run("journal", "resolve", "j1", "--resend", "--yes", *WHY)

    assert (result.code, journal(), len(server.writes)) == (code, [("release_transaction", state)], 2), result.err
    assert ("not confirmed" in result.out + result.err) == (state == "unconfirmed" and code == 0)


def test_resend_that_is_declined_or_cannot_be_asked_about_needs_yes(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD), write=write))
    resend = ("journal", "resolve", "j1", "--resend", *WHY)

    refused = [run(*resend), run(*resend, stdin="no\n", terminal=True), run(*resend, terminal=True)]

    assert ([result.code for result in refused], server.writes) == ([3, 3, 3], [])
    assert journal() == [("create_transaction", "unknown")]
    assert (run(*resend, "--yes").code, len(server.writes)) == (0, 1)


@pytest.mark.parametrize("second", [json_reply(b"", "400 No"), json_reply(b"", "409 No"), hang_up])
def test_resend_that_is_not_done_settles_nothing(unknown_write: UnknownWrite, journal: Journal, second: Behave) -> None:
    """The first may have been applied, with any result of the second."""
    write = in_turn(hang_up, second)
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD), write=write))

    assert run("journal", "resolve", "j1", "--resend", "--yes", *WHY).code == 12
    assert (len(server.writes), journal()) == (1, [("create_transaction", "unknown")])


@pytest.mark.parametrize(
    ("one", "code"),
    [(HELD.replace(b"100", b"5000"), 3), (HELD.replace(b"tx_1", b"tx_9"), 10), (b"<html>", 10)],
    ids=["another amount", "another escrow", "unreadable"],
)
def test_release_is_resent_only_while_it_is_as_confirmed(
    unknown_write: UnknownWrite, journal: Journal, one: bytes, code: int
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(one))
    server, run = unknown_write(RELEASE, writes_meet(in_turn(hang_up, json_reply(HELD)), reads=reads))
    line = ("journal", "resolve", "j1", "--resend", "--yes", *WHY)

    result = run(*line, "--json")

    assert (result.code, server.writes) == (code, [])
    assert journal() == [("release_transaction", "unknown")]
    assert (run(*line, "--allow-unreadable").code, len(server.writes)) == (0, 1)


def test_release_that_may_be_in_progress_is_not_sent_again_unasked(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"processing")))
    server, run = unknown_write(RELEASE, writes_meet(in_turn(hang_up, json_reply(b"")), reads=reads))
    again = ("journal", "resolve", "j1", "--resend", "--yes", *WHY)

    decided = run("journal", "resolve", "j1", "--not-applied", *WHY, "--json")
    resent = run(*again, "--json")

    assert (decided.code, decided.error["code"]) == (3, "confirmation_needed")
    assert (resent.code, resent.error["code"], server.writes) == (3, "expectation_failed", [])
    # That would send it unseen.
    assert "--allow-unreadable" not in resent.error["hint"]
    assert journal() == [("release_transaction", "unknown")]


def test_release_in_progress_is_sent_again_where_the_service_deduplicates(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"processing")))
    keyed = in_turn(hang_up, hang_up, hang_up, json_reply(b""))
    server = profile('idempotency = "header"', behave=writes_meet(keyed, reads=reads))
    assert run(*RELEASE).code == 12

    assert run("journal", "resolve", "j1", "--resend", "--yes", *WHY).code == 0
    assert len({seen.header("Idempotency-Key") for seen in server.writes}) == 1


def test_write_changed_during_confirmation_is_not_resent(unknown_write: UnknownWrite, journal: Journal) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD), json_reply(HELD.replace(b"100", b"5000")))
    server, run = unknown_write(RELEASE, writes_meet(hang_up, reads=reads))

    result = run("journal", "resolve", "j1", "--resend", *WHY, stdin="j1\n", terminal=True)

    assert (result.code, server.writes) == (3, [])
    assert journal() == [("release_transaction", "unknown")]


def test_read_only_profile_refuses_a_resend_without_asking(profile: Profile, run: Run, home: Path) -> None:
    server = profile(behave=writes_meet(hang_up))
    assert run(*CREATE).code == 12
    config = home / "config.toml"
    config.write_text(config.read_text() + "read_only = true\n")
    before = len(server.seen)

    result = run("journal", "resolve", "j1", "--resend", *WHY, stdin="j1\n", terminal=True)

    assert (result.code, len(server.seen)) == (5, before)
    assert "Type" not in result.err


def test_write_stored_as_hashes_cannot_be_resent(unknown_write: UnknownWrite) -> None:
    server, run = unknown_write(("webhook", "create", "--url", "https://hooks.example.net/x"), hang_up)

    result = run("journal", "resolve", "j1", "--resend", "--yes", *WHY, "--json")

    assert (result.code, server.writes) == (2, [])
    assert "--allow-duplicate j1" in result.error["hint"]


# The same id in two tables of the service


def with_integer_ids(create: str) -> Behave:
    """A service that numbers each table from 1; a create is answered with this status."""
    made = b'{"id":1,"status":"held","amount":100,"currency":"USD"}'

    def post(seen: Seen, connection: socket.socket) -> None:
        is_create = "transactions" in seen.target
        json_reply(made if is_create else b'{"id":1}', create if is_create else "201 Created")(seen, connection)

    return by_method(GET=json_reply(made), POST=post)


WEBHOOK = ("webhook", "create", "--url", "https://hooks.example.net/x")


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


def test_release_recorded_as_applied_on_a_proving_reading_is_verified(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(hang_up, reads=reads))
    assert run(*RELEASE).code == 12

    assert run("journal", "resolve", "j1", "--applied", *WHY).code == 0
    again = run(*RELEASE, "--json")
    overturned = run("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", *WHY)

    assert (again.code, again.error["code"], again.error["hint"]) == (7, "already_done", None)
    assert (overturned.code, len(server.writes)) == (7, 1)


@pytest.mark.parametrize("options", [("--allow-unreadable",), ()], ids=["not read", "no proving status"])
def test_release_recorded_as_applied_without_proof_may_be_overturned(
    profile: Profile, run: Run, options: tuple[str, ...]
) -> None:
    profile(behave=writes_meet(hang_up))
    assert run(*RELEASE).code == 12

    applied = run("journal", "resolve", "j1", "--applied", *options, *WHY)
    asked, overturned = (
        run("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", *WHY, *words)
        for words in ((), ("--yes",))
    )

    assert (applied.code, asked.code, overturned.code) == (0, 3, 0)
    assert "found: earlier: applied" in asked.err


def test_not_applied_is_confirmed_where_an_escrow_matches_and_can_be_put_right(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    server, run = unknown_write(CREATE, by_path(listed=listing(item("tx_88F2")), one=json_reply(HELD)))
    line = ("journal", "resolve", "j1", "--not-applied", *WHY)

    refused, confirmed = run(*line), run(*line, stdin="j1\n", terminal=True)
    after = journal()
    corrected = run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *WHY)

    assert (refused.code, confirmed.code, corrected.code, server.writes) == (3, 0, 0, [])
    assert "found: tx_88F2 matches: held 100 USD" in refused.err
    assert (after, journal()) == ([("create_transaction", "not_applied")], [("create_transaction", "done")])


def test_not_applied_is_refused_where_the_service_has_the_reference(profile: Profile, run: Run) -> None:
    listed = json_reply(b'[{"id":"tx_9","status":"held","amount":100,"currency":"USD","reference":"order-7"}]')
    profile('reference_field = "reference"', behave=by_method(GET=listed, POST=hang_up))
    run(*CREATE, "--reference", "order-7")

    result = run("journal", "resolve", "j1", "--not-applied", "--yes", *WHY)

    assert (result.code, "tx_9 contains the reference of j1" in result.err) == (3, True)


def test_hint_with_the_url_of_an_entry_is_safe_to_paste(service_and_run: ServiceAndRun, home: Path) -> None:
    """An import may bring any text as the URL of an entry."""
    url = "http://h;reboot/api/v1/transactions"
    with contextlib.closing(open_journal(home / "state", now=lambda: NOW)) as journal:
        journal.begin(Intent("create_transaction", "http://h", "p", "POST", url, "{}", "key", "{}"), request_id="r")
    _, run = service_and_run(holding())

    hint = run("journal", "resolve", "j1", "--json").error["hint"]

    assert "ESCROWCTL_BASE_URL='http://h;reboot' escrowctl" in hint


# Decisions about what was done


NOT_APPLIED = ("journal", "resolve", "j1", "--not-applied", "--reason", "desk")


def test_resolve_reads_an_unconfirmed_release_again(profile: Profile, run: Run, journal: Journal) -> None:
    reads = in_turn(*[json_reply(HELD)] * 3, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    first, second = run("journal", "resolve", "j1", "--json"), run("journal", "resolve", "j1", "--json")

    assert (first.code, first.error["code"], second.code, len(server.writes)) == (16, "not_released", 0, 1)
    assert "status.released" not in first.error["hint"]
    assert "escrowctl already released tx_1" in run(*RELEASE).err
    assert journal() == [("release_transaction", "done")]


def test_decision_overturns_a_release_that_no_reading_verified(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"")))
    assert run(*RELEASE).code == 16

    codes = [run(*NOT_APPLIED, *words).code for words in ((), ("--yes",))]

    # The service accepted it: that is not forgotten without a word.
    assert codes == [3, 0]
    assert (run(*RELEASE).code, len(server.writes)) == (16, 2)


def test_operator_confirms_a_release_that_no_reading_can(service_and_run: ServiceAndRun, journal: Journal) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server, run = service_and_run(writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 0

    looked = run("journal", "resolve", "j1", "--json")
    confirmed = run("journal", "resolve", "j1", "--applied", "--reason", "desk")

    assert (looked.code, confirmed.code, len(server.writes)) == (16, 0, 1)
    assert ("--applied" in looked.error["hint"], "STATUS_RELEASED" in looked.error["hint"]) == (True, True)
    assert journal() == [("release_transaction", "done")]
    assert run("journal", "resolve", "j1", "--applied", "--reason", "desk").code == 7


@pytest.mark.parametrize("word", [b"released", b"RELEASED"])
def test_release_that_reads_released_is_not_sent_again_nor_denied_unasked(
    word: bytes, service_and_run: ServiceAndRun
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED.replace(b"released", word)))
    server, run = service_and_run(writes_meet(hang_up, reads=reads))
    assert run(*RELEASE).code == 12

    resent = run("journal", "resolve", "j1", "--resend", "--yes", "--reason", "desk")
    codes = [run(*NOT_APPLIED, *words).code for words in ((), ("--yes",))]

    assert (resent.code, codes, len(server.writes)) == (3, [3, 0], 1)


def test_decision_does_not_overturn_a_create_that_can_be_read(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD))
    run(*CREATE, "--reference", "order-1")

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, result.error["code"]) == (3, "expectation_failed")


def test_decision_overturns_a_create_and_frees_its_reference(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(HELD), reads=json_reply(b"", "404 Not Found")))
    line = (*CREATE, "--reference", "order-1")
    assert run(*line).code == 0

    codes = [run(*NOT_APPLIED).code]
    codes += [run(*NOT_APPLIED, "--allow-unreadable", *words).code for words in ((), ("--yes",))]
    codes.append(run(*line).code)

    # The service's reply speaks against it.
    assert (codes, len(server.writes)) == ([6, 3, 0, 0], 2)


def test_create_found_by_its_key_but_failed_ends_with_16(profile: Profile, run: Run) -> None:
    key = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"
    listed = f'[{{"id":"tx_7","status":"failed","amount":100,"currency":"usd","key":"{key}"}}]'.encode()
    profile(behave=writes_meet(hang_up, reads=json_reply(listed)))
    assert run(*CREATE, new_uuid=lambda: key).code == 12

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.error["code"]) == (16, "check_failed")


def test_decision_does_not_overturn_what_another_process_verified_meanwhile(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def verify_elsewhere(seen: Seen, connection: socket.socket) -> None:
        codes.append(
            subprocess.run([sys.executable, "-m", "escrowctl", "journal", "resolve", "j1"], check=False).returncode
        )
        json_reply(HELD)(seen, connection)

    # Two readings of the release, the decision's own, and that of the other process, which is answered first.
    reads = in_turn(json_reply(HELD), json_reply(HELD), verify_elsewhere, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    result = run(*NOT_APPLIED, "--yes", "--json")

    assert (codes, result.code, result.error["code"]) == ([0], 7, "busy")
    assert (run(*RELEASE).code, len(server.writes)) == (7, 1)
