"""The bodies that the sandbox accepts: pydantic models, which make the schemas of its OpenAPI document too.

INTERFACE.md shows `amount` and `currency` of a create, and no field of a webhook endpoint; it shows no bounds, units
and values. All else is the sandbox's own choice. The description of a field is the sentence about a bad value.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from escrowctl.sandbox.bodies import BodyFlaw, JsonObject, JsonValue, NumberToken, flawed
from escrowctl.sandbox.http import Call
from escrowctl.sandbox.records import EventKind, UserId

AMOUNT = re.compile(r"(?=.*[1-9])(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
LONGEST_ADVANCE = 3650 * 86_400

# Of RFC 3986, in ASCII. It has no construct that Python, Rust and ECMA-262 read differently. Not allowed: userinfo (a
# password would be stored and listed) and a fragment (it is never sent).
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]{{2,39}}\]"
_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
# Percent signs come with two digits; written this way, a search has only one way to match and never backtracks.
_IN_PATH = "[A-Za-z0-9._~!$&'()*+,;=:@/-]*"
_PATH = f"{_IN_PATH}(?:%[0-9A-Fa-f]{{2}}{_IN_PATH})*"
_IN_QUERY = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]*"
_QUERY = f"{_IN_QUERY}(?:%[0-9A-Fa-f]{{2}}{_IN_QUERY})*"
_URL = rf"^https?://(?:{_HOST})(?::(?:{_PORT}))?(?:/{_PATH})?(?:\?{_QUERY})?$"


def _check_amount(value: NumberToken) -> NumberToken:
    if AMOUNT.fullmatch(value.text) is None:
        raise ValueError
    return value


def _check_unique(kinds: list[EventKind]) -> list[EventKind]:
    if len(set(kinds)) != len(kinds):
        raise ValueError
    return kinds


def _read_whole(value: JsonValue) -> int:
    if not isinstance(value, NumberToken) or not re.fullmatch("[0-9]{1,9}", value.text):
        raise ValueError
    return int(value.text)


def forbid(*names: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that forbids these fields in a schema."""
    return lambda schema: schema["properties"].update(dict.fromkeys(sorted(names), False))


ABSENT: Any = None
"""The value of a missing field. JSON null is refused."""

Amount = Annotated[
    NumberToken,
    AfterValidator(_check_amount),
    WithJsonSchema(
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10**14, "multipleOf": NumberToken("0.0001")}
    ),
    Field(
        description="amount must be a number above 0, not a string, with at most 14 digits before the point, at most 4"
        " after it, and no exponent."
    ),
]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", description="currency must be three capital letters.")]
Url = Annotated[
    str,
    Field(
        pattern=_URL,
        max_length=2048,
        description="url must be an absolute http or https URL in ASCII, without user name, password or fragment, of"
        " at most 2048 characters.",
    ),
]
Kinds = Annotated[
    list[EventKind],
    AfterValidator(_check_unique),
    Field(
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description=f"events must be a list of one or more of {', '.join(EventKind)}, none twice.",
    ),
]
Description = Annotated[str, Field(max_length=500, description="description must be text of at most 500 characters.")]


def _duration(name: str) -> Any:
    rule = f"{name} must be a duration, such as 90s, 10m, 2h or 7d."
    return Field(ABSENT, pattern="^[1-9][0-9]{0,3}[smhd]$", description=rule)


class Body(BaseModel):
    """The body of a call; `reserved` are fields that only the service may set."""

    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)
    reserved: ClassVar[frozenset[str]] = frozenset()

    @property
    def extra(self) -> JsonObject:
        """The fields that the sandbox does not know, as sent."""
        return self.model_extra or {}


class NewTransaction(Body):
    """A create. expires_in returns the money to the payer after a time, auto_release_in releases it to the payee."""

    reserved = frozenset({"id", "status", "created_at", "updated_at", "expires_at", "auto_release_at"})
    model_config = ConfigDict(json_schema_extra=forbid(*reserved))

    amount: Amount
    currency: Currency
    payer: UserId = Field(UserId.PAYER, description=f"payer must be one of {', '.join(UserId)}.")
    payee: UserId = Field(UserId.PAYEE, description=f"payee must be one of {', '.join(UserId)}.")
    expires_in: str = _duration("expires_in")
    auto_release_in: str = _duration("auto_release_in")


class NewWebhook(Body):
    """An endpoint; without `events` it gets every kind."""

    reserved = frozenset({"id", "status", "secret", "created_at"})
    model_config = ConfigDict(json_schema_extra=forbid(*reserved))

    url: Url
    events: Kinds = ABSENT
    description: Description = ABSENT


class NewEvent(Body):
    """An event to send although nothing changes."""

    event: EventKind = Field(description=f"event must be one of {', '.join(EventKind)}.")
    transaction: str = Field(description="transaction must be an id.")


class Advance(Body):
    """How far the clock is advanced."""

    advance_seconds: Annotated[int, BeforeValidator(_read_whole)] = Field(
        ge=1, le=LONGEST_ADVANCE, description=f"advance_seconds must be a whole number from 1 to {LONGEST_ADVANCE}."
    )


class NewStatus(Body):
    """The status that a transaction is moved to."""

    id: str = Field(description="id must be the id of a transaction.")
    status: str = Field(description="status must be a text.")


_Body = TypeVar("_Body", bound=Body)


def read_body(call: Call, model: type[_Body]) -> _Body:
    """Return the body of a call. Raises ProblemError: 415, or 400 with all flaws at once."""
    body = call.json_object()
    flaws = [BodyFlaw(f"#/{name}", f"{name} is set by the service.") for name in sorted(body.keys() & model.reserved)]
    try:
        read = model.model_validate(body)
    except ValidationError as error:
        bad = dict.fromkeys(str(one["loc"][0]) for one in error.errors(include_url=False, include_input=False))
        flaws += [BodyFlaw(f"#/{name}", model.model_fields[name].description or "") for name in bad]
        raise flawed(*flaws) from error
    if flaws:
        raise flawed(*flaws)
    return read
