"""The rate at which rows are sent: limited by the operator, and by the rate that the service accepts.

A 429 means that all senders together were too fast, so none sends until the requested wait is over. Then they send
at the rate at which the service accepted rows in the second before the 429. The rate grows slowly at first, then
faster, as in TCP (RFC 9438 section 4.1). Each further 429 lowers the rate, at most by half.
"""

from collections import deque

from escrowctl.client.retry import MAX_RETRY_AFTER_SECONDS

MAX_SLOWDOWNS_IN_A_ROW = 6
"""After so many slow-downs in a row, with no row accepted in between, no more rows are tried."""

_MEASURED_SECONDS = 1.0
_FIRST_RATE_FACTOR = 0.97
_STEADY_DOUBLING, _BURST_DOUBLING = 60.0, 12.0
"""Seconds in which the limit doubles, after it was measured over a steady second, or just after a burst."""
_MAX_RATE_FACTOR = 20.0
_ADDED_SHARE, _MAX_ADDED = 10.0, 2.0
_BURST_SECONDS = 0.02
_FIRST_PAUSE, _MAX_PAUSE = 0.25, 5.0


class Pace:
    """Computes how many rows may be sent now. Times are seconds of one monotonic clock; rates are rows a second."""

    def __init__(self, max_rate: float | None, now: float) -> None:
        self._max_rate = max_rate
        self._due = now
        self._paused_until = now
        self._slowed_at: float | None = None
        self._limit = 0.0
        self._doubling = _STEADY_DOUBLING
        self._accepted_at: deque[float] = deque()
        self._slowdowns_in_a_row = 0
        self.too_long_wait: float | None = None
        """The wait in seconds that the service asked for, if it is longer than escrowctl waits; else None."""

    @property
    def must_give_up(self) -> bool:
        """Whether the service asked for too long a wait, or throttled the run too often in a row."""
        return self.too_long_wait is not None or self._slowdowns_in_a_row >= MAX_SLOWDOWNS_IN_A_ROW

    def pause(self, now: float) -> float:
        """Return the seconds that nothing may be sent, because the service throttled a row; 0: no pause."""
        return max(0.0, self._paused_until - now)

    def pause_until(self, moment: float) -> None:
        """Send nothing before `moment`. Rows that could not be sent until then are not sent in a burst afterwards."""
        self._paused_until = max(self._paused_until, moment)
        self._due = max(self._due, self._paused_until)

    def rate(self, now: float) -> float | None:
        """Return how many rows a second may be sent; None: any number."""
        if self._slowed_at is None:
            return self._max_rate
        since = max(0.0, now - self._paused_until)
        growth = _FIRST_RATE_FACTOR + (since / self._doubling) ** 3
        if growth > _MAX_RATE_FACTOR:
            return self._max_rate
        # The second term grows a low rate faster than the first term does.
        limit = self._limit * growth + since * min(_MAX_ADDED, _ADDED_SHARE / self._limit)
        return limit if self._max_rate is None else min(limit, self._max_rate)

    def delay(self, now: float) -> float:
        """Return the seconds until the next row may be sent; 0: now."""
        return max(0.0, self._paused_until - now, (self._due - now) if self.rate(now) is not None else 0.0)

    def note_sent(self, now: float) -> None:
        """Count a row that is sent now."""
        rate = self.rate(now)
        if rate is not None:
            self._due = max(self._due, now - _BURST_SECONDS) + 1 / rate

    def note_accepted(self, now: float) -> None:
        """Count a row that the service did not throttle."""
        self._slowdowns_in_a_row = 0
        self._accepted_at.append(now)
        while self._accepted_at[0] < now - _MEASURED_SECONDS:
            self._accepted_at.popleft()

    def note_throttled(self, now: float, *, sent_at: float, requested_wait: float | None) -> None:
        """Slow down, because a row was throttled. `sent_at` is when it was sent; `requested_wait` is in seconds."""
        if requested_wait is not None and requested_wait > MAX_RETRY_AFTER_SECONDS:
            self.too_long_wait = requested_wait
        is_new = self._slowed_at is None or sent_at > self._slowed_at
        if is_new:
            accepted = float(sum(at >= now - _MEASURED_SECONDS for at in self._accepted_at))
            known = self.rate(now)
            if known is not None and self._slowed_at is not None:
                # That rate was too fast. Halve it at most: just after a wait, few rows were accepted.
                accepted = min(known, max(accepted, known / 2))
            is_steady = known is not None and now - self._paused_until >= _MEASURED_SECONDS
            self._doubling = _STEADY_DOUBLING if is_steady else _BURST_DOUBLING
            self._limit = max(accepted, 1.0)
            self._slowed_at = now
            self._slowdowns_in_a_row += 1
        usual = min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** min(self._slowdowns_in_a_row, 10))
        pause = usual if requested_wait is None else requested_wait
        if is_new or requested_wait is not None:
            self.pause_until(now + min(pause, MAX_RETRY_AFTER_SECONDS))
