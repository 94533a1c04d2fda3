"""The OpenAPI 3.1 document of the sandbox, at GET /openapi.json.

Methods and paths come from the contract's list of operations, the schemas of bodies from pydantic models. It
lists every status that a call can return, and no other. The models of replies are here: only this document uses them.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from escrowctl.contract import operations
from escrowctl.contract.operations import DEFAULT_API_PREFIX, Operation
from escrowctl.sandbox import requests
from escrowctl.sandbox.bodies import PROBLEM_TYPE, TYPE_PREFIX, JsonObject, JsonValue, ProblemKind
from escrowctl.sandbox.http import (
    JSON_TYPE,
    MAX_BODY_BYTES,
    OPENAPI_PATH,
    REQUEST_ID,
    REQUEST_ID_HEADER,
    success_status,
)
from escrowctl.sandbox.records import EventKind, State, UserId
from escrowctl.sandbox.seed import ID_LENGTH

ID_PREFIXES: Mapping[str, str] = {"transaction": "tx", "user": "usr", "webhook": "wh"}

MAX_LIMIT = 100

ANY_CALL = (ProblemKind.BAD_REQUEST, ProblemKind.TOO_LARGE, ProblemKind.INTERNAL)
ANY_CALL_WITH_KEY = (ProblemKind.UNAUTHENTICATED, ProblemKind.STORE_BUSY)
# A `/` in an id, even as %2F, starts another segment: the path may be another operation's, or unknown.
ANY_CALL_WITH_ID = (ProblemKind.NOT_FOUND, ProblemKind.NO_SUCH_PATH, ProblemKind.METHOD_NOT_ALLOWED)


def id_pattern(prefix: str) -> str:
    """Return the pattern of an id, such as `tx_` and eight letters or digits; magic ids have any letters."""
    return f"^{prefix}_[0-9A-Z]{{{ID_LENGTH}}}$"


_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Transaction(requests.Body):
    """A transaction record. It also has the extra fields that its create sent."""

    id: str = Field(pattern=id_pattern("tx"))
    status: State
    amount: requests.Amount
    currency: requests.Currency
    payer: UserId
    payee: UserId
    expires_at: Time = requests.ABSENT
    auto_release_at: Time = requests.ABSENT
    created_at: Time
    updated_at: Time


class TransactionPage(_Exact):
    """Records, newest first."""

    data: list[Transaction] = Field(max_length=MAX_LIMIT)
    has_more: bool


class User(_Exact):
    """A person who pays or is paid."""

    id: UserId
    name: str
    email: str = Field(json_schema_extra={"format": "email"})
    status: Literal["active"]
    created_at: Time


class Webhook(requests.Body):
    """An endpoint, without its secret."""

    id: str = Field(pattern=id_pattern("wh"))
    url: requests.Url
    events: requests.Kinds
    description: requests.Description = requests.ABSENT
    status: Literal["enabled"]
    created_at: Time
    secret: requests.Reserved = requests.ABSENT


class CreatedWebhook(Webhook):
    """A new endpoint: its secret, 32 random bytes in base64, signs each delivery and is shown once."""

    secret: str = Field(pattern="^whsec_[A-Za-z0-9+/]{43}=$")


class WebhookPage(_Exact):
    """Endpoints, newest first."""

    data: list[Webhook] = Field(max_length=MAX_LIMIT)
    has_more: bool


class Event(_Exact):
    """The body sent to an endpoint; `sequence` counts the events of one transaction."""

    type: EventKind
    timestamp: Time
    sequence: int = Field(ge=1)
    data: Transaction


class RequestId(RootModel[str]):
    """The id of a request, in its reply."""

    root: str = Field(pattern=f"^{REQUEST_ID.pattern}$")


class AnyObject(RootModel[dict[str, Any]]):
    """It has no effect."""


class InBody(_Exact):
    """A flaw in the body, by JSON Pointer (RFC 9457)."""

    pointer: str = Field(pattern="^#(/.*)?$")
    detail: str


class InQuery(_Exact):
    """A flaw in the query."""

    parameter: str
    detail: str


def _problem(kind: ProblemKind) -> type[BaseModel]:
    """Return the model of a kind of problem (RFC 9457), `MoveRefusedProblem`: type, title and status are constants."""
    fixed: dict[str, Any] = {"type": TYPE_PREFIX + kind.slug, "title": kind.title, "status": kind.status}
    fields: dict[str, Any] = {name: Literal[value] for name, value in fixed.items()}
    fields |= {"detail": str, "request_id": RequestId}
    if kind is ProblemKind.BAD_REQUEST:
        fields["errors"] = list[InBody | InQuery], Field(requests.ABSENT, min_length=1)
    return create_model(kind.slug.title().replace("-", "") + "Problem", __base__=_Exact, **fields)


PROBLEMS: Mapping[ProblemKind, type[BaseModel]] = {kind: _problem(kind) for kind in ProblemKind}


class _Schemas(GenerateJsonSchema):
    """Writes no titles, and no default if a field may be absent."""

    def field_title_should_be_set(self, *_: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        return (
            self.generate_inner(schema["schema"]) if schema.get("default") is None else super().default_schema(schema)
        )


class CallDescription(NamedTuple):
    """The description of one operation, without its method and path.

    `answers` None is a call that is always refused. A body with an `example` is required. `links` are
    the operations that accept the id in an answer, each with the parameter for it.
    """

    summary: str
    answers: type[BaseModel] | None
    takes: type[BaseModel] | None = None
    example: JsonObject | None = None
    problems: Sequence[ProblemKind] = ()
    links: Sequence[tuple[Operation, str]] = ()


DESCRIPTIONS: Mapping[Operation, CallDescription] = {
    operations.CREATE_TRANSACTION: CallDescription(
        "Create a new escrow transaction: the money is held",
        answers=Transaction,
        takes=requests.NewTransaction,
        problems=(ProblemKind.NO_FUNDS, ProblemKind.KEY_REUSED, ProblemKind.THROTTLED),
        example={"amount": 100, "currency": "USD"},
        links=(
            (operations.GET_TRANSACTION, "id"),
            (operations.UPDATE_TRANSACTION, "id"),
            (operations.RELEASE_TRANSACTION, "id"),
            (operations.LIST_TRANSACTIONS, "after"),
        ),
    ),
    operations.GET_TRANSACTION: CallDescription("Get transaction details", answers=Transaction),
    operations.RELEASE_TRANSACTION: CallDescription(
        "Release funds from escrow, once",
        answers=Transaction,
        takes=AnyObject,
        problems=(ProblemKind.MOVE_REFUSED, ProblemKind.KEY_REUSED),
        links=((operations.GET_TRANSACTION, "id"), (operations.RELEASE_TRANSACTION, "id")),
    ),
    operations.LIST_TRANSACTIONS: CallDescription("List transactions", answers=TransactionPage),
    operations.UPDATE_TRANSACTION: CallDescription(
        "Always refused with 400: the published interface shows no update",
        answers=None,
        takes=AnyObject,
        problems=(ProblemKind.UPDATE_NOT_SHOWN,),
    ),
    operations.GET_USER: CallDescription("Get user information", answers=User),
    operations.CREATE_WEBHOOK: CallDescription(
        "Create a webhook endpoint; its secret is shown in this answer only",
        answers=CreatedWebhook,
        takes=requests.NewWebhook,
        example={"url": "http://127.0.0.1:3000/hooks", "events": ["transaction.released"]},
        links=((operations.LIST_WEBHOOKS, "after"),),
    ),
    operations.LIST_WEBHOOKS: CallDescription("List webhook endpoints", answers=WebhookPage),
}


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
        "security": [{"key": []}],
        "paths": {**paths, OPENAPI_PATH: {"get": _openapi_operation()}},
        "webhooks": {"event": {"post": _event_operation()}},
        "components": {
            "schemas": _schemas(),
            "headers": {REQUEST_ID_HEADER: {"required": True, "schema": _ref(RequestId)}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> JsonObject:
    """Return the schemas of all bodies by name."""
    models: list[type[BaseModel]] = [Event, *PROBLEMS.values()]
    models += [model for one in DESCRIPTIONS.values() for model in (one.answers, one.takes) if model is not None]
    _, made = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        schema_generator=_Schemas,
        ref_template="#/components/schemas/{model}",
    )
    schemas: JsonObject = made["$defs"]
    return schemas


def _ref(model: type[BaseModel]) -> JsonObject:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _operation(operation: Operation, description: CallDescription) -> JsonObject:
    kinds = {*ANY_CALL, *ANY_CALL_WITH_KEY, *description.problems}
    if "{id}" in operation.path:
        kinds |= set(ANY_CALL_WITH_ID)
    found: dict[str, JsonValue] = {
        "operationId": operation.name,
        "summary": description.summary,
        "description": f"{operation.standing.capitalize()}.",
        "parameters": _parameters(operation),
    }
    if description.takes:
        kinds.add(ProblemKind.NOT_JSON_TYPE)
        example: JsonObject = {"example": description.example} if description.example else {}
        found["requestBody"] = {
            "required": bool(example),
            "description": f"Strict JSON: no name twice in an object; at most {MAX_BODY_BYTES} bytes.",
            "content": {JSON_TYPE: {"schema": _ref(description.takes), **example}},
        }
    done: dict[str, JsonObject] = {}
    if description.answers:
        links: JsonObject = {
            f"{target.name}_by_{name}": {"operationId": target.name, "parameters": {name: "$response.body#/id"}}
            for target, name in description.links
        }
        done[f"{success_status(operation)}"] = {
            **_response(description.summary, JSON_TYPE, _ref(description.answers)),
            **({"links": links} if links else {}),
        }
    return {**found, "responses": {**done, **_refusals(kinds)}}


def _openapi_operation() -> JsonObject:
    schema: JsonObject = {"type": "object", "required": ["openapi", "info", "paths"]}
    return {
        "operationId": "get_openapi_document",
        "summary": "Get this document; it is not part of the published interface, and needs no key",
        "security": [],
        "responses": {"200": _response("This document", JSON_TYPE, schema), **_refusals(ANY_CALL)},
    }


def _event_operation() -> JsonObject:
    """Return the request that the sandbox sends to an endpoint, by Standard Webhooks 1.0.0."""
    return {
        "operationId": "receive_event",
        "summary": "An event, signed as in Standard Webhooks; it may come more than once, with the same webhook-id",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
            for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        ],
        "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": _ref(Event)}}},
        "responses": {"2XX": {"description": "Delivered. With any other reply it is sent again later."}},
    }


def _parameters(operation: Operation) -> Sequence[JsonObject]:
    found: list[JsonObject] = []
    ids: JsonObject = {"type": "string", "pattern": id_pattern(ID_PREFIXES[operation.noun])}
    if "{id}" in operation.path:
        example: JsonObject = {"example": UserId.PAYER} if operation is operations.GET_USER else {}
        found.append({"name": "id", "in": "path", "required": True, "schema": ids, **example})
    if operation in (operations.LIST_TRANSACTIONS, operations.LIST_WEBHOOKS):
        limit: JsonObject = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 50}
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
    responses: dict[str, JsonObject] = {}
    for status in sorted({kind.status for kind in kinds}):
        found = [kind for kind in ProblemKind if kind in kinds and kind.status == status]
        schemas = [_ref(PROBLEMS[kind]) for kind in found]
        headers = {name: {"type": "string", "const": value} for kind in found for name, value in kind.headers.items()}
        if ProblemKind.METHOD_NOT_ALLOWED in found:
            headers["Allow"] = {"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}
        schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
        responses[f"{status}"] = _response(" / ".join(kind.title for kind in found), PROBLEM_TYPE, schema, headers)
    return responses


def _response(
    meaning: str, media_type: str, schema: JsonObject, headers: Mapping[str, JsonObject] = MappingProxyType({})
) -> JsonObject:
    return {
        "description": meaning,
        "headers": {
            REQUEST_ID_HEADER: {"$ref": f"#/components/headers/{REQUEST_ID_HEADER}"},
            **{name: {"required": True, "schema": sent} for name, sent in headers.items()},
        },
        "content": {media_type: {"schema": schema}},
    }
