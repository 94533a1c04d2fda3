"""The JSON schemas of all requests and answers, for the sandbox's own OpenAPI document.

Written by hand, as strict as the sandbox is; limits are imported from the code that enforces them. A
schema describes a number's value, so two rules on how an amount is written are only in its description.
INTERFACE.md shows `amount` and `currency` and no other field: the rest is the sandbox's own choice.
"""

from collections.abc import Mapping

from escrowctl.sandbox.endpoints import MAX_DESCRIPTION_LENGTH, MAX_URL_LENGTH, URL_PATTERN, EndpointStatus, EventKind
from escrowctl.sandbox.endpoints import RESERVED_FIELDS as SET_ON_ENDPOINTS
from escrowctl.sandbox.http import REQUEST_ID
from escrowctl.sandbox.json import MAX_DEPTH, JsonObject, JsonValue, NumberToken
from escrowctl.sandbox.pages import MAX_LIMIT
from escrowctl.sandbox.problems import TYPE_PREFIX, ProblemKind
from escrowctl.sandbox.records import DEFAULT_PAYEE, DEFAULT_PAYER, ID_ALPHABET, ID_LENGTH, State
from escrowctl.sandbox.records import RESERVED_FIELDS as SET_ON_TRANSACTIONS

AMOUNT: JsonObject = {
    "type": "number",
    "exclusiveMinimum": 0,
    "exclusiveMaximum": 10**14,
    "multipleOf": NumberToken("0.0001"),
    "description": "Written without an exponent, and with at most four digits after the point. It is returned"
    " digit for digit: read it with a decimal type.",
}

CURRENCY: JsonObject = {"type": "string", "pattern": "^[A-Z]{3}$"}

TIME: JsonObject = {
    "type": "string",
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
    "description": "RFC 3339, in UTC, to the millisecond.",
}

REQUEST_ID_SCHEMA: JsonObject = {"type": "string", "pattern": f"^{REQUEST_ID.pattern}$"}

OTHER_FIELDS = f"Any other field is stored and returned unchanged, down to {MAX_DEPTH} levels."


def schema_ref(name: str) -> JsonObject:
    """A reference to one of `schemas()`."""
    return {"$ref": f"#/components/schemas/{name}"}


def id_schema(prefix: str) -> JsonObject:
    """The schema of an id, such as `tx_` and eight letters or digits."""
    return {"type": "string", "pattern": f"^{prefix}_[{ID_ALPHABET}]{{{ID_LENGTH}}}$"}


def problem_name(kind: ProblemKind) -> str:
    """The name of a problem's schema: `MoveRefusedProblem`."""
    return kind.slug.title().replace("-", "") + "Problem"


def schemas() -> JsonObject:
    """Name -> schema: of complete bodies, and of parts that several bodies share."""
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
    """An object of these fields and any others."""
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
    properties: Mapping[str, JsonValue] = {**_webhook_fields(), **_refused(SET_ON_ENDPOINTS)}
    return _open(properties, optional=SET_ON_ENDPOINTS | {"events", "description"})


def _webhook(*, with_secret: bool) -> JsonObject:
    secret: JsonObject = {
        "type": "string",
        "pattern": "^whsec_[A-Za-z0-9+/]{43}=$",
        "description": "32 random bytes in base64 that sign each delivery (Standard Webhooks). It is shown once.",
    }
    return _open(
        {
            "id": id_schema("wh"),
            **_webhook_fields(),
            "status": {"type": "string", "enum": list(EndpointStatus)},
            "secret": secret if with_secret else False,
            "created_at": TIME,
        },
        optional=frozenset({"description"} if with_secret else {"description", "secret"}),
    )


def _webhook_fields() -> JsonObject:
    """The fields that the creator of an endpoint may set."""
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
            "description": "The kinds to send; every kind if not given.",
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
    """One kind of problem (RFC 9457): its type, title and status are constants."""
    flaws: JsonObject = {"errors": {"type": "array", "items": schema_ref("Flaw"), "minItems": 1}}
    return _closed(
        {
            "type": {"const": TYPE_PREFIX + kind.slug},
            "title": {"const": kind.title},
            "status": {"const": kind.status},
            "detail": {"type": "string"},
            "request_id": REQUEST_ID_SCHEMA,
            **(flaws if kind is ProblemKind.BAD_REQUEST else {}),
        },
        optional=frozenset({"errors"}),
    )
