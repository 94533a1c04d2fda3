"""The JSON schemas of all requests and answers, for the sandbox's own OpenAPI document.

Written by hand, as strict as the sandbox is; limits are imported from the code that enforces them. A
schema describes a number's value, so two rules on how an amount is written are only in its description.
INTERFACE.md shows `amount` and `currency` and no other field: the rest is the sandbox's own choice.
"""

from escrowctl.sandbox.bodies import MAX_DEPTH, TYPE_PREFIX, JsonObject, NumberToken, ProblemKind
from escrowctl.sandbox.endpoints import MAX_DESCRIPTION_LENGTH, MAX_URL_LENGTH, STATUS, URL_PATTERN, EventKind
from escrowctl.sandbox.endpoints import RESERVED_FIELDS as SET_ON_ENDPOINTS
from escrowctl.sandbox.http import MAX_LIMIT, REQUEST_ID
from escrowctl.sandbox.records import DEFAULT_PAYEE, DEFAULT_PAYER, ID_LENGTH, TIMES, State
from escrowctl.sandbox.records import RESERVED_FIELDS as SET_ON_TRANSACTIONS
from escrowctl.sandbox.transactions import DURATION

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

DURATION_SCHEMA: JsonObject = {
    "type": "string",
    "pattern": f"^{DURATION.pattern}$",
    "description": "In the sandbox's time: expires_in returns the money to the payer, auto_release_in releases it.",
}

MOMENTS = tuple(field for field, _ in TIMES.values())

REQUEST_ID_SCHEMA: JsonObject = {"type": "string", "pattern": f"^{REQUEST_ID.pattern}$"}

OTHER_FIELDS = f"Any other field is stored and returned unchanged, down to {MAX_DEPTH} levels."


def schema_ref(name: str) -> JsonObject:
    """A reference to one of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def id_schema(prefix: str) -> JsonObject:
    """The schema of an id, such as `tx_` and eight letters or digits; magic ids have any letters."""
    return {"type": "string", "pattern": f"^{prefix}_[0-9A-Z]{{{ID_LENGTH}}}$"}


def problem_name(kind: ProblemKind) -> str:
    """The name of a problem's schema: `MoveRefusedProblem`."""
    return kind.slug.title().replace("-", "") + "Problem"


def _object(properties: JsonObject, *optional: str, others: bool = False) -> JsonObject:
    """An object of these fields; with `others`, and any others."""
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
        "additionalProperties": others,
        **({"description": OTHER_FIELDS} if others else {}),
    }


def _page(item: str) -> JsonObject:
    records: JsonObject = {
        "type": "array",
        "items": schema_ref(item),
        "maxItems": MAX_LIMIT,
        "description": "Newest first.",
    }
    return _object({"data": records, "has_more": {"type": "boolean"}})


def _problem(kind: ProblemKind) -> JsonObject:
    """One kind of problem (RFC 9457): its type, title and status are constants."""
    flaws: JsonObject = {"errors": {"type": "array", "items": schema_ref("Flaw"), "minItems": 1}}
    return _object(
        {
            "type": {"const": TYPE_PREFIX + kind.slug},
            "title": {"const": kind.title},
            "status": {"const": kind.status},
            "detail": {"type": "string"},
            "request_id": REQUEST_ID_SCHEMA,
            **(flaws if kind is ProblemKind.BAD_REQUEST else {}),
        },
        "errors",
    )


USER_ID: JsonObject = {"type": "string", "enum": [DEFAULT_PAYER, DEFAULT_PAYEE]}

WEBHOOK_FIELDS: JsonObject = {
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
"""The fields that the creator of an endpoint may set."""

WEBHOOK: JsonObject = {
    "id": id_schema("wh"),
    **WEBHOOK_FIELDS,
    "status": {"type": "string", "const": STATUS},
    "secret": False,
    "created_at": TIME,
}

SECRET: JsonObject = {
    "type": "string",
    "pattern": "^whsec_[A-Za-z0-9+/]{43}=$",
    "description": "32 random bytes in base64 that sign each delivery (Standard Webhooks). It is shown once.",
}

SCHEMAS: JsonObject = {
    "NewTransaction": _object(
        {
            "amount": AMOUNT,
            "currency": CURRENCY,
            "payer": {**USER_ID, "default": DEFAULT_PAYER},
            "payee": {**USER_ID, "default": DEFAULT_PAYEE},
            **dict.fromkeys(TIMES, DURATION_SCHEMA),
            **dict.fromkeys(sorted(SET_ON_TRANSACTIONS), False),
        },
        *("payer", "payee", *TIMES, *SET_ON_TRANSACTIONS),
        others=True,
    ),
    "Transaction": _object(
        {
            "id": id_schema("tx"),
            "status": {"type": "string", "enum": list(State)},
            "amount": AMOUNT,
            "currency": CURRENCY,
            "payer": id_schema("usr"),
            "payee": id_schema("usr"),
            **dict.fromkeys(MOMENTS, TIME),
            "created_at": TIME,
            "updated_at": TIME,
        },
        *MOMENTS,
        others=True,
    ),
    "TransactionPage": _page("Transaction"),
    "User": _object(
        {
            "id": id_schema("usr"),
            "name": {"type": "string"},
            "email": {"type": "string", "format": "email"},
            "status": {"type": "string", "enum": ["active"]},
            "created_at": TIME,
        }
    ),
    "NewWebhook": _object(
        {**WEBHOOK_FIELDS, **dict.fromkeys(sorted(SET_ON_ENDPOINTS), False)},
        *("events", "description", *SET_ON_ENDPOINTS),
        others=True,
    ),
    "CreatedWebhook": _object({**WEBHOOK, "secret": SECRET}, "description", others=True),
    "Webhook": _object(WEBHOOK, "description", "secret", others=True),
    "WebhookPage": _page("Webhook"),
    "Event": _object(
        {
            "type": schema_ref("EventKind"),
            "timestamp": TIME,
            "sequence": {"type": "integer", "minimum": 1, "description": "Counts the events of one transaction."},
            "data": schema_ref("Transaction"),
        }
    ),
    "EventKind": {"type": "string", "enum": list(EventKind)},
    "AnyObject": {"type": "object", "description": "It has no effect."},
    "Flaw": {
        "oneOf": [
            _object(
                {
                    "pointer": {"type": "string", "pattern": "^#(/.*)?$", "description": "Into the body (RFC 9457)."},
                    "detail": {"type": "string"},
                }
            ),
            _object({"parameter": {"type": "string", "description": "In the query."}, "detail": {"type": "string"}}),
        ]
    },
    **{problem_name(kind): _problem(kind) for kind in ProblemKind},
}
"""Name -> schema: of complete bodies, and of parts that several bodies share. False: the service sets the field."""
