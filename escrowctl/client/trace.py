"""Show each request and its result for `-v` and `--debug`, without secrets."""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from escrowctl.client.http import STARRED_KEY_HEADER, Exchange, Request, redact_headers
from escrowctl.contract.json import Document, Reply, encode, read_reply
from escrowctl.contract.redaction import hide_in_text, hide_private_values, hide_unknown_texts
from escrowctl.runtime import Clock, timestamp

_MAX_BODY_CHARS = 64 * 1024


class Trace:
    """Shows each exchange. `with_bodies` adds the headers and bodies, with stars in place of secrets.

    `trace` is called with each line; `now` returns the current time.
    """

    def __init__(self, trace: Callable[[str], None], *, with_bodies: bool, now: Clock) -> None:
        self._trace = trace
        self._with_bodies = with_bodies
        self._now = now
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def show(self, request: Request, exchange: Exchange, seconds: float) -> None:
        """Show a request and its result. The exchange ended now and took `seconds`."""
        answer, may_hold_secret = exchange.answer, request.may_hold_secret
        result = str(answer.status) if answer else f"{exchange.fault} {exchange.detail}".strip()
        sent = "yes" if exchange.sent else "no"
        at = timestamp(self._now() - timedelta(seconds=seconds))
        # Threads that send at the same time do not mix their lines.
        with self._lock:
            self._write_line(f"{at} {request.method} {request.url} -> {result}, {seconds * 1000:.0f} ms, sent: {sent}")
            if not self._with_bodies:
                return
            peer = f", to {exchange.peer.address}" if exchange.peer else ""
            proxy = f", through the proxy {exchange.proxy}" if exchange.proxy else ""
            # Counted for each Idempotency-Key (a write) or request id (a read).
            headers = dict(request.headers)
            name = headers.get("Idempotency-Key") or headers["X-Request-Id"]
            self._attempts[name] += 1
            self._write_line(f"* attempt {self._attempts[name]}{peer}{proxy}")
            for name, value in (STARRED_KEY_HEADER, *redact_headers(request.headers)):
                self._write_line(f"> {name}: {value}")
            if request.body is not None:
                self._show_body(">", read_reply(request.body), request.body, may_hold_secret=may_hold_secret)
            if answer:
                for name, value in redact_headers(answer.headers):
                    self._write_line(f"< {name}: {value}")
                self._show_body("<", answer.reply, answer.body, may_hold_secret=may_hold_secret)

    def _show_body(self, mark: str, reply: Reply, body: bytes, *, may_hold_secret: bool) -> None:
        size = len(body)
        if isinstance(reply, Document):
            text = encode(hide_unknown_texts(reply.value) if may_hold_secret else hide_private_values(reply.value))
        elif may_hold_secret and body:
            # The reply to a new webhook may hold its signing secret, under any name.
            text = f"({size} bytes not shown, because they may contain a secret; the body {reply.defect})"
        else:
            text = body.decode("utf-8", errors="replace")
        for line in text[:_MAX_BODY_CHARS].splitlines():
            self._write_line(f"{mark} {line}")
        if len(text) > _MAX_BODY_CHARS:
            self._write_line(f"{mark} ... (the body has {size} bytes)")

    def _write_line(self, line: str) -> None:
        self._trace(hide_in_text(line))
