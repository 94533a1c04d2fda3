"""The sums of several amounts by currency, and the lines that show them above a question."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from escrowctl.batch.check import Sum
from escrowctl.contract.money import Money


def describe_escrow_count(count: int) -> str:
    """Return `1 escrow` or `5,000 escrows`."""
    return "1 escrow" if count == 1 else f"{count:,} escrows"


def add_up(amounts: Iterable[Money | None]) -> dict[str, Sum]:
    """Return the number and the total of these amounts by currency. Key `""` counts the unknown amounts (None)."""
    sums: dict[str, Sum] = {}
    for money in amounts:
        amount, currency = money or (Decimal(0), "")
        sums[currency] = sums.get(currency, Sum()).plus(1, amount)
    return sums


def format_sums(sums: Mapping[str, Sum], describe_count: Callable[[int], str]) -> list[str]:
    """Return a line for each currency, and one for the unknown amounts. `describe_count(2)` gives `2 escrows`."""
    count_width = max((len(describe_count(one.rows)) for one in sums.values()), default=0)
    amount_width = max((len(f"{one.amount:,f}") for one in sums.values()), default=0)
    return [
        f"  {currency}   {describe_count(one.rows):>{count_width}}   {one.amount:>{amount_width},f}"
        if currency
        else f"  amount unknown: {describe_count(one.rows)}"
        for currency, one in sorted(sums.items())
    ]
