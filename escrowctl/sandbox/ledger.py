"""The ledger: double-entry and append-only. Amounts are whole ten-thousandths of the currency's main unit.

If a move (`records.TRANSITIONS`) moves money, it has two entries: minus the amount on the account that pays, plus
the amount on the account that receives. The accounts are the sandbox's own choice. Sums are per currency. A payer's
account is minus the money that the payer paid and did not get back. The hold account is never below zero.
"""

import sqlite3
from collections import Counter, defaultdict
from decimal import Decimal
from typing import NamedTuple

from escrowctl.sandbox.bodies import NumberToken
from escrowctl.sandbox.records import HOLD, STATES_IN_ESCROW, TRANSITIONS, Move, Transaction, read_transaction

DECIMALS = 4

ADD_ENTRY = """
    INSERT INTO ledger_entries (transaction_id, move, account, currency, units, posted_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""


def to_ten_thousandths(amount: str) -> int:
    """Return an amount in ten-thousandths: `12.5` -> 125000. `amount` must match `requests.AMOUNT_PATTERN`."""
    whole, _, fraction = amount.partition(".")
    return int(whole + fraction.ljust(DECIMALS, "0"))


def post_entries(connection: sqlite3.Connection, transaction: Transaction, *, move: Move, at: str) -> None:
    """Write the two entries of a move, or none if it moves no money.

    Raises sqlite3.IntegrityError if the move is in the ledger already, or if the money has left the hold account.
    """
    amount = to_ten_thousandths(transaction.amount)
    for template, units in zip(TRANSITIONS[move].accounts, (-amount, amount), strict=False):
        document = transaction.document
        account = template.format(payer=document["payer"], payee=document["payee"])
        connection.execute(ADD_ENTRY, (transaction.id, move, account, document["currency"], units, at))


class Balance(NamedTuple):
    """The ledger of one currency. Sums are in ten-thousandths of the currency's main unit.

    `entries` is the number of entries, `total` the sum of all entries, and `hold_balance` the sum of the hold account.
    `held` is the sum of the amounts of all transactions in escrow, and must be equal to `hold_balance`.
    """

    currency: str
    entries: int
    total: int
    hold_balance: int
    held: int

    @property
    def is_consistent(self) -> bool:
        """Whether the entries sum to zero, and the hold account has the money of the transactions in escrow."""
        return self.total == 0 and self.hold_balance == self.held >= 0


def calculate_balances(connection: sqlite3.Connection) -> tuple[Balance, ...]:
    """Return one balance per currency, in alphabetical order. Call it inside a read transaction."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    # SQLite's own sum() of many 63-bit integers overflows.
    for currency, account, amount in connection.execute("SELECT currency, account, units FROM ledger_entries"):
        sums[currency].update(entries=1, total=amount, hold_balance=amount if account == HOLD else 0)
    for transaction in map(read_transaction, connection.execute("SELECT document FROM transactions")):
        if transaction.status in STATES_IN_ESCROW:
            sums[str(transaction.document["currency"])]["held"] += to_ten_thousandths(transaction.amount)
    return tuple(
        Balance(currency, found["entries"], found["total"], found["hold_balance"], found["held"])
        for currency, found in sorted(sums.items())
    )


def format_amount(ten_thousandths: int) -> NumberToken:
    """Return a number of ten-thousandths as a JSON number in the main unit: 125000 -> `12.5`."""
    return NumberToken(f"{Decimal(ten_thousandths).scaleb(-DECIMALS).normalize():f}")
