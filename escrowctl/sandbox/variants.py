"""Variants of details that the interface leaves open, to imitate services that differ in these details.

A variant changes the request before the application gets it, or the answer after the application has made it. The
application itself does not change. The OpenAPI document describes the sandbox without variants.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from wsgiref.headers import Headers

from escrowctl.contract import operations
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, ProblemError, ProblemKind, parse_object, write_json
from escrowctl.sandbox.http import IDEMPOTENCY_KEY_NAME, JSON_TYPE
from escrowctl.sandbox.settings import OPERATION_WORDS, Settings, find_variant_value

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

_UNKNOWN_PATH_PREFIX = "/-"

_CAMEL_NAMES: Mapping[str, str] = {"created_at": "createdAt", "updated_at": "updatedAt", "has_more": "hasMore"}
_FOREIGN_NAMES: Mapping[str, str] = {
    "id": "escrowNo",
    "status": "escrowState",
    "created_at": "openedOn",
    "updated_at": "changedOn",
    "data": "escrows",
    "has_more": "more",
}


class Answer(NamedTuple):
    """One complete answer: the status line without the version, the headers, the body."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def with_body(self, body: bytes, *, content_type: str | None = None) -> "Answer":
        """Return a copy of the answer with this body, its length, and `content_type` if given."""
        headers = Headers([*self.headers])
        headers["Content-Length"] = str(len(body))
        if content_type is not None:
            headers["Content-Type"] = content_type
        return Answer(self.status, headers.items(), body)


def call_app(app: "WSGIApplication", environ: "WSGIEnvironment") -> Answer:
    """Call an application, and return its complete answer."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], _error: object = None) -> object:
        started.append((status, headers))
        return lambda _chunk: None

    body = b"".join(app(environ, start))  # type: ignore[arg-type] # the sandbox calls nothing with the result
    return Answer(*started[-1], body)


def vary_request(
    environ: "WSGIEnvironment", settings: Settings
) -> "tuple[WSGIEnvironment, operations.Operation | None]":
    """Return the request with the application's prefix and Idempotency-Key, and the operation it calls, or None."""
    path, prefix = environ["PATH_INFO"], find_variant_value(settings, "prefix")
    if path.startswith(f"{prefix}/"):
        path = operations.DEFAULT_API_PREFIX + path.removeprefix(prefix)
    elif path.startswith(f"{operations.DEFAULT_API_PREFIX}/"):
        path = _UNKNOWN_PATH_PREFIX + path
    route = path.removeprefix(operations.DEFAULT_API_PREFIX)
    called = [one for one in OPERATION_WORDS if one.method == environ["REQUEST_METHOD"]]
    operation = next((one for one in called if operations.match_path(one.path, route)), None)
    key = environ.get("HTTP_IDEMPOTENCY_KEY", "") if find_variant_value(settings, "idempotent") == "on" else ""
    return {**environ, "PATH_INFO": path, IDEMPOTENCY_KEY_NAME: key}, operation


def make_problem_answer(kind: ProblemKind, headers: Mapping[str, str]) -> Answer:
    """Return the answer that a fault sends in place of the application's answer: a problem with these headers."""
    detail = "This reply is a fault that was set for a rehearsal."
    document = ProblemError(kind, detail).make_body(request_id="rehearsal")
    answer = Answer(f"{kind.status} {HTTPStatus(kind.status).phrase}", list(headers.items()), b"")
    return answer.with_body(write_json(document).encode(), content_type=PROBLEM_TYPE)


def vary_answer(answer: Answer, operation: operations.Operation, settings: Settings) -> Answer:
    """Return an operation's answer in the form of the variants that are set."""
    if not answer.status.startswith("2"):
        return _shape_error(answer, find_variant_value(settings, "errors"))
    if operation is operations.RELEASE_TRANSACTION and find_variant_value(settings, "release") == "empty":
        return Answer("204 No Content", [one for one in answer.headers if not one[0].startswith("Content-")], b"")
    if operation is operations.CREATE_TRANSACTION and find_variant_value(settings, "created") == "201":
        answer = answer._replace(status="201 Created")
    return _shape_fields(answer, operation, find_variant_value(settings, "fields"))


def _shape_error(answer: Answer, shape: str) -> Answer:
    if shape == "problem":
        return answer
    document = parse_object(answer.body.decode())
    kind, detail = str(document["type"]).rpartition(":")[2], document["detail"]
    if shape == "text":
        return answer.with_body(f"{detail}\n".encode(), content_type="text/plain; charset=utf-8")
    body: JsonObject = {"message": detail} if shape == "message" else {"error": {"code": kind, "message": detail}}
    return answer.with_body(write_json(body).encode(), content_type=JSON_TYPE)


def _shape_fields(answer: Answer, operation: operations.Operation, shape: str) -> Answer:
    if shape == "plain":
        return answer
    document, shaped = parse_object(answer.body.decode()), None
    match shape:
        case "camel":
            names = {**_CAMEL_NAMES, "id": f"{operation.noun}Id"}
            shaped = _change_records(document, lambda one: _rename(one, names))
        case "foreign" if operation.noun == "transaction":
            shaped = _change_records(document, _use_foreign_names)
        case "envelope" if "data" not in document:
            shaped = {"data": document, "meta": {"version": "1"}}
    return answer if shaped is None else answer.with_body(write_json(shaped).encode())


def _change_records(document: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return `change(document)`. If the document is a page, `change` is first applied to each record in it."""
    if isinstance(records := document.get("data"), list):
        document = {**document, "data": [change(one) for one in records]}
    return change(document)


def _rename(document: JsonObject, names: Mapping[str, str]) -> JsonObject:
    return {names.get(name, name): value for name, value in document.items()}


def _use_foreign_names(document: JsonObject) -> JsonObject:
    """Return a record or page with `_FOREIGN_NAMES`, and with amount and currency in an object `value`."""
    rest = {name: value for name, value in document.items() if name not in ("amount", "currency")}
    money = {"value": {"amt": document["amount"], "ccy": document["currency"]}} if "amount" in document else {}
    return {**_rename(rest, _FOREIGN_NAMES), **money}
