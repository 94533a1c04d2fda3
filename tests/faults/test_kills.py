"""Kill -9 at random moments of creates and releases; and the proof that the harness would notice."""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.kills import Harness, ViolationError

SHORT, LONG = 14, 200


@contextlib.contextmanager
def harness(home: Path, *, variant: str | None = None) -> Iterator[Harness]:
    seed = int(os.environ.get("ESCROWCTL_TEST_SEED") or random.SystemRandom().randrange(2**32))
    played = Harness(home, seed, variant)
    try:
        yield played
    finally:
        played.close()
        print(f"ESCROWCTL_TEST_SEED={seed}: {played.tally}")


def play(home: Path, kills: int) -> None:
    with harness(home) as played:
        played.measure()
        while played.tally.kills < kills:
            played.play()
    # Fewer would say that the moments miss what they are meant for.
    assert played.tally.in_flight >= 0.3 * played.tally.kills, played.tally


def test_a_few_kills_leave_nothing_unrecorded_nothing_twice_and_nothing_untrue(tmp_path: Path) -> None:
    play(tmp_path, SHORT)


@pytest.mark.long
def test_two_hundred_kills_leave_nothing_unrecorded_nothing_twice_and_nothing_untrue(tmp_path: Path) -> None:
    play(tmp_path, LONG)


def play_until_noticed(played: Harness, *, moment: str, kind: str) -> None:
    for _ in range(8):
        played.play(moment=moment, kind=kind)


@pytest.mark.parametrize(
    ("variant", "moment", "kind"),
    [
        ("intent_after_sending", "request", "hang"),
        ("resends_when_broken_off", "any", "drop"),
        ("forgets_what_was_in_flight", "request", "hang"),
        ("speaks_too_soon", "request", "hang"),
    ],
)
def test_the_harness_notices_a_broken_variant(tmp_path: Path, variant: str, moment: str, kind: str) -> None:
    with harness(tmp_path, variant=variant) as played:
        played.seconds = 3.0
        with pytest.raises(ViolationError):
            play_until_noticed(played, moment=moment, kind=kind)
