"""Requests written by hand from INTERFACE.md; the client did not make them.

Section numbers are INTERFACE.md's. Where it says "not shown" there is no example.
"""

from typing import NamedTuple


class WireExample(NamedTuple):
    """One call: the line that causes it, and the request that must be sent."""

    name: str
    line: str
    method: str
    target: str
    body: bytes | None


TRANSACTIONS, WEBHOOKS = "/api/v1/transactions", "/api/v1/webhooks"
HOOK = "https://hooks.example.net/escrow"

EXAMPLES = (
    # Section 2: amount is a number (the published request uses a whole number), currency a code.
    # Section 4: POST /api/v1/transactions.
    WireExample(
        "create, whole number",
        "tx create --amount 100 --currency USD",
        "POST",
        TRANSACTIONS,
        b'{"amount":100,"currency":"USD"}',
    ),
    WireExample(
        "create, two decimals that look like padding",
        "tx create --amount 100.00 --currency EUR",
        "POST",
        TRANSACTIONS,
        b'{"amount":100.00,"currency":"EUR"}',
    ),
    WireExample(
        "create, beyond what a float can hold",
        "tx create --amount 12345678901234.567 --currency KWD",
        "POST",
        TRANSACTIONS,
        b'{"amount":12345678901234.567,"currency":"KWD"}',
    ),
    # Section 4: GET /api/v1/transactions/:id, no body; GET /api/v1/users/:id.
    WireExample("read", "tx get tx_1", "GET", f"{TRANSACTIONS}/tx_1", None),
    WireExample("user", "user get usr_PAYER001", "GET", "/api/v1/users/usr_PAYER001", None),
    # Section 4: PUT /api/v1/transactions/:id/release, no body stated.
    WireExample("release", "tx release tx_1 --yes", "PUT", f"{TRANSACTIONS}/tx_1/release", None),
    # Section 4: seen in activity listings; their contracts are not shown.
    WireExample("list, observed", "tx list", "GET", TRANSACTIONS, None),
    WireExample(
        "update, observed",
        """tx update tx_1 --data '{"note":"x"}' --yes""",
        "PUT",
        f"{TRANSACTIONS}/tx_1",
        b'{"note":"x"}',
    ),
    # Section 4: POST /api/v1/webhooks with a JSON object (its fields: not shown).
    WireExample(
        "webhook", f"webhook create --url {HOOK}", "POST", WEBHOOKS, b'{"url":"https://hooks.example.net/escrow"}'
    ),
    # Section 4: GET /api/v1/webhooks, a collection.
    WireExample("webhooks", "webhook list", "GET", WEBHOOKS, None),
)
