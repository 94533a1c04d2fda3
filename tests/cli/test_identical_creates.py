"""A create that was done a moment ago, and is typed again: asked about, refused or noted."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from conftest import NOW, Run
from wire_server import hang_up

from cli.conftest import Profile
from cli.replies import CREATE, HELD, holding, in_turn, json_reply
from escrowctl.writes.writer import Writer

LATER = NOW + timedelta(minutes=14)
SAID = "an identical create (100 USD) was done 14 min ago (j1, tx_1)"
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
    assert SAID in declined.err
    assert "--reference" in declined.err
    assert len(live("journal", "list", "--json").json) == 2


@pytest.mark.parametrize(
    ("words", "how"),
    [(("--json",), {"terminal": True}), ((), {}), (("--dry-run",), {})],
    ids=["--json", "a pipe", "rehearsed"],
)
def test_identical_create_without_an_answer_is_refused(
    words: tuple[str, ...], how: dict[str, object], live: Run
) -> None:
    result = live(*CREATE, *words, **how, now=lambda: LATER)

    assert (result.code, result.out) == (3, "")
    assert SAID in result.err
    assert ("--yes" in result.err, "--reference" in result.err) == (True, True)
    assert len(live("journal", "list", "--json").json) == 1


def test_create_that_adds_a_reference_is_asked_about_once(live: Run) -> None:
    """The first may be the same escrow, whose reference was forgotten."""
    declined = live(*CREATE, "--reference", "r-1", terminal=True, stdin="no\n", now=lambda: LATER)
    noted = live(*CREATE, "--reference", "r-1", now=lambda: LATER)
    other = live(*CREATE, "--reference", "r-2", "--allow-duplicate", "j1", terminal=True, now=lambda: LATER)

    assert (declined.code, SAID in declined.err) == (3, True)
    assert (noted.code, SAID in noted.err) == (0, True)
    assert (other.code, "identical" in other.err) == (0, False)


def test_unknown_create_is_reported_before_a_done_one_is_asked_about(profile: Profile, run: Run) -> None:
    profile('mode = "live"', behave=in_turn(json_reply(HELD), hang_up, hang_up))
    assert [run(*CREATE, *words).code for words in ((), ("--yes",))] == [0, 12]

    again = run(*CREATE, terminal=True, stdin="yes\n")

    assert (again.code, "type yes" in again.err) == (12, False)


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

    assert (result.code, SAID in result.err) == (0, True)


def test_question_is_asked_after_the_wait_for_an_identical_create(
    profile: Profile, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile('mode = "live"', behave=json_reply(HELD))
    real = Writer.hold_locks

    @contextmanager
    def exclusive(self: Writer, *given: Any, **named: Any) -> Iterator[bool]:
        # While this command waits for the lock, another one creates the same escrow.
        monkeypatch.setattr(Writer, "hold_locks", real)
        assert run(*CREATE, now=lambda: NOW).code == 0
        with real(self, *given, **named):
            yield True

    monkeypatch.setattr(Writer, "hold_locks", exclusive)
    result = run(*CREATE, terminal=True, stdin="no\n", now=lambda: LATER)

    assert (result.code, "an identical create" in result.err) == (3, True)
