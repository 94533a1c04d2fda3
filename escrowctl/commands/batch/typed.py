"""The options of the commands that send a batch, and their checks."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from escrowctl.batch.check import Sum, count_rows
from escrowctl.batch.results import parse_results_path
from escrowctl.contract.json import Number
from escrowctl.contract.money import Money, parse_amount, parse_currency
from escrowctl.errors import ErrorCode, bad_value, not_sent
from escrowctl.session import Session

_MOST_CONNECTIONS = 128
_MOST_RATE = 100_000.0

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="CSV with header or JSON lines; - for stdin.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The batch, such as b41.")]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", metavar="N", help="Requests at once, 1 to 128.")]
RateOption = Annotated[float | None, typer.Option("--rps", metavar="N", help="At most N rows a second.")]
CountOption = Annotated[int | None, typer.Option("--expect-count", metavar="N", help="Refuse unless it is N rows.")]
TotalOption = Annotated[
    list[str] | None,
    typer.Option("--expect-total", metavar="CODE=AMOUNT", help="Refuse unless the sum is this; repeatable."),
]
SkipOption = Annotated[bool, typer.Option("--skip-done", help="Leave out rows that are done already.")]
ResultsOption = Annotated[
    str | None, typer.Option("--results", metavar="FILE", help="Write what became of each row (.csv or .jsonl).")
]
CheckOption = Annotated[bool, typer.Option("--dry-run", help="Check all that is known here; send nothing.")]


class How(NamedTuple):
    """How to send a batch: `size` requests at once, at most `rate` rows a second (None: no limit).

    `expected` is the number of rows (None: not given), `totals` their sums by currency (empty: not given).
    """

    yes: bool
    size: int
    rate: float | None
    expected: int | None
    totals: tuple[Money, ...]
    results: Path | None
    dry_run: bool

    def require_expected(self, count: int, sums: dict[str, Sum]) -> None:
        """Raise `ErrorCode.EXPECTATION_FAILED` if the number or the sums of the rows are not as expected."""
        if self.expected is not None and self.expected != count:
            raise not_sent(
                ErrorCode.EXPECTATION_FAILED, f"--expect-count {self.expected}, but there are {count_rows(count)}."
            )
        if not self.totals:
            return
        expected = {money.currency: Decimal(money.amount) for money in self.totals}
        for currency in sorted(expected.keys() | sums.keys()):
            found, wanted = sums.get(currency, Sum()).amount, expected.get(currency)
            if not currency:
                rows = count_rows(sums[""].rows)
                why = f"--expect-total cannot add up rows without an amount: {rows}"
                raise not_sent(ErrorCode.EXPECTATION_FAILED, f"{why}.", hint="fill in amount and currency")
            if wanted is None:
                why = f"the rows in {currency} add up to {found:f}, but no --expect-total names {currency}"
                raise not_sent(ErrorCode.EXPECTATION_FAILED, f"{why}.")
            if found != wanted:
                raise not_sent(
                    ErrorCode.EXPECTATION_FAILED,
                    f"--expect-total {currency}={wanted}, but the rows add up to {found:f} {currency}.",
                )


def check_options(
    session: Session,
    *,
    yes: bool,
    concurrency: int,
    rps: float | None,
    expect_count: int | None,
    expect_total: list[str] | None,
    results: str | None,
    dry_run: bool,
) -> How:
    """Return the checked options. Raises EscrowctlError `ErrorCode.BAD_VALUE`."""
    if not 1 <= concurrency <= _MOST_CONNECTIONS:
        raise bad_value(f"--concurrency {concurrency} is out of range: 1 to {_MOST_CONNECTIONS}.")
    if rps is not None and not 0 < rps <= _MOST_RATE:
        raise bad_value(f"--rps {rps:g} is out of range: above 0, at most {_MOST_RATE:g}.")
    totals = tuple(_parse_total(session, text) for text in expect_total or [])
    if len({money.currency for money in totals}) < len(totals):
        raise bad_value("--expect-total names a currency twice: name each once.")
    path = parse_results_path(results) if results is not None else None
    return How(yes, concurrency, rps, expect_count, totals, path, dry_run)


def _parse_total(session: Session, text: str) -> Money:
    code, equals, amount = text.partition("=")
    if not equals:
        raise bad_value(f'--expect-total "{text}": write a currency and an amount, such as EUR=1250.00.')
    currency = parse_currency(code, listed=session.service.currencies, name="--expect-total")
    if re.fullmatch(r"0(\.0+)?", amount):
        return Money(Number(amount), currency)
    return Money(parse_amount(amount, name="--expect-total"), currency)
