"""One request and what came of it, as plain values: nothing here knows an HTTP library."""

from dataclasses import dataclass, replace
from enum import StrEnum

from escrowctl.contract.body import encode
from escrowctl.contract.key_search import holds_key, star
from escrowctl.contract.redaction import hide_secrets, star_value
from escrowctl.contract.reply import Broken, Defect, Reply, excerpt_of, read_reply

JSON_TYPE = "application/json"

SUCCESS = range(200, 300)
"""Statuses of what was received, understood and accepted (RFC 9110 section 15.3)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it goes out. `headers` holds the key: it is never printed as it stands."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None


class Evidence:
    """Whether a byte of the request may have reached the origin; set before the byte is handed over."""

    def __init__(self) -> None:
        self.sent = False


class Fault(StrEnum):
    """Why there is no whole answer; the value completes "the service ..." or "the connection ..."."""

    NO_NAME = "the host's name could not be resolved"
    NO_CONNECTION = "no connection could be made"
    CONNECT_TIMEOUT = "no connection came about in time"
    TLS = "the TLS connection could not be trusted or made"
    PROXY = "the proxy refused or failed"
    TIMEOUT = "no answer came in time"
    BROKEN_OFF = "the connection broke before an answer came"
    BAD_PROTOCOL = "the answer was not HTTP"
    INTERRUPTED = "it was interrupted before an answer came"
    BAD_REQUEST = "the request could not be put into HTTP"
    DEFECT = "escrowctl itself failed before an answer came"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status line and headers that arrived, and as much of the body as did.

    `defect` says why the body is not whole (cut short, over the limit, bad encoding); the status
    stands all the same.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    defect: Defect | None = None

    def header(self, name: str) -> str | None:
        """Return the first header of that name, case-blind."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def without(self, key: str) -> "Answer":
        """Return the answer with every echo of the API key starred, before anything can show or store it.

        A document stays one. A body that cannot be read is replaced whole where the key is not plain in it.
        """
        headers = tuple((star(name, key), star(value, key)) for name, value in self.headers)
        if not holds_key(self.body, key):
            return replace(self, headers=headers)
        reply = self.read()
        if isinstance(reply, Broken):
            body = star(self.body.decode("utf-8", errors="replace"), key)
            return replace(self, headers=headers, body=body.encode(), defect=reply.defect)
        return replace(self, headers=headers, body=encode(star_value(reply.value, key)).encode())

    def read(self) -> Reply:
        """Read the body strictly: a document, or the typed reason why there is none."""
        reply = Broken(self.defect, excerpt_of(self.body)) if self.defect is not None else read_reply(self.body)
        return replace(reply, excerpt=hide_secrets(reply.excerpt)) if isinstance(reply, Broken) else reply


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of one request: an answer, or a fault; and whether its bytes may have left."""

    sent: bool
    answer: Answer | None = None
    fault: Fault | None = None
    detail: str = ""
