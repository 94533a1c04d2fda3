"""After the PUT of a release: what its record shows, and what is recorded and reported."""

import json

import pytest
from batch.conftest import Clock
from conftest import Run, ServiceAndRun
from wire_server import Behave

from cli.conftest import Journal, Profile
from cli.replies import HELD, RELEASE, RELEASED, STATUS_RELEASED, in_turn, json_reply, writes_meet


@pytest.mark.parametrize("status", ["400 No", "409 No", "422 No"])
def test_refused_release_that_reads_as_released_is_done(
    profile: Profile, run: Run, journal: Journal, status: str
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", status), reads=reads))

    result = run(*RELEASE, "--json")

    assert (result.code, result.json["verified"], len(server.writes)) == (0, True, 1)
    assert (notes_in(result.err), result.json["http_status"]) == ({"released_despite_refusal"}, int(status[:3]))
    assert journal() == [("release_transaction", "done")]


@pytest.mark.parametrize(
    ("line", "headers"),
    [('idempotency = "header"', ("Retry-After: 3600",)), ('idempotency = "none"', ("Retry-After: 1",))],
    ids=["deduplicates", "asks to wait"],
)
def test_release_conflict_that_may_be_in_progress_stays_unknown(
    profile: Profile, run: Run, journal: Journal, line: str, headers: tuple[str, ...]
) -> None:
    conflict = json_reply(b"", "409 In Progress", *headers)
    reads = in_turn(json_reply(HELD), json_reply(HELD), json_reply(HELD), json_reply(RELEASED))
    server = profile(STATUS_RELEASED, line, behave=writes_meet(conflict, reads=reads))

    first, again = run(*RELEASE, "--json"), run(*RELEASE, "--json")

    assert (first.code, first.error["code"]) == (12, "outcome_unknown")
    assert (again.code, again.error["code"], len(server.writes)) == (12, "earlier_unknown", 1)
    assert [run("journal", "resolve", "j1", terminal=True).code for _ in range(2)] == [12, 0]
    assert (run(*RELEASE).code, len(server.writes)) == (7, 1)
    assert journal() == [("release_transaction", "done")]


@pytest.mark.parametrize(
    ("then", "code", "word", "state"),
    [
        (json_reply(HELD), 7, "conflict", "refused"),
        (json_reply(b'{"id":"tx_1","status":"moving"}'), 12, "outcome_unknown", "unknown"),
        (json_reply(b"", "500 Oh"), 12, "outcome_unknown", "unknown"),
        (json_reply(b'{"id":"tx_1"}'), 12, "outcome_unknown", "unknown"),
    ],
    ids=["the same", "another status", "unreadable", "no status"],
)
def test_release_conflict_is_refused_only_if_nothing_changed(
    profile: Profile, run: Run, journal: Journal, then: Behave, code: int, word: str, state: str
) -> None:
    reads = in_turn(json_reply(HELD), then)
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", "409 No"), reads=reads))

    result = run(*RELEASE, "--json", sleep=lambda _seconds: None)

    assert (result.code, result.error["code"], len(server.writes)) == (code, word, 1)
    assert journal() == [("release_transaction", state)]


@pytest.mark.parametrize("status", ["400 No", "403 No", "404 No", "422 No"])
def test_refusal_that_changed_the_record_is_unknown(profile: Profile, run: Run, journal: Journal, status: str) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"paid_out")))
    server = profile(behave=writes_meet(json_reply(b"", status), reads=reads))

    codes = [run(*RELEASE, *words).code for words in ((), (), ("--skip-released",))]

    assert (codes, len(server.writes)) == ([12, 12, 12], 1)
    assert journal() == [("release_transaction", "unknown")]


KEYED = (*RELEASE, "--idempotency-key", "K1", "--json")


def notes_in(err: str) -> set[str]:
    """Return the codes of the notes on stderr."""
    return {line["note"]["code"] for line in map(json.loads, err.splitlines()) if "note" in line}


@pytest.mark.parametrize(
    ("now", "code", "notes"),
    [
        *(("released", 0, set[str]()), ("held", 16, set[str]())),
        *((status, 0, {"not_yet_released"}) for status in ("pending", "PROCESSING", "in_progress")),
    ],
)
def test_release_and_its_repetition_report_what_the_record_shows(
    profile: Profile, run: Run, now: str, code: int, notes: set[str]
) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", now.encode())))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))

    first, again = run(*KEYED), run(*KEYED)

    assert (first.code, again.code, len(server.writes)) == (code, code, 1)
    assert (notes_in(first.err), notes_in(again.err)) == (notes, notes | ({"replayed"} if code == 0 else set()))
    if code == 0:
        assert (first.json["verified"], first.json["status_after"]) == (now == "released", now)


def test_skip_released_succeeds_while_the_release_is_in_progress(profile: Profile, run: Run) -> None:
    processing = json_reply(HELD.replace(b"held", b"processing"))
    reads = in_turn(json_reply(HELD), *[processing] * 4, json_reply(RELEASED))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    assert run(*RELEASE).code == 0

    again = run(*RELEASE, "--skip-released", "--json")
    late = run(*RELEASE, "--skip-released", "--wait", "--deadline", "1s", **Clock().injected)
    waited = run(*RELEASE, "--skip-released", "--wait", "--json", **Clock().injected)

    assert (again.code, again.json["verified"], late.code) == (0, False, 13)
    assert (waited.code, waited.json["verified"], len(server.writes)) == (0, True, 1)
    assert run("journal", "list", "--state", "unconfirmed", "--json").json == []


