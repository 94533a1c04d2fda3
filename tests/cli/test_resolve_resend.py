"""`journal resolve --resend`: confirmed, sent once with the same key, and only while the record allows it."""

from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, hang_up

from cli.conftest import Journal, Profile, UnknownWrite
from cli.replies import CREATE, HELD, RELEASE, RELEASED, STATUS_RELEASED, WEBHOOK, in_turn, json_reply, writes_meet
from cli.unknown_writes import NOT_APPLIED, RESEND, UUID, WHY, by_path, listing


@pytest.mark.parametrize("line", [CREATE, RELEASE], ids=["create", "release"])
def test_resend_is_confirmed_and_sent_once_with_the_same_key(
    unknown_write: UnknownWrite, journal: Journal, line: tuple[str, ...]
) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write(
        line, by_path(listed=listing(), one=json_reply(HELD), write=write), new_uuid=lambda: UUID
    )

    result = run("journal", "resolve", "j1", "--resend", *WHY, stdin="j1\n", terminal=True)

    assert (result.code, len(server.writes)) == (0, 1)
    assert server.writes[0].header("Idempotency-Key") == UUID
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

    result = run(*RESEND)

    assert (result.code, journal(), len(server.writes)) == (code, [("release_transaction", state)], 2), result.err
    assert ("not confirmed" in result.out + result.err) == (state == "unconfirmed" and code == 0)


def test_resend_that_is_not_confirmed_needs_yes(unknown_write: UnknownWrite, journal: Journal) -> None:
    write = in_turn(hang_up, json_reply(HELD))
    server, run = unknown_write(CREATE, by_path(listed=listing(), one=json_reply(HELD), write=write))
    resend = ("journal", "resolve", "j1", "--resend", *WHY)

    refused = [run(*resend), run(*resend, stdin="no\n", terminal=True), run(*resend, terminal=True)]

    assert ([result.code for result in refused], server.writes) == ([3, 3, 3], [])
    assert journal() == [("create_transaction", "unknown")]
    assert (run(*resend, "--yes").code, len(server.writes)) == (0, 1)


@pytest.mark.parametrize(
    "second", [json_reply(b"", "400 No"), json_reply(b"", "401 No"), json_reply(b"", "409 No"), hang_up]
)
def test_resend_that_is_not_done_settles_nothing(unknown_write: UnknownWrite, journal: Journal, second: Behave) -> None:
    """The first may have been applied, with any result of the second."""
    write, keyed = in_turn(hang_up, second, json_reply(HELD)), (*CREATE, "--idempotency-key", "order-1")
    server, run = unknown_write(keyed, by_path(listed=listing(), one=json_reply(HELD), write=write))

    assert [run(*RESEND).code, run(*keyed).code] == [12, 12]
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

    result = run(*RESEND, "--json")

    assert (result.code, server.writes) == (code, [])
    assert journal() == [("release_transaction", "unknown")]
    assert (run(*RESEND, "--allow-unreadable").code, len(server.writes)) == (0, 1)


def test_release_that_may_be_in_progress_is_not_resent_unasked(unknown_write: UnknownWrite, journal: Journal) -> None:
    reads = in_turn(json_reply(HELD), json_reply(HELD.replace(b"held", b"processing")))
    server, run = unknown_write(RELEASE, writes_meet(in_turn(hang_up, json_reply(b"")), reads=reads))

    decided = run(*NOT_APPLIED, "--json")
    resent = run(*RESEND, "--json")

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

    assert run(*RESEND).code == 0
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
    server, run = unknown_write(WEBHOOK, hang_up)

    result = run(*RESEND, "--json")

    assert (result.code, server.writes) == (2, [])
    assert "--allow-duplicate j1" in result.error["hint"]


@pytest.mark.parametrize("word", [b"released", b"RELEASED"])
def test_release_that_reads_released_is_not_resent_unasked(word: bytes, service_and_run: ServiceAndRun) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED.replace(b"released", word)))
    server, run = service_and_run(writes_meet(hang_up, reads=reads))
    assert run(*RELEASE).code == 12

    resent = run(*RESEND)
    codes = [run(*NOT_APPLIED, *words).code for words in ((), ("--yes",))]

    assert (resent.code, codes, len(server.writes)) == (3, [3, 0], 1)
