"""What `-v` and `--debug` tell of the wire: a line each, or whole requests, the key left out."""

from collections.abc import Callable

from escrowctl.client.exchange import Answer, Exchange, Request
from escrowctl.client.headers import redact as redact_headers
from escrowctl.config.secrets import Secret
from escrowctl.contract.body import encode
from escrowctl.contract.redaction import redact, star
from escrowctl.contract.reply import Document, Reply, excerpt_of, read_reply

_SHOWN_REPLY_HEADERS = frozenset(
    {"content-type", "content-length", "content-encoding", "date", "location", "retry-after", "x-request-id"}
)
_MAX_BODY_CHARS = 2000


class Trace:
    """Tells `say` about each exchange; `whole` adds headers and bodies, both by allow-list: logs are shared."""

    def __init__(self, say: Callable[[str], None], *, whole: bool, secret: Secret) -> None:
        self._say = say
        self._whole = whole
        self._secret = secret

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
            self._tell(f"> {_shown(read_reply(request.body), request.body)}")
        if answer:
            for name, value in answer.headers:
                if name.lower() in _SHOWN_REPLY_HEADERS:
                    self._tell(f"< {name}: {value}")
            self._tell(f"< {_reply(answer)}")

    def _tell(self, line: str) -> None:
        self._say(star(line, self._secret.reveal()))


def _reply(answer: Answer) -> str:
    return _shown(answer.read(), answer.body)


def _shown(read: Reply, body: bytes) -> str:
    return encode(redact(read.value))[:_MAX_BODY_CHARS] if isinstance(read, Document) else excerpt_of(body)