@pytest.mark.parametrize(
    ("then", "options", "codes"),
    [
        ((HELD, HELD, RELEASED), (), [16, 7, 0]),
        ((RELEASED, b"<html>"), (), [0, 7]),
        ((HELD.replace(b"held", b"processing"),) * 2 + (HELD.replace(b"held", b"failed"),), ("--wait",), [0, 7]),
    ],
    ids=["held", "unreadable", "failed while waiting"],
)
def test_skip_released_refuses_what_does_not_read_as_released(
    profile: Profile, run: Run, then: tuple[bytes, ...], options: tuple[str, ...], codes: list[int]
) -> None:
    reads = in_turn(*(json_reply(one) for one in (HELD, *then)))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=reads))
    first = run(*RELEASE).code

    again = [run(*RELEASE, "--skip-released", *options, **Clock().injected).code for _ in codes[1:]]

    assert ([first, *again], len(server.writes)) == (codes, 1)


def test_release_in_progress_elsewhere_is_not_sent(profile: Profile, run: Run) -> None:
    server = profile(STATUS_RELEASED, behave=json_reply(HELD.replace(b"held", b"processing")))

    refused, skipped = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (refused.code, skipped.code, skipped.json["verified"], server.writes) == (7, 0, False, [])
    # This word may as well mean held.
    profile(behave=writes_meet(json_reply(HELD), reads=json_reply(HELD.replace(b"held", b"pending"))))
    assert run(*RELEASE).code == 0


def test_release_needs_the_status_that_the_profile_goes_by(profile: Profile, run: Run) -> None:
    server = profile('reply.status = "/state"', behave=writes_meet(json_reply(HELD)))

    refused = run(*RELEASE, "--json")

    assert (refused.error["code"], refused.error["outcome"], server.writes) == ("unreadable_reply", "not_sent", [])
    assert (run(*RELEASE, "--allow-unreadable").code, len(server.writes)) == (0, 1)


@pytest.mark.parametrize("status", ["held", "failed", "settled_elsewhere"])
def test_release_that_its_record_lacks_ends_with_16(profile: Profile, run: Run, journal: Journal, status: str) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", status.encode())))
    server = profile(STATUS_RELEASED, behave=writes_meet(json_reply(b"", "202 Accepted"), reads=reads))

    result, again = run(*RELEASE, "--json"), run(*RELEASE, "--json")

    assert (result.code, result.out, result.error["code"], result.error["outcome"]) == (16, "", "not_released", "done")
    assert (result.error["status_before"], result.error["status_after"]) == ("held", status)
    # A status that means failure is none that means progress.
    assert ("config set status.pending" in result.error["hint"]) == (status == "settled_elsewhere")
    assert "status.released" not in result.error["hint"]
    assert (again.code, again.error["code"], len(server.writes)) == (7, "already_done", 1)
    assert journal() == [("release_transaction", "unconfirmed")]


def test_release_that_was_read_as_released_is_called_so_from_then_on(profile: Profile, run: Run) -> None:
    server = profile(behave=writes_meet(json_reply(b"{}"), reads=in_turn(json_reply(HELD), json_reply(RELEASED))))
    first = run(*RELEASE)
    assert run("config", "set", "status.released", "released").code == 0
    skipped = run(*RELEASE, "--skip-released", "--json")
    sent = len(server.writes)

    again = run(*RELEASE, "--json")

    assert (first.code, skipped.code, skipped.json["verified"]) == (0, 0, True)
    assert (again.code, len(server.writes)) == (7, sent)
    assert "does not report it" not in again.error["message"]
    assert "escrowctl already released tx_1" in again.error["message"]
    assert run("journal", "show", "j1", "--json").json["detail"] == "the service reported released"


@pytest.mark.parametrize("before", ["held", "failed"])
def test_release_whose_escrow_then_reads_failed_is_not_confirmed(before: str, service_and_run: ServiceAndRun) -> None:
    failed = json_reply(HELD.replace(b"held", b"failed"))
    reads = in_turn(json_reply(HELD.replace(b"held", before.encode())), failed)
    server, run = service_and_run(writes_meet(json_reply(b""), reads=reads))

    released, skipped = run(*RELEASE, "--json"), run(*RELEASE, "--skip-released", "--json")

    assert (released.code, released.out, released.error["code"]) == (16, "", "not_released")
    assert (skipped.code, len(server.writes)) == (7, 1)


def test_several_releases_count_those_that_are_not_confirmed(profile: Profile, run: Run) -> None:
    profile(STATUS_RELEASED, behave=writes_meet(json_reply(b""), reads=json_reply(b'{"status":"held"}')))

    result = run("tx", "release", "tx_1", "tx_2", "--yes", "--json")

    assert (result.code, result.error["code"]) == (15, "some_failed")
    assert "2 ids: 2 done (2 not confirmed), 0 refused, 0 unknown, 0 not sent" in result.error["message"]
