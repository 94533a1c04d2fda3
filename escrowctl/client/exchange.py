"""One request and what came of it, as plain values: nothing here knows an HTTP library."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from escrowctl.contract.number import JsonValue
from escrowctl.contract.redaction import STARS, spellings, star
from escrowctl.contract.reply import Broken, Defect, Document, Reply, excerpt_of, read_reply

JSON_TYPE = "application/json"


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
    secret: str = field(default="", repr=False)

    def header(self, name: str) -> str | None:
        """Return the first header of that name, case-blind."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def without(self, secret: str) -> "Answer":
        """Return the answer with every echo of a secret starred, before anything can show or store it."""
        headers = tuple((name, star(value, secret)) for name, value in self.headers)
        body = self.body
        for spelling in spellings(secret):
            body = body.replace(spelling.encode(), STARS.encode())
        return replace(self, headers=headers, body=body, secret=secret)

    def read(self) -> Reply:
        """Read the body strictly: a document, or the typed reason why there is none."""
        if self.defect is not None:
            return Broken(self.defect, excerpt_of(self.body))
        reply = read_reply(self.body)
        if self.secret and isinstance(reply, Document):
            # JSON has many spellings of a text; only what is read shows whether it is the secret.
            return Document(_starred(reply.value, self.secret))
        return reply


def _starred(value: JsonValue, secret: str) -> JsonValue:
    match value:
        case str():
            return star(value, secret)
        case dict():
            return {star(key, secret): _starred(item, secret) for key, item in value.items()}
        case list():
            return [_starred(item, secret) for item in value]
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of one request: an answer, or a fault; and whether its bytes may have left."""

    sent: bool
    answer: Answer | None = None
    fault: Fault | None = None
    detail: str = ""
