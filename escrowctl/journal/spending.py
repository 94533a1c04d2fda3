"""What caps count: how much writes of one operation came to since a time, those that happened or may have."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.chain import Kind
from escrowctl.journal.entries import RESENT_ON_WORD, Intent
from escrowctl.journal.rows import MAY_HAVE_HAPPENED
from escrowctl.journal.store import Store

Caps = Mapping[str, Decimal]
"""Currency -> the most that writes of one operation may come to in a UTC day. Empty: no caps."""

NO_CAPS: Caps = MappingProxyType({})

_RECORDED_SINCE = """(sent_at BETWEEN ? AND ? OR number IN (
    SELECT entry FROM records WHERE kind = 'intent' AND at < ? AND sequence > (
        SELECT sequence FROM records WHERE at BETWEEN ? AND ? ORDER BY sequence LIMIT 1)))"""
"""As SQL: dated since a time, or recorded after something that is: a clock set back frees nothing."""

_DATED_AFTER = "(sent_at > ? OR number IN (SELECT entry FROM records WHERE at > ?))"
_END_OF_TIME = "9999-12-31T23:59:59.999Z"
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Ahead:
    """What counts only because entries are dated after now: their first numbers, and the latest date of those.

    `more`: there are others.
    """

    amount: Decimal
    numbers: tuple[int, ...]
    date: str
    more: bool


def find_ahead(store: Store, intent: Intent, currency: str, *, since: str, now: str, but: int | None) -> Ahead | None:
    """Return what `sum_since` counts only because entries are dated after now; None where that is nothing."""
    ever, by_now = (
        sum_since(store, intent, currency, since=since, until=until, but=but) for until in (_END_OF_TIME, now)
    )
    if ever == by_now:
        return None
    dated = store.rows_where(_DATED_AFTER, (now, now), limit=_MOST_NAMED + 1, order="ASC")
    numbers = tuple(number for number, _ in dated)[:_MOST_NAMED]
    dates = [link.record.at for number in numbers for link in store.links_of(number)]
    dates += [row["sent_at"] for _, row in dated[:_MOST_NAMED]]
    return Ahead(sum_exactly((ever, -by_now)), numbers, max(dates), more=len(dated) > _MOST_NAMED)


def sum_since(
    store: Store, intent: Intent, currency: str, *, since: str, until: str = _END_OF_TIME, but: int | None
) -> Decimal:
    """Return what writes like an intent came to in a currency since a timestamp, by what is dated `until` then.

    A write that was sent again on an operator's word counts as often as it was sent. `but` is the
    number of an entry that is left out.
    """
    found = store.rows_where(
        f"operation = ? AND currency = ? AND amount IS NOT NULL AND {MAY_HAVE_HAPPENED} AND {_RECORDED_SINCE}",
        (intent.operation, currency, since, until, since, since, until),
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
