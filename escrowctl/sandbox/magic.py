"""Magic amounts and ids: they have a fixed outcome in every sandbox, without any setting.

Only the written form of an amount counts: 4.29 is magic, 4.290 is not. The digits recall an HTTP status, here 429.
"""

from collections.abc import Mapping

from escrowctl.sandbox.bodies import JsonObject, NumberToken, ProblemKind
from escrowctl.sandbox.records import State, Transaction, UserId

UNANSWERED_AMOUNT = "5.04"
QUEUED_AMOUNT = "2.02"

REFUSED_AMOUNTS: Mapping[str, ProblemKind] = {
    "4.02": ProblemKind.NO_FUNDS,
    "4.29": ProblemKind.THROTTLED,
    "5.03": ProblemKind.STORE_BUSY,
}
"""Amount -> why the sandbox always refuses to create a transaction of this amount."""

MAGIC_AMOUNTS: Mapping[str, str] = {
    QUEUED_AMOUNT: "created; a release leaves it releasing, until you run: sandbox move ID released",
    "4.02": "402: not created, the payer has too little money",
    "4.29": "429 with Retry-After: 1, not created",
    "5.03": "503, not created",
    UNANSWERED_AMOUNT: "created, but the connection is closed without a reply",
}
"""Amount of a new transaction -> the outcome of its create."""

MAGIC_IDS: Mapping[str, State] = {
    f"tx_{state.upper()}": state for state in (State.DISPUTED, State.REFUNDED, State.RELEASED)
}
"""Id -> state of its record, which has 100 USD. The record is in no list and no ledger, and never changes."""

_MAGIC_FIELDS: JsonObject = {
    "amount": NumberToken("100"),
    "currency": "USD",
    "payer": UserId.PAYER,
    "payee": UserId.PAYEE,
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}


def find_magic_record(transaction_id: str) -> Transaction | None:
    """Return the transaction of a magic id; None for any other id."""
    if (state := MAGIC_IDS.get(transaction_id)) is None:
        return None
    return Transaction({"id": transaction_id, "status": state, **_MAGIC_FIELDS})
