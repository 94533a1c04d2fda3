"""The JSON schemas of everything that goes in and out, for the sandbox's own OpenAPI document.

Written by hand, as strict as the sandbox is; a bound that the code enforces is taken from there. A
schema speaks of a number's value, so two rules on how an amount is written stand in words only.
interface.md shows `amount` and `currency` and no other field: all the rest is the sandbox's own choice.
"""

from collections.abc import Mapping

from escrowctl.sandbox.body import MAX_DEPTH, JsonObject, JsonValue, NumberToken
from escrowctl.sandbox.endpoints import RESERVED_FIELDS as SET_ON_ENDPOINTS
from escrowctl.sandbox.endpoints import EndpointStatus
from escrowctl.sandbox.events import EventKind
from escrowctl.sandbox.ids import ALPHABET, LENGTH
from escrowctl.sandbox.lifecycle import State
from escrowctl.sandbox.pages import MAX_LIMIT
from escrowctl.sandbox.problems import TYPE_PREFIX, ProblemKind
from escrowctl.sandbox.records import DEFAULT_PAYEE, DEFAULT_PAYER
from escrowctl.sandbox.records import RESERVED_FIELDS as SET_ON_TRANSACTIONS
from escrowctl.sandbox.registrations import MAX_DESCRIPTION_LENGTH
from escrowctl.sandbox.request import PLAIN_WORD
from escrowctl.sandbox.urls import MAX_URL_LENGTH, URL_PATTERN

AMOUNT: JsonObject = {
    "type": "number",
    "exclusiveMinimum": 0,
    "exclusiveMaximum": 10**14,
    "multipleOf": NumberToken("0.0001"),
    "description": "Written without an exponent, and with at most four digits after the point. It comes back as"
    " it was written, digit for digit: read it with a decimal type.",
}

CURRENCY: JsonObject = {"type": "string", "pattern": "^[A-Z]{3}$"}

TIME: JsonObject = {
    "type": "string",
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
    "description": "RFC 3339, in UTC, to the millisecond.",
}

REQUEST_ID: JsonObject = {"type": "string", "pattern": f"^{PLAIN_WORD.pattern}$"}

OTHER_FIELDS = f"Any other field is kept and comes back as it was sent, down to {MAX_DEPTH} levels."


def schema_ref(name: str) -> JsonObject:
    """A reference to one of `schemas()`."""
    return {"$ref": f"#/components/schemas/{name}"}


def id_schema(prefix: str) -> JsonObject:
    """The schema of an id: `tx_` and eight letters or digits, say."""
    return {"type": "string", "pattern": f"^{prefix}_[{ALPHABET}]{{{LENGTH}}}$"}


def problem_name(kind: ProblemKind) -> str:
    """The name of a problem's schema: `MoveRefusedProblem`."""
    return kind.slug.title().replace("-", "") + "Problem"


def schemas() -> JsonObject:
    """Name -> schema; those that others refer to, and those of whole bodies."""
    return {
        "NewTransaction": _new_transaction(),
        "Transaction": _transaction(),
        "TransactionPage": _page("Transaction"),
        "User": _user(),
        "NewWebhook": _new_webhook(),
        "CreatedWebhook": _webhook(with_secret=True),
        "Webhook": _webhook(with_secret=False),
        "WebhookPage": _page("Webhook"),
        "EventKind": {"type": "string", "enum": list(EventKind)},
        "AnyObject": {"type": "object", "description": "It has no effect."},
        "Flaw": _flaw(),
        **{problem_name(kind): _problem(kind) for kind in ProblemKind},
    }


def _closed(properties: JsonObject, *, optional: frozenset[str] = frozenset()) -> dict[str, JsonValue]:
    """An object of these fields and no others."""
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
        "additionalProperties": False,
    }


def _open(properties: JsonObject, *, optional: frozenset[str] = frozenset()) -> dict[str, JsonValue]:
    """An object of these fields, and of whatever others were sent."""
    return {**_closed(properties, optional=optional), "additionalProperties": True, "description": OTHER_FIELDS}


