"""Transactions: their fields, states and ids, their SQL, and their form on the wire.

INTERFACE.md section 2 shows `amount` and `currency` of a transaction and no other field of any
record, and section 3 shows no states: the rest is the sandbox's own choice.
"""

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from escrowctl.sandbox.bodies import JsonObject, NumberToken, read_stored, write_json


class UserId(StrEnum):
    """The users that every sandbox has."""

    PAYER = "usr_PAYER001"
    PAYEE = "usr_PAYEE001"


class State(StrEnum):
    """Where a transaction's money is: in escrow, or for good with the payee or with the payer again."""

    HELD = "held"
    RELEASING = "releasing"
    DISPUTED = "disputed"
    RELEASED = "released"
    REFUNDED = "refunded"
    EXPIRED = "expired"


IN_ESCROW = (State.HELD, State.RELEASING, State.DISPUTED)
"""The states with the money still in the hold."""


class Move(StrEnum):
    """A change of the state of a transaction; if money moves, it is the full amount."""

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
    """What can happen to a transaction, named as Standard Webhooks names events: a noun and a past participle."""

    TRANSACTION_CREATED = "transaction.created"
    TRANSACTION_UPDATED = "transaction.updated"
    TRANSACTION_RELEASED = "transaction.released"
    TRANSACTION_EXPIRED = "transaction.expired"


class Transition(NamedTuple):
    """The effect of a move. It is possible only from the state `before`; None: it creates the record."""

    before: State | None
    after: State
    accounts: tuple[str, str] | None = None
    """The paying and the receiving account of the ledger; None if no money moves."""


HOLD = "hold"

TRANSITIONS: Mapping[Move, Transition] = {
    Move.CREATE: Transition(None, State.HELD, ("payer:{payer}", HOLD)),
    Move.RELEASE: Transition(State.HELD, State.RELEASED, (HOLD, "payee:{payee}")),
    Move.QUEUE: Transition(State.HELD, State.RELEASING),
    Move.PAY_OUT: Transition(State.RELEASING, State.RELEASED, (HOLD, "payee:{payee}")),
    Move.DISPUTE: Transition(State.HELD, State.DISPUTED),
    Move.SETTLE: Transition(State.DISPUTED, State.HELD),
    Move.REFUND: Transition(State.HELD, State.REFUNDED, (HOLD, "payer:{payer}")),
    Move.AWARD: Transition(State.DISPUTED, State.REFUNDED, (HOLD, "payer:{payer}")),
    Move.EXPIRE: Transition(State.HELD, State.EXPIRED, (HOLD, "payer:{payer}")),
}


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond: `2026-11-21T03:12:44.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(moment: str, duration: timedelta) -> str:
    """Return the timestamp that is `duration` after a timestamp."""
    return timestamp(datetime.fromisoformat(moment) + duration)


class Transaction(NamedTuple):
    """One escrow: `amount` is the number token of the request, `extra` the fields that the sandbox does not know."""

    id: str
    status: State
    amount: str
    currency: str
    payer: str
    payee: str
    extra: JsonObject
    created_at: str
    updated_at: str

    def document(self) -> JsonObject:
        """The record on the wire: strings, except `amount` (a number) and the fields of `extra`."""
        return {
            "id": self.id,
            "status": self.status,
            "amount": NumberToken(self.amount),
            "currency": self.currency,
            "payer": self.payer,
            "payee": self.payee,
            **self.extra,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


TIMES: Mapping[str, tuple[str, Move]] = {
    "expires_in": ("expires_at", Move.EXPIRE),
    "auto_release_in": ("auto_release_at", Move.RELEASE),
}
"""Field of a create that holds a duration -> field of the record that holds the moment, and the move that happens then.

If both are given, the earlier moment decides; if they are equal, the first of these.
"""

INSERT = """
    INSERT INTO transactions (id, status, amount, currency, payer, payee, extra, created_at, updated_at)
    VALUES (:id, :status, :amount, :currency, :payer, :payee, :extra, :created_at, :updated_at)
"""


def add_transaction(connection: sqlite3.Connection, transaction: Transaction) -> None:
    """Insert a transaction."""
    connection.execute(INSERT, {**transaction._asdict(), "extra": write_json(transaction.extra)})


def find_transaction(connection: sqlite3.Connection, transaction_id: str) -> Transaction | None:
    """Read one transaction, or None."""
    row = connection.execute("SELECT * FROM transactions WHERE id = ?", (transaction_id,)).fetchone()
    return read_transaction(row) if row else None


def read_transaction(row: sqlite3.Row) -> Transaction:
    """Return the transaction of a row."""
    stored = {name: row[name] for name in Transaction._fields}
    return Transaction(**{**stored, "status": State(row["status"]), "extra": read_stored(row["extra"])})
