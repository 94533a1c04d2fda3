"""The options of the commands that send a batch, and their checks."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple

import typer

from escrowctl.batch.check import Sum, count_rows
from escrowctl.contract.json import Number
from escrowctl.contract.money import parse_amount, parse_currency
from escrowctl.errors import ErrorCode, bad_value, not_sent
from escrowctl.session import Session


def parse_results_path(text: str) -> Path:
    """Return the path of a results file. Raises `BAD_VALUE` if its ending is unknown or its folder is missing."""
    path = Path(text)
    if path.suffix not in (".csv", ".jsonl"):
        raise bad_value(f'--results "{text}" must end with .csv or .jsonl.')
    if path.is_dir():
        raise bad_value(f'--results "{text}" is a folder: name a file.')
    if not path.parent.is_dir():
        raise bad_value(f'--results "{text}": there is no folder {path.parent}.')
    return path


def _require_number(rate: float | None) -> float | None:
    if rate is not None and math.isnan(rate):
        raise bad_value("--rps nan is not a number: write rows a second, such as 5.")
    return rate


FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="CSV with a header, or JSON lines; - for stdin.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The batch, such as b41.")]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", metavar="N", min=1, max=128, help="N rows at once.")]
RateOption = Annotated[
    float | None,
    typer.Option(
        "--rps", metavar="N", min=0.001, max=100_000, callback=_require_number, help="At most N rows a second."
    ),
]
CountOption = Annotated[int | None, typer.Option("--expect-count", metavar="N", help="Refuse unless there are N rows.")]
TotalOption = Annotated[
    list[str] | None,
    typer.Option("--expect-total", metavar="CODE=AMOUNT", help="Refuse unless the rows sum to this; repeatable."),
]
SkipOption = Annotated[bool, typer.Option("--skip-done", help="Leave out rows that are done already.")]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="FILE", parser=parse_results_path, help="Write each row's outcome (.csv or .jsonl)."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Make the checks on this machine; send nothing.")]


class SendOptions(NamedTuple):
    """The options of a command that sends a batch. `concurrency`: rows sent at once. `rate`: at most per second.

    `expected_count` and `expected_totals` (by currency) are the values of --expect-*. `skip_done`: leave out rows
    that are done. `run_key` is the name of this run. Rows that runs of another name created are created again.
    """

    yes: bool
    expected_count: int | None = None
    expected_totals: Mapping[str, Number] = MappingProxyType({})
    dry_run: bool = False
    concurrency: int = 8
    rate: float | None = None
    results: Path | None = None
    skip_done: bool = False
    run_key: str | None = None

    def require_expected(self, count: int, sums: dict[str, Sum]) -> None:
        """Raise `ErrorCode.EXPECTATION_FAILED` if the number or the sums of the rows differ from --expect-*."""
        if self.expected_count is not None and self.expected_count != count:
            message = f"--expect-count is {self.expected_count}, but the number of rows is {count:,}."
            raise not_sent(ErrorCode.EXPECTATION_FAILED, message)
        if not self.expected_totals:
            return
        if "" in sums:
            message = f"--expect-total cannot be checked: {count_rows(sums[''].rows)} without an amount."
            raise not_sent(ErrorCode.EXPECTATION_FAILED, message, hint="fill in amount and currency")
        for currency in sorted(self.expected_totals.keys() | sums.keys()):
            found, wanted = sums.get(currency, Sum()).amount, self.expected_totals.get(currency)
            if wanted is None or found != wanted:
                expected = f"is {currency}={wanted}" if wanted else f"has no sum for {currency}"
                message = f"--expect-total {expected}, but the rows add up to {found:f} {currency}."
                raise not_sent(ErrorCode.EXPECTATION_FAILED, message)


def parse_totals(session: Session, texts: list[str] | None) -> dict[str, Number]:
    """Return the sums of `--expect-total` by currency. Raises `BAD_VALUE` if one is invalid or given twice."""
    totals: dict[str, Number] = {}
    for text in texts or []:
        code, equals, amount = text.partition("=")
        if not equals:
            raise bad_value(f'--expect-total "{text}": write a currency and an amount, such as EUR=1250.00.')
        currency = parse_currency(code, listed=session.service.currencies, name="--expect-total")
        if currency in totals:
            raise bad_value(f"--expect-total names {currency} twice: name each currency once.")
        totals[currency] = parse_amount(amount, name="--expect-total")
    return totals
