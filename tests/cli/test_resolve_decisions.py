"""`journal resolve --applied` and `--not-applied`: what an operator may decide, and what a read forbids."""

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, ServiceAndRun
from wire_server import Behave, Seen, by_method, hang_up

from cli.conftest import Journal, Profile, UnknownWrite, start_elsewhere
from cli.replies import CREATE, HELD, RELEASE, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet
from cli.unknown_writes import APPLIED, NOT_APPLIED, UUID, WHY, by_path, item, listing
from escrowctl.journal import journal as journal_module
from escrowctl.journal.model import DECIDED_APPLIED


def test_decision_applied_is_recorded_after_reading_the_id(unknown_write: UnknownWrite, journal: Journal) -> None:
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD.replace(b"tx_1", b"tx_88F2"))))

    result = run(*APPLIED, "--id", "tx_88F2", "--json")

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
    _, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD.replace(b"tx_1", b"tx_88F2"))))

    run(*APPLIED, "--id", "tx_88F2")

    last = run("journal", "show", "j1", "--json").json["history"][-1]
    assert last["detail"] == f"{DECIDED_APPLIED} (uid={os.geteuid()}: desk ticket 5512)"


@pytest.mark.parametrize("keys", [(), ("--idempotency-key", "order-1")], ids=["a new key", "the same key"])
def test_operator_decision_not_applied_allows_the_same_command(
    unknown_write: UnknownWrite, journal: Journal, keys: tuple[str, ...]
) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write((*CREATE, *keys), by_path(listed=listing(), one=json_reply(HELD), write=write))
    assert run(*CREATE, *keys).code == 12

    result = run(*NOT_APPLIED)

    assert (result.code, server.writes) == (0, [])
    assert journal() == [("create_transaction", "not_applied")]
    assert (run(*CREATE, *keys).code, len(server.writes)) == (0, 1)
    assert (server.writes[0].header("Idempotency-Key") == "order-1") == bool(keys)


def test_create_sent_again_after_a_wrong_decision_is_reported_as_done_twice(unknown_write: UnknownWrite) -> None:
    create = (*CREATE, "--reference", "R-1")
    write = in_turn(hang_up, json_reply(HELD.replace(b"tx_1", b"tx_2")))
    server, run = unknown_write(create, by_path(listed=listing(), one=json_reply(HELD), write=write))
    decided = [run(*NOT_APPLIED).code, run(*create).code]

    result = run(*APPLIED, "--id", "tx_1", "--json")

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
    line = (*APPLIED, "--id", "tx_2")

    result = run(*line, "--json")

    assert (result.code, result.out) == (code, "")
    assert journal() == [("create_transaction", "unknown")]
    assert run(*line, "--allow-unreadable").code == 0
    assert journal() == [("create_transaction", "done")]


def test_not_applied_is_refused_when_a_record_has_the_key(unknown_write: UnknownWrite, journal: Journal) -> None:
    listed = listing(item("tx_88F2", metadata={"key": UUID}))
    server, run = unknown_write(CREATE, by_path(listed=listed, one=json_reply(HELD)), new_uuid=lambda: UUID)

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, result.error["code"]) == (3, "expectation_failed")
    assert "tx_88F2" in result.error["message"]
    assert journal() == [("create_transaction", "unknown")]
    assert (run(*NOT_APPLIED, "--allow-unreadable").code, server.writes) == (0, [])
    assert journal() == [("create_transaction", "not_applied")]


def test_applied_is_refused_when_the_release_reads_held(profile: Profile, run: Run, journal: Journal) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(hang_up))
    run(*RELEASE)

    result = run(*APPLIED, "--json")

    assert (result.code, result.error["code"]) == (3, "expectation_failed")
    assert journal() == [("release_transaction", "unknown")]
    assert run(*APPLIED, "--allow-unreadable").code == 0
    again = run(*RELEASE, "--json")
    assert (again.code, again.error["code"], again.error["entry"]) == (7, "already_done", "j1")


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_not_applied_without_a_read_needs_allow_unreadable(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...]
) -> None:
    refused = json_reply(b"", "404 No")
    one = in_turn(json_reply(HELD), refused) if line == RELEASE else refused
    server, run = unknown_write(line, by_path(listed=refused, one=one))

    result = run(*NOT_APPLIED, "--json")

    assert (result.code, "--allow-unreadable" in result.error["hint"]) == (6, True)
    assert journal() == [(f"{line[1]}_transaction", "unknown")]
    assert (run(*NOT_APPLIED, "--allow-unreadable").code, server.writes) == (0, [])


def test_key_in_a_reason_or_id_is_refused(unknown_write: UnknownWrite, home: Path, journal: Journal) -> None:
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD)))

    told = run("journal", "resolve", "j1", "--not-applied", "--reason", f"oops {KEY}", "--json")
    named = run("journal", "resolve", "j1", "--applied", "--id", KEY, *WHY, "--json")

    assert (told.code, named.code, server.seen) == (2, 2, [])
    assert KEY not in told.out + told.err + named.out + named.err
    assert KEY.encode() not in (home / "state" / "journal.db").read_bytes()
    assert journal() == [("create_transaction", "unknown")]


