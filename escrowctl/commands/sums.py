"""The sums of several writes by currency, as lines above a question."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from escrowctl.batch.check import Sum
from escrowctl.contract.money import Money


def count_escrows(count: int) -> str:
    """Return `1 escrow` or `5,000 escrows`."""
    return "1 escrow" if count == 1 else f"{count:,} escrows"


def add_up(writes: Iterable[Money | None]) -> dict[str, Sum]:
    """Return the number and the sum of the writes by currency. Without known money the currency is ""."""
    sums: dict[str, Sum] = {}
    for money in writes:
        amount, currency = money or (Decimal(0), "")
        sums[currency] = sums.get(currency, Sum()).plus(1, amount)
    return sums


def sum_lines(sums: Mapping[str, Sum], count: Callable[[int], str]) -> list[str]:
    """Return a line for each currency. `count` turns a number into text; "" has the rows without a known amount."""
    counts = max((len(count(one.rows)) for one in sums.values()), default=0)
    amounts = max((len(f"{one.amount:,f}") for one in sums.values()), default=0)
    return [
        f"  {currency}   {count(one.rows):>{counts}}   {one.amount:>{amounts},f}"
        if currency
        else f"  amount unknown: {count(one.rows)}"
        for currency, one in sorted(sums.items())
    ]
