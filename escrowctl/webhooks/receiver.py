"""Receive events over HTTP. An accepted event is stored durably before its sender gets a 200.

    method (405) -> browser (403) -> length (413) -> signature (401) -> room (503) -> stored -> 200

A page in a browser can send a POST to loopback, always with an Origin header (Fetch standard, section 4.6). Such a
request is refused, because the sender of events is no browser. The answer to a refused request contains no reason.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from escrowctl.post_once import Target
from escrowctl.runtime import Clock, timestamp
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import Delivery, SignatureError, Verifier
from escrowctl.webhooks.spool import NoRoomError, Spool

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MAX_BODY_BYTES = 1024 * 1024
_MAX_METHOD_LENGTH = 20
_WRONG_METHOD = "405 Method Not Allowed"


class Arrival(NamedTuple):
    """A request that arrived, and its event. `is_queued`: this arrival queued the event to be forwarded.

    If the event was not stored, `event` is None, `refusal` is "refused with 403" or similar, `reason` is the cause.
    """

    event: Event | None = None
    is_queued: bool = False
    refusal: str = ""
    reason: str = ""


class Receiver:
    """A WSGI application that stores the events it accepts. Only one thread may use it.

    If there is a `target`, verified events are queued for it; unverified events only if `forwards_unverified`.
    If the verifier can check signatures, unsigned events are refused, unless `forwards_unverified`.
    """

    def __init__(
        self,
        spool: Spool,
        verifier: Verifier,
        *,
        now: Clock,
        target: Target | None = None,
        forwards_unverified: bool = False,
    ) -> None:
        self._spool = spool
        self._verifier = verifier
        self._now = now
        self._target = target
        self._forwards_unverified = forwards_unverified
        self._arrived: list[Arrival] = []

    def take_arrivals(self) -> list[Arrival]:
        """Return the arrivals since the last call, and forget them. After `group`, their events are durable."""
        taken, self._arrived = self._arrived, []
        return taken

    @contextlib.contextmanager
    def group(self) -> Iterator[None]:
        """Commit the events of the block together. If it raises sqlite3.Error, no event of the block is stored."""
        before = len(self._arrived)
        try:
            with self._spool.transaction():
                yield
        except sqlite3.Error as error:
            self._arrived[before:] = [Arrival(refusal="not accepted", reason=f"an event could not be stored: {error}")]
            raise

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request. Call it only inside `group`."""
        status = self._receive(environ)
        allow = [("Allow", "POST")] if status == _WRONG_METHOD else []
        start_response(status, [("Content-Length", "0"), *allow])
        return []

    def record_refusal(self, status: str, reason: str) -> str:
        """Add a refused request to the arrivals, and return `status`. Call it only inside `group`."""
        self._arrived.append(Arrival(refusal=f"refused with {status.partition(' ')[0]}", reason=reason))
        return status

    def _receive(self, environ: "WSGIEnvironment") -> str:
        if (method := environ["REQUEST_METHOD"]) != "POST":
            return self.record_refusal(_WRONG_METHOD, f"the method is {method[:_MAX_METHOD_LENGTH]}, not POST")
        if "HTTP_ORIGIN" in environ or "HTTP_SEC_FETCH_SITE" in environ:
            return self.record_refusal("403 Forbidden", "the request came from a page in a browser")
        body = environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            return self.record_refusal("413 Content Too Large", f"the body has more than {MAX_BODY_BYTES} bytes")
        # WSGI has joined repeated headers (PEP 3333).
        named = {name.removeprefix("HTTP_"): value for name, value in environ.items() if name.startswith("HTTP_")}
        named |= {name: environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)}
        headers = tuple((name.lower().replace("_", "-"), str(value)) for name, value in named.items())
        delivery, now = Delivery(headers, body), self._now()
        may_be_unsigned = self._forwards_unverified and self._verifier.is_unsigned(delivery)
        verified = self._verifier.can_verify and not may_be_unsigned
        ignore_id = verified and not self._verifier.signature_covers_id
        forwards = self._target is not None and (verified or self._forwards_unverified)
        try:
            if verified:
                self._verifier.check(delivery, now=now)
            event = self._spool.store(delivery, verified=verified, at=timestamp(now), ignore_id=ignore_id)
            self._arrived.append(Arrival(event, is_queued=forwards and self._spool.queue(event, str(self._target))))
        except SignatureError as error:
            return self.record_refusal("401 Unauthorized", str(error))
        except (NoRoomError, sqlite3.Error) as error:
            return self.record_refusal("503 Service Unavailable", f"the event could not be stored: {error}")
        return "200 OK"
