"""`--already-sent`: record a write that a lost journal may have sent. Nothing is sent; `journal resolve` settles it."""

from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun

from cli.conftest import Journal, Profile
from cli.replies import CREATE, HELD, RELEASE, create, in_turn, json_reply, writes_meet
from cli.test_successor import export, replaced
from cli.unknown_writes import by_path, item, listing

LOST = ("--already-sent", "--reason", "lost in the failover")
JOB = (*CREATE, "--reference", "order-1", "--idempotency-key", "order-1")
OLD = "2020-01-02T03:04:05Z"


def test_recorded_create_is_unknown_and_then_the_result_of_the_jobs_line(service_and_run: ServiceAndRun) -> None:
    record = HELD[:-1] + f',"created_at":"{OLD}"'.encode() + b"}"
    server, run = service_and_run(by_path(listed=listing(item("tx_1", created_at=OLD)), one=json_reply(record)))

    recorded = run(*JOB, *LOST, "--json")

    assert (recorded.code, recorded.error["outcome"], recorded.error["sent_at"]) == (12, "unknown", None)
    assert "j1" in recorded.error["message"]
    assert [run(*JOB, *LOST).code, run(*JOB).code, run(*CREATE).code, server.seen] == [12, 12, 12, []]
    searched = run("journal", "resolve", "j1", "--json")
    assert (searched.code, "tx_1" in searched.error["hint"]) == (12, True)
    assert run("journal", "resolve", "j1", "--applied", "--id", "tx_1", "--reason", "seen").code == 0
    repeated, shown = run(*JOB, "-q"), run("journal", "show", "j1", "--json").json
    assert (repeated.code, repeated.out.split(), server.writes) == (0, ["tx_1"], [])
    assert (shown["state"], shown["sent_at"], shown["reason"]) == ("done", None, LOST[-1])
    assert [(one["id"], one["created"]) for one in run("tx", "list", "--local", "--json").json] == [("tx_1", None)]


def test_recorded_attempt_after_a_refused_one_shows_no_time(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(writes_meet(in_turn(json_reply(b"{}", "401 Unauthorized"), json_reply(HELD))))
    assert run(*JOB).code == 4

    recorded = run(*JOB, *LOST, "--json")

    assert (recorded.code, recorded.error["sent_at"]) == (12, None)
    assert run("journal", "resolve", "j1", "--resend", "--reason", "lost", "--yes", "--allow-unreadable").code == 0
    assert run("journal", "show", "j1", "--json").json["sent_at"] is not None


def test_recorded_release_is_not_sent_until_it_is_recorded_as_not_applied(
    service_and_run: ServiceAndRun, journal: Journal
) -> None:
    server, run = service_and_run(writes_meet(json_reply(HELD)))

    codes = [run("tx", "release", "tx_1", "tx_2", *LOST).code, run(*RELEASE).code]

    assert (codes, server.seen, len(journal())) == ([12, 12], [], 2)
    # No create is known that made it: `help journal` looks for lost ones so.
    assert run("journal", "list", "--operation", "create", "--limit", "10000", "--fields", "id").out == ""
    assert run("journal", "resolve", "j1", "--not-applied", "--reason", "support").code == 0
    assert (run(*RELEASE).code, len(server.writes), journal()[0][1]) == (0, 1, "not_applied")


def test_recorded_create_that_the_journal_has_keeps_its_outcome(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(HELD)))
    assert run(*JOB).code == 0

    known, other = run(*JOB, *LOST, "-q"), run(*JOB[:-2], *LOST, "--json")

    assert (known.code, known.out.split(), other.error["code"], len(server.writes)) == (
        0,
        ["tx_1"],
        "reference_reused",
        1,
    )


