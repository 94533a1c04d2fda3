"""Requests that `webhook listen` refused: shown, or only counted if there are many."""

from collections import Counter

from escrowctl.runtime import timestamp
from escrowctl.session import Session
from escrowctl.webhooks.receiver import Arrival

_SECONDS = 10.0
"""The least time between two lines about refusals of the same kind."""


class Refusals:
    """Shows refused requests: the first of a kind at once, others as a count, so that a scanner fills no screen."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def add(self, arrival: Arrival) -> None:
        """Count a refused request."""
        self._counts[arrival.refusal] += 1
        self._reasons[arrival.refusal] = arrival.reason

    def show(self) -> None:
        """Show a line for each kind with new refusals, if its last line is long enough ago."""
        runtime = self._session.runtime
        moment = runtime.monotonic()
        for refusal in [kind for kind in self._counts if self._next.get(kind, moment) <= moment]:
            count = self._counts.pop(refusal)
            times = f", {count} times" if count > 1 else ""
            # The time makes the message unique: the console shows the same message only once.
            at = f"{timestamp(runtime.now())[11:19]}Z"
            self._session.console.warn("refused", f"{refusal} at {at}{times}: {self._reasons[refusal]}")
            self._next[refusal] = moment + _SECONDS
