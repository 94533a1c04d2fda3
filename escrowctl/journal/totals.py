"""What was written here, added up by month, profile, operation, currency and state."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.model import Entry, State


class Group(NamedTuple):
    """What entries are added up by.

    `month` as 2026-11, in UTC, of the last sending; `state` as `Entry.shown_state`, one in flight as unknown.
    """

    month: str
    profile: str
    operation: str
    currency: str
    state: str


class Sums(NamedTuple):
    """How many writes there are, and what they add up to, exactly."""

    writes: int = 0
    amount: Decimal = Decimal(0)


def add_up(entries: Iterable[Entry]) -> dict[Group, Sums]:
    """Return the sums by group, in order; what was refused or never sent is in none."""
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
