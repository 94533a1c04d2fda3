"""The bodies that the sandbox sends, as pydantic models: only the OpenAPI document uses them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from escrowctl.sandbox.bodies import TYPE_PREFIX, JsonObject, ProblemKind
from escrowctl.sandbox.http import MAX_LIMIT, REQUEST_ID
from escrowctl.sandbox.records import EventKind, State, UserId
from escrowctl.sandbox.requests import (
    ABSENT,
    Amount,
    Currency,
    Description,
    Kinds,
    NewTransaction,
    NewWebhook,
    Url,
    forbid,
)
from escrowctl.sandbox.seed import ID_LENGTH


def id_pattern(prefix: str) -> str:
    """Return the pattern of an id, such as `tx_` and eight letters or digits; magic ids have any letters."""
    return f"^{prefix}_[0-9A-Z]{{{ID_LENGTH}}}$"


_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)


class Transaction(_Open):
    """A record, with the other fields of its create."""

    id: str = Field(pattern=id_pattern("tx"))
    status: State
    amount: Amount
    currency: Currency
    payer: UserId
    payee: UserId
    expires_at: Time = ABSENT
    auto_release_at: Time = ABSENT
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


class Webhook(_Open):
    """An endpoint, without its secret."""

    model_config = ConfigDict(json_schema_extra=forbid("secret"))

    id: str = Field(pattern=id_pattern("wh"))
    url: Url
    events: Kinds
    description: Description = ABSENT
    status: Literal["enabled"]
    created_at: Time


class CreatedWebhook(Webhook):
    """A new endpoint: its secret, 32 random bytes in base64, signs each delivery and is shown once."""

    model_config = ConfigDict(json_schema_extra=None)

    secret: str = Field(pattern="^whsec_[A-Za-z0-9+/]{43}=$")


class WebhookPage(_Exact):
    """Endpoints, newest first."""

    data: list[Webhook] = Field(max_length=MAX_LIMIT)
    has_more: bool


class Event(_Exact):
    """What an endpoint gets; `sequence` counts the events of one transaction."""

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


def problem_name(kind: ProblemKind) -> str:
    """Return the name of a problem's schema: `MoveRefusedProblem`."""
    return kind.slug.title().replace("-", "") + "Problem"


def _problem(kind: ProblemKind) -> type[BaseModel]:
    """Return one kind of problem (RFC 9457): its type, title and status are constants."""
    fixed: dict[str, Any] = {"type": TYPE_PREFIX + kind.slug, "title": kind.title, "status": kind.status}
    fields: dict[str, Any] = {name: Literal[value] for name, value in fixed.items()}
    fields |= {"detail": str, "request_id": RequestId}
    if kind is ProblemKind.BAD_REQUEST:
        fields["errors"] = list[InBody | InQuery], Field(ABSENT, min_length=1)
    return create_model(problem_name(kind), __base__=_Exact, **fields)


class _Schemas(GenerateJsonSchema):
    """Writes no titles, and no default if a field may be absent."""

    def field_title_should_be_set(self, *_: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        return (
            self.generate_inner(schema["schema"]) if schema.get("default") is None else super().default_schema(schema)
        )


def make_schemas() -> Mapping[str, JsonObject]:
    """Return the schemas of all bodies by name, with references into an OpenAPI document."""
    models: list[type[BaseModel]] = [NewTransaction, NewWebhook, Transaction, TransactionPage, User, CreatedWebhook]
    models += [Webhook, WebhookPage, Event, AnyObject, RequestId, *map(_problem, ProblemKind)]
    _, made = models_json_schema(
        [(model, "validation") for model in models],
        schema_generator=_Schemas,
        ref_template="#/components/schemas/{model}",
    )
    schemas: Mapping[str, JsonObject] = made["$defs"]
    return schemas
