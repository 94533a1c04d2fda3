"""What is shown of exchanges: under `-v` and `--debug` each one, secrets left out; once a run, the end of a call.

A service announces the end of a call by the Deprecation (RFC 9745) and Sunset (RFC 8594) fields. A field
that cannot be read announces nothing.
"""

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from escrowctl.client.http import SUCCESS, Answer, Exchange, Request, redact_headers
from escrowctl.client.retry import parse_date
from escrowctl.contract.json import Document, JsonValue, encode, read_reply
from escrowctl.contract.operations import READING_METHODS
from escrowctl.contract.redaction import hide_query, hide_secrets, redact

_SHOWN_REPLY_HEADERS = frozenset(
    {"content-type", "content-length", "content-encoding", "date", "location", "retry-after", "x-request-id"}
)
_MAX_BODY_CHARS = 2000
_STRUCTURED_DATE = re.compile(r"@(-?[0-9]{1,12})", re.ASCII)


class Trace:
    """Shows each exchange; `whole` adds headers and bodies, both by allow-list: logs are shared.

    `trace` takes its lines, `warn` what is announced.
    """

    def __init__(self, trace: Callable[[str], None], warn: Callable[[str], None], *, whole: bool) -> None:
        self._trace = trace
        self._warn = warn
        self._whole = whole
        self._has_announced = False
        self._lock = threading.Lock()

    def show(self, request: Request, exchange: Exchange, seconds: float) -> None:
        """Show one exchange."""
        # Threads that send at the same time do not mix their lines.
        with self._lock:
            self._show(request, exchange, seconds)

    def _show(self, request: Request, exchange: Exchange, seconds: float) -> None:
        answer = exchange.answer
        ended = str(answer.status) if answer else f"{exchange.fault} {exchange.detail}".strip()
        sent = "yes" if exchange.sent else "no"
        self._write(f"{request.method} {request.url} -> {ended}, {seconds * 1000:.0f} ms, sent: {sent}")
        if not self._whole:
            return
        for name, value in redact_headers(request.headers):
            self._write(f"> {name}: {value}")
        if request.body is not None:
            body = read_reply(request.body)
            self._write(f"> {_shown(body.value) if isinstance(body, Document) else ''}")
        if answer:
            for name, value in answer.headers:
                if name.lower() in _SHOWN_REPLY_HEADERS:
                    self._write(f"< {name}: {value}")
            self._write(f"< {_reply(request, answer)}")

    def announce_end(self, request: Request, answer: Answer) -> None:
        """Warn of the first call of this run whose reply announces its end."""
        if not self._has_announced and (ends := _describe_end(answer)):
            self._has_announced = True
            self._warn(f"the service says that {request.method} {request.url} {ends}")

    def _write(self, line: str) -> None:
        self._trace(hide_query(hide_secrets(line)))


def _reply(request: Request, answer: Answer) -> str:
    reply = answer.reply
    if isinstance(reply, Document):
        return _shown(reply.value)
    if answer.status in SUCCESS and request.method not in READING_METHODS and reply.excerpt:
        # It may be the only reply that holds a new endpoint's secret, under any name.
        return f"({len(answer.body)} bytes not shown, they may contain a secret; the reply {reply.defect.value})"
    return reply.excerpt


def _shown(value: JsonValue) -> str:
    return encode(redact(value))[:_MAX_BODY_CHARS]


def _describe_end(answer: Answer) -> str:
    """Return what a reply announces, in UTC: since when it is deprecated, when it will be removed; empty: nothing."""
    since = _structured_date(answer.header("Deprecation") or "")
    until = parse_date(answer.header("Sunset") or "")
    parts = (
        f"is deprecated since {since:%Y-%m-%d}" if since else "",
        f"will be removed on {until:%Y-%m-%d}" if until else "",
    )
    return " and ".join(part for part in parts if part)


def _structured_date(text: str) -> datetime | None:
    """Read a Date of structured fields (RFC 9651 section 3.3.7): `@` and seconds since 1970."""
    found = _STRUCTURED_DATE.match(text.strip())
    try:
        return datetime.fromtimestamp(int(found[1]), UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None
