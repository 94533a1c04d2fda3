"""What was written from here, added up by month, profile, operation and currency."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.entries import Entry, State


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """What entries are added up by; `month` as 2026-11, in UTC, of the last sending."""

    month: str
    profile: str
    operation: str
    currency: str


@dataclass(slots=True)
class Sums:
    """How many writes are done and how many may be, and what they come to, exactly."""

    done: int = 0
    done_amount: Decimal = field(default_factory=Decimal)
    unknown: int = 0
    unknown_amount: Decimal = field(default_factory=Decimal)


def add_up(entries: Iterable[Entry]) -> dict[Group, Sums]:
    """Return the sums by group, in order; what was refused or never sent is in none."""
    found: dict[Group, Sums] = {}
    for entry in entries:
        if not (entry.is_open or entry.state is State.DONE):
            continue
        money = entry.intent.money
        group = Group(entry.sent_at[:7], entry.intent.profile, entry.intent.operation, money.currency if money else "")
        sums = found.setdefault(group, Sums())
        amount = money.amount if money else Decimal(0)
        if entry.is_open:
            sums.unknown += 1
            sums.unknown_amount = sum_exactly((sums.unknown_amount, amount))
        else:
            sums.done += 1
            sums.done_amount = sum_exactly((sums.done_amount, amount))
    return dict(sorted(found.items()))
