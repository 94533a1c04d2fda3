"""Reads that a write depends on: a cached reply does not count; a decision may overturn an unverified result."""

import json
import socket
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Seen, by_method, hang_up

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, in_turn, json_reply, writes_meet
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.journal import Journal as StoredJournal
from escrowctl.journal.model import Entry

RELEASED_IS_KNOWN = 'status.released = ["released"]'
STALE = json_reply(RELEASED, "200 OK", "Age: 40")
NOT_APPLIED = ("journal", "resolve", "j1", "--not-applied", "--reason", "desk")


@pytest.mark.parametrize("line", [("tx", "get", "tx_1"), ("tx", "list"), RELEASE])
def test_every_read_asks_caches_for_no_stored_answer(service_and_run: ServiceAndRun, line: tuple[str, ...]) -> None:
    server, run = service_and_run(
        writes_meet(json_reply(b"[]"), reads=json_reply(b"[]" if line[1] == "list" else HELD))
    )

    run(*line)

    reads = [seen for seen in server.seen if not seen.is_write]
    assert {seen.header("Cache-Control") for seen in reads} == {"no-cache"}
    assert {seen.header("Cache-Control") for seen in server.writes} <= {None}


def test_plain_read_shows_a_cached_answer(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(STALE)

    assert run("tx", "get", "tx_1").code == 0


@pytest.mark.parametrize(
    ("status", "code"), [(b"Released ", 0), (b"relea\xc5\xbfed", 16), (b"failed ", 16), (b"failed: no funds", 16)]
)
def test_status_after_a_release_is_compared_as_a_person_reads_it(
    profile: Profile, run: Run, status: bytes, code: int
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", status)))
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))

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
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=in_turn(json_reply(HELD), STALE)))

    result = run(*RELEASE, "--json")

    assert (result.code, result.error["code"], result.error["status_after"]) == (16, "not_released", None)


def test_unknown_release_is_not_settled_by_a_cached_reading(profile: Profile, run: Run, journal: Journal) -> None:
    profile(RELEASED_IS_KNOWN, behave=writes_meet(hang_up, reads=in_turn(json_reply(HELD), STALE)))
    assert run(*RELEASE).code == 12

    codes = [run("journal", "resolve", "j1").code, run(*NOT_APPLIED).code]

    assert codes == [12, 10]
    assert journal() == [("release_transaction", "unknown")]


# Accepted, but not shown by the record


@pytest.mark.parametrize("status", ["held", "failed", "settled_elsewhere"])
def test_release_whose_record_does_not_show_it_ends_with_16(
    profile: Profile, run: Run, journal: Journal, status: str
) -> None:
    after = HELD.replace(b"held", status.encode())
    reads = in_turn(json_reply(HELD), json_reply(after))
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b"", "202 Accepted"), reads=reads))

    result, again = run(*RELEASE, "--json"), run(*RELEASE, "--json")

    assert (result.code, result.out, result.error["code"], result.error["outcome"]) == (16, "", "not_released", "done")
    assert (result.error["status_before"], result.error["status_after"]) == ("held", status)
    # A status that means failure is none that means progress.
    assert ("config set status.pending" in result.error["hint"]) == (status == "settled_elsewhere")
    assert "status.released" not in result.error["hint"]
    assert (again.code, again.error["code"], len(server.writes)) == (7, "already_done", 1)
    assert journal() == [("release_transaction", "unconfirmed")]


@pytest.mark.parametrize("status", ["pending", "PROCESSING", "in_progress"])
def test_release_whose_status_is_pending_is_accepted(profile: Profile, run: Run, status: str) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", status.encode())))
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.json["verified"], result.json["status_after"]) == (0, False, status)
    assert json.loads(result.err)["note"]["code"] == "not_yet_released"


@pytest.mark.parametrize(
    ("lines", "after", "code"),
    [
        ((), b"held", "not_confirmed"),
        ((), b"moved", "not_confirmed"),
        ((RELEASED_IS_KNOWN,), b"pending", "not_yet_released"),
    ],
)
def test_each_unconfirmed_release_of_several_has_its_own_note(
    profile: Profile, run: Run, lines: tuple[str, ...], after: bytes, code: str
) -> None:
    held = json_reply(b'{"status":"held"}')
    reads = in_turn(*[held, json_reply(b'{"status":"%s"}' % after)] * 2)
    server = profile(*lines, behave=writes_meet(json_reply(b""), reads=reads))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    notes = [json.loads(line)["note"] for line in result.err.splitlines()]
    assert (result.code, len(server.writes), [note["code"] for note in notes]) == (0, 2, [code, code])
    assert ["tx_1" in notes[0]["message"], "tx_2" in notes[1]["message"]] == [True, True]