def test_recording_is_one_commit_that_nothing_can_interrupt(
    service_and_run: ServiceAndRun, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from escrowctl.journal.journal import Journal as OpenJournal

    _, run = service_and_run(json_reply(HELD))
    monkeypatch.setattr(OpenJournal, "settle", None)

    assert (run(*JOB, *LOST).code, journal()) == (12, [("create_transaction", "unknown")])


def test_recording_opens_no_new_journal_and_no_cap_stops_it(profile: Profile, run: Run, tmp_path: Path) -> None:
    server = profile('mode = "live"', "caps.USD = 100")
    assert run(*CREATE).code == 0
    assert replaced(run, export(run, tmp_path / "e.jsonl")).code == 0

    recorded, other = run(*CREATE, *LOST), run(*create("1"), "--json")
    assert len(run("journal", "list", "--unknown", "--json").json) == 1
    # A record that is resolved stays one in the next journal.
    assert run("journal", "resolve", "j2", "--not-applied", "--reason", "no", "--allow-unreadable").code == 0
    assert replaced(run, export(run, tmp_path / "f.jsonl")).code == 0
    assert [one["sent_at"] is None for one in run("journal", "list", "--json").json] == [True, False]

    assert (recorded.code, other.error["code"], len(server.writes)) == (12, "confirmation_needed", 1)


def test_recorded_release_counts_for_caps_with_the_expected_amount(profile: Profile, run: Run) -> None:
    profile('mode = "live"', "caps.USD = 150", 'idempotency = "header"')
    expected = ("--expect-amount", "60", "--expect-currency", "USD")

    assert run(*RELEASE, *LOST).code == 2
    recorded = run("tx", "release", "-", *LOST, *expected, stdin="tx_2\n")

    assert (recorded.code, "deduplicates by it" in recorded.err) == (12, False)
    assert run("journal", "list", "--json").json[0]["amount"] == 60
    assert "60 USD" in run(*RELEASE, "--json").error["message"]
    assert run("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", "--reason", "support").code == 0
    assert run(*RELEASE).code == 0


def test_recording_does_not_open_an_empty_journal_for_jobs(profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')

    codes = [run(*CREATE, *LOST).code, run(*create("1"), environ={"CI": "1"}).code, run(*create("1")).code]

    assert (codes, len(server.writes)) == ([12, 17, 0], 1)
    assert run(*create("2"), environ={"CI": "1"}).code == 0


def test_recording_needs_a_reason_and_has_no_dry_run(service_and_run: ServiceAndRun, journal: Journal) -> None:
    _, run = service_and_run(json_reply(HELD))

    codes = [run(*JOB, LOST[0]).code, run(*JOB, *LOST, "--dry-run").code, run(*RELEASE, *LOST, "--dry-run").code]

    assert (codes, journal()) == ([2, 2, 2], [])


def test_lost_creates_of_one_amount_are_all_recorded_and_one_escrow_matches_each(
    service_and_run: ServiceAndRun,
) -> None:
    _, run = service_and_run(by_path(listed=listing(item("tx_1")), one=json_reply(HELD)))
    decision = ("--reason", "support")

    recorded = [run(*line, *LOST, "--json").error["code"] for line in (CREATE, JOB)]

    assert recorded == ["outcome_unknown"] * 2
    # The wrong entry gets the id: that must not hide the escrow from the right one.
    assert run("journal", "resolve", "j1", "--applied", "--id", "tx_1", *decision).code == 0
    found, denied = run("journal", "resolve", "j2"), run("journal", "resolve", "j2", "--not-applied", *decision)
    assert ("tx_1" in found.err, denied.code) == (True, 3)


def test_mistaken_record_does_not_use_up_its_key(service_and_run: ServiceAndRun) -> None:
    server, run = service_and_run(writes_meet(json_reply(HELD)))
    assert run(*create("200"), *JOB[len(CREATE) :], *LOST).code == 12
    assert run("journal", "resolve", "j1", "--not-applied", "--allow-unreadable", "--reason", "typo").code == 0

    assert (run(*JOB).code, len(server.writes)) == (0, 1)
