"""The records that the store keeps, their SQL, and how they look on the wire.

interface.md section 2 shows `amount` and `currency` of a transaction and nothing else of any
record: every other field here is the sandbox's own choice.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from escrowctl.sandbox.body import JsonObject, NumberToken, read_json, write_json
from escrowctl.sandbox.lifecycle import State

DEFAULT_PAYER = "usr_PAYER001"
DEFAULT_PAYEE = "usr_PAYEE001"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond: `2026-11-21T03:12:44.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class User:
    """A person who pays or is paid; times are RFC 3339 text."""

    id: str
    name: str
    email: str
    status: str
    created_at: str

    def document(self) -> JsonObject:
        """The record on the wire: `{"id", "name", "email", "status", "created_at"}`, all strings."""
        return {
            "id": self.id,
            "name": self.name,
            "email": self.email,
            "status": self.status,
            "created_at": self.created_at,
        }


def seeded_users(*, created_at: str) -> tuple[User, User]:
    """The two users that every new store has, under the same ids everywhere: who pays, who is paid."""
    return (
        User(DEFAULT_PAYER, "Sandbox payer", "payer@example.com", "active", created_at),
        User(DEFAULT_PAYEE, "Sandbox payee", "payee@example.com", "active", created_at),
    )


def add_user(connection: sqlite3.Connection, user: User) -> None:
    """Insert a user whose id is new."""
    connection.execute(
        "INSERT INTO users (id, name, email, status, created_at) VALUES (?, ?, ?, ?, ?)",
        (user.id, user.name, user.email, user.status, user.created_at),
    )


def find_user(connection: sqlite3.Connection, user_id: str) -> User | None:
    """Read one user, or None."""
    row = connection.execute("SELECT * FROM users WHERE id = ?", (user_id,)).fetchone()
    return User(**row) if row else None


@dataclass(frozen=True, slots=True)
class Transaction:
    """One escrow: `amount` is the number token that was sent, `extra` the other fields that were sent."""

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
        """The record on the wire: strings, but for `amount` (a number) and what `extra` holds."""
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


RESERVED_FIELDS = frozenset({"id", "status", "created_at", "updated_at"})
"""Fields of the record that only the service may set."""

INSERT = """
    INSERT INTO transactions (id, status, amount, currency, payer, payee, extra, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING
"""

MOVE = "UPDATE transactions SET status = ?, updated_at = ? WHERE id = ? AND status = ? RETURNING *"

NEWEST = """
    SELECT * FROM transactions
    WHERE :after IS NULL OR position < (SELECT position FROM transactions WHERE id = :after)
    ORDER BY position DESC LIMIT :count
"""


def add_transaction(connection: sqlite3.Connection, transaction: Transaction) -> bool:
    """Insert a transaction; False, with nothing changed, if its id is taken."""
    cursor = connection.execute(
        INSERT,
        (
            transaction.id,
            transaction.status,
            transaction.amount,
            transaction.currency,
            transaction.payer,
            transaction.payee,
            write_json(transaction.extra),
            transaction.created_at,
            transaction.updated_at,
        ),
    )
    return cursor.rowcount == 1


def find_transaction(connection: sqlite3.Connection, transaction_id: str) -> Transaction | None:
    """Read one transaction, or None."""
    row = connection.execute("SELECT * FROM transactions WHERE id = ?", (transaction_id,)).fetchone()
    return _transaction(row) if row else None


def move_transaction(
    connection: sqlite3.Connection, transaction_id: str, *, before: State, after: State, at: str
) -> Transaction | None:
    """Change the state of a transaction that is in `before`, and return it; None if it is not.

    The condition stands in the UPDATE itself, so of several callers one gets the row.
    """
    rows = connection.execute(MOVE, (after, at, transaction_id, before)).fetchall()
    return _transaction(rows[0]) if rows else None


def newest_transactions(connection: sqlite3.Connection, *, after: str | None, count: int) -> list[Transaction]:
    """Read up to `count` transactions, newest first; with `after`, only those older than that one."""
    rows = connection.execute(NEWEST, {"after": after, "count": count})
    return [_transaction(row) for row in rows]


def _transaction(row: sqlite3.Row) -> Transaction:
    extra = read_json(row["extra"].encode())
    assert isinstance(extra, Mapping)
    return Transaction(
        id=row["id"],
        status=State(row["status"]),
        amount=row["amount"],
        currency=row["currency"],
        payer=row["payer"],
        payee=row["payee"],
        extra=extra,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
