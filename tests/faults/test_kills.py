"""Kill -9 at random moments of creates and releases; and the proof that the harness would notice."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.kills import Harness, HarnessError, Violation, ViolationError
from faults.seeds import draw_seed

pytestmark = pytest.mark.slow

SHORT, LONG = 12, 1000


@contextlib.contextmanager
def harness(home: Path, *, variant: str | None = None) -> Iterator[Harness]:
    killer = Harness(home, draw_seed(), variant)
    try:
        yield killer
    finally:
        killer.close()
        print(f"ESCROWCTL_TEST_SEED={killer.seed}: {killer.tally}")


@pytest.mark.parametrize("kills", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_random_kills_violate_no_promise(tmp_path: Path, kills: int) -> None:
    with harness(tmp_path) as killer:
        killer.measure()
        while killer.tally.kills < kills:
            killer.run_and_kill()
    # Fewer would say that the moments miss what they are meant for; of a dozen, chance alone decides how many.
    least = 0.3 * kills if kills == LONG else 1
    assert killer.tally.in_flight >= least, killer.tally


def notice(home: Path, variant: str, *, moment: str, kind: str) -> Violation | None:
    """Run a broken variant until the harness notices, and return what it noticed.

    Raises HarnessError where the variant does not run, or what it broke is never called.
    """
    with harness(home, variant=variant) as killer:
        killer.measure()
        killer.seconds = 3.0
        try:
            # Half of the rounds look at what the variant broke: 24 in a row miss it once in 16 million runs.
            for _ in range(24):
                killer.run_and_kill(moment=moment, kind=kind)
        except ViolationError as violation:
            if not killer.mark.exists():
                raise HarnessError(f"{variant} was never reached, and yet: {violation}") from violation
            return violation.kind
    return None


@pytest.mark.parametrize(
    ("variant", "moment", "kind", "noticed"),
    [
        ("intent_after_sending", "request", "hang", Violation.NO_INTENT),
        ("sends_again_after_a_reset", "any", "drop", Violation.SENT_TWICE),
        ("forgets_what_was_in_flight", "request", "hang", Violation.NOT_HELD_BACK),
        ("speaks_too_soon", "request", "hang", Violation.SAID_FALSELY),
        ("judges_by_exception", "any", "drop", Violation.SAID_FALSELY),
        ("shows_the_key", "any", "echo", Violation.SHOWED_THE_KEY),
    ],
)
@pytest.mark.usefixtures("time_limit")
def test_the_harness_notices_a_broken_variant(
    tmp_path: Path, variant: str, moment: str, kind: str, noticed: Violation
) -> None:
    assert notice(tmp_path, variant, moment=moment, kind=kind) is noticed


@pytest.mark.parametrize(
    ("variant", "why"),
    [("never_starts", "an undisturbed create ended with 0, and 0 arrived"), ("is_never_reached", "never reached")],
)
@pytest.mark.usefixtures("time_limit")
def test_harness_fails_with_a_variant_that_proves_nothing(tmp_path: Path, variant: str, why: str) -> None:
    with pytest.raises(HarnessError, match=why):
        notice(tmp_path, variant, moment="request", kind="hang")


def test_harness_passes_with_the_unbroken_program(tmp_path: Path) -> None:
    with harness(tmp_path) as killer:
        killer.measure()
        for moment, kind in (("request", "hang"), ("any", "drop"), ("request", "hang")):
            killer.run_and_kill(moment=moment, kind=kind)
