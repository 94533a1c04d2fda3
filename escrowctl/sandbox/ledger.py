"""The ledger: double entry, append-only, in whole units of a ten-thousandth.

Each move (`records.TRANSITIONS`) posts its amount twice: minus to the account that gives, plus to the one that
takes. Accounts are the sandbox's own choice, one set per currency. The balance of a payer is negative by
what was paid in; that of a hold is never negative.
"""

import sqlite3
from typing import NamedTuple

from escrowctl.sandbox.records import HOLD, TRANSITIONS, Move, State, Transaction

DECIMALS = 4

HALF = 1_000_000_000
"""Sums are taken in two halves: one sum of many 63-bit integers overflows in SQLite."""

SUMS = """
    SELECT currency, sum(units / :half), sum(units % :half) FROM ledger_entries
    WHERE :account IS NULL OR account = :account
    GROUP BY currency
"""

INSERT = """
    INSERT INTO ledger_entries (transaction_id, move, account, currency, units, posted_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""


def units(amount: str) -> int:
    """`12.5` -> 125000. The amount is a plain decimal with at most four places (`transactions.AMOUNT`)."""
    whole, _, fraction = amount.partition(".")
    return int(whole + fraction.ljust(DECIMALS, "0"))


def post(connection: sqlite3.Connection, transaction: Transaction, *, move: Move, at: str) -> None:
    """Write both entries of one move.

    Raise sqlite3.IntegrityError if this move, or another that leaves the hold, was already posted.
    """
    accounts = TRANSITIONS[move].accounts
    gives, takes = (account.format(payer=transaction.payer, payee=transaction.payee) for account in accounts)
    amount = units(transaction.amount)
    connection.executemany(
        INSERT,
        [
            (transaction.id, move, gives, transaction.currency, -amount, at),
            (transaction.id, move, takes, transaction.currency, amount, at),
        ],
    )


class Balance(NamedTuple):
    """One currency, in units of a ten-thousandth.

    `total` is the sum of all entries; `hold` that of the hold account; `held` the sum of the
    amounts of all transactions in the state held.
    """

    currency: str
    total: int
    hold: int
    held: int

    @property
    def consistent(self) -> bool:
        """Whether no money was made or lost, and the ledger and the records agree."""
        return self.total == 0 and self.hold == self.held >= 0


def check_ledger(connection: sqlite3.Connection) -> tuple[Balance, ...]:
    """Add everything up, per currency in alphabetical order; call it inside one read transaction."""
    totals = _sums(connection, account=None)
    holds = _sums(connection, account=HOLD)
    held = _held(connection)
    return tuple(
        Balance(currency, totals.get(currency, 0), holds.get(currency, 0), held.get(currency, 0))
        for currency in sorted(totals.keys() | held.keys())
    )


def _sums(connection: sqlite3.Connection, *, account: str | None) -> dict[str, int]:
    rows = connection.execute(SUMS, {"account": account, "half": HALF})
    return {currency: high * HALF + low for currency, high, low in rows}


def _held(connection: sqlite3.Connection) -> dict[str, int]:
    held: dict[str, int] = {}
    rows = connection.execute("SELECT currency, amount FROM transactions WHERE status = ?", (State.HELD,))
    for currency, amount in rows:
        held[currency] = held.get(currency, 0) + units(amount)
    return held
