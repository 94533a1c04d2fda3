"""`journal init`, and the journal that a live write in CI needs."""

from pathlib import Path

import pytest
from conftest import Run

from cli.conftest import Profile
from cli.replies import CREATE, RELEASE
from escrowctl.journal import opening


def test_journal_is_created_once_and_its_id_printed(run: Run, home: Path) -> None:
    first, again = run("journal", "init", "--json"), run("journal", "init", "--json")

    assert (first.json["created"], again.json["created"]) == (True, False)
    assert first.json["journal_id"] == again.json["journal_id"] == run("journal", "init", "-q").out.strip()
    assert first.json["path"] == opening.find_place(home / "state").location


def test_live_write_in_ci_needs_a_journal_that_knows_an_earlier_one(profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')
    rows = "amount,currency,reference\n5,USD,A-1\n"
    lines = [
        (CREATE, ""),
        (RELEASE, ""),
        ((*CREATE, "--dry-run"), ""),
        (("batch", "create", "-", "--yes"), rows),
        (("journal", "resolve", "j1"), ""),
    ]

    refused = [run(*line, "--json", stdin=stdin, environ={"CI": "true"}) for line, stdin in lines]

    assert [result.code for result in refused] == [17, 17, 17, 17, 6]
    assert {result.error["code"] for result in refused[:4]} == {"journal_unusable"}
    assert server.seen == []
    assert (run(*CREATE).code, run(*CREATE, "--yes", environ={"CI": "true"}).code) == (0, 0)


def test_refusal_in_ci_creates_nothing(profile: Profile, run: Run, home: Path) -> None:
    profile('mode = "live"')

    for environ in ({"CI": "true"}, {"CI": "true", "ESCROWCTL_JOURNAL_ID": "another"}):
        assert run(*CREATE, environ=environ).code == 17
    assert not (home / "state").exists()


@pytest.mark.parametrize("line", [CREATE, (*CREATE, "--dry-run")], ids=["create", "dry run"])
def test_empty_journal_id_allows_no_live_write(line: tuple[str, ...], profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')
    assert run(*CREATE).code == 0

    refused = run(*line, "--yes", environ={"ESCROWCTL_JOURNAL_ID": ""})

    assert (refused.code, "ESCROWCTL_JOURNAL_ID is empty" in refused.err, len(server.writes)) == (17, True, 1)
