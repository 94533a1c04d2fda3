"""The ledger: double entry, append-only, in whole units of a ten-thousandth.

Each move (`records.TRANSITIONS`) posts its amount twice: as a minus to the paying account, as a plus to the
receiving one. Accounts are the sandbox's own choice, one set per currency. The balance of a payer is minus the
sum paid in; the balance of a hold is never negative.
"""

import sqlite3
from collections import Counter
from decimal import Decimal
from typing import NamedTuple

from escrowctl.sandbox.bodies import JsonObject, NumberToken
from escrowctl.sandbox.records import HOLD, IN_ESCROW, TRANSITIONS, Move, Transaction

DECIMALS = 4

INSERT = """
    INSERT INTO ledger_entries (transaction_id, move, account, currency, units, posted_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""

_ENTRIES = """
    SELECT entry, transaction_id AS "transaction", move, account, currency, units AS amount, posted_at
    FROM ledger_entries ORDER BY entry
"""


def units(amount: str) -> int:
    """`12.5` -> 125000. The amount is a plain decimal with at most four places (`transactions.AMOUNT`)."""
    whole, _, fraction = amount.partition(".")
    return int(whole + fraction.ljust(DECIMALS, "0"))


def post(connection: sqlite3.Connection, transaction: Transaction, *, move: Move, at: str) -> None:
    """Write both entries of one move; none if it moves no money.

    Raises sqlite3.IntegrityError if this move, or another one out of the hold, was already posted.
    """
    accounts = TRANSITIONS[move].accounts
    if accounts is None:
        return
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

    `total` is the sum of all `entries`, `hold` the sum of the hold account. `held` is the sum of the amounts of
    all transactions with money in escrow.
    """

    currency: str
    entries: int
    total: int
    hold: int
    held: int

    @property
    def consistent(self) -> bool:
        """Whether no money was made or lost, and the ledger and the records agree."""
        return self.total == 0 and self.hold == self.held >= 0


def check_ledger(connection: sqlite3.Connection) -> tuple[Balance, ...]:
    """Return the balances, by currency in alphabetical order. Call it inside one read transaction."""
    entries: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    holds: Counter[str] = Counter()
    held: Counter[str] = Counter()
    # Not added by SQLite: its sum of many 63-bit integers overflows.
    for currency, account, amount in connection.execute("SELECT currency, account, units FROM ledger_entries"):
        entries[currency] += 1
        totals[currency] += amount
        if account == HOLD:
            holds[currency] += amount
    for currency, status, amount in connection.execute("SELECT currency, status, amount FROM transactions"):
        if status in IN_ESCROW:
            held[currency] += units(amount)
    return tuple(
        Balance(currency, entries[currency], totals[currency], holds[currency], held[currency])
        for currency in sorted(totals.keys() | held.keys())
    )


def write_amount(number: int) -> NumberToken:
    """125000 -> `12.5`, as it is written in JSON."""
    return NumberToken(f"{Decimal(number).scaleb(-DECIMALS).normalize():f}")


def describe_ledger(connection: sqlite3.Connection) -> JsonObject:
    """Return `{"entries": [...], "currencies": [...]}`, the oldest entry first; call it inside one read transaction.

    An entry is `{"entry", "transaction", "move", "account", "currency", "amount", "posted_at"}`; a currency
    `{"currency", "entries", "sum", "held", "balanced"}`. Amounts are numbers in the currency's main unit.
    """
    currencies = [
        {
            "currency": one.currency,
            "entries": one.entries,
            "sum": write_amount(one.total),
            "held": write_amount(one.held),
            "balanced": one.consistent,
        }
        for one in check_ledger(connection)
    ]
    entries = [{**dict(row), "amount": write_amount(row["amount"])} for row in connection.execute(_ENTRIES)]
    return {"entries": entries, "currencies": currencies}
