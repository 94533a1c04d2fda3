"""Sums of the journal's writes by month, profile, operation, currency and state."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.model import Entry, State


class SumGroup(NamedTuple):
    """The values that all writes in a sum share.

    `month` is the UTC month of the last attempt, such as 2026-11. `state` is `Entry.shown_state`, but a write in
    flight counts as unknown. `currency` is "" if the amount is not known.
    """

    month: str
    profile: str
    operation: str
    currency: str
    state: str


class GroupSum(NamedTuple):
    """The number of writes in a group, and the exact sum of their known amounts."""

    writes: int = 0
    amount: Decimal = Decimal(0)


def sum_by_group(entries: Iterable[Entry]) -> dict[SumGroup, GroupSum]:
    """Return the sums by group, sorted by group. Writes that were refused, not sent or not applied do not count."""
    found: dict[SumGroup, GroupSum] = {}
    for entry in entries:
        if not (entry.is_open or entry.state is State.DONE):
            continue
        intent, money = entry.intent, entry.intent.money
        state = State.UNKNOWN.value if entry.is_open else entry.shown_state
        group = SumGroup(entry.sent_at[:7], intent.profile, intent.operation, money.currency if money else "", state)
        known = found.get(group, GroupSum())
        found[group] = GroupSum(known.writes + 1, sum_exactly((known.amount, money.amount)) if money else known.amount)
    return dict(sorted(found.items()))
