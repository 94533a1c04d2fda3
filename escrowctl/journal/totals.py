"""Sums of the journal's writes by month, profile, operation, currency and state."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.model import Entry, State


class Group(NamedTuple):
    """The group of a sum.

    `month` of the last attempt, in UTC, as 2026-11. `state` as `Entry.shown_state`; in flight counts as unknown.
    """

    month: str
    profile: str
    operation: str
    currency: str
    state: str


class Sums(NamedTuple):
    """The number of writes, and their exact sum."""

    writes: int = 0
    amount: Decimal = Decimal(0)


def add_up(entries: Iterable[Entry]) -> dict[Group, Sums]:
    """Return the sums by group, in order. Writes that were refused, not sent or not applied do not count."""
    found: dict[Group, Sums] = {}
    for entry in entries:
        if not (entry.is_open or entry.state is State.DONE):
            continue
        intent, money = entry.intent, entry.intent.money
        state = State.UNKNOWN.value if entry.is_open else entry.shown_state
        group = Group(entry.sent_at[:7], intent.profile, intent.operation, money.currency if money else "", state)
        known = found.get(group, Sums())
        amount = sum_exactly((known.amount, money.amount)) if money else known.amount
        found[group] = Sums(known.writes + 1, amount)
    return dict(sorted(found.items()))
