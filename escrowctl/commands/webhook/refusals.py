"""Requests that `webhook listen` did not take: shown, and counted where they are many."""

from collections import Counter

from escrowctl.runtime import timestamp
from escrowctl.session import Session
from escrowctl.webhooks.receiver import Arrival

_SECONDS = 10.0
"""How far apart two lines about requests that were refused alike are."""


class Refusals:
    """Shows what was not taken: the first of its kind at once, others counted, so that a scanner fills no screen."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def add(self, arrival: Arrival) -> None:
        """Count one."""
        self._counts[arrival.refusal] += 1
        self._reasons[arrival.refusal] = arrival.reason

    def show(self) -> None:
        """Show a line for each kind whose last line is long enough ago."""
        runtime = self._session.runtime
        moment = runtime.monotonic()
        for refusal in [kind for kind in self._counts if self._next.get(kind, moment) <= moment]:
            count = self._counts.pop(refusal)
            times = f", {count} times" if count > 1 else ""
            # With its time, as the line of an event: the console shows the same message only once.
            at = f"{timestamp(runtime.now())[11:19]}Z"
            self._session.console.warn("refused", f"{refusal} at {at}{times}: {self._reasons[refusal]}")
            self._next[refusal] = moment + _SECONDS
