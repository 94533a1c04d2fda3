"""What `-v` and `--debug` tell of the wire: a line each, or whole requests, secrets left out."""

from collections.abc import Callable

from escrowctl.client.exchange import SUCCESS, Answer, Exchange, Request
from escrowctl.client.headers import redact as redact_headers
from escrowctl.contract.body import encode
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import READING_METHODS
from escrowctl.contract.redaction import hide_query, hide_secrets, redact
from escrowctl.contract.reply import Document, read_reply

_SHOWN_REPLY_HEADERS = frozenset(
    {"content-type", "content-length", "content-encoding", "date", "location", "retry-after", "x-request-id"}
)
_MAX_BODY_CHARS = 2000


class Trace:
    """Tells `say` about each exchange; `whole` adds headers and bodies, both by allow-list: logs are shared."""

    def __init__(self, say: Callable[[str], None], *, whole: bool) -> None:
        self._say = say
        self._whole = whole

    def observe(self, request: Request, exchange: Exchange, seconds: float) -> None:
        """Tell one exchange."""
        answer = exchange.answer
        ended = str(answer.status) if answer else f"{exchange.fault} {exchange.detail}".strip()
        self._tell(f"{request.method} {request.url} -> {ended}, {seconds * 1000:.0f} ms, sent: {exchange.sent}")
        if not self._whole:
            return
        for name, value in redact_headers(request.headers):
            self._tell(f"> {name}: {value}")
        if request.body is not None:
            body = read_reply(request.body)
            self._tell(f"> {_shown(body.value) if isinstance(body, Document) else ''}")
        if answer:
            for name, value in answer.headers:
                if name.lower() in _SHOWN_REPLY_HEADERS:
                    self._tell(f"< {name}: {value}")
            self._tell(f"< {_reply(request, answer)}")

    def _tell(self, line: str) -> None:
        self._say(hide_query(hide_secrets(line)))


def _reply(request: Request, answer: Answer) -> str:
    reply = answer.read()
    if isinstance(reply, Document):
        return _shown(reply.value)
    if answer.status in SUCCESS and request.method not in READING_METHODS and reply.excerpt:
        # It may be the only reply that holds a new endpoint's secret, under any name.
        return f"({len(answer.body)} bytes, not shown: a secret may be in them; the reply {reply.defect.value})"
    return reply.excerpt


def _shown(value: JsonValue) -> str:
    return encode(redact(value))[:_MAX_BODY_CHARS]
