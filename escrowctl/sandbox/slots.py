"""How long a connection may keep one of the server's slots.

waitress gives up a connection after a time without a byte; one byte a minute keeps it for ever, and
a few hundred such connections keep everybody else out. So a whole request, and the reading of a
whole answer, has a bound of its own; and while every slot is taken, who does nothing with his
makes room.
"""

import time
from collections.abc import Callable, Collection
from typing import Any

REQUEST_SECONDS = 10.0
"""For one request, from its first byte to its last, and for one answer."""

CROWDED_SECONDS = 1.0
"""For the same, and for being idle, while every slot is taken."""

_LOOK_SECONDS = 0.2


class Slots:
    """Watches the connections of one server; `monotonic` returns seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._next = 0.0
        self._since: dict[Any, tuple[object, float]] = {}

    def look(self, channels: Collection[Any], *, crowded: bool) -> None:
        """Close the connections that have been at one thing for too long; it looks a few times a second."""
        now = self._monotonic()
        if now < self._next:
            return
        self._next = now + _LOOK_SECONDS
        self._since = {channel: (_doing(channel), self._begun(channel, now)) for channel in channels}
        for channel, (doing, since) in self._since.items():
            bound = CROWDED_SECONDS if crowded else REQUEST_SECONDS if doing else None
            if bound is not None and now - since > bound:
                channel.handle_close()

    def _begun(self, channel: Any, now: float) -> float:
        doing, since = self._since.get(channel, (None, now))
        return since if doing is _doing(channel) else now


_ANSWER = object()


def _doing(channel: Any) -> object:
    """Return what the connection is in the middle of: a request, its answer; or None."""
    if channel.request is not None:
        return channel.request
    return _ANSWER if channel.requests or channel.total_outbufs_len else None
