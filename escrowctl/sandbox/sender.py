"""Send waiting events and carry out timers, in the order of their due times.

An event is delivered at least once: an attempt is stored after it was made, and a process that is killed
in between leaves the delivery waiting. Every attempt has the event's id, so that receivers can
deduplicate. Its `webhook-timestamp` is this machine's time and not the sandbox's: receivers compare it with theirs.

Nothing is sent inside a database transaction. A receiver may call the sandbox before it replies.
"""

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from escrowctl.post_once import PostError, Target, post_once
from escrowctl.sandbox.clock import Clock, later
from escrowctl.sandbox.deliveries import Attempt, Delivery, first_delivery, settle
from escrowctl.sandbox.moves import Timer, fire, first_timer
from escrowctl.sandbox.records import timestamp
from escrowctl.sandbox.signing import make_headers
from escrowctl.sandbox.store import Store

ATTEMPT_SECONDS = 15.0
"""For one attempt (Standard Webhooks: 15 to 30)."""

_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 1.0
"""The wait after an error of the store; and at the end, for the attempt in progress."""


class _Job(NamedTuple):
    """The first due job: a timer or a delivery, and its moment in the sandbox's time."""

    at: str
    what: Timer | Delivery


class Sender:
    """Sends events and carries out timers. For one thread at a time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self.defects: deque[Exception] = deque()
        """Unexpected errors in attempts. Each counts as a failed attempt, and delays no other delivery."""
        self.is_in_background = False
        self.target: str | None = None
        """The time to which the sandbox's clock is being advanced; None if it is not."""

    def advance(self, duration: timedelta) -> None:
        """Set the target of the clock. `work` does everything that is due until then, and moves the clock there."""
        with self._store.reading() as connection:
            now = timestamp(self._clock.read(connection))
        self.target = later(self.target or now, duration)

    def work(self, *, seconds: float | None = None, attempt_seconds: float = ATTEMPT_SECONDS) -> None:
        """Do all due jobs, one after the other. Start none after `seconds`.

        Raises sqlite3.Error if the store cannot be read or written; no job is lost.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._stopping.is_set() and (end is None or time.monotonic() < end):
            if (job := self._next()) is None:
                return
            self._do(job, seconds=attempt_seconds)

    def has_work(self) -> bool:
        """Whether anything is due now. Raises sqlite3.Error if the store cannot be read or written."""
        return self._next() is not None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work in the background for the length of the block. Its end does not wait for a slow receiver."""
        thread = threading.Thread(target=self._work_on, name="sender", daemon=True)
        self.is_in_background = True
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(_PATIENCE_SECONDS)

    def require_working(self) -> None:
        """Raise the error that ended the work in the background."""
        if self._error is not None:
            raise self._error

    def _work_on(self) -> None:
        while self._error is None and not self._stopping.wait(_LOOK_SECONDS):
            try:
                self.work()
            except sqlite3.Error:
                # The disk may be full: waiting events are in the store, and are tried again.
                self._stopping.wait(_PATIENCE_SECONDS)
            except Exception as error:  # noqa: BLE001 - `require_working` raises it in the thread that reports it
                self._error = error

    def _next(self) -> _Job | None:
        """Return the first due job. If nothing is due before the target of the clock, move the clock there."""
        with self._store.reading() as connection:
            now = timestamp(self._clock.read(connection))
            found = [one for one in (first_timer(connection), first_delivery(connection)) if one is not None]
        target = self.target
        first = min(found, key=lambda one: one.due_at, default=None)
        if first is not None and first.due_at <= (target or now):
            return _Job(max(first.due_at, now), first)
        if target is not None:
            self._move_clock(target)
            # Another thread may have set a new target since.
            self.target = None if self.target == target else self.target
        return None

    def _do(self, job: _Job, *, seconds: float) -> None:
        if self.target is not None:
            self._move_clock(job.at)
        if isinstance(job.what, Timer):
            with self._store.writing() as connection:
                fire(connection, job.what)
            return
        attempt = self._attempt(job.what, seconds=seconds)
        with self._store.writing() as connection:
            settle(connection, job.what, attempt, at=job.at)

    def _attempt(self, delivery: Delivery, *, seconds: float) -> Attempt:
        now, start = self._clock.machine_time(), time.monotonic()

        def milliseconds() -> int:
            return round((time.monotonic() - start) * 1000)

        body, stamp = delivery.body.encode(), int(now.timestamp())
        try:
            signed = make_headers(delivery.secret, message_id=delivery.message_id, timestamp=stamp, body=body)
            headers = {"Content-Type": "application/json", "User-Agent": "escrowctl-sandbox", **signed}
            target = _require_loopback(delivery.url)
            status = post_once(target, headers.items(), body, seconds=seconds, monotonic=time.monotonic)
        except PostError as error:
            return Attempt(milliseconds(), error=str(error))
        except Exception as error:  # noqa: BLE001 - it is reported; left to fly, it would meet the same delivery again
            self.defects.append(error)
            return Attempt(milliseconds(), error=f"internal error ({type(error).__name__})")
        return Attempt(milliseconds(), status=status)

    def _move_clock(self, moment: str) -> None:
        with self._store.writing() as connection:
            self._clock.move_to(connection, moment)


def _require_loopback(url: str) -> Target:
    """Return the target of an event. Raises PostError unless it is an http URL on this machine."""
    refusal = PostError("the sandbox sends to http://127.0.0.1, http://[::1] and http://localhost only")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError as error:
        raise refusal from error
    if parts.scheme != "http" or not is_here:
        raise refusal
    return Target(host, parts.port or 80, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
