"""The sandbox's refusals: problem details as in RFC 9457, one table of kinds.

INTERFACE.md section 7 shows no error body, no code and no condition: every kind, title and
condition here is the sandbox's own choice. Handlers raise a `ProblemError`; the app answers it.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Literal, NamedTuple

from escrowctl.sandbox.json import JsonObject

PROBLEM_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:escrowctl:sandbox:"


class ProblemKind(Enum):
    """The closed list of problems: the stable type slug, its HTTP status and its title."""

    BAD_REQUEST = "bad-request", 400, "The request cannot be understood"
    UPDATE_NOT_SHOWN = "update-not-shown", 400, "No update is accepted"
    UNAUTHENTICATED = "unauthenticated", 401, "No valid API key"
    NOT_FOUND = "not-found", 404, "No such record"
    NO_SUCH_PATH = "no-such-path", 404, "No such path"
    METHOD_NOT_ALLOWED = "method-not-allowed", 405, "Method not allowed"
    MOVE_REFUSED = "move-refused", 409, "The state of the transaction forbids this"
    TOO_LARGE = "too-large", 413, "The body is too large"
    NOT_JSON_TYPE = "not-json-type", 415, "The body is not declared as JSON"
    INTERNAL = "internal", 500, "Internal error in the sandbox"
    STORE_BUSY = "store-busy", 503, "The store is busy"

    def __init__(self, slug: str, status: int, title: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title


class Flaw(NamedTuple):
    """One error in a request.

    `place` is a JSON Pointer as a fragment (`#/amount`, as in RFC 9457 section 3) into the body, or
    the bare name of a query parameter. A parameter's name may begin with `#` too: `kind` tells them apart.
    """

    place: str
    detail: str
    kind: Literal["pointer", "parameter"] = "pointer"

    def document(self) -> JsonObject:
        """The flaw as an item of `errors`: `{"pointer"|"parameter", "detail"}`."""
        return {self.kind: self.place, "detail": self.detail}


class ProblemError(Exception):
    """A refusal: its kind, a sentence for this case, the flaws found, and headers of the answer."""

    def __init__(
        self,
        kind: ProblemKind,
        detail: str,
        *,
        flaws: tuple[Flaw, ...] = (),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.flaws = flaws
        self.headers = headers

    def document(self, *, request_id: str) -> JsonObject:
        """The body: type, title, status, detail, request_id, and for flaws `errors`."""
        errors: JsonObject = {"errors": [flaw.document() for flaw in self.flaws]} if self.flaws else {}
        return {
            "type": TYPE_PREFIX + self.kind.slug,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "request_id": request_id,
            **errors,
        }


def flawed(*flaws: Flaw) -> ProblemError:
    """A 400 whose detail joins the sentences of the flaws."""
    return ProblemError(ProblemKind.BAD_REQUEST, " ".join(flaw.detail for flaw in flaws), flaws=flaws)


def parameter_flaw(name: str, detail: str) -> Flaw:
    """A flaw in a query parameter."""
    return Flaw(name, detail, kind="parameter")


def no_record(noun: str, record_id: str) -> ProblemError:
    """A 404 for a record that is not in the store."""
    return ProblemError(ProblemKind.NOT_FOUND, f"There is no {noun} {record_id!r} here.")
