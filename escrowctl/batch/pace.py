"""The rate at which rows are sent: limited by the operator, and by the rate that the service accepts.

A 429 says that all workers together were too fast. So none sends until the requested wait is over. Then they send as
many rows a second as the service accepted in the second before, and slowly more: little near that rate, then fast, as
TCP looks for its limit (RFC 9438 section 4.1). If the service still refuses, each slow-down halves the rate.
"""

from collections import deque

from escrowctl.client.http import THROTTLED
from escrowctl.client.retry import LONGEST_ASKED_WAIT

MAX_SLOWDOWNS_IN_A_ROW = 6
"""After so many slow-downs in a row, with no row accepted in between, no more rows are tried."""

_MEASURED_SECONDS = 1.0
_NEAR = 0.97
_STEADY_GROWTH, _FIRST_GROWTH = 60.0, 12.0
"""Seconds in which the limit doubles: if measured over a steady second, and if measured after a burst."""
_FORGOTTEN = 20.0
_ADDED, _MOST_ADDED = 10.0, 2.0
_BURST_SECONDS = 0.02
_FIRST_PAUSE, _MOST_PAUSE = 0.25, 5.0
_ANY = 1_000_000
_SERVER_ERROR = 500


class Pace:
    """Computes how many rows may be sent now. Times are seconds of one monotonic clock; `most` is rows a second."""

    def __init__(self, most: float | None, now: float) -> None:
        self._most = most
        self._next = now
        self._resumes = now
        self._slowed: float | None = None
        self._limit = 0.0
        self._growth = _STEADY_GROWTH
        self._taken: deque[float] = deque()
        self._in_vain = 0
        self.asked_too_much: float | None = None
        """The wait in seconds that the service asked for, if escrowctl does not wait so long."""

    @property
    def is_hopeless(self) -> bool:
        """Whether the service has stopped accepting rows."""
        return self.asked_too_much is not None or self._in_vain >= MAX_SLOWDOWNS_IN_A_ROW

    def is_paused(self, now: float) -> bool:
        """Whether rows wait now, because the service refused some."""
        return now < self._resumes

    def rate(self, now: float) -> float | None:
        """Return how many rows a second may be sent; None: any number."""
        if self._slowed is None:
            return self._most
        since = max(0.0, now - self._resumes)
        growth = _NEAR + (since / self._growth) ** 3
        if growth > _FORGOTTEN:
            return self._most
        # The second term grows a low rate faster than the first term does.
        limit = self._limit * growth + since * min(_MOST_ADDED, _ADDED / self._limit)
        return limit if self._most is None else min(limit, self._most)

    def room(self, now: float) -> int:
        """Return how many rows may be sent now."""
        if self.is_paused(now):
            return 0
        rate = self.rate(now)
        if rate is None:
            return _ANY
        return max(0, int((now - max(self._next, now - _BURST_SECONDS)) * rate + 1)) if now >= self._next else 0

    def delay(self, now: float) -> float:
        """Return the seconds until the next row may be sent."""
        return max(0.0, self._resumes - now, (self._next - now) if self.rate(now) is not None else 0.0)

    def note_sent(self, count: int, now: float) -> None:
        """Count rows that are sent now."""
        rate = self.rate(now)
        if rate is not None:
            self._next = max(self._next, now - _BURST_SECONDS) + count / rate

    def note_reply(self, now: float, status: int | None, *, sent: float, asked: float | None) -> None:
        """Adjust the rate to the reply to a row that was sent at `sent`; see `note_refused` for `asked`."""
        if status is None:
            return
        if status in THROTTLED or (asked is not None and status >= _SERVER_ERROR):
            self.note_refused(now, sent=sent, asked=asked)
        else:
            self.note_taken(now)

    def note_taken(self, now: float) -> None:
        """Count a row that the service did not throttle."""
        self._in_vain = 0
        self._taken.append(now)
        while self._taken[0] < now - _MEASURED_SECONDS:
            self._taken.popleft()

    def note_refused(self, now: float, *, sent: float, asked: float | None) -> None:
        """Slow down: a row that was sent at `sent` was throttled. `asked`: the requested wait in seconds."""
        if asked is not None and asked > LONGEST_ASKED_WAIT:
            self.asked_too_much = asked
        is_new = self._slowed is None or sent > self._slowed
        if is_new:
            lately = float(sum(at >= now - _MEASURED_SECONDS for at in self._taken))
            known = self.rate(now)
            if known is not None and self._slowed is not None:
                # That rate was too fast. Halve it at most: just after a wait, few rows were accepted.
                lately = min(known, max(lately, known / 2))
            is_steady = known is not None and now - self._resumes >= _MEASURED_SECONDS
            self._growth = _STEADY_GROWTH if is_steady else _FIRST_GROWTH
            self._limit = max(lately, 1.0)
            self._slowed = now
            self._in_vain += 1
        pause = min(_MOST_PAUSE, _FIRST_PAUSE * 2 ** min(self._in_vain, 10)) if asked is None else asked
        if is_new or asked is not None:
            self._resumes = max(self._resumes, now + min(pause, LONGEST_ASKED_WAIT))
            # Rows that could not be sent during the wait are not sent in a burst afterwards.
            self._next = max(self._next, self._resumes)
