"""Send waiting events and carry out timers, in the order of their due times.

An event may be sent more than once: if the process is killed during an attempt, the delivery is still waiting.
Every attempt has the event's id, so a receiver can recognise a repeated event. The `webhook-timestamp` is the time
of this machine, not of the sandbox, because a receiver compares the timestamp with the receiver's own clock.

No event is sent inside a database transaction, because a receiver may call the sandbox before replying.
"""

import base64
import contextlib
import hmac
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

from escrowctl.errors import EscrowctlError
from escrowctl.post_once import Reply, parse_target, post_once
from escrowctl.sandbox.bodies import ProblemError, ProblemKind
from escrowctl.sandbox.events import Delivery, find_first_delivery, record_attempt
from escrowctl.sandbox.moves import Timer, find_first_timer, perform_move
from escrowctl.sandbox.ownership import lock_deliveries
from escrowctl.sandbox.records import add_duration
from escrowctl.sandbox.store import Store

ATTEMPT_SECONDS = 15.0
"""The limit for one attempt (Standard Webhooks: 15 to 30)."""

_COMMAND_SECONDS = 1.0
"""Three limits for a command: to wait for the delivery lock, to start attempts, and for each attempt."""
_POLL_SECONDS = 0.05
_WAIT_SECONDS = 1.0
"""How long to wait after an error of the store, and at the end for the attempt in progress."""

SIGNING_PREFIX = "whsec_"


class Sender:
    """Sends events and carries out timers. For one thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._is_in_background = False
        self.clock_target: str | None = None
        """The time to which the sandbox's clock is being advanced; None if it is not."""

    def advance(self, duration: timedelta) -> None:
        """Do all due jobs, then advance the clock; a background thread does both later. Raises ProblemError if busy."""
        with self._store.reading() as connection:
            now = self._store.sandbox_time(connection)
        self.clock_target = add_duration(self.clock_target or now, duration)
        if self._is_in_background:
            return
        try:
            if not self._do_jobs_locked():
                detail = "Another process is delivering events, so the clock was not advanced: try again."
                raise ProblemError(ProblemKind.DELIVERING, detail)
        finally:
            # After Ctrl-C the next call must not continue the advance.
            self.clock_target = None

    def deliver(self) -> None:
        """Do due jobs for about a second. Ignore errors: unfinished jobs stay in the store."""
        with contextlib.suppress(sqlite3.Error, EscrowctlError):
            if self._find_job() is not None:
                self._do_jobs_locked(seconds=_COMMAND_SECONDS)

    def _do_jobs_locked(self, *, seconds: float | None = None) -> bool:
        """Do due jobs, and return True. Return False if another process is doing them."""
        with lock_deliveries(self._store.folder, _COMMAND_SECONDS) as is_locked:
            # Without the lock, do not send the other's events a second time.
            if is_locked:
                self._do_due_jobs(seconds=seconds)
            return is_locked

    def _do_due_jobs(self, *, seconds: float | None = None) -> None:
        """Do all due jobs in turn. With `seconds`, start jobs only for so long, and limit each attempt to it.

        Raises sqlite3.Error if the store cannot be read or written. Unfinished jobs stay in the store.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._stopping.is_set() and (end is None or time.monotonic() < end):
            if (found := self._find_job()) is None:
                return
            at, job = found
            if self.clock_target is not None:
                self._store.advance_to(at)
            if isinstance(job, Timer):
                with self._store.writing() as connection:
                    perform_move(connection, job.transaction_id, job.move, at=job.due_at)
            else:
                reply = self._send_once(job, seconds=seconds or ATTEMPT_SECONDS)
                with self._store.writing() as connection:
                    record_attempt(connection, job, reply, at=at)

    def _find_job(self) -> tuple[str, Timer | Delivery] | None:
        """Return the first due job with the sandbox's time at which to do it, or None if no job is due.

        While the clock is being advanced, all jobs up to the target are due; after the last one, set the clock to
        the target. Raises sqlite3.Error if the store cannot be read or written.
        """
        with self._store.reading() as connection:
            now = self._store.sandbox_time(connection)
            found = [one for one in (find_first_timer(connection), find_first_delivery(connection)) if one is not None]
        target = self.clock_target
        first = min(found, key=lambda one: one.due_at, default=None)
        if first is not None and first.due_at <= (target or now):
            return max(first.due_at, now), first
        if target is not None:
            self._store.advance_to(target)
            # Another thread may have set a new target since.
            if self.clock_target == target:
                self.clock_target = None
        return None

    @contextlib.contextmanager
    def working_in_background(self) -> Iterator[None]:
        """Do due jobs in a background thread during the block. After the block, wait at most 1 s for an attempt."""
        thread = threading.Thread(target=self._do_jobs_repeatedly, name="sender", daemon=True)
        self._is_in_background = True
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(_WAIT_SECONDS)

    def raise_background_error(self) -> None:
        """Raise the error that ended the background thread, if one did."""
        if self._error is not None:
            raise self._error

    def _do_jobs_repeatedly(self) -> None:
        while self._error is None and not self._stopping.wait(_POLL_SECONDS):
            try:
                self._do_due_jobs()
            except sqlite3.Error:
                # The disk may be full: waiting events are in the store, and are tried again.
                self._stopping.wait(_WAIT_SECONDS)
            except Exception as error:  # noqa: BLE001 - `raise_background_error` raises it in the thread that reports it
                self._error = error

    def _send_once(self, delivery: Delivery, *, seconds: float) -> Reply:
        stamp, body = int(self._store.machine_time().timestamp()), delivery.body.encode()
        signed = make_signed_headers(delivery.secret, message_id=delivery.message_id, timestamp=stamp, body=body)
        headers = {"Content-Type": "application/json", "User-Agent": "escrowctl-sandbox", **signed}
        try:
            target = parse_target(delivery.url)
        except ValueError:
            error = "the sandbox sends events to http://127.0.0.1, http://[::1] and http://localhost only"
            return Reply(None, 0.0, error)
        return post_once(target, headers.items(), body, seconds=seconds, monotonic=time.monotonic)


def make_signed_headers(secret: str, *, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a signed attempt, by Standard Webhooks 1.0.0 (HMAC-SHA256, identifier `v1`).

    The signature is `v1,` and the HMAC of `id.timestamp.body` in base64. `timestamp` is seconds since 1970.
    """
    key = base64.b64decode(secret.removeprefix(SIGNING_PREFIX))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    signature = "v1," + base64.b64encode(digest).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}