def _refused(names: frozenset[str]) -> JsonObject:
    """Fields that a body may not have: the service sets them."""
    return dict.fromkeys(sorted(names), False)


def _new_transaction() -> JsonObject:
    user: JsonObject = {"type": "string", "enum": [DEFAULT_PAYER, DEFAULT_PAYEE]}
    properties: Mapping[str, JsonValue] = {
        "amount": AMOUNT,
        "currency": CURRENCY,
        "payer": {**user, "default": DEFAULT_PAYER},
        "payee": {**user, "default": DEFAULT_PAYEE},
        **_refused(SET_ON_TRANSACTIONS),
    }
    return _open(properties, optional=SET_ON_TRANSACTIONS | {"payer", "payee"})


def _transaction() -> JsonObject:
    return _open(
        {
            "id": id_schema("tx"),
            "status": {"type": "string", "enum": list(State)},
            "amount": AMOUNT,
            "currency": CURRENCY,
            "payer": id_schema("usr"),
            "payee": id_schema("usr"),
            "created_at": TIME,
            "updated_at": TIME,
        }
    )


def _user() -> JsonObject:
    return _closed(
        {
            "id": id_schema("usr"),
            "name": {"type": "string"},
            "email": {"type": "string", "format": "email"},
            "status": {"type": "string", "enum": ["active"]},
            "created_at": TIME,
        }
    )


def _new_webhook() -> JsonObject:
    properties: Mapping[str, JsonValue] = {**_wished(), **_refused(SET_ON_ENDPOINTS)}
    return _open(properties, optional=SET_ON_ENDPOINTS | {"events", "description"})


def _webhook(*, with_secret: bool) -> JsonObject:
    secret: JsonObject = {
        "type": "string",
        "pattern": "^whsec_[A-Za-z0-9+/]{43}=$",
        "description": "32 random bytes in base64, which sign what is sent (Standard Webhooks). It is shown once.",
    }
    return _open(
        {
            "id": id_schema("wh"),
            **_wished(),
            "status": {"type": "string", "enum": list(EndpointStatus)},
            "secret": secret if with_secret else False,
            "created_at": TIME,
        },
        optional=frozenset({"description"} if with_secret else {"description", "secret"}),
    )


def _wished() -> JsonObject:
    """What the creator of an endpoint may say of it."""
    return {
        "url": {
            "type": "string",
            "pattern": f"^{URL_PATTERN}$",
            "maxLength": MAX_URL_LENGTH,
            "description": "Absolute, in ASCII, without user name, password or fragment.",
        },
        "events": {
            "type": "array",
            "items": schema_ref("EventKind"),
            "minItems": 1,
            "uniqueItems": True,
            "description": "The kinds that are sent; every kind if not given.",
        },
        "description": {"type": "string", "maxLength": MAX_DESCRIPTION_LENGTH},
    }


def _page(item: str) -> JsonObject:
    data: JsonObject = {
        "type": "array",
        "items": schema_ref(item),
        "maxItems": MAX_LIMIT,
        "description": "Newest first.",
    }
    return _closed({"data": data, "has_more": {"type": "boolean"}})


def _flaw() -> JsonObject:
    pointer: JsonObject = {"type": "string", "pattern": "^#(/.*)?$", "description": "Into the body (RFC 9457)."}
    parameter: JsonObject = {"type": "string", "description": "In the query."}
    detail: JsonObject = {"type": "string"}
    return {
        "oneOf": [_closed({"pointer": pointer, "detail": detail}), _closed({"parameter": parameter, "detail": detail})]
    }


def _problem(kind: ProblemKind) -> JsonObject:
    """One problem, after RFC 9457: what says which it is, is fixed."""
    flaws: JsonObject = {"errors": {"type": "array", "items": schema_ref("Flaw"), "minItems": 1}}
    return _closed(
        {
            "type": {"const": TYPE_PREFIX + kind.slug},
            "title": {"const": kind.title},
            "status": {"const": kind.status},
            "detail": {"type": "string"},
            "request_id": REQUEST_ID,
            **(flaws if kind is ProblemKind.BAD_REQUEST else {}),
        },
        optional=frozenset({"errors"}),
    )
