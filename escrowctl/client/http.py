"""One request and its result, as plain values: nothing here knows an HTTP library.

INTERFACE.md section 5: every request carries `Authorization: Bearer <API_KEY>`; requests with a body carry
`Content-Type: application/json`. The other headers are a choice of escrowctl: it accepts only identity encoding, so
that replies can be read in bounded steps; and a write carries an Idempotency-Key, which has an effect only if the
service supports it.
"""

from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from escrowctl import __version__
from escrowctl.contract.json import Defect, Reply, UnreadableReply, encode, make_excerpt, read_reply
from escrowctl.contract.redaction import STARS, hide_secrets, holds_key, is_private, star, star_value

JSON_TYPE = "application/json"
USER_AGENT = f"escrowctl/{__version__}"

SUCCESS = range(200, 300)
"""Statuses of accepted requests (RFC 9110 section 15.3)."""

THROTTLED = frozenset({425, 429})
"""Statuses of throttled requests: too early (RFC 8470 section 5.2), too many (RFC 6585 section 4)."""

STARRED_KEY_HEADER = ("Authorization", f"Bearer {STARS}")
"""The header with the key, as it may be shown."""

_PRIVATE_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})

Headers = tuple[tuple[str, str], ...]


class Request(NamedTuple):
    """One request as it is sent, without the key, which the connection adds.

    `may_hold_secret`: its body, or the reply's, may have a secret under any name.
    """

    method: str
    url: str
    headers: Headers
    body: bytes | None = None
    may_hold_secret: bool = False


class Evidence:
    """Whether a byte of the request may have reached the origin; set before the byte is passed to the kernel."""

    def __init__(self) -> None:
        self.sent = False


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
    MISDIRECTED = "the reply may be to another request"
    INTERRUPTED = "escrowctl was interrupted before a reply came"
    BAD_REQUEST = "the request cannot be written as HTTP"
    DEFECT = "escrowctl failed before a reply came"


class Answer:
    """A status line and headers that arrived, and the part of the body that arrived.

    `defect` says why the body is not complete (cut short, over the limit, bad encoding); the status is still valid.
    """

    def __init__(self, status: int, headers: Headers, body: bytes, defect: Defect | None = None) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.defect = defect

    def find_header(self, name: str) -> str | None:
        """Return the first header of that name; case does not matter."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def without_key(self, key: str) -> "Answer":
        """Return the answer with stars for every echo of the API key. Only this answer is ever shown or stored.

        A JSON body stays JSON. If any other body has the key encoded, stars replace the complete body.
        """
        headers = tuple((star(name, key), star(value, key)) for name, value in self.headers)
        if not holds_key(self.body, key):
            return Answer(self.status, headers, self.body, self.defect)
        if isinstance(self.reply, UnreadableReply):
            body = star(self.body.decode("utf-8", errors="replace"), key)
            return Answer(self.status, headers, body.encode(), self.reply.defect)
        return Answer(self.status, headers, encode(star_value(self.reply.value, key)).encode(), self.defect)

    @cached_property
    def reply(self) -> Reply:
        """The body, read strictly and once: a document, or the defect that makes it unreadable."""
        reply = (
            UnreadableReply(self.defect, make_excerpt(self.body)) if self.defect is not None else read_reply(self.body)
        )
        return (
            UnreadableReply(reply.defect, hide_secrets(reply.excerpt)) if isinstance(reply, UnreadableReply) else reply
        )


class Tls(NamedTuple):
    """How a connection is encrypted: the version (`TLSv1.3`), and the issuer and end of the service's certificate."""

    version: str
    issuer: str
    ends: datetime


class Peer(NamedTuple):
    """How far a connection was opened: `address` is the host and port of the service or its proxy.

    `tls` is None before the handshake with the service is complete, and for plain http.
    """

    address: str
    tls: Tls | None = None


class Exchange(NamedTuple):
    """The result of one request: an answer or a fault, whether its bytes may have left, and the connection used.

    `peer` is None if no connection was opened, and for a sandbox in this process. `proxy` is the URL of the proxy, as
    it may be shown. `is_shared`: the connection had carried another request.
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
        """Why there is no answer: the fault and its detail."""
        fault = (self.fault or Fault.BROKEN_OFF).value
        return f"{fault} ({self.detail})" if self.detail else fault


def make_headers(*, request_id: str, has_body: bool, idempotency_key: str | None = None) -> Headers:
    """Return the headers of one request, in the order in which they are sent after the key.

    A write has an idempotency key, and its connection is closed after it (RFC 9112 section 9.6).
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
