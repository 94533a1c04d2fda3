"""The waits between repeated reads of a record, up to a time limit."""

from collections.abc import Callable

from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

POLL_SECONDS = 2.0
"""Time between two reads."""

_TICK_SECONDS = 1.0


class PollTimer:
    """Waits `every` seconds between two reads, until `seconds` have passed since its creation (None: no limit).

    `tick` is called about once a second during a wait, with the seconds since the creation.
    """

    def __init__(
        self,
        runtime: Runtime,
        signals: Signals,
        seconds: float | None,
        *,
        every: float = POLL_SECONDS,
        tick: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._runtime = runtime
        self._signals = signals
        self._seconds = seconds
        self._every = every
        self._tick = tick
        self._start = runtime.monotonic()

    @property
    def elapsed(self) -> float:
        """The seconds since this interval was created."""
        return self._runtime.monotonic() - self._start

    def wait_for_next_read(self) -> bool:
        """Wait for the next read and return True, or return False after the limit. A signal may end the wait."""
        if self._seconds is not None and self.elapsed >= self._seconds:
            return False
        left = self._every if self._seconds is None else min(self._every, self._seconds - self.elapsed)
        while left > 0:
            with self._signals.let_through():
                self._runtime.sleep(min(left, _TICK_SECONDS))
            left -= _TICK_SECONDS
            self._tick(self.elapsed)
        return True