@pytest.mark.parametrize(("lines", "code"), [((), 0), ((RELEASED_IS_KNOWN,), 16)], ids=["not set", "set"])
def test_release_whose_record_has_no_status_leads_to_doctor(
    profile: Profile, run: Run, lines: tuple[str, ...], code: int
) -> None:
    profile(*lines, behave=writes_meet(json_reply(b""), reads=json_reply(b'{"id":"tx_1","stage":"held"}')))

    result = run(*RELEASE, "--allow-unreadable")

    assert (result.code, "found no status" in result.err, "doctor --tx tx_1" in result.err) == (code, True, True)


def test_several_releases_count_those_that_are_not_confirmed(profile: Profile, run: Run) -> None:
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=json_reply(b'{"status":"held"}')))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    assert (result.code, result.error["code"]) == (15, "some_failed")
    assert "2 ids: 0 done, 2 accepted but not confirmed, 0 failed, 0 unknown" in result.error["message"]


def test_resolve_reads_an_unconfirmed_release_again(profile: Profile, run: Run, journal: Journal) -> None:
    reads = in_turn(*[json_reply(HELD)] * 3, json_reply(RELEASED))
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    first, second = run("journal", "resolve", "j1", "--json"), run("journal", "resolve", "j1", "--json")

    assert (first.code, first.error["code"], second.code, len(server.writes)) == (16, "not_released", 0, 1)
    assert "status.released" not in first.error["hint"]
    assert "escrowctl already released tx_1" in run(*RELEASE).err
    assert journal() == [("release_transaction", "done")]


# Decisions


def test_decision_overturns_a_release_that_no_reading_verified(profile: Profile, run: Run) -> None:
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b"")))
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


def test_operator_does_not_confirm_a_release_that_reads_failed(service_and_run: ServiceAndRun) -> None:
    failed = json_reply(HELD.replace(b"held", b"failed"))
    _server, run = service_and_run(writes_meet(json_reply(b""), reads=in_turn(json_reply(HELD), failed)))
    assert run(*RELEASE).code == 16

    refused = run("journal", "resolve", "j1", "--applied", "--reason", "ticket 5512", "--json")

    assert (refused.code, refused.error["code"]) == (3, "expectation_failed")
    assert "the service reports tx_1 as failed" in refused.error["message"]


def test_operator_does_not_confirm_what_the_status_contradicts(profile: Profile, run: Run, journal: Journal) -> None:
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b"")))
    assert run(*RELEASE).code == 16

    assert run("journal", "resolve", "j1", "--applied", "--reason", "desk").code == 3
    assert journal() == [("release_transaction", "unconfirmed")]


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


def test_decision_does_not_overturn_a_verified_release(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 0

    result = run(*NOT_APPLIED, "--allow-unreadable", "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (7, "already_done", 1)


def test_decision_does_not_overturn_a_create_that_can_be_read(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD))
    run(*CREATE, "--reference", "order-1")

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, result.error["message"]) == (
        3,
        "--not-applied is refused: tx_1 exists (held 100 USD). Nothing was recorded.",
    )


def test_decision_overturns_a_create_and_frees_its_reference(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(HELD), reads=json_reply(b"", "404 Not Found")))
    line = (*CREATE, "--reference", "order-1")
    assert run(*line).code == 0

    codes = [run(*NOT_APPLIED).code]
    codes += [run(*NOT_APPLIED, "--allow-unreadable", *words).code for words in ((), ("--yes",))]
    codes.append(run(*line).code)

    # The service's reply speaks against it.
    assert (codes, len(server.writes)) == ([6, 3, 0, 0], 2)


def test_decision_overturns_an_earlier_decision(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(writes_meet(hang_up))
    run(*RELEASE)
    assert run("journal", "resolve", "j1", "--applied", "--reason", "desk").code == 0

    codes = [run(*NOT_APPLIED, *words).code for words in ((), ("--yes",))]

    # What an operator recorded is not forgotten without a word.
    assert codes == [3, 0]


def test_release_conflict_without_any_status_is_unknown(service_and_run: ServiceAndRun, journal: Journal) -> None:
    nameless = json_reply(b'{"id":"tx_1","amount":100,"currency":"USD"}')
    server, run = service_and_run(writes_meet(json_reply(b"", "409 Conflict"), reads=nameless))

    codes = [run(*RELEASE).code for _ in range(2)]

    assert (codes, len(server.writes)) == ([12, 12], 1)
    assert journal() == [("release_transaction", "unknown")]


def test_repeated_release_without_a_reading_before_suggests_no_status(profile: Profile, run: Run) -> None:
    profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b"")))
    keyed = (*RELEASE, "--idempotency-key", "k1", "--json")

    codes, hints = zip(*[(result.code, result.error["hint"]) for result in (run(*keyed), run(*keyed))], strict=True)

    assert codes == (16, 16)
    assert not any("status.pending" in hint for hint in hints)


