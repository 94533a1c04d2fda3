"""Reads that a write depends on: a cached reply does not count, and neither does one that is no escrow."""

import json
from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import by_method, hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet
from cli.unknown_writes import NOT_APPLIED

STALE = json_reply(RELEASED, "200 OK", "Age: 40")


@pytest.mark.parametrize("line", [("tx", "get", "tx_1"), ("tx", "list"), RELEASE])
def test_every_read_asks_caches_for_no_stored_answer(service_and_run: ServiceAndRun, line: tuple[str, ...]) -> None:
    server, run = service_and_run(
        writes_meet(json_reply(b"[]"), reads=json_reply(b"[]" if line[1] == "list" else HELD))
    )

    run(*line)

    reads = [seen for seen in server.seen if not seen.is_write]
    assert {seen.header("Cache-Control") for seen in reads} == {"no-cache"}
    assert {seen.header("Cache-Control") for seen in server.writes} <= {None}


@pytest.mark.parametrize(
    ("status", "code"), [(b"Released ", 0), (b"relea\xc5\xbfed", 16), (b"failed ", 16), (b"failed: no funds", 16)]
)
def test_status_after_a_release_is_compared_as_a_person_reads_it(
    profile: Profile, run: Run, status: bytes, code: int
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", status)))
    profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))

    assert run(*RELEASE).code == code


@pytest.mark.parametrize("age", ["40", "1", " 7 ", "60, 0", "60;x=1", "60.0", "soon"])
def test_release_is_not_sent_on_a_cached_reading(service_and_run: ServiceAndRun, age: str) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(HELD, "200 OK", f"Age: {age}")))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["outcome"], server.writes) == (10, "not_sent", [])
    assert f"(Age: {age.strip()})" in result.error["message"]
    assert "--allow-unreadable" in result.error["hint"]


@pytest.mark.parametrize("age", ["0", "00", ""])
def test_release_is_sent_when_the_age_header_is_meaningless(service_and_run: ServiceAndRun, age: str) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(HELD, "200 OK", f"Age: {age}")))

    assert (run(*RELEASE).code, len(server.writes)) == (0, 1)


def test_release_is_not_confirmed_by_a_cached_reading(profile: Profile, run: Run) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=in_turn(json_reply(HELD), STALE)))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], result.error["status_after"]) == (16, "not_released", None)
    # Only to be shown, it is good enough.
    assert run("tx", "get", "tx_1").code == 0


def test_unknown_release_is_not_settled_by_a_cached_reading(profile: Profile, run: Run, journal: Journal) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(hang_up, reads=in_turn(json_reply(HELD), STALE)))
    assert run(*RELEASE).code == 12

    codes = [run("journal", "resolve", "j1").code, run(*NOT_APPLIED).code]

    assert codes == [12, 10]
    assert journal() == [("release_transaction", "unknown")]


NO_ESCROW = {
    "list": b"[%s]" % HELD,
    "list in an envelope": b'{"data":[%s]}' % HELD,
    "list next to a status": b'{"status":"success","data":[%s]}' % HELD,
    "another id": HELD.replace(b"tx_1", b"tx_9"),
    "nothing": b'{"note":"welcome"}',
    "null": b"null",
}
no_escrow = pytest.mark.parametrize("reading", NO_ESCROW.values(), ids=NO_ESCROW)
without_id = pytest.mark.parametrize(
    "record", [b'{"status":"held","history":[{"at":1}]}', b'{"amount":100}'], ids=["status", "amount"]
)


@no_escrow
def test_release_of_no_escrow_needs_allow_unreadable(
    service_and_run: ServiceAndRun, reading: bytes, tmp_path: Path
) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(reading)))
    rows = tmp_path / "rows.csv"
    rows.write_text("id,amount,currency\ntx_1,100,USD\n")

    refused = [
        run(*RELEASE, "--json"),
        run("tx", "update", "tx_1", "--data", '{"n":1}', "--yes", "--json"),
        run(*RELEASE, "--allow-unreadable", "--expect-amount", "100", "--json"),
        run("tx", "release", "tx_1", "tx_2", "--yes", "--json"),
        run("batch", "release", str(rows), "--yes", "--json"),
    ]

    assert ([result.code for result in refused], server.writes) == ([10, 10, 3, 15, 15], [])
    assert (refused[0].error["code"], refused[0].error["outcome"]) == ("unreadable_reply", "not_sent")
    assert "--allow-unreadable" in refused[0].error["hint"]
    run("batch", "drop", "b1", "--yes")
    assert (run(*RELEASE, "--allow-unreadable").code, len(server.writes)) == (0, 1)


