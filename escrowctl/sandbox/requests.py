"""Pydantic models of the bodies and queries that the sandbox accepts. The OpenAPI document has their schemas.

INTERFACE.md shows only the fields `amount` and `currency` of a create. Every other field, the bounds, units and
allowed values, and the query parameters are the sandbox's own choice. The message about a bad value is the field's
name, followed by its description.
"""

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from escrowctl.sandbox.bodies import JsonValue, NumberToken, invalid
from escrowctl.sandbox.http import Call
from escrowctl.sandbox.records import EventKind, State, UserId

AMOUNT_PATTERN = re.compile(r"(?=.*[1-9])(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
MAX_ADVANCE_SECONDS = 3650 * 86_400

# In ASCII. Python, Rust and ECMA-262 read this pattern alike. Not allowed: userinfo (a password would be stored and
# listed) and a fragment (it is never sent).
_URL = r"^https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?(?:[/?][!-\"$-~]*)?$"


def _check_amount(value: NumberToken) -> NumberToken:
    if AMOUNT_PATTERN.fullmatch(value.text) is None:
        raise ValueError
    return value


def _check_unique(kinds: list[EventKind]) -> list[EventKind]:
    if len(set(kinds)) != len(kinds):
        raise ValueError
    return kinds


def _read_whole_number(value: JsonValue) -> int:
    if not isinstance(value, NumberToken) or not re.fullmatch("[0-9]{1,9}", value.text):
        raise ValueError
    return int(value.text)


def _refuse_any_value(_value: object) -> None:
    raise ValueError


ABSENT: Any = Field(default_factory=lambda: None)
"""The default of a field that a body may leave out. A body may not set the field to null: no schema shows it."""

Amount = Annotated[
    NumberToken,
    AfterValidator(_check_amount),
    WithJsonSchema(
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10**14, "multipleOf": NumberToken("0.0001")}
    ),
    Field(
        description="must be a number above 0, not a string, with at most 14 digits before the point, at most 4 after"
        " it, and no exponent."
    ),
]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", description="must be three capital letters.")]
User = Annotated[UserId, Field(description=f"must be one of {', '.join(UserId)}.")]
Duration = Annotated[
    str, Field(pattern="^[1-9][0-9]{0,3}[smhd]$", description="must be a duration, such as 90s, 10m, 2h or 7d.")
]
Url = Annotated[
    str,
    Field(
        pattern=_URL,
        max_length=2048,
        description="must be an absolute http or https URL in ASCII, without user name, password or fragment, of at"
        " most 2048 characters.",
    ),
]
Kinds = Annotated[
    list[EventKind],
    AfterValidator(_check_unique),
    Field(
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description=f"must be a list of one or more of {', '.join(EventKind)}, none twice.",
    ),
]
Description = Annotated[str, Field(max_length=500, description="must be text of at most 500 characters.")]
Id = Annotated[str, Field(description="must be an id.")]
Reserved = Annotated[
    Any, BeforeValidator(_refuse_any_value), WithJsonSchema({"not": {}}), Field(description="is set by the service.")
]


class Body(BaseModel, extra="allow", arbitrary_types_allowed=True):
    """The body of a call. `model_extra` has the fields that the sandbox does not know, as sent."""


class NewTransaction(Body):
    """A new transaction. After expires_in the money goes back to the payer, after auto_release_in to the payee."""

    id: Reserved = ABSENT
    status: Reserved = ABSENT
    created_at: Reserved = ABSENT
    updated_at: Reserved = ABSENT
    expires_at: Reserved = ABSENT
    auto_release_at: Reserved = ABSENT
    amount: Amount
    currency: Currency
    payer: User = UserId.PAYER
    payee: User = UserId.PAYEE
    expires_in: Duration = ABSENT
    auto_release_in: Duration = ABSENT


class NewWebhook(Body):
    """A webhook endpoint to create. Without `events` it gets every kind of event."""

    id: Reserved = ABSENT
    status: Reserved = ABSENT
    secret: Reserved = ABSENT
    created_at: Reserved = ABSENT
    url: Url
    events: Kinds = ABSENT
    description: Description = ABSENT


class NewEvent(Body):
    """An event to send about a transaction that does not change."""

    event: EventKind = Field(description=f"must be one of {', '.join(EventKind)}.")
    transaction: Id


class ClockAdvance(Body):
    """How far to advance the clock."""

    advance_seconds: Annotated[int, BeforeValidator(_read_whole_number)] = Field(
        ge=1, le=MAX_ADVANCE_SECONDS, description=f"must be a whole number from 1 to {MAX_ADVANCE_SECONDS}."
    )


class NewStatus(Body):
    """A transaction, and the status to which it is moved."""

    id: Id
    status: State = Field(description=f"must be one of {', '.join(State)}.")


class Query(BaseModel, extra="forbid"):
    """The query of a call. An unknown parameter is refused: an ignored filter would show a client the wrong records."""


class PageQuery(Query):
    """The page of a list: at most `limit` records, older than the record `after`."""

    limit: str = Field("50", pattern="^([1-9][0-9]?|100)$", description="must be a whole number from 1 to 100.")
    after: str | None = Field(None, description="must be an id.")


class DeliveriesQuery(Query):
    """Which deliveries to list: at most `limit`, and only the undelivered ones if `undelivered` is true."""

    limit: str = Field("50", pattern="^([1-9][0-9]{0,2}|1000)$", description="must be a whole number from 1 to 1000.")
    undelivered: str = Field("false", pattern="^(true|false)$", description="must be true or false.")


_Model = TypeVar("_Model", bound=BaseModel)


def read_body(call: Call, model: type[_Model]) -> _Model:
    """Return a call's body as a model. Raises ProblemError: 415 if it is not JSON, 400 with all its flaws."""
    return _validate(call.read_object(), model, member="pointer", prefix="#/")


def read_query(call: Call, model: type[_Model]) -> _Model:
    """Return the query of a call as a model. Raises ProblemError 400 with all its flaws."""
    return _validate(call.query, model, member="parameter")


def _validate(value: object, model: type[_Model], *, member: str, prefix: str = "") -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        names = dict.fromkeys(str(one["loc"][0]) for one in error.errors(include_url=False, include_input=False))
        rules = {name: f"{name} {field.description}" for name, field in model.model_fields.items()}
        raise invalid(
            *({member: prefix + name, "detail": rules.get(name, f"{name!r} is not a parameter.")} for name in names)
        ) from error
