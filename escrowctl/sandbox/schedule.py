"""When a delivery is attempted again: the schedule of Standard Webhooks 1.0.0, and what a reply asks for."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24)))
)
"""Before each attempt, after the failure of the one before. After the last failure the delivery is dead."""

JITTER = 0.1
"""A delay is longer by up to this part of it, so that what failed together does not come back together."""

DISABLED_AFTER = timedelta(days=5)
"""An endpoint that takes nothing for so long is disabled."""

LONGEST_RETRY_AFTER = timedelta(days=1)
LONGEST_PAUSE = timedelta(minutes=1)
"""For all deliveries to an endpoint that is overloaded; a Retry-After may ask for more."""

_GONE = 410
_OVERLOADED = frozenset({429, 502, 504})
_SUCCESS = range(200, 300)


class Attempt(NamedTuple):
    """What came of one attempt: the status of the reply, or a sentence about why there is none.

    `retry_after` is how long the receiver asked to be left alone.
    """

    milliseconds: int
    status: int | None = None
    error: str | None = None
    timed_out: bool = False
    retry_after: timedelta = timedelta(0)

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it: a 2xx, and nothing else."""
        return self.status in _SUCCESS

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more events (410)."""
        return self.status == _GONE

    @property
    def overloaded(self) -> bool:
        """Whether the receiver should get less: 429, 502, 504, no reply in time, or a Retry-After."""
        return self.status in _OVERLOADED or self.timed_out or self.retry_after > timedelta(0)


def delay_after(failures: int, attempt: Attempt, *, chance: float) -> timedelta | None:
    """Return how long to wait after this many failures, `attempt` the last; None: that was the last attempt.

    `chance` is from 0 to 1.
    """
    if failures >= len(DELAYS):
        return None
    return max(DELAYS[failures] * (1 + JITTER * chance), attempt.retry_after)


def pause_after(delay: timedelta, attempt: Attempt) -> timedelta:
    """Return how long an overloaded receiver gets nothing."""
    return max(min(delay, LONGEST_PAUSE), attempt.retry_after)


def read_retry_after(value: str | None, *, now: datetime) -> timedelta:
    """Return what a Retry-After asks for (RFC 9110 section 10.2.3: seconds or a date), at most a day.

    Zero for none, and for one that cannot be read.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), LONGEST_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few receivers send one

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return timedelta(0)
    return min(max(moment.replace(tzinfo=moment.tzinfo or UTC) - now, timedelta(0)), LONGEST_RETRY_AFTER)