@no_escrow
def test_release_is_not_confirmed_by_a_reading_of_no_escrow(
    profile: Profile, run: Run, journal: Journal, reading: bytes
) -> None:
    after = json_reply(reading.replace(b"held", b"released"))
    profile(STATUS_RELEASED, behave=writes_meet(hang_up, reads=in_turn(json_reply(HELD), after)))

    codes = [run(*RELEASE).code, run("journal", "resolve", "j1").code, run(*NOT_APPLIED).code]

    assert (codes, journal()) == ([12, 12, 10], [("release_transaction", "unknown")])


@no_escrow
def test_wait_doctor_and_register_take_no_other_reply_for_it(service_and_run: ServiceAndRun, reading: bytes) -> None:
    _, run = service_and_run(by_method(GET=json_reply(reading), POST=json_reply(HELD)))
    assert run(*CREATE).code == 0

    waited = run("tx", "wait", "tx_1", "--for", "held", "--deadline", "1s", "--json")
    checked = run("doctor", "--tx", "tx_1", "--json")
    listed = run("tx", "list", "--local", "--refresh", "--json")

    verdicts = {check["name"]: check["verdict"] for check in checked.json["checks"]}
    assert (waited.code, waited.out, waited.error["code"]) == (10, "", "unreadable_reply")
    assert (checked.code, verdicts["id"]) == (16, "failed")
    assert (listed.code, listed.error["code"]) == (15, "some_failed")


@without_id
def test_release_of_a_record_without_an_id_is_sent(service_and_run: ServiceAndRun, record: bytes) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=json_reply(record)))

    expecting = run(*RELEASE, "--expect-amount", "100", "--expect-currency", "USD")

    assert (expecting.code, server.writes) == (3, [])
    assert (run(*RELEASE).code, len(server.writes)) == (0, 1)


@no_escrow
def test_get_of_no_escrow_shows_it_and_ends_with_16(service_and_run: ServiceAndRun, reading: bytes) -> None:
    _, run = service_and_run(json_reply(reading))

    one, ids = run("tx", "get", "tx_1", "--json"), run("tx", "get", "tx_1", "-q")
    rows, lines = run("tx", "get", "tx_1", "tx_1"), run("tx", "get", "tx_1", "tx_1", "--json")

    assert (one.code, one.json, one.error["code"]) == (16, json.loads(reading), "check_failed")
    assert (ids.code, ids.out) == (16, "")
    assert (rows.code, len(rows.out.splitlines())) == (15, 2)
    shown = [json.loads(line) for line in lines.out.splitlines()]
    assert [(line["outcome"], line["error"]["body"]) for line in shown] == [("failed", json.loads(reading))] * 2


@without_id
def test_get_prints_no_id_that_the_reply_lacks(service_and_run: ServiceAndRun, record: bytes) -> None:
    _, run = service_and_run(json_reply(record))

    shown, status = run("tx", "get", "tx_1", "--json"), run("tx", "get", "tx_1", "-q", "--fields", "status,amount")
    lines = (("tx_1", "-q"), ("tx_1", "-q", "--fields", "id"), ("tx_1", "tx_2", "-q"))
    ids = [run("tx", "get", *line) for line in lines]

    assert (shown.code, shown.json, status.code) == (0, json.loads(record), 0)
    assert [(result.code, result.out) for result in ids] == [(16, ""), (16, ""), (15, "")]


def test_user_is_any_object(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(in_turn(json_reply(b'{"name":"Anna"}'), json_reply(b'["Anna"]')))

    results = [run("user", "get", one) for one in ("usr_1", "usr_2")]

    assert [(result.code, "Anna" in result.out) for result in results] == [(0, True), (16, True)]
