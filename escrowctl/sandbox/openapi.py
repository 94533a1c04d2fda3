"""The OpenAPI 3.1 document of the sandbox, at GET /openapi.json.

Methods and paths come from the contract's list of operations, the schemas of bodies from pydantic models. It
lists every status that a call can return, and no other.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    DEFAULT_API_PREFIX,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Operation,
)
from escrowctl.sandbox.bodies import PROBLEM_TYPE, JsonObject, JsonValue, ProblemKind
from escrowctl.sandbox.http import (
    DEFAULT_LIMIT,
    JSON_TYPE,
    MAX_BODY_BYTES,
    MAX_LIMIT,
    OPENAPI_PATH,
    REQUEST_ID_HEADER,
    SUCCESS,
    success_status,
)
from escrowctl.sandbox.records import UserId
from escrowctl.sandbox.replies import id_pattern, make_schemas, problem_name

ID_PREFIXES: Mapping[str, str] = MappingProxyType({"transaction": "tx", "user": "usr", "webhook": "wh"})

ANY_CALL = (ProblemKind.BAD_REQUEST, ProblemKind.TOO_LARGE, ProblemKind.INTERNAL)
ANY_CALL_WITH_KEY = (ProblemKind.UNAUTHENTICATED, ProblemKind.STORE_BUSY)
# A `/` in an id, even as %2F, starts another segment: the path may be another operation's, or unknown.
ANY_CALL_WITH_ID = (ProblemKind.NOT_FOUND, ProblemKind.NO_SUCH_PATH, ProblemKind.METHOD_NOT_ALLOWED)


class Description(NamedTuple):
    """The description of one operation, without its method and path.

    `takes` and `answers` name schemas; `answers` None is a call that is always refused. `links` are
    the operations that accept the id in an answer, each with the parameter for it.
    """

    summary: str
    answers: str | None
    takes: str | None = None
    body_required: bool = False
    example: JsonObject | None = None
    problems: Sequence[ProblemKind] = ()
    links: Sequence[tuple[Operation, str]] = ()
    id_example: str | None = None


DESCRIPTIONS: Mapping[Operation, Description] = MappingProxyType(
    {
        CREATE_TRANSACTION: Description(
            "Create a new escrow transaction: the money is held",
            answers="Transaction",
            takes="NewTransaction",
            body_required=True,
            problems=(ProblemKind.NO_FUNDS, ProblemKind.KEY_REUSED, ProblemKind.THROTTLED),
            example={"amount": 100, "currency": "USD"},
            links=(
                (GET_TRANSACTION, "id"),
                (UPDATE_TRANSACTION, "id"),
                (RELEASE_TRANSACTION, "id"),
                (LIST_TRANSACTIONS, "after"),
            ),
        ),
        GET_TRANSACTION: Description("Get transaction details", answers="Transaction"),
        RELEASE_TRANSACTION: Description(
            "Release funds from escrow, once",
            answers="Transaction",
            takes="AnyObject",
            problems=(ProblemKind.MOVE_REFUSED, ProblemKind.KEY_REUSED),
            links=((GET_TRANSACTION, "id"), (RELEASE_TRANSACTION, "id")),
        ),
        LIST_TRANSACTIONS: Description("List transactions", answers="TransactionPage"),
        UPDATE_TRANSACTION: Description(
            "Always refused with 400: the published interface shows no update",
            answers=None,
            takes="AnyObject",
            problems=(ProblemKind.UPDATE_NOT_SHOWN,),
        ),
        GET_USER: Description("Get user information", answers="User", id_example=UserId.PAYER),
        CREATE_WEBHOOK: Description(
            "Create a webhook endpoint; its secret is shown in this answer only",
            answers="CreatedWebhook",
            takes="NewWebhook",
            body_required=True,
            example={"url": "http://127.0.0.1:3000/hooks", "events": ["transaction.released"]},
            links=((LIST_WEBHOOKS, "after"),),
        ),
        LIST_WEBHOOKS: Description("List webhook endpoints", answers="WebhookPage"),
    }
)

HEADERS: Mapping[ProblemKind, tuple[str, JsonObject]] = MappingProxyType(
    {
        ProblemKind.UNAUTHENTICATED: ("WWW-Authenticate", {"type": "string", "const": "Bearer"}),
        ProblemKind.METHOD_NOT_ALLOWED: ("Allow", {"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}),
        ProblemKind.THROTTLED: ("Retry-After", {"type": "string", "const": "1"}),
        ProblemKind.STORE_BUSY: ("Retry-After", {"type": "string", "const": "1"}),
    }
)
"""The header of the answer to a kind of problem (RFC 9110, sections 11.6.1, 10.2.1 and 10.2.3)."""


def schema_ref(name: str) -> JsonObject:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


@cache
def openapi_document() -> JsonObject:
    """Return the document; it contains no secret, and is the same for every sandbox."""
    paths: dict[str, dict[str, JsonObject]] = {}
    for operation, description in DESCRIPTIONS.items():
        item = paths.setdefault(DEFAULT_API_PREFIX + operation.path, {})
        item[operation.method.lower()] = _operation(operation, description)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "escrowctl sandbox",
            "version": "v1",
            "description": "An escrow service for rehearsals: no real money. What the published interface does not"
            " show is the sandbox's own choice; another service may choose otherwise.",
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": {**paths, OPENAPI_PATH: {"get": _openapi_operation()}},
        "webhooks": {"event": {"post": _event_operation()}},
        "components": {
            "schemas": make_schemas(),
            "headers": {REQUEST_ID_HEADER: {"required": True, "schema": schema_ref("RequestId")}},
            "responses": _refusals(list(ProblemKind)),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, description: Description) -> JsonObject:
    kinds = {*ANY_CALL, *ANY_CALL_WITH_KEY, *description.problems}
    if "{id}" in operation.path:
        kinds |= set(ANY_CALL_WITH_ID)
    found: dict[str, JsonValue] = {
        "operationId": operation.name,
        "summary": description.summary,
        "description": f"{operation.standing.capitalize()}.",
        "tags": [operation.noun],
        "parameters": _parameters(operation, description),
    }
    if description.takes:
        kinds.add(ProblemKind.NOT_JSON_TYPE)
        example: JsonObject = {"example": description.example} if description.example else {}
        found["requestBody"] = {
            "required": description.body_required,
            "description": f"Strict JSON: no name twice in an object; at most {MAX_BODY_BYTES} bytes.",
            "content": {JSON_TYPE: {"schema": schema_ref(description.takes), **example}},
        }
    done: dict[str, JsonObject] = {}
    if description.answers:
        links: JsonObject = {
            f"{target.name}_by_{name}": {"operationId": target.name, "parameters": {name: "$response.body#/id"}}
            for target, name in description.links
        }
        done[f"{success_status(operation)}"] = {
            **_response(description.summary, JSON_TYPE, schema_ref(description.answers)),
            **({"links": links} if links else {}),
        }
    return {**found, "responses": {**done, **_refusals(kinds)}}


def _openapi_operation() -> JsonObject:
    schema: JsonObject = {"type": "object", "required": ["openapi", "info", "paths"]}
    return {
        "operationId": "get_openapi_document",
        "summary": "Get this document; it is not part of the published interface, and needs no key",
        "tags": ["sandbox"],
        "security": [],
        "responses": {f"{SUCCESS}": _response("This document", JSON_TYPE, schema), **_refusals(ANY_CALL)},
    }


def _event_operation() -> JsonObject:
    """Return the request that the sandbox sends to an endpoint, by Standard Webhooks 1.0.0."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    headers: list[JsonObject] = [
        {"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in names
    ]
    return {
        "operationId": "receive_event",
        "summary": "An event, signed as in Standard Webhooks; it may come more than once, with the same webhook-id",
        "tags": ["webhook"],
        "security": [],
        "parameters": headers,
        "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": schema_ref("Event")}}},
        "responses": {"2XX": {"description": "Delivered. With any other reply it is sent again later."}},
    }


