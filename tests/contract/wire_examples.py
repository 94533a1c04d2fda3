"""Requests and replies written by hand from INTERFACE.md; neither the client nor the sandbox made them.

Section numbers are INTERFACE.md's. Where it says "not shown" there is no example. `{id}` is replaced by
the id of an escrow that exists.
"""

from typing import NamedTuple


class WireExample(NamedTuple):
    """One call: the line that causes it, the request that must be sent, and the status that may come back."""

    name: str
    line: str
    method: str
    target: str
    body: bytes | None
    status: int


TRANSACTIONS, WEBHOOKS = "/api/v1/transactions", "/api/v1/webhooks"
HOOK = "https://hooks.example.net/escrow"

EXAMPLES = (
    # Section 2: amount is a number (the published request uses a whole number), currency a code.
    # Section 4: POST /api/v1/transactions. Section 7: 200.
    WireExample(
        "create, whole number",
        "tx create --amount 100 --currency USD",
        "POST",
        TRANSACTIONS,
        b'{"amount":100,"currency":"USD"}',
        200,
    ),
    WireExample(
        "create, two decimals that look like padding",
        "tx create --amount 100.00 --currency EUR",
        "POST",
        TRANSACTIONS,
        b'{"amount":100.00,"currency":"EUR"}',
        200,
    ),
    WireExample(
        "create, beyond what a float can hold",
        "tx create --amount 12345678901234.567 --currency KWD",
        "POST",
        TRANSACTIONS,
        b'{"amount":12345678901234.567,"currency":"KWD"}',
        200,
    ),
    # Section 4: GET /api/v1/transactions/:id, no body; GET /api/v1/users/:id.
    WireExample("read", "tx get {id}", "GET", f"{TRANSACTIONS}/{{id}}", None, 200),
    WireExample("user", "user get usr_PAYER001", "GET", "/api/v1/users/usr_PAYER001", None, 200),
    # Section 4: PUT /api/v1/transactions/:id/release, no body stated.
    WireExample("release", "tx release {id} --yes", "PUT", f"{TRANSACTIONS}/{{id}}/release", None, 200),
    # Sections 4 and 7: seen in activity listings, answered with 200 and 400; their contracts are not shown.
    WireExample("list, observed", "tx list", "GET", TRANSACTIONS, None, 200),
    WireExample(
        "update, observed",
        """tx update {id} --data '{{"note":"x"}}' --yes""",
        "PUT",
        f"{TRANSACTIONS}/{{id}}",
        b'{"note":"x"}',
        400,
    ),
    # Section 4: POST /api/v1/webhooks with a JSON object (its fields: not shown). Section 7: 201.
    WireExample(
        "webhook", f"webhook create --url {HOOK}", "POST", WEBHOOKS, b'{"url":"https://hooks.example.net/escrow"}', 201
    ),
    # Section 4: GET /api/v1/webhooks, a collection.
    WireExample("webhooks", "webhook list", "GET", WEBHOOKS, None, 200),
)
