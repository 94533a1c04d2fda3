"""What `-v` and `--debug` tell of the wire: a line each, or whole requests, the key left out."""

from collections.abc import Callable

from escrowctl.client.exchange import REDACTED, Exchange, Request
from escrowctl.client.headers import redact
from escrowctl.config.secrets import Secret
from escrowctl.contract.reply import excerpt_of

_SHOWN_REPLY_HEADERS = frozenset(
    {"content-type", "content-length", "content-encoding", "date", "location", "retry-after", "x-request-id"}
)
_MAX_BODY_CHARS = 2000


class Trace:
    """Tells `say` about each exchange; `whole` adds headers (by allow-list) and bodies."""

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
        for name, value in redact(request.headers):
            self._tell(f"> {name}: {value}")
        if request.body is not None:
            self._tell(f"> {excerpt_of(request.body, _MAX_BODY_CHARS)}")
        if answer:
            for name, value in answer.headers:
                if name.lower() in _SHOWN_REPLY_HEADERS:
                    self._tell(f"< {name}: {value}")
            self._tell(f"< {excerpt_of(answer.body, _MAX_BODY_CHARS)}")

    def _tell(self, line: str) -> None:
        self._say(line.replace(self._secret.reveal(), REDACTED))
