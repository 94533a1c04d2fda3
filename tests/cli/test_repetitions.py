"""A create that was done a moment ago, entries that must be named, and ids that are given or returned twice."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from batch.conftest import WriteRows, rows
from conftest import NOW, Run
from wire_server import Seen, hang_up, http_reply

from cli.conftest import Profile
from cli.replies import CREATE, HELD, RELEASE, RELEASED, holding, in_turn, json_reply, writes_meet
from escrowctl.journal.journal import Journal

__all__ = ["rows"]

LATER = NOW + timedelta(minutes=14)
TOO_LATE = NOW + timedelta(minutes=16)


@pytest.fixture
def live(profile: Profile, run: Run) -> Run:
    """A live service on which one create was done."""
    behave = in_turn(*(json_reply(HELD.replace(b"tx_1", b"tx_%d" % number)) for number in range(1, 9)))
    profile('mode = "live"', behave=behave)
    assert run(*CREATE, now=lambda: NOW).code == 0
    return run


def test_identical_create_on_a_live_service_is_asked_about(live: Run) -> None:
    declined = live(*CREATE, terminal=True, stdin="no\n", now=lambda: LATER)
    confirmed = live(*CREATE, terminal=True, stdin="yes\n", now=lambda: LATER)

    assert (declined.code, confirmed.code) == (3, 0)
    assert "an identical create (100 USD) was done 14 min ago (j1, tx_1)" in declined.err
    assert "--reference" in declined.err
    assert len(live("journal", "list", "--json").json) == 2


@pytest.mark.parametrize(
    ("words", "how"),
    [(("--json",), {"terminal": True}), ((), {}), (("--dry-run",), {})],
    ids=["--json", "a pipe", "rehearsed"],
)
def test_identical_create_that_cannot_be_asked_about_is_refused(
    words: tuple[str, ...], how: dict[str, object], live: Run
) -> None:
    result = live(*CREATE, *words, **how, now=lambda: LATER)

    assert (result.code, result.out) == (3, "")
    assert "an identical create (100 USD) was done 14 min ago (j1, tx_1)" in result.err
    assert ("--yes" in result.err, "--reference" in result.err) == (True, True)
    assert len(live("journal", "list", "--json").json) == 1


@pytest.mark.parametrize("words", [("--yes",), ("--dry-run",)], ids=["--yes", "rehearsed"])
def test_identical_create_that_may_be_sent_is_noted(words: tuple[str, ...], live: Run) -> None:
    result = live(*CREATE, *words, terminal=True, now=lambda: LATER)

    assert (result.code, "an identical create (100 USD) was done 14 min ago (j1, tx_1)" in result.err) == (0, True)


@pytest.mark.parametrize(
    "words", [("--idempotency-key", "k-1"), ("--allow-duplicate", "j1")], ids=lambda words: words[0]
)
def test_create_that_says_which_escrow_is_meant_is_not_asked_about(words: tuple[str, ...], live: Run) -> None:
    result = live(*CREATE, *words, terminal=True, now=lambda: LATER)

    assert (result.code, "identical" in result.err) == (0, False)


def test_create_that_adds_a_reference_is_asked_about_once(live: Run) -> None:
    """The first may be the same escrow, whose reference was forgotten."""
    said = "an identical create (100 USD) was done 14 min ago (j1, tx_1)"
    declined = live(*CREATE, "--reference", "r-1", terminal=True, stdin="no\n", now=lambda: LATER)
    noted = live(*CREATE, "--reference", "r-1", now=lambda: LATER)
    other = live(*CREATE, "--reference", "r-2", "--allow-duplicate", "j1", terminal=True, now=lambda: LATER)

    assert (declined.code, said in declined.err) == (3, True)
    assert (noted.code, said in noted.err) == (0, True)
    assert (other.code, "identical" in other.err) == (0, False)


def test_unknown_create_is_reported_before_a_done_one_is_asked_about(profile: Profile, run: Run) -> None:
    profile('mode = "live"', behave=in_turn(json_reply(HELD), hang_up, hang_up))
    assert [run(*CREATE, *words).code for words in ((), ("--yes",))] == [0, 12]

    again = run(*CREATE, terminal=True, stdin="yes\n")

    assert (again.code, "type yes" in again.err) == (12, False)


def test_key_of_another_reference_is_refused(profile: Profile, run: Run) -> None:
    """Its reference would be recorded nowhere, and a later create under it would be sent."""
    server = profile(behave=holding())
    keyed = (*CREATE, "--idempotency-key", "k-1")
    codes = [run(*keyed, *words).code for words in (("--reference", "r-1"), ("--reference", "r-1"), ())]
    other = run(*keyed, "--reference", "r-2", "--json")
    bare = (*CREATE, "--idempotency-key", "k-2")
    added = [run(*bare, *words).code for words in ((), ("--reference", "r-2"))]

    assert (codes, other.code, other.error["code"]) == ([0, 0, 0], 7, "key_reused")
    assert (added, len(server.writes)) == ([0, 7], 2)


def test_creates_with_two_references_are_two_escrows(profile: Profile, run: Run) -> None:
    profile('mode = "live"', behave=holding())
    results = [run(*CREATE, "--reference", f"r-{number}", terminal=True, now=lambda: NOW) for number in range(2)]

    assert [(result.code, "identical" in result.err) for result in results] == [(0, False), (0, False)]


def test_older_and_other_creates_are_not_asked_about(live: Run) -> None:
    late = live(*CREATE, terminal=True, now=lambda: TOO_LATE)
    other = live(*CREATE[:3], "100.00", *CREATE[4:], terminal=True, now=lambda: LATER)

    assert (late.code, other.code, "identical" in late.err) == (0, 3, False)
    # The same amount, however it is written.
    assert "identical" in other.err


def test_identical_create_on_a_test_service_is_noted_at_a_terminal(profile: Profile, run: Run) -> None:
    profile(behave=holding())
    assert run(*CREATE, now=lambda: NOW).code == 0

    result = run(*CREATE, terminal=True, now=lambda: LATER)

    assert (result.code, "an identical create (100 USD) was done 14 min ago (j1, tx_1)" in result.err) == (0, True)


def test_refusal_names_every_unknown_entry_that_must_be_allowed(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b"", "500 Oh No"))
    run(*CREATE)
    run(*CREATE, "--allow-duplicate", "j1")

    refused = run(*CREATE, "--json")
    again = run(*CREATE, "--allow-duplicate", "j2", "--json")
    words = "--allow-duplicate j1 --allow-duplicate j2"
    allowed = run(*CREATE, *words.split(), "--json")

    assert (words in refused.error["hint"], words in again.error["hint"]) == (True, True)
    assert (refused.error["code"], allowed.error["code"]) == ("earlier_unknown", "outcome_unknown")
    assert allowed.error["entry"] == "j3"


def test_release_that_was_read_as_released_is_called_so_from_then_on(profile: Profile, run: Run) -> None:
    reads = in_turn(json_reply(HELD), json_reply(RELEASED))
    server = profile(behave=writes_meet(json_reply(b"{}"), reads=reads))
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


def test_reading_of_a_user_warns_of_another_id_than_asked(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(b'{"id":"usr_2"}'))

    one, several = run("user", "get", "usr_1", "-q"), run("user", "get", "usr_1", "usr_2")

    assert (one.code, several.code) == (0, 0)
    assert [result.err.count("the service answered for usr_1 with the id usr_2") for result in (one, several)] == [1, 1]


def test_release_of_another_id_than_asked_invites_to_no_release(profile: Profile, run: Run) -> None:
    server = profile(behave=writes_meet(json_reply(b"{}"), reads=json_reply(HELD.replace(b"tx_1", b"tx_999"))))

    result = run(*RELEASE)

    assert (result.code, server.writes) == (10, [])
    assert "repeat the command with tx_999" not in result.err


def test_reading_takes_an_id_twice(profile: Profile, run: Run) -> None:
    profile(behave=json_reply(HELD))

    result = run("tx", "get", "tx_1", "tx_1", "--json")

    assert [json.loads(line)["id"] for line in result.out.splitlines()] == ["tx_1", "tx_1"]


def test_resending_warns_of_what_was_created_otherwise(profile: Profile, run: Run) -> None:
    wrong = HELD.replace(b'"USD"', b'"EUR"')
    profile(behave=in_turn(json_reply(b"", "500 Oh No"), json_reply(b'{"data":[]}'), json_reply(wrong)))
    run(*CREATE)

    result = run("journal", "resolve", "j1", "--resend", "--yes", "--reason", "ticket 17")

    assert (result.code, "its currency is EUR (USD was sent)" in result.err) == (16, True)


def test_many_other_creates_do_not_hide_an_identical_one(profile: Profile, run: Run, rows: WriteRows) -> None:
    numbers = count(1)

    def create(seen: Seen, connection: socket.socket) -> None:
        record = json.loads(seen.body) | {"id": f"tx_{next(numbers)}", "status": "held"}
        connection.sendall(http_reply("200 OK", json.dumps(record).encode()))

    profile('mode = "live"', behave=create)
    assert run(*CREATE, now=lambda: NOW).code == 0
    assert run("batch", "create", str(rows(205, first=2)), "--yes", now=lambda: LATER).code == 0

    result = run(*CREATE, terminal=True, stdin="no\n", now=lambda: LATER)

    assert (result.code, "(j1, tx_1)" in result.err) == (3, True)


def test_question_is_asked_after_the_wait_for_an_identical_create(
    profile: Profile, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile('mode = "live"', behave=json_reply(HELD))
    real = Journal.exclusive

    @contextmanager
    def exclusive(self: Journal, *given: Any, **named: Any) -> Iterator[bool]:
        # While this command waits for the lock, another one creates the same escrow.
        monkeypatch.setattr(Journal, "exclusive", real)
        assert run(*CREATE, now=lambda: NOW).code == 0
        with real(self, *given, **named):
            yield True

    monkeypatch.setattr(Journal, "exclusive", exclusive)
    result = run(*CREATE, terminal=True, stdin="no\n", now=lambda: LATER)

    assert (result.code, "an identical create" in result.err) == (3, True)


def test_note_of_an_identical_create_survives_quiet(live: Run) -> None:
    result = live(*CREATE, "-q", "--yes", now=lambda: LATER)

    assert (result.code, "an identical create (100 USD)" in result.err) == (0, True)
