"""What stands in the store, counted; and whether its money adds up."""

import sqlite3
from decimal import Decimal

from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.ledger import DECIMALS, check_ledger

_BY_STATUS = "SELECT status, count(*) FROM transactions GROUP BY status ORDER BY status"


def describe(connection: sqlite3.Connection) -> JsonObject:
    """Return `{"transactions": {status: count}, "users", "webhooks", "ledger": [...]}`; call it inside one read.

    A line of the ledger is `{"currency", "held", "sound"}`: `held` in the currency's own unit, `sound`
    whether its entries sum to zero and agree with the records.
    """
    return {
        "transactions": dict(connection.execute(_BY_STATUS).fetchall()),
        "users": _count(connection, "users"),
        "webhooks": _count(connection, "webhook_endpoints"),
        "ledger": [
            {
                "currency": balance.currency,
                "held": f"{Decimal(balance.held).scaleb(-DECIMALS).normalize():f}",
                "sound": balance.sound,
            }
            for balance in check_ledger(connection)
        ],
    }


def _count(connection: sqlite3.Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - a name of our own
    return int(count)
