"""The sandbox's time: this machine's clock plus the distance by which `sandbox clock advance` has moved it ahead.

The distance is in the store, so that commands and a server see the same time. It only grows.
"""

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta

from escrowctl.sandbox.records import timestamp


class Clock:
    """`now` returns this machine's time, an aware datetime."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.machine_time = now

    def read(self, connection: sqlite3.Connection) -> datetime:
        """Return the sandbox's time; call it inside a transaction."""
        return self.machine_time() + self.ahead(connection)

    def ahead(self, connection: sqlite3.Connection) -> timedelta:
        """Return how far the sandbox's time is ahead of this machine's."""
        (milliseconds,) = connection.execute("SELECT clock_ahead_ms FROM sandbox").fetchone()
        return timedelta(milliseconds=milliseconds)

    def move_to(self, connection: sqlite3.Connection, moment: str) -> None:
        """Move the sandbox's time ahead to a moment; a moment in the past changes nothing."""
        now = self.read(connection)
        missing = datetime.fromisoformat(moment) - now
        if missing > timedelta(0):
            # Rounded up: timers for exactly this moment must be due.
            milliseconds = -(-missing // timedelta(milliseconds=1))
            connection.execute("UPDATE sandbox SET clock_ahead_ms = clock_ahead_ms + ?", (milliseconds,))


def later(moment: str, duration: timedelta) -> str:
    """Return the timestamp that is `duration` after a timestamp."""
    return timestamp(datetime.fromisoformat(moment) + duration)
