"""Amounts and ids with a fixed outcome. They need no setting, and change no record.

The written form of an amount counts: 4.29 is one, 4.290 is not. Its digits are those of the HTTP status.
"""

from collections.abc import Mapping

from escrowctl.sandbox.bodies import ProblemError, ProblemKind
from escrowctl.sandbox.records import State, Transaction, UserId

UNANSWERED = "5.04"
QUEUED = "2.02"

_REFUSED: Mapping[str, ProblemKind] = {
    "4.02": ProblemKind.NO_FUNDS,
    "4.29": ProblemKind.THROTTLED,
    "5.03": ProblemKind.STORE_BUSY,
}

MAGIC_AMOUNTS: Mapping[str, str] = {
    QUEUED: "created; its release is accepted, and releasing until: sandbox move ID released",
    "4.02": "402: not created, the payer has too little money",
    "4.29": "429 with Retry-After: 1, not created",
    "5.03": "503, not created",
    UNANSWERED: "created, but the connection is closed without a reply",
}
"""Amount of a create -> its outcome."""

MAGIC_IDS: Mapping[str, State] = {
    f"tx_{state.upper()}": state for state in (State.DISPUTED, State.REFUNDED, State.RELEASED)
}
"""Id -> the state of its record, which has 100 USD. It is in no list and no ledger, and cannot be moved."""

_LONG_AGO = "2026-01-01T00:00:00.000Z"


def refuse_amount(amount: str) -> None:
    """Raise the ProblemError of a magic amount of a create; nothing for any other amount."""
    if kind := _REFUSED.get(amount):
        raise ProblemError(kind, f"The amount {amount} is refused in every sandbox.")


def find_magic(transaction_id: str) -> Transaction | None:
    """Return the record of a magic id, or None."""
    state = MAGIC_IDS.get(transaction_id)
    if state is None:
        return None
    return Transaction(transaction_id, state, "100", "USD", UserId.PAYER, UserId.PAYEE, {}, _LONG_AGO, _LONG_AGO)