def test_release_recorded_as_applied_on_a_proving_reading_is_verified(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(hang_up, reads=reads))
    assert run(*RELEASE).code == 12

    assert run(*APPLIED).code == 0
    again = run(*RELEASE, "--json")
    overturned = run(*NOT_APPLIED, "--allow-unreadable")

    assert (again.code, again.error["code"], again.error["hint"]) == (7, "already_done", None)
    assert (overturned.code, len(server.writes)) == (7, 1)


@pytest.mark.parametrize("options", [("--allow-unreadable",), ()], ids=["not read", "no proving status"])
def test_release_applied_without_proof_may_be_overturned(profile: Profile, run: Run, options: tuple[str, ...]) -> None:
    profile(behave=writes_meet(hang_up))
    assert run(*RELEASE).code == 12

    applied = run(*APPLIED, *options)
    asked, overturned = (run(*NOT_APPLIED, "--allow-unreadable", *words) for words in ((), ("--yes",)))

    assert (applied.code, asked.code, overturned.code) == (0, 3, 0)
    assert "found: recorded earlier: applied" in asked.err


def test_not_applied_is_confirmed_where_an_escrow_matches_and_can_be_put_right(
    unknown_write: UnknownWrite, journal: Journal
) -> None:
    server, run = unknown_write(CREATE, by_path(listed=listing(item("tx_88F2")), one=json_reply(HELD)))

    refused, confirmed = run(*NOT_APPLIED), run(*NOT_APPLIED, stdin="j1\n", terminal=True)
    after = journal()
    corrected = run(*APPLIED, "--id", "tx_1")

    assert (refused.code, confirmed.code, corrected.code, server.writes) == (3, 0, 0, [])
    assert "found: tx_88F2 matches: held 100 USD" in refused.err
    assert (after, journal()) == ([("create_transaction", "not_applied")], [("create_transaction", "done")])


def test_not_applied_is_refused_where_the_service_has_the_reference(profile: Profile, run: Run) -> None:
    listed = json_reply(b'[{"id":"tx_9","status":"held","amount":100,"currency":"USD","reference":"order-7"}]')
    profile('reference_field = "reference"', behave=by_method(GET=listed, POST=hang_up))
    run(*CREATE, "--reference", "order-7")

    result = run(*NOT_APPLIED, "--yes")

    assert (result.code, "tx_9 contains the reference of j1" in result.err) == (3, True)


def test_decision_overturns_a_release_that_no_reading_verified(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"")))
    assert run(*RELEASE).code == 16

    codes = [run(*NOT_APPLIED, *words).code for words in ((), ("--yes",))]

    # The service accepted it: that is not forgotten without a word.
    assert codes == [3, 0]
    assert (run(*RELEASE).code, len(server.writes)) == (16, 2)


def test_operator_confirms_a_release_that_no_reading_can(service_and_run: ServiceAndRun, journal: Journal) -> None:
    server, run = service_and_run(writes_meet(json_reply(b""), reads=in_turn(json_reply(HELD), json_reply(RELEASED))))
    assert run(*RELEASE).code == 0

    looked = run("journal", "resolve", "j1", "--json")
    confirmed = run(*APPLIED)

    assert (looked.code, confirmed.code, len(server.writes)) == (16, 0, 1)
    assert ("--applied" in looked.error["hint"], "STATUS_RELEASED" in looked.error["hint"]) == (True, True)
    assert journal() == [("release_transaction", "done")]
    assert run(*APPLIED).code == 7


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


def test_decision_does_not_overturn_what_another_process_verified_meanwhile(profile: Profile, run: Run) -> None:
    codes: list[int] = []

    def verify_elsewhere(seen: Seen, connection: socket.socket) -> None:
        codes.append(start_elsewhere("journal", "resolve", "j1").wait(20))
        json_reply(HELD)(seen, connection)

    # Two readings of the release, the decision's own, and that of the other process, which is answered first.
    reads = in_turn(json_reply(HELD), json_reply(HELD), verify_elsewhere, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 16

    result = run(*NOT_APPLIED, "--yes", "--json")

    assert (codes, result.code, result.error["code"]) == ([0], 7, "busy")
    assert (run(*RELEASE).code, len(server.writes)) == (7, 1)


def test_two_commands_do_not_record_one_id_for_two_creates(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = service_and_run(by_method(GET=json_reply(HELD), POST=hang_up))
    assert [run(*CREATE, "--reference", name).code for name in "AB"] == [12, 12]
    decide, codes, applied = journal_module.Journal.decide, list[int](), ("--applied", "--id", "tx_1", *WHY)

    def decide_second(*values: Any) -> Any:
        first.undo()
        codes.append(run("journal", "resolve", "j2", *applied).code)
        return decide(*values)

    with monkeypatch.context() as first:
        first.setattr(journal_module.Journal, "decide", decide_second)
        codes.append(run("journal", "resolve", "j1", *applied).code)

    assert codes == [0, 7]
