"""Variants of details that the interface leaves open, to imitate services that differ in these details.

A variant changes the request before the router gets it, or the answer of the router. The OpenAPI document
describes the sandbox without variants.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from escrowctl.contract import operations
from escrowctl.sandbox.bodies import JsonObject
from escrowctl.sandbox.http import JSON_TYPE, Answer
from escrowctl.sandbox.settings import Settings, find_variant_value

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

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


def vary_request(
    environ: "WSGIEnvironment", settings: Settings
) -> "tuple[WSGIEnvironment, operations.Operation | None]":
    """Return the request with the router's prefix and Idempotency-Key, and the operation it calls, or None."""
    path, prefix = environ["PATH_INFO"], find_variant_value(settings, "prefix")
    if path.startswith(f"{prefix}/"):
        path = operations.DEFAULT_API_PREFIX + path.removeprefix(prefix)
    elif path.startswith(f"{operations.DEFAULT_API_PREFIX}/"):
        path = _UNKNOWN_PATH_PREFIX + path
    route = path.removeprefix(operations.DEFAULT_API_PREFIX)
    called = [one for one in operations.OPERATIONS if one.method == environ["REQUEST_METHOD"]]
    operation = next((one for one in called if operations.match_path(one.path, route)), None)
    key = environ.get("HTTP_IDEMPOTENCY_KEY", "") if find_variant_value(settings, "idempotent") == "on" else ""
    return {**environ, "PATH_INFO": path, "HTTP_IDEMPOTENCY_KEY": key}, operation


def vary_answer(answer: Answer, operation: operations.Operation, settings: Settings) -> Answer:
    """Return an operation's answer in the form of the variants that are set."""
    document = answer.content
    assert isinstance(document, Mapping), "every answer of the router has a document"
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
        return _shape_error(answer, document, find_variant_value(settings, "errors"))
    if operation is operations.RELEASE_TRANSACTION and find_variant_value(settings, "release") == "empty":
        return answer._replace(status=204, content=None)
    if operation is operations.CREATE_TRANSACTION and find_variant_value(settings, "created") == "201":
        answer = answer._replace(status=201)
    return answer._replace(content=_shape_fields(document, operation, find_variant_value(settings, "fields")))


def _shape_error(answer: Answer, problem: JsonObject, shape: str) -> Answer:
    kind, detail = str(problem["type"]).rpartition(":")[2], problem["detail"]
    match shape:
        case "text":
            return answer._replace(content=f"{detail}\n", content_type="text/plain; charset=utf-8")
        case "message":
            return answer._replace(content={"message": detail}, content_type=JSON_TYPE)
        case "object":
            return answer._replace(content={"error": {"code": kind, "message": detail}}, content_type=JSON_TYPE)
        case _:
            return answer


def _shape_fields(document: JsonObject, operation: operations.Operation, shape: str) -> JsonObject:
    match shape:
        case "camel":
            names = {**_CAMEL_NAMES, "id": f"{operation.noun}Id"}
            return _change_records(document, lambda one: _rename(one, names))
        case "foreign" if operation.noun == "transaction":
            return _change_records(document, _use_foreign_names)
        case "envelope" if "data" not in document:
            return {"data": document, "meta": {"version": "1"}}
        case _:
            return document


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
