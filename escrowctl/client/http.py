"""A request and its result as plain values, independent of the HTTP library.

INTERFACE.md section 5 asks for `Authorization: Bearer <API_KEY>` in every request, and for a `Content-Type` of
`application/json` in requests with a body. escrowctl adds further headers. `Accept-Encoding: identity` makes it
simple to limit the size of a reply. The `Idempotency-Key` of a write has an effect only if the service supports it.
"""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from escrowctl import __version__
from escrowctl.contract.json import Defect, Reply, UnreadableReply, encode, make_excerpt, read_reply
from escrowctl.contract.redaction import STARS, hide_secrets, holds_key, is_private, star, star_key_in_document

JSON_TYPE = "application/json"
USER_AGENT = f"escrowctl/{__version__}"

SUCCESS_STATUSES = range(200, 300)
"""Statuses of accepted requests (RFC 9110 section 15.3)."""

THROTTLED_STATUSES = frozenset({425, 429})
"""Statuses of throttled requests: too early (RFC 8470 section 5.2), too many (RFC 6585 section 4)."""

STARRED_KEY_HEADER = ("Authorization", f"Bearer {STARS}")
"""The header with the API key, as shown: with stars in place of the key."""

_PRIVATE_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

Headers = tuple[tuple[str, str], ...]


class Request(NamedTuple):
    """One request as it is sent, but without the API key: `Connection` adds the key.

    `may_hold_secret`: the body of the request or of its reply may have a secret in a field of any name.
    """

    method: str
    url: str
    headers: Headers
    body: bytes | None = None
    may_hold_secret: bool = False


class NotAllowedError(Exception):
    """The request may not be sent any more."""


class Evidence:
    """Whether a request was sent. `sent` becomes True before the kernel gets the first byte for the service.

    `may_send` is asked just before that.
    """

    def __init__(self, may_send: Callable[[], bool] = lambda: True) -> None:
        self.sent = False
        self._may_send = may_send

    def mark_sent(self) -> None:
        """Note that the first byte leaves now. Raises NotAllowedError if none may leave."""
        if not (self.sent or self._may_send()):
            raise NotAllowedError
        self.sent = True


class Fault(StrEnum):
    """Why a request has no answer. The value is a clause for messages."""

    NO_NAME = "the host name could not be resolved"
    NO_CONNECTION = "no connection could be opened"
    CONNECT_TIMEOUT = "no connection was opened in time"
    TLS = "the TLS handshake failed"
    PROXY = "the proxy refused the connection or failed"
    TIMEOUT = "no reply came in time"
    BROKEN_OFF = "the connection broke before a reply came"
    BAD_PROTOCOL = "the reply was not HTTP"
    MISDIRECTED = "the reply may belong to a different request"
    INTERRUPTED = "escrowctl was interrupted before a reply came"
    BAD_REQUEST = "the request cannot be written as HTTP"
    DEFECT = "escrowctl failed before a reply came"
    LOCKS_LAPSED = "the locks of this process have lapsed, so another process may have decided on the write"


class Answer:
    """A reply: its status, its headers, and the part of its body that arrived.

    `defect` says why the body is unusable (truncated, over the limit, bad encoding). The status is valid in any
    case.
    """

    def __init__(self, status: int, headers: Headers, body: bytes, defect: Defect | None = None) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.defect = defect

    def find_header(self, name: str) -> str | None:
        """Return the value of the first header with this name, or None. Case does not matter."""
        return next((value for found, value in self.headers if found.lower() == name.lower()), None)

    def without_key(self, key: str) -> "Answer":
        """Return a copy with stars in place of the API key. Only such a copy is shown or stored.

        A readable body stays JSON. An unreadable body that has the key in an encoded form becomes stars completely.
        """
        headers = tuple((star(name, key), star(value, key)) for name, value in self.headers)
        if not holds_key(self.body, key):
            return Answer(self.status, headers, self.body, self.defect)
        if isinstance(self.reply, UnreadableReply):
            body = star(self.body.decode("utf-8", errors="replace"), key)
            return Answer(self.status, headers, body.encode(), self.reply.defect)
        return Answer(self.status, headers, encode(star_key_in_document(self.reply.value, key)).encode(), self.defect)

    @cached_property
    def reply(self) -> Reply:
        """The body as a JSON document, or as an `UnreadableReply` with the defect. Parsed only once."""
        reply = UnreadableReply(self.defect, make_excerpt(self.body)) if self.defect else read_reply(self.body)
        if isinstance(reply, UnreadableReply):
            return reply._replace(excerpt=hide_secrets(reply.excerpt))
        return reply


class Tls(NamedTuple):
    """A connection's TLS version (`TLSv1.3`), and the issuer and expiry time of the service's certificate."""

    version: str
    issuer: str
    expires: datetime


class Peer(NamedTuple):
    """The IP address and port of the service, or of its proxy, to which a connection was opened.

    `tls` is None for plain http, and until the TLS handshake with the service is complete.
    """

    address: str
    tls: Tls | None = None


class Exchange(NamedTuple):
    """The result of one request: an answer or a fault. `sent`: the request may have reached the service.

    `peer` is None if no connection was opened, and for a sandbox in this process. `proxy` is the proxy's URL
    without its user and password. `is_shared`: the connection had carried an earlier request.
    """

    sent: bool
    answer: Answer | None = None
    fault: Fault | None = None
    detail: str = ""
    peer: Peer | None = None
    proxy: str | None = None
    is_shared: bool = False

    @property
    def why(self) -> str:
        """Why the request has no answer: the fault, and its detail in brackets."""
        fault = (self.fault or Fault.BROKEN_OFF).value
        return f"{fault} ({self.detail})" if self.detail else fault


def make_headers(*, request_id: str, has_body: bool, idempotency_key: str | None = None) -> Headers:
    """Return a request's headers in sending order, without `Authorization`, which is sent before them.

    Only a write has `idempotency_key`: its connection is closed after the reply (RFC 9112 section 9.6).
    """
    headers = [
        ("Accept", JSON_TYPE),
        ("Accept-Encoding", "identity"),
        ("User-Agent", USER_AGENT),
        ("X-Request-Id", request_id),
    ]
    if has_body:
        headers.append(("Content-Type", JSON_TYPE))
    if idempotency_key is not None:
        headers += [("Idempotency-Key", idempotency_key), ("Connection", "close")]
    return tuple(headers)


def redact_headers(headers: Headers) -> Headers:
    """Return the headers of a request or a reply, with stars for secret values."""
    return tuple(
        (name, STARS if name.casefold() in _PRIVATE_HEADERS or is_private(name) else value) for name, value in headers
    )
