"""How fast rows go out, on a simulated clock, against services that limit in different ways."""

import random
from collections import deque
from collections.abc import Callable

import pytest
from faults.seeds import draw_seed

from escrowctl.batch.pace import MAX_SLOWDOWNS_IN_A_ROW, Pace

LATENCY, STEP = 0.005, 0.001
Take = Callable[[float], bool]


def bucket(rate: float, size: float) -> Take:
    """A token bucket: `size` at once, refilled at `rate`."""
    state = {"tokens": size, "at": 0.0}

    def take(now: float) -> bool:
        state["tokens"] = min(size, state["tokens"] + (now - state["at"]) * rate)
        state["at"] = now
        if state["tokens"] < 1:
            return False
        state["tokens"] -= 1
        return True

    return take


def window(rate: int) -> Take:
    """So many in each second of the clock."""
    counts: dict[int, int] = {}

    def take(now: float) -> bool:
        counts[int(now)] = counts.get(int(now), 0) + 1
        return counts[int(now)] <= rate

    return take


def sliding(rate: int) -> Take:
    """So many in any second."""
    taken: deque[float] = deque()

    def take(now: float) -> bool:
        while taken and taken[0] <= now - 1:
            taken.popleft()
        if len(taken) >= rate:
            return False
        taken.append(now)
        return True

    return take


def seconds_for(count: int, take: Take, *, asked: float | None, workers: int = 8, most: float | None = None) -> float:
    """Return how long `count` rows take that are sent again where they are refused."""
    pace, now, left = Pace(most, 0.0), 0.0, count
    flying: list[tuple[float, float]] = []
    while left:
        for one in [one for one in flying if one[0] <= now]:
            flying.remove(one)
            if take(now):
                left -= 1
                pace.note_accepted(now)
            else:
                pace.note_throttled(now, sent_at=one[1], requested_wait=asked)
        while len(flying) < min(workers, left) and not pace.delay(now):
            pace.note_sent(now)
            flying.append((now + LATENCY, now))
        now += STEP
        assert now < 1000
        assert not pace.must_give_up
    return now


@pytest.mark.parametrize("asked", [None, 1.0], ids=["429 alone", "Retry-After: 1"])
@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda: bucket(100, 100), 1.15),
        (lambda: window(100), 1.15),
        (lambda: sliding(100), 1.15),
        # Its first refusal comes after 10 rows: what it takes in the long run has to be found.
        (lambda: bucket(100, 10), 2.3),
    ],
    ids=["bucket", "window", "sliding window", "small bucket"],
)
def test_throttled_run_takes_little_more_than_it_must(
    make: Callable[[], Take], most: float, asked: float | None
) -> None:
    assert seconds_for(1500, make(), asked=asked) <= 15 * most


def test_rate_of_the_operator_is_kept() -> None:
    assert 9.8 <= seconds_for(200, lambda _now: True, asked=None, most=20) <= 10.2


def test_service_that_takes_more_again_gets_more() -> None:
    slow = bucket(50, 5)
    spent = seconds_for(6000, lambda now: slow(now) if now < 10 else True, asked=None)

    # At 50 a second for ever it would be 120 s.
    assert spent < 75


def test_service_that_takes_nothing_is_given_up() -> None:
    pace, now = Pace(None, 0.0), 0.0
    for _ in range(MAX_SLOWDOWNS_IN_A_ROW):
        assert not pace.must_give_up
        now += pace.delay(now) + 0.01
        pace.note_throttled(now, sent_at=now - 0.005, requested_wait=None)

    assert (pace.must_give_up, now < 60) == (True, True)


def test_wait_of_more_than_a_minute_is_not_waited_for() -> None:
    pace = Pace(None, 0.0)
    pace.note_throttled(1.0, sent_at=0.5, requested_wait=3600)

    assert (pace.must_give_up, pace.too_long_wait) == (True, 3600)


def test_rows_that_went_out_before_slow_down_once() -> None:
    pace = Pace(None, 0.0)
    for moment in range(100):
        pace.note_accepted(moment / 100)
    for _ in range(8):
        pace.note_throttled(1.0, sent_at=0.99, requested_wait=None)

    assert 90 <= (pace.rate(1.5) or 0) <= 101


def test_no_sequence_lets_more_out_than_the_rate() -> None:
    chance, pace, now, sent = random.Random(draw_seed()), Pace(50, 0.0), 0.0, 0
    for _ in range(2000):
        now += chance.uniform(0, 0.05)
        for _ in range(chance.randrange(9)):
            if not pace.delay(now):
                pace.note_sent(now)
                sent += 1

    assert sent <= 50 * now + 50 * 0.05 + 1
