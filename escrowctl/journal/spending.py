"""What caps count: how much writes of one operation came to since a time, those that happened or may have."""

import json
from decimal import Decimal

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.chain import Kind
from escrowctl.journal.entries import RESENT_ON_WORD, Intent
from escrowctl.journal.rows import MAY_HAVE_HAPPENED
from escrowctl.journal.store import Store

_RECORDED_SINCE = """(sent_at >= ? OR number IN (
    SELECT entry FROM records WHERE kind = 'intent' AND at < ? AND sequence > (
        SELECT sequence FROM records WHERE at >= ? ORDER BY sequence LIMIT 1)))"""
"""As SQL: dated since a time, or recorded after something that is: a clock set back frees nothing."""


def sum_since(store: Store, intent: Intent, currency: str, *, since: str, but: int | None) -> Decimal:
    """Return what writes like an intent came to in a currency since a timestamp.

    A write that was sent again on an operator's word counts as often as it was sent. `but` is the
    number of an entry that is left out.
    """
    found = store.rows_where(
        f"operation = ? AND currency = ? AND amount IS NOT NULL AND {MAY_HAVE_HAPPENED} AND {_RECORDED_SINCE}",
        (intent.operation, currency, since, since, since),
    )
    names = set(intent.names)
    amounts = []
    for number, row in found:
        if number != but and names & {row["service"], row["site"]}:
            # An entry that was imported may hold what no cap lets be sent: less than nothing frees nothing.
            amount = max(Decimal(row["amount"]), Decimal(0))
            amounts += [amount] * (1 + (count_resends(store, number) if row["attempt"] > 1 else 0))
    return sum_exactly(amounts)


def count_resends(store: Store, number: int) -> int:
    """Return how often an entry was sent again on an operator's word while it was unknown."""
    decisions = (link.record for link in store.links_of(number) if link.record.kind == Kind.DECISION)
    return sum(json.loads(record.facts)["detail"] == RESENT_ON_WORD for record in decisions)
