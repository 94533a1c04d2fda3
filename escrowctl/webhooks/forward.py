"""Forward events to a web application on this machine, with the bytes and headers as received.

Events are sent in the order of arrival. Each is sent until the target accepts it with a 2xx, or has refused it
`MAX_REFUSALS` times; then the next event is sent. An attempt without an answer is repeated and is no refusal.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import bad_value
from escrowctl.post_once import Reply, Target, parse_target, post_once
from escrowctl.runtime import Runtime
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import Delivery
from escrowctl.webhooks.spool import ForwardState, Spool, WaitingEvent, open_spool

ATTEMPT_SECONDS = 15.0
"""The limit for one attempt, in total."""
MAX_REFUSALS = 10
"""After this number of answers other than 2xx an event has failed, and the next event is sent."""
_FIRST_DELAY, _LONGEST_DELAY = 5.0, 60.0
_SLEEP_SECONDS = 0.1
_CONNECTION_HEADERS = (
    *("host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "proxy-authenticate", "proxy-authorization", "expect"),
)
"""Headers that are about one connection and not about the event (RFC 9110 section 7.6.1)."""


class Attempt(NamedTuple):
    """One attempt to forward an event. `number` counts from 1. `delay` is the seconds until the next, or None."""

    event: Event
    reply: Reply
    number: int
    state: ForwardState
    delay: float | None = None


def read_target(text: str) -> Target:
    """Return the target that `--forward-to` names. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    try:
        return parse_target(text)
    except ValueError as error:
        raise bad_value(
            f'--forward-to "{text}" is not an http URL on this machine: write one such as http://127.0.0.1:3000/x.'
        ) from error


def send(target: Target, delivery: Delivery, *, monotonic: Callable[[], float]) -> Reply:
    """Send a delivery once and return the reply. If the target does not answer, the reply has an `error`."""
    headers = [(name, value) for name, value in delivery.headers if name.casefold() not in _CONNECTION_HEADERS]
    return post_once(target, headers, delivery.body, seconds=ATTEMPT_SECONDS, monotonic=monotonic)


class Forwarder:
    """A thread that forwards the waiting events of one service to one target, until `stop` is called."""

    def __init__(self, path: Path, service: str, target: Target, *, runtime: Runtime) -> None:
        self.target = target
        self._path = path
        self._service = service
        self._runtime = runtime
        self._attempts: deque[Attempt] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._error: Exception | None = None
        # A daemon: a hanging attempt does not keep the program from ending.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread. It begins with the events that are already waiting."""
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread, because an event was queued."""
        self._wake.set()

    def take_attempts(self) -> Iterator[Attempt]:
        """Yield the attempts since the last call. Their results are already stored.

        Raises the error that ended the thread: `ErrorCode.STATE_UNUSABLE` if the stored events cannot be used.
        """
        while self._attempts:
            yield self._attempts.popleft()
        if self._error is not None:
            raise self._error

    def stop(self, *, seconds: float) -> None:
        """Send no further event. Wait at most `seconds` for the attempt in progress."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with open_spool(self._path, self._service) as spool:
                while not self._stopping.is_set():
                    self._wake.clear()
                    waiting = spool.find_next_waiting(str(self.target))
                    if waiting is None:
                        self._wake.wait()
                        continue
                    attempt = self._forward_once(spool, waiting)
                    self._attempts.append(attempt)
                    for _ in range(round((attempt.delay or 0.0) / _SLEEP_SECONDS)):
                        if not self._stopping.is_set():
                            self._runtime.sleep(_SLEEP_SECONDS)
        except Exception as error:  # noqa: BLE001 - `take_attempts` raises it in the thread that reports it
            self._error = error

    def _forward_once(self, spool: Spool, waiting: WaitingEvent) -> Attempt:
        reply = send(self.target, waiting.event.delivery, monotonic=self._runtime.monotonic)
        tried = waiting._replace(attempts=waiting.attempts + 1, refusals=waiting.refusals + (reply.status is not None))
        state, delay = ForwardState.WAITING, min(_FIRST_DELAY * 2 ** min(waiting.attempts, 10), _LONGEST_DELAY)
        if reply.is_accepted:
            state, delay = ForwardState.DONE, None
        elif tried.refusals >= MAX_REFUSALS:
            state, delay = ForwardState.FAILED, None
        spool.record_attempt(tried, str(self.target), state)
        return Attempt(waiting.event, reply, tried.attempts, state, delay)
