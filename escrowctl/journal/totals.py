"""What was written here, added up by month, profile, operation and currency."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.model import Entry, State


class Group(NamedTuple):
    """What entries are added up by; `month` as 2026-11, in UTC, of the last sending."""

    month: str
    profile: str
    operation: str
    currency: str


class Sums(NamedTuple):
    """How many writes are done and how many may be, and what they add up to, exactly."""

    done: int = 0
    done_amount: Decimal = Decimal(0)
    unknown: int = 0
    unknown_amount: Decimal = Decimal(0)


def add_up(entries: Iterable[Entry]) -> dict[Group, Sums]:
    """Return the sums by group, in order; what was refused or never sent is in none."""
    found: dict[Group, Sums] = {}
    for entry in entries:
        if not (entry.is_open or entry.state is State.DONE):
            continue
        money = entry.intent.money
        group = Group(entry.sent_at[:7], entry.intent.profile, entry.intent.operation, money.currency if money else "")
        done, done_amount, unknown, unknown_amount = found.get(group, Sums())
        amount = money.amount if money else Decimal(0)
        if entry.is_open:
            found[group] = Sums(done, done_amount, unknown + 1, sum_exactly((unknown_amount, amount)))
        else:
            found[group] = Sums(done + 1, sum_exactly((done_amount, amount)), unknown, unknown_amount)
    return dict(sorted(found.items()))
