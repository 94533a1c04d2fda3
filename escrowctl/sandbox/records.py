"""Transactions: their fields, states and moves, their SQL, and their JSON form.

INTERFACE.md section 2 shows `amount` and `currency` of a transaction and no other field of any
record, and section 3 shows no states: the rest is the sandbox's own choice.
"""

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from escrowctl.sandbox.bodies import JsonObject, NumberToken, parse_object


class UserId(StrEnum):
    """The ids of the two users in every sandbox."""

    PAYER = "usr_PAYER001"
    PAYEE = "usr_PAYEE001"


class State(StrEnum):
    """The state of a transaction: the money is in escrow, with the payee, or back with the payer."""

    HELD = "held"
    RELEASING = "releasing"
    DISPUTED = "disputed"
    RELEASED = "released"
    REFUNDED = "refunded"
    EXPIRED = "expired"


STATES_IN_ESCROW = (State.HELD, State.RELEASING, State.DISPUTED)
"""The states in which the hold account still has the money."""


class Move(StrEnum):
    """A change of a transaction's state. It moves the full amount, or no money."""

    CREATE = "create"
    RELEASE = "release"
    QUEUE = "queue"
    PAY_OUT = "pay_out"
    DISPUTE = "dispute"
    SETTLE = "settle"
    REFUND = "refund"
    AWARD = "award"
    EXPIRE = "expire"


class EventKind(StrEnum):
    """A kind of event, named as in Standard Webhooks: a noun and a past participle."""

    TRANSACTION_CREATED = "transaction.created"
    TRANSACTION_UPDATED = "transaction.updated"
    TRANSACTION_RELEASED = "transaction.released"
    TRANSACTION_EXPIRED = "transaction.expired"


class Transition(NamedTuple):
    """The effect of a move: `before` becomes `after`. If `before` is None, the move creates the record."""

    before: State | None
    after: State
    accounts: tuple[str, ...] = ()
    """The ledger accounts that pay and receive; none if no money moves."""
    event: EventKind = EventKind.TRANSACTION_UPDATED


HOLD = "hold"
"""The ledger's account with the money in escrow."""

TRANSITIONS: Mapping[Move, Transition] = {
    Move.CREATE: Transition(None, State.HELD, ("payer:{payer}", HOLD), EventKind.TRANSACTION_CREATED),
    Move.RELEASE: Transition(State.HELD, State.RELEASED, (HOLD, "payee:{payee}"), EventKind.TRANSACTION_RELEASED),
    Move.QUEUE: Transition(State.HELD, State.RELEASING),
    Move.PAY_OUT: Transition(State.RELEASING, State.RELEASED, (HOLD, "payee:{payee}")),
    Move.DISPUTE: Transition(State.HELD, State.DISPUTED),
    Move.SETTLE: Transition(State.DISPUTED, State.HELD),
    Move.REFUND: Transition(State.HELD, State.REFUNDED, (HOLD, "payer:{payer}")),
    Move.AWARD: Transition(State.DISPUTED, State.REFUNDED, (HOLD, "payer:{payer}")),
    Move.EXPIRE: Transition(State.HELD, State.EXPIRED, (HOLD, "payer:{payer}"), EventKind.TRANSACTION_EXPIRED),
}


def timestamp(moment: datetime) -> str:
    """Return a time in the form of RFC 3339, in UTC, to the millisecond: `2026-11-21T03:12:44.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_duration(moment: str, duration: timedelta) -> str:
    """Return the timestamp that is `duration` after the timestamp `moment`."""
    return timestamp(datetime.fromisoformat(moment) + duration)


class Transaction(NamedTuple):
    """One escrow. `document` is its complete record, which has the fields that the sandbox does not know as sent."""

    document: JsonObject

    @property
    def id(self) -> str:
        """The id."""
        return str(self.document["id"])

    @property
    def status(self) -> State:
        """The state."""
        return State(str(self.document["status"]))

    @property
    def amount(self) -> str:
        """The amount, written as in the request."""
        amount = self.document["amount"]
        assert isinstance(amount, NumberToken), "a create checks it"
        return amount.text


TIMED_MOVES: Mapping[str, tuple[str, Move]] = {
    "expires_in": ("expires_at", Move.EXPIRE),
    "auto_release_in": ("auto_release_at", Move.RELEASE),
}
"""Duration field of a create -> field of the record with the resulting time, and the move at that time.

If a create has both, the earlier time decides. If the times are equal, `expires_in` does.
"""


def find_transaction(connection: sqlite3.Connection, transaction_id: str) -> Transaction | None:
    """Return the transaction with this id, or None."""
    row = connection.execute("SELECT document FROM transactions WHERE id = ?", (transaction_id,)).fetchone()
    return read_transaction(row) if row else None


def read_transaction(row: sqlite3.Row) -> Transaction:
    """Return the transaction in a row of the table `transactions`."""
    return Transaction(parse_object(row["document"]))
