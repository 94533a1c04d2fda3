"""Requests and replies written by hand from INTERFACE.md; neither the client nor the sandbox made them.

Section numbers are INTERFACE.md's. Where it says "not shown" there is no example. `{id}` is replaced by
the id of an escrow that exists.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class WireExample:
    """One call: the line that causes it, the request that must be sent, and the reply that may come back."""

    name: str
    line: tuple[str, ...]
    method: str
    target: str
    body: bytes | None
    status: int


EXAMPLES = (
    WireExample(
        # Section 2: amount is a number (the published request uses a whole number), currency a code.
        # Section 4: POST /api/v1/transactions. Section 7: 200.
        name="create, whole number",
        line=("tx", "create", "--amount", "100", "--currency", "USD"),
        method="POST",
        target="/api/v1/transactions",
        body=b'{"amount":100,"currency":"USD"}',
        status=200,
    ),
    WireExample(
        name="create, two decimals that look like padding",
        line=("tx", "create", "--amount", "100.00", "--currency", "EUR"),
        method="POST",
        target="/api/v1/transactions",
        body=b'{"amount":100.00,"currency":"EUR"}',
        status=200,
    ),
    WireExample(
        name="create, beyond what a float can hold",
        line=("tx", "create", "--amount", "12345678901234.567", "--currency", "KWD"),
        method="POST",
        target="/api/v1/transactions",
        body=b'{"amount":12345678901234.567,"currency":"KWD"}',
        status=200,
    ),
    WireExample(
        # Section 4: GET /api/v1/transactions/:id, no body.
        name="read",
        line=("tx", "get", "{id}"),
        method="GET",
        target="/api/v1/transactions/{id}",
        body=None,
        status=200,
    ),
    WireExample(
        # Section 4: GET /api/v1/users/:id.
        name="user",
        line=("user", "get", "usr_PAYER001"),
        method="GET",
        target="/api/v1/users/usr_PAYER001",
        body=None,
        status=200,
    ),
    WireExample(
        # Section 4: PUT /api/v1/transactions/:id/release, no body stated.
        name="release",
        line=("tx", "release", "{id}", "--yes"),
        method="PUT",
        target="/api/v1/transactions/{id}/release",
        body=None,
        status=200,
    ),
    WireExample(
        # Sections 4 and 7: seen in activity listings, answered with 200; its contract is not shown.
        name="list, observed",
        line=("tx", "list"),
        method="GET",
        target="/api/v1/transactions",
        body=None,
        status=200,
    ),
    WireExample(
        # Sections 4 and 7: seen in activity listings, answered with 400; its contract is not shown.
        name="update, observed",
        line=("tx", "update", "{id}", "--data", '{{"note":"x"}}', "--yes"),
        method="PUT",
        target="/api/v1/transactions/{id}",
        body=b'{"note":"x"}',
        status=400,
    ),
    WireExample(
        # Section 4: POST /api/v1/webhooks with a JSON object (its fields: not shown). Section 7: 201.
        name="webhook",
        line=("webhook", "create", "--url", "https://hooks.example.net/escrow"),
        method="POST",
        target="/api/v1/webhooks",
        body=b'{"url":"https://hooks.example.net/escrow"}',
        status=201,
    ),
    WireExample(
        # Section 4: GET /api/v1/webhooks, a collection.
        name="webhooks",
        line=("webhook", "list"),
        method="GET",
        target="/api/v1/webhooks",
        body=None,
        status=200,
    ),
)