def _parameters(operation: Operation, description: Description) -> Sequence[JsonObject]:
    found: list[JsonObject] = []
    ids: JsonObject = {"type": "string", "pattern": id_pattern(ID_PREFIXES[operation.noun])}
    if "{id}" in operation.path:
        example: JsonObject = {"example": description.id_example} if description.id_example else {}
        found.append({"name": "id", "in": "path", "required": True, "schema": ids, **example})
    if operation in (LIST_TRANSACTIONS, LIST_WEBHOOKS):
        limit: JsonObject = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        found.append({"name": "limit", "in": "query", "schema": limit})
        meaning = "The id of an existing record: only older ones are listed."
        found.append({"name": "after", "in": "query", "schema": ids, "description": meaning})
    if operation.is_write:
        found.append(_header("Idempotency-Key", "Accepted, with no effect: the interface promises nothing."))
    found.append(_header(REQUEST_ID_HEADER, "Returned if it is valid, as in answers; else the sandbox draws one."))
    return found


def _header(name: str, meaning: str) -> JsonObject:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": meaning}


def _refusals(kinds: Collection[ProblemKind]) -> JsonObject:
    """Return a response for each status of these kinds of problems."""
    by_status: dict[str, list[ProblemKind]] = {}
    for kind in ProblemKind:
        if kind in kinds:
            by_status.setdefault(f"{kind.status}", []).append(kind)
    return {status: _problem_response(found) for status, found in by_status.items()}


def _problem_response(kinds: Sequence[ProblemKind]) -> JsonObject:
    schemas = [schema_ref(problem_name(kind)) for kind in kinds]
    return _response(
        " / ".join(kind.title for kind in kinds),
        PROBLEM_TYPE,
        schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
        *(HEADERS[kind] for kind in kinds if kind in HEADERS),
    )


def _response(meaning: str, media_type: str, schema: JsonObject, *headers: tuple[str, JsonObject]) -> JsonObject:
    return {
        "description": meaning,
        "headers": {
            REQUEST_ID_HEADER: {"$ref": f"#/components/headers/{REQUEST_ID_HEADER}"},
            **{name: {"required": True, "schema": sent} for name, sent in headers},
        },
        "content": {media_type: {"schema": schema}},
    }
