"""The sandbox's description of itself: an OpenAPI 3.1 document, at GET /openapi.json.

Methods and paths are the contract's list of operations; what stands here by hand is what each of them
takes and answers. Every status that a call can be answered with is listed, and no other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    DEFAULT_API_PREFIX,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    OPERATIONS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
    Access,
    Operation,
)
from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.calls import JSON_TYPE, MAX_BODY_BYTES
from escrowctl.sandbox.gate import OPENAPI_PATH
from escrowctl.sandbox.openapi_schemas import REQUEST_ID, id_schema, problem_name, schema_ref, schemas
from escrowctl.sandbox.pages import DEFAULT_LIMIT, MAX_LIMIT
from escrowctl.sandbox.problems import PROBLEM_TYPE, ProblemKind
from escrowctl.sandbox.records import DEFAULT_PAYER
from escrowctl.sandbox.request import REQUEST_ID_HEADER
from escrowctl.sandbox.route import SUCCESS, success_status

ID_PREFIXES: Mapping[str, str] = MappingProxyType({"transaction": "tx", "user": "usr", "webhook": "wh"})

ANY_CALL = (ProblemKind.BAD_REQUEST, ProblemKind.TOO_LARGE, ProblemKind.INTERNAL)
ANY_CALL_WITH_KEY = (ProblemKind.UNAUTHENTICATED, ProblemKind.STORE_BUSY)
# A `/` in an id, even as %2F, is one more segment: the path may be another's, or nobody's.
ANY_CALL_WITH_ID = (ProblemKind.NOT_FOUND, ProblemKind.NO_SUCH_PATH, ProblemKind.METHOD_NOT_ALLOWED)


@dataclass(frozen=True, slots=True)
class Description:
    """What the document says of one operation, beside its method and path.

    `takes` and `answers` name schemas; `answers` None is a call that is always refused. `links` are
    the operations that the id in an answer leads to, each with the parameter that it goes into.
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
            problems=(ProblemKind.MOVE_REFUSED,),
            links=((GET_TRANSACTION, "id"), (RELEASE_TRANSACTION, "id")),
        ),
        LIST_TRANSACTIONS: Description("List transactions", answers="TransactionPage"),
        UPDATE_TRANSACTION: Description(
            "Refused with 400 whatever it says: what it would accept is not shown",
            answers=None,
            takes="AnyObject",
            problems=(ProblemKind.UPDATE_NOT_SHOWN,),
        ),
        GET_USER: Description("Get user information", answers="User", id_example=DEFAULT_PAYER),
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

LISTS = frozenset({LIST_TRANSACTIONS, LIST_WEBHOOKS})

