"""The OpenAPI 3.1 document of the sandbox, at GET /openapi.json.

Methods and paths come from the contract's list of operations, the schemas come from pydantic models. The models of
replies are here, because only this module uses them. The document lists every status that a call can get.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, RootModel
from pydantic.json_schema import models_json_schema

from escrowctl.contract import operations
from escrowctl.contract.operations import DEFAULT_API_PREFIX, Operation
from escrowctl.sandbox import requests
from escrowctl.sandbox.bodies import PROBLEM_TYPE, PROBLEM_URN_PREFIX, JsonObject, JsonValue, ProblemKind
from escrowctl.sandbox.http import JSON_TYPE, MAX_BODY_BYTES, REQUEST_ID_HEADER, REQUEST_ID_PATTERN, success_status
from escrowctl.sandbox.records import EventKind, State, UserId
from escrowctl.sandbox.seed import ID_LENGTH

ID_PREFIXES: Mapping[str, str] = {"transaction": "tx", "user": "usr", "webhook": "wh"}

MAX_PAGE_SIZE = 100

COMMON_PROBLEMS = (
    *(ProblemKind.BAD_REQUEST, ProblemKind.UNAUTHENTICATED, ProblemKind.TOO_LARGE),
    *(ProblemKind.INTERNAL, ProblemKind.STORE_BUSY),
)
"""The problems of every call."""


def id_pattern(prefix: str) -> str:
    """Return the pattern of ids, also of magic ids: the prefix, `_`, and eight digits or capital letters."""
    return f"^{prefix}_[0-9A-Z]{{{ID_LENGTH}}}$"


REQUEST_ID_SCHEMA = {"type": "string", "pattern": f"^{REQUEST_ID_PATTERN.pattern}$"}

_TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
Time = Annotated[str, Field(pattern=_TIME_PATTERN, json_schema_extra={"format": "date-time"})]


class Transaction(requests.Body):
    """A transaction. It also has the unknown fields of the request that created it."""

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


class TransactionPage(BaseModel, extra="forbid"):
    """One page of transactions, newest first."""

    data: list[Transaction] = Field(max_length=MAX_PAGE_SIZE)
    has_more: bool


class User(BaseModel, extra="forbid"):
    """A person who pays or is paid."""

    id: UserId
    name: str
    email: str = Field(json_schema_extra={"format": "email"})
    status: Literal["active"]
    created_at: Time


class Webhook(requests.Body):
    """A webhook endpoint, without its secret."""

    id: str = Field(pattern=id_pattern("wh"))
    url: requests.Url
    events: requests.Kinds
    description: requests.Description = requests.ABSENT
    status: Literal["enabled"]
    created_at: Time
    secret: requests.Reserved = requests.ABSENT


class CreatedWebhook(Webhook):
    """A new webhook endpoint. Its secret, 32 random bytes in base64, signs each delivery and is shown only here."""

    secret: str = Field(pattern="^whsec_[A-Za-z0-9+/]{43}=$")


class WebhookPage(BaseModel, extra="forbid"):
    """One page of webhook endpoints, newest first."""

    data: list[Webhook] = Field(max_length=MAX_PAGE_SIZE)
    has_more: bool


class Event(BaseModel, extra="forbid"):
    """The body of an event, as an endpoint receives it. `sequence` counts the events of one transaction."""

    type: EventKind
    timestamp: Time
    sequence: int = Field(ge=1)
    data: Transaction


class AnyObject(RootModel[dict[str, Any]]):
    """A JSON object that has no effect."""


class Flaw(BaseModel, extra="forbid"):
    """A flaw in the body or in the query. `pointer` is a JSON Pointer into the body (RFC 9457)."""

    pointer: Annotated[str, Field(pattern="^#(/.*)?$")] = requests.ABSENT
    parameter: str = requests.ABSENT
    detail: str


class Problem(BaseModel, extra="forbid"):
    """An error reply (RFC 9457). The responses of a call say which types and status it can have."""

    type: str
    title: str
    status: int
    detail: str
    request_id: Annotated[str, Field(pattern=REQUEST_ID_SCHEMA["pattern"])]
    errors: list[Flaw] = Field(default_factory=list, min_length=1)


class CallDescription(NamedTuple):
    """The description of one operation, without its method and path.

    If `reply_model` is None, the call is always refused. If there is an `example`, the body is required.
    """

    summary: str
    reply_model: type[BaseModel] | None
    body_model: type[BaseModel] | None = None
    example: JsonObject | None = None
    problems: Sequence[ProblemKind] = ()


DESCRIPTIONS: Mapping[Operation, CallDescription] = {
    operations.CREATE_TRANSACTION: CallDescription(
        "Create a new escrow transaction: the money is held",
        reply_model=Transaction,
        body_model=requests.NewTransaction,
        problems=(ProblemKind.NO_FUNDS, ProblemKind.KEY_REUSED, ProblemKind.THROTTLED),
        example={"amount": 100, "currency": "USD"},
    ),
    operations.GET_TRANSACTION: CallDescription("Get transaction details", reply_model=Transaction),
    operations.RELEASE_TRANSACTION: CallDescription(
        "Release funds from escrow, once",
        reply_model=Transaction,
        body_model=AnyObject,
        problems=(ProblemKind.MOVE_REFUSED, ProblemKind.KEY_REUSED),
    ),
    operations.LIST_TRANSACTIONS: CallDescription("List transactions", reply_model=TransactionPage),
    operations.UPDATE_TRANSACTION: CallDescription(
        "Always refused with 400: the published interface describes no update",
        reply_model=None,
        body_model=AnyObject,
        problems=(ProblemKind.UPDATE_NOT_SHOWN,),
    ),
    operations.GET_USER: CallDescription("Get user information", reply_model=User),
    operations.CREATE_WEBHOOK: CallDescription(
        "Create a webhook endpoint; its secret is shown in this answer only",
        reply_model=CreatedWebhook,
        body_model=requests.NewWebhook,
        example={"url": "http://127.0.0.1:3000/hooks", "events": ["transaction.released"]},
    ),
    operations.LIST_WEBHOOKS: CallDescription("List webhook endpoints", reply_model=WebhookPage),
}


@cache
def build_openapi_document() -> JsonObject:
    """Return the document. It contains no secret, and is the same for every sandbox."""
    paths: dict[str, dict[str, JsonObject]] = {}
    for operation, description in DESCRIPTIONS.items():
        item = paths.setdefault(DEFAULT_API_PREFIX + operation.path, {})
        item[operation.method.lower()] = _describe_operation(operation, description)
    # The request that the sandbox sends to an endpoint, by Standard Webhooks 1.0.0.
    event_call: JsonObject = {
        "operationId": "receive_event",
        "summary": "An event, signed as in Standard Webhooks; it may come more than once, with the same webhook-id",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
            for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        ],
        "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": _refer_to(Event)}}},
        "responses": {"2XX": {"description": "Delivered. After any other reply the event is sent again later."}},
    }
    models: list[type[BaseModel]] = [Event, Problem]
    models += [model for one in DESCRIPTIONS.values() for model in (one.reply_model, one.body_model) if model]
    _, generated = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "escrowctl sandbox",
            "version": "v1",
            "description": "An escrow service for rehearsals, without real money. Details that the published"
            " interface does not show are the sandbox's own choice: another service may differ.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "webhooks": {"event": {"post": event_call}},
        "components": {
            "schemas": generated["$defs"],
            "headers": {REQUEST_ID_HEADER: {"required": True, "schema": REQUEST_ID_SCHEMA}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _refer_to(model: type[BaseModel]) -> JsonObject:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _describe_operation(operation: Operation, description: CallDescription) -> JsonObject:
    kinds = {*COMMON_PROBLEMS, *description.problems}
    if "{id}" in operation.path:
        # A `/` in an id, even as %2F, starts another segment: the path may belong to another operation, or to none.
        kinds |= {ProblemKind.NOT_FOUND, ProblemKind.NO_SUCH_PATH, ProblemKind.METHOD_NOT_ALLOWED}
    described: dict[str, JsonValue] = {
        "operationId": operation.name,
        "summary": description.summary,
        "description": f"{operation.provenance.capitalize()}.",
        "parameters": _list_parameters(operation),
    }
    if description.body_model:
        kinds.add(ProblemKind.NOT_JSON_TYPE)
        example: JsonObject = {"example": description.example} if description.example else {}
        described["requestBody"] = {
            "required": bool(example),
            "description": f"Strict JSON: no name twice in an object; at most {MAX_BODY_BYTES} bytes.",
            "content": {JSON_TYPE: {"schema": _refer_to(description.body_model), **example}},
        }
    success: dict[str, JsonObject] = {}
    if description.reply_model:
        # The other operations can take the id of the record that a write returns.
        targets = [one for one in DESCRIPTIONS if one.noun == operation.noun and not one.creates_record]
        links: JsonObject = {
            f"{target.name}_by_{name}": {"operationId": target.name, "parameters": {name: "$response.body#/id"}}
            for target in targets
            for name in ("id" if "{id}" in target.path else "after",)
        }
        success[f"{success_status(operation)}"] = {
            **_make_response(description.summary, JSON_TYPE, _refer_to(description.reply_model)),
            **({"links": links} if operation.is_write else {}),
        }
    return {**described, "responses": {**success, **_list_refusals(kinds)}}


def _list_parameters(operation: Operation) -> Sequence[JsonObject]:
    found: list[JsonObject] = []
    id_schema: JsonObject = {"type": "string", "pattern": id_pattern(ID_PREFIXES[operation.noun])}
    if "{id}" in operation.path:
        example: JsonObject = {"example": UserId.PAYER} if operation is operations.GET_USER else {}
        found.append({"name": "id", "in": "path", "required": True, "schema": id_schema, **example})
    if operation in (operations.LIST_TRANSACTIONS, operations.LIST_WEBHOOKS):
        limit: JsonObject = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": 50}
        found.append({"name": "limit", "in": "query", "schema": limit})
        meaning = "The id of an existing record: only older records are listed."
        found.append({"name": "after", "in": "query", "schema": id_schema, "description": meaning})
    if operation.is_write:
        found.append(_describe_header("Idempotency-Key", "Accepted without effect: the interface shows none."))
    found.append(_describe_header(REQUEST_ID_HEADER, "Returned in the answer if it is valid, else replaced."))
    return found


def _describe_header(name: str, meaning: str) -> JsonObject:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": meaning}


def _list_refusals(kinds: Collection[ProblemKind]) -> JsonObject:
    """Return the responses for these kinds of problems, by status."""
    responses: dict[str, JsonObject] = {}
    for status in sorted({kind.status for kind in kinds}):
        found = [kind for kind in ProblemKind if kind in kinds and kind.status == status]
        types = [PROBLEM_URN_PREFIX + kind.slug for kind in found]
        properties: JsonObject = {"type": {"enum": types}, "status": {"const": status}}
        headers = {name: {"type": "string", "const": value} for kind in found for name, value in kind.headers.items()}
        if ProblemKind.METHOD_NOT_ALLOWED in found:
            headers["Allow"] = {"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}
        meaning, schema = " / ".join(kind.title for kind in found), {**_refer_to(Problem), "properties": properties}
        responses[f"{status}"] = _make_response(meaning, PROBLEM_TYPE, schema, headers)
    return responses


def _make_response(
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
