"""The bodies of requests and replies: strict JSON in, exact JSON out, errors as problem details (RFC 9457).

A number is stored as its text and never becomes a float. INTERFACE.md section 7 does not show the bodies, codes and
causes of errors: every kind, title and cause here is the sandbox's own choice. A handler raises a `ProblemError`,
and the app turns it into an answer.
"""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NoReturn, TypeAlias

PROBLEM_TYPE = "application/problem+json"
PROBLEM_URN_PREFIX = "urn:escrowctl:sandbox:"
MAX_DEPTH = 32


class NumberToken:
    """A JSON number in its written form: `100.00` stays `100.00`, `1e400` stays `1e400`."""

    # Not a subclass of tuple or str: the code below recognises lists and strings by their type.
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


JsonValue: TypeAlias = "bool | int | str | NumberToken | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""A value that `write_json` accepts. Values from `read_json` contain no `int`: their numbers are `NumberToken`."""

JsonObject: TypeAlias = Mapping[str, JsonValue]


def read_json(raw: bytes) -> JsonValue:
    """Return the value of a JSON text, by the rules of RFC 8259 and I-JSON (RFC 7493).

    The text must be UTF-8 without a byte order mark. NaN, Infinity, lone surrogates, an object with two equal
    names, and more than MAX_DEPTH levels are refused. Raises ProblemError 400.
    """
    try:
        value: JsonValue = json.loads(
            raw.decode("utf-8"),
            parse_int=NumberToken,
            parse_float=NumberToken,
            parse_constant=lambda constant: _refuse_json(f"{constant} is not a JSON number"),
            object_pairs_hook=_require_unique_names,
        )
    except UnicodeDecodeError as error:
        _refuse_json(f"not UTF-8 at byte {error.start}")
    except json.JSONDecodeError as error:
        _refuse_json(f"not JSON at line {error.lineno}, column {error.colno}")
    except RecursionError:
        _refuse_json("nested too deeply")
    _check_texts_and_depth(value, depth=1)
    return value


def parse_object(text: str) -> JsonObject:
    """Return the object in a text that `write_json` wrote."""
    value = read_json(text.encode())
    assert isinstance(value, Mapping), "only objects are stored"
    return value


def write_json(value: JsonValue) -> str:
    """Return a value as one line of ASCII JSON. A `NumberToken` keeps its written form."""
    match value:
        case NumberToken():
            return value.text
        case str() | int() | None:
            return json.dumps(value)
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{write_json(item)}" for name, item in value.items()) + "}"
        case _:
            return "[" + ",".join(write_json(item) for item in value) + "]"


def _require_unique_names(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        _refuse_json("an object has the same name twice")
    return members


def _check_texts_and_depth(value: JsonValue, *, depth: int) -> None:
    if isinstance(value, str):
        # SQLite stores text as UTF-8, which has no bytes for a lone surrogate.
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            _refuse_json("a string contains half of a surrogate pair")
    elif isinstance(value, Mapping | Sequence):
        if depth > MAX_DEPTH:
            _refuse_json("nested too deeply")
        for item in (*value, *value.values()) if isinstance(value, Mapping) else value:
            _check_texts_and_depth(item, depth=depth + 1)


class ProblemKind(Enum):
    """Every kind of problem: the end of its `type` URN, its HTTP status, its title, and a header if it has one."""

    BAD_REQUEST = "bad-request", 400, "The request cannot be understood"
    UPDATE_NOT_SHOWN = "update-not-shown", 400, "No update is accepted"
    UNAUTHENTICATED = "unauthenticated", 401, "No valid API key", ("WWW-Authenticate", "Bearer")
    NO_FUNDS = "no-funds", 402, "The payer has too little money"
    NOT_FOUND = "not-found", 404, "No such record"
    NO_SUCH_PATH = "no-such-path", 404, "No such path"
    METHOD_NOT_ALLOWED = "method-not-allowed", 405, "Method not allowed"
    MOVE_REFUSED = "move-refused", 409, "The state of the transaction forbids this"
    DELIVERING = "delivering", 409, "Another process is delivering events"
    TOO_LARGE = "too-large", 413, "The body is too large"
    NOT_JSON_TYPE = "not-json-type", 415, "The body is not declared as JSON"
    KEY_REUSED = "key-reused", 422, "The Idempotency-Key belongs to another request"
    THROTTLED = "throttled", 429, "Too many requests", ("Retry-After", "1")
    INTERNAL = "internal", 500, "Internal error in the sandbox"
    STORE_BUSY = "store-busy", 503, "The store is busy", ("Retry-After", "1")

    def __init__(self, slug: str, status: int, title: str, *headers: tuple[str, str]) -> None:
        self.slug = slug
        self.status = status
        self.title = title
        self.headers = dict(headers)


Flaw: TypeAlias = Mapping[str, str]
"""One error in a request, as its answer shows it: `detail` (a sentence), and `pointer` or `parameter` (the place).

`pointer` is a JSON Pointer into the body, as a fragment: `#/amount` (RFC 9457 section 3).
"""


class ProblemError(Exception):
    """An error reply: its kind, a sentence about the request, the request's flaws, and headers to add to the kind's."""

    def __init__(
        self, kind: ProblemKind, detail: str, *, flaws: tuple[Flaw, ...] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.flaws = flaws
        self.headers = {**kind.headers, **(headers or {})}

    def make_body(self, *, request_id: str) -> JsonObject:
        """Return the reply's body: type, title, status, detail, request_id, and the flaws, if any, as `errors`."""
        return {
            "type": PROBLEM_URN_PREFIX + self.kind.slug,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "request_id": request_id,
            **({"errors": self.flaws} if self.flaws else {}),
        }


def invalid(*flaws: Flaw) -> ProblemError:
    """Return the 400 for a request with these flaws. The detail of the error joins the sentences of the flaws."""
    return ProblemError(ProblemKind.BAD_REQUEST, " ".join(flaw["detail"] for flaw in flaws), flaws=flaws)


def _refuse_json(reason: str) -> NoReturn:
    raise invalid({"pointer": "#", "detail": f"The body is not usable JSON: {reason}."})


def no_record(noun: str, record_id: str) -> ProblemError:
    """Return the 404 for a record that is not in the store. `noun` is the type of the record, such as `user`."""
    return ProblemError(ProblemKind.NOT_FOUND, f"There is no {noun} {record_id!r} here.")