def test_create_found_by_its_key_but_failed_ends_with_16(profile: Profile, run: Run) -> None:
    key = "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"
    listed = f'[{{"id":"tx_7","status":"failed","amount":100,"currency":"usd","key":"{key}"}}]'.encode()
    profile(behave=writes_meet(hang_up, reads=json_reply(listed)))
    assert run(*CREATE, new_uuid=lambda: key).code == 12

    result = run("journal", "resolve", "j1", "--json")

    assert (result.code, result.error["code"]) == (16, "check_failed")
    assert "the service created tx_7, but its status is failed. Do not repeat the create." in result.error["message"]


def test_second_create_with_the_id_of_the_first_ends_with_16(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(json_reply(HELD))
    keyed = (*CREATE, "--idempotency-key", "order-2")

    codes = [run(*CREATE, "--idempotency-key", "order-1").code, run(*keyed).code]
    again = run(*keyed, "--json")

    assert (codes, len(server.writes)) == ([0, 16], 2)
    assert (again.code, again.json["id"], again.error["code"]) == (16, "tx_1", "check_failed")
    assert "the service created tx_1, but j1 has the same id. Do not repeat the create." in again.error["message"]
    assert journal() == [("create_transaction", "done"), ("create_transaction", "unconfirmed")]
    # The first is what it was.
    assert run(*CREATE, "--idempotency-key", "order-1").code == 0


def test_failed_second_look_does_not_hide_the_first(
    service_and_run: ServiceAndRun, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = service_and_run(json_reply(HELD))
    assert run(*CREATE).code == 0
    find, looks = StoredJournal.find_created, [0]

    def fail_again(self: StoredJournal, ids: Collection[str]) -> list[Entry]:
        looks[0] += 1
        if looks[0] > 1:
            raise EscrowctlError(ErrorCode.JOURNAL_UNUSABLE, "the disk has an error.")
        return find(self, ids)

    monkeypatch.setattr(StoredJournal, "find_created", fail_again)

    assert run(*CREATE, "--yes").code == 16
    assert journal()[-1] == ("create_transaction", "unconfirmed")


def test_later_of_two_creates_with_one_id_says_so(
    service_and_run: ServiceAndRun, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = service_and_run(json_reply(HELD))
    assert run(*CREATE).code == 0
    find, found = StoredJournal.find_created, iter([()])

    # The other process records it between this one's look and its own record.
    monkeypatch.setattr(StoredJournal, "find_created", lambda self, ids: next(found, find(self, ids)))

    assert run(*CREATE, "--yes").code == 16
    assert journal()[-1] == ("create_transaction", "unconfirmed")


def test_decision_does_not_overturn_what_another_process_verified_meanwhile(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def verify_elsewhere(seen: Seen, connection: socket.socket) -> None:
        codes.append(
            subprocess.run([sys.executable, "-m", "escrowctl", "journal", "resolve", "j1"], check=False).returncode
        )
        json_reply(HELD)(seen, connection)

    # Two readings of the release, the decision's own, and that of the other process, which is answered first.
    reads = in_turn(json_reply(HELD), json_reply(HELD), verify_elsewhere, json_reply(RELEASED))
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    result = run(*NOT_APPLIED, "--yes", "--json")

    assert (codes, result.code, result.error["code"]) == ([0], 7, "busy")
    assert (run(*RELEASE).code, len(server.writes)) == (7, 1)


def test_release_verified_by_another_process_during_its_reading_is_done(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def verify_elsewhere(seen: Seen, connection: socket.socket) -> None:
        codes.append(
            subprocess.run([sys.executable, "-m", "escrowctl", "journal", "resolve", "j1"], check=False).returncode
        )
        json_reply(RELEASED)(seen, connection)

    reads = in_turn(json_reply(HELD), verify_elsewhere, json_reply(RELEASED))
    server = profile(RELEASED_IS_KNOWN, behave=writes_meet(json_reply(b""), reads=reads))

    result = run(*RELEASE, "--json")

    assert (codes, result.code, len(server.writes)) == ([0], 0, 1), result.err
    assert result.json["verified"] is True


# What is not the escrow

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
    profile(RELEASED_IS_KNOWN, behave=writes_meet(hang_up, reads=in_turn(json_reply(HELD), after)))

    codes = [run(*RELEASE).code, run("journal", "resolve", "j1").code, run(*NOT_APPLIED).code]

    assert (codes, journal()) == ([12, 12, 10], [("release_transaction", "unknown")])


@no_escrow
def test_wait_doctor_and_register_take_no_other_reply_for_the_escrow(
    service_and_run: ServiceAndRun, reading: bytes
) -> None:
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