HEADERS: Mapping[ProblemKind, tuple[str, JsonObject]] = MappingProxyType(
    {
        ProblemKind.UNAUTHENTICATED: ("WWW-Authenticate", {"type": "string", "const": "Bearer"}),
        ProblemKind.METHOD_NOT_ALLOWED: ("Allow", {"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}),
        ProblemKind.STORE_BUSY: ("Retry-After", {"type": "string", "const": "1"}),
    }
)
"""The header that a kind of problem comes with (RFC 9110, sections 11.6.1, 10.2.1 and 10.2.3)."""


@cache
def openapi_document() -> JsonObject:
    """Return the document; it holds no secret, and is the same for every sandbox."""
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
        "paths": _paths(),
        "components": {
            "schemas": schemas(),
            "headers": {REQUEST_ID_HEADER: {"required": True, "schema": REQUEST_ID}},
            "responses": {f"{status}": _problem_response(kinds) for status, kinds in _by_status(ProblemKind)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> JsonObject:
    paths: dict[str, dict[str, JsonObject]] = {}
    for operation in OPERATIONS:
        item = paths.setdefault(DEFAULT_API_PREFIX + operation.path, {})
        item[operation.method.lower()] = _operation(operation, DESCRIPTIONS[operation])
    return {**paths, OPENAPI_PATH: {"get": _itself()}}


def _operation(operation: Operation, said: Description) -> JsonObject:
    kinds = [*ANY_CALL, *ANY_CALL_WITH_KEY, *said.problems]
    kinds += ANY_CALL_WITH_ID if "{id}" in operation.path else ()
    kinds += (ProblemKind.NOT_JSON_TYPE,) if said.takes else ()
    done = {f"{success_status(operation)}": _response(said)} if said.answers else {}
    return {
        "operationId": operation.name,
        "summary": said.summary,
        "description": f"{operation.standing.capitalize()}.",
        "tags": [operation.noun],
        "parameters": _parameters(operation, said),
        **({"requestBody": _request_body(said)} if said.takes else {}),
        "responses": {**done, **_problem_responses(kinds)},
    }


def _itself() -> JsonObject:
    content: JsonObject = {JSON_TYPE: {"schema": {"type": "object", "required": ["openapi", "info", "paths"]}}}
    done: JsonObject = {"description": "This document", "headers": _headers(), "content": content}
    return {
        "operationId": "get_openapi_document",
        "summary": "Get this document; it is no part of the published interface, and needs no key",
        "tags": ["sandbox"],
        "security": [],
        "responses": {f"{SUCCESS}": done, **_problem_responses(ANY_CALL)},
    }


def _parameters(operation: Operation, said: Description) -> Sequence[JsonObject]:
    found: list[JsonObject] = []
    prefix = ID_PREFIXES[operation.noun]
    if "{id}" in operation.path:
        example: JsonObject = {"example": said.id_example} if said.id_example else {}
        found.append({"name": "id", "in": "path", "required": True, "schema": id_schema(prefix), **example})
    if operation in LISTS:
        limit: JsonObject = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        found.append({"name": "limit", "in": "query", "schema": limit})
        meaning = "The id of a record that exists: only older ones are listed."
        found.append({"name": "after", "in": "query", "schema": id_schema(prefix), "description": meaning})
    if operation.access is Access.WRITE:
        found.append(_header("Idempotency-Key", "Accepted, and without effect: the interface promises nothing."))
    found.append(_header(REQUEST_ID_HEADER, "Comes back if it is a plain word; else the sandbox draws one."))
    return found


def _header(name: str, meaning: str) -> JsonObject:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": meaning}


def _request_body(said: Description) -> JsonObject:
    assert said.takes
    example: JsonObject = {"example": said.example} if said.example else {}
    return {
        "required": said.body_required,
        "description": f"Strict JSON: no name twice in an object; at most {MAX_BODY_BYTES} bytes.",
        "content": {JSON_TYPE: {"schema": schema_ref(said.takes), **example}},
    }


def _response(said: Description) -> JsonObject:
    assert said.answers
    links: JsonObject = {
        f"{target.name}_by_{parameter}": {"operationId": target.name, "parameters": {parameter: "$response.body#/id"}}
        for target, parameter in said.links
    }
    return {
        "description": said.summary,
        "headers": _headers(),
        "content": {JSON_TYPE: {"schema": schema_ref(said.answers)}},
        **({"links": links} if links else {}),
    }


def _problem_responses(kinds: Iterable[ProblemKind]) -> JsonObject:
    """Only these kinds, where a status has more than them; else the shared response of the status."""
    whole = dict(_by_status(ProblemKind))
    return {
        f"{status}": {"$ref": f"#/components/responses/{status}"}
        if found == whole[status]
        else _problem_response(found)
        for status, found in _by_status(kinds)
    }


def _problem_response(kinds: Sequence[ProblemKind]) -> JsonObject:
    found = [schema_ref(problem_name(kind)) for kind in kinds]
    return {
        "description": " / ".join(kind.title for kind in kinds),
        "headers": _headers(*(HEADERS[kind] for kind in kinds if kind in HEADERS)),
        "content": {PROBLEM_TYPE: {"schema": found[0] if len(found) == 1 else {"oneOf": found}}},
    }


def _headers(*more: tuple[str, JsonObject]) -> JsonObject:
    return {
        REQUEST_ID_HEADER: {"$ref": f"#/components/headers/{REQUEST_ID_HEADER}"},
        **{name: {"required": True, "schema": schema} for name, schema in more},
    }


def _by_status(kinds: Iterable[ProblemKind]) -> Sequence[tuple[int, Sequence[ProblemKind]]]:
    found: dict[int, list[ProblemKind]] = {}
    for kind in ProblemKind:
        if kind in set(kinds):
            found.setdefault(kind.status, []).append(kind)
    return sorted(found.items())
