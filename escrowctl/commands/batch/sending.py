"""`escrowctl batch create|release|resume`: a file is checked, planned, confirmed and sent."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from escrowctl.batch.check import CheckedFile, Sum, count_rows
from escrowctl.batch.crew import Crew
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import (
    Batch,
    Outcomes,
    find_batch,
    find_overlaps,
    find_same,
    list_unsent,
    lock_of,
    make_batch,
    store_plan,
    take_standing,
)
from escrowctl.batch.results import parse_results_path
from escrowctl.batch.rows import CREATES, RELEASES, RowContent, RowKind, request_row
from escrowctl.batch.run import Run
from escrowctl.batch.watch import Ending
from escrowctl.batch.worker import Worker
from escrowctl.commands.batch.opening import checked_file, running_alone
from escrowctl.commands.batch.overlap import repeat_done, skip_done
from escrowctl.commands.batch.progress import Progress
from escrowctl.commands.batch.standing import finished_before, raise_standing, save_results, show_standing
from escrowctl.commands.writing import check_text
from escrowctl.contract.json import Number
from escrowctl.contract.money import Money, parse_amount, parse_currency
from escrowctl.errors import ErrorCode, Stopped, bad_value, not_sent
from escrowctl.journal.accounts import account_of
from escrowctl.options import YesOption
from escrowctl.prompt import confirmation_needed
from escrowctl.runtime import ago, timestamp
from escrowctl.session import Session, session_of
from escrowctl.writes.intents import make_intent, require_writable

_MOST_CONNECTIONS = 128
_MOST_RATE = 100_000.0

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="A CSV file with a header row, or JSON lines; - reads standard input.")
]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", metavar="N", help="Requests at once, 1 to 128.")]
RateOption = Annotated[float | None, typer.Option("--rps", metavar="N", help="At most N rows a second.")]
CountOption = Annotated[int | None, typer.Option("--expect-count", metavar="N", help="Refuse unless N rows are sent.")]
TotalOption = Annotated[
    list[str] | None,
    typer.Option("--expect-total", metavar="CODE=AMOUNT", help="Refuse unless they add up to this; repeatable."),
]
SkipOption = Annotated[bool, typer.Option("--skip-done", help="Leave out rows that are done already.")]
ResultsOption = Annotated[
    str | None, typer.Option("--results", metavar="FILE", help="Write what became of each row (.csv or .jsonl).")
]
CheckOption = Annotated[bool, typer.Option("--dry-run", help="Check everything that is known here; send nothing.")]


class _How(NamedTuple):
    """The options of a run."""

    yes: bool
    size: int
    rate: float | None
    expected: int | None
    totals: tuple[Money, ...]
    results: Path | None
    skip_done: bool = False
    run_key: str | None = None
    dry_run: bool = False


def create(
    context: typer.Context,
    file: FileArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: CheckOption = False,
    skip_done: SkipOption = False,
    run_key: Annotated[
        str | None, typer.Option("--run-key", metavar="TEXT", help="Send the same file once more, under this name.")
    ] = None,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Create an escrow for each row of a file: columns amount, currency and reference.

    The whole file is checked before anything is sent. Columns named body.X go into the body, others into the results.
    The same file again resumes where it stopped.

    \\b
    Example:
      escrowctl batch create payouts.csv --dry-run
      escrowctl batch create payouts.csv --yes --expect-count 5000 --expect-total EUR=1284400.50
    """
    session = session_of(context)
    how = _check_options(session, yes, concurrency, rps, expect_count, expect_total, results)
    run_key = check_text(run_key, name="--run-key")
    _start(session, CREATES, file, how._replace(skip_done=skip_done, run_key=run_key, dry_run=dry_run))


def release(
    context: typer.Context,
    file: FileArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: CheckOption = False,
    skip_done: SkipOption = False,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Release the escrow of each row of a file: column id, and amount and currency as the escrow must have them.

    The whole file is checked before anything is sent; each escrow is read before and after its release. This
    cannot be undone.

    \\b
    Example:
      escrowctl batch release due.csv
    """
    session = session_of(context)
    how = _check_options(session, yes, concurrency, rps, expect_count, expect_total, results)
    _start(session, RELEASES, file, how._replace(skip_done=skip_done, dry_run=dry_run))


def resume(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The batch, such as b41.")],
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Send what a batch has not sent.

    \\b
    Example:
      escrowctl batch resume b41
    """
    session = session_of(context)
    how = _check_options(session, yes, concurrency, rps, expect_count, expect_total, results)
    require_writable(session.service, session.journal.journal_id)
    lock = find_batch(session.journal, name).lock
    with session.signals.held(), running_alone(session, lock, lambda: find_batch(session.journal, name)) as batch:
        assert batch is not None, "it was found before"
        _resume(session, batch, how)


def _check_options(
    session: Session,
    yes: bool,  # noqa: FBT001 - as typed
    concurrency: int,
    rps: float | None,
    count: int | None,
    totals: list[str] | None,
    results: str | None,
) -> _How:
    if not 1 <= concurrency <= _MOST_CONNECTIONS:
        raise bad_value(f"--concurrency {concurrency} is out of range: 1 to {_MOST_CONNECTIONS}.")
    if rps is not None and not 0 < rps <= _MOST_RATE:
        raise bad_value(f"--rps {rps:g} is out of range: above 0, at most {_MOST_RATE:g}.")
    expected = tuple(_parse_total(session, text) for text in totals or [])
    if len({money.currency for money in expected}) < len(expected):
        raise bad_value("--expect-total names a currency twice: name each once.")
    path = parse_results_path(results) if results is not None else None
    return _How(yes, concurrency, rps, count, expected, path)


def _parse_total(session: Session, text: str) -> Money:
    code, equals, amount = text.partition("=")
    if not equals:
        raise bad_value(f'--expect-total "{text}": write a currency and an amount, such as EUR=1250.00.')
    currency = parse_currency(code, listed=session.service.currencies, name="--expect-total")
    if re.fullmatch(r"0(\.0+)?", amount):
        return Money(Number(amount), currency)
    return Money(parse_amount(amount, name="--expect-total"), currency)


def _start(session: Session, kind: RowKind, file: str, how: _How) -> None:
    """Make a file into a batch and send it; the same file again resumes the batch that it is."""
    service = session.service
    if file == "-" and not (how.yes or how.dry_run):
        raise confirmation_needed(
            "the rows come from standard input, so escrowctl cannot ask for confirmation", "--yes"
        )
    require_writable(service, session.journal.journal_id)
    with checked_file(session, kind, file) as checked, session.signals.held():
        lock = lock_of(checked, how.run_key)

        def find() -> Batch | None:
            return find_same(session.journal, checked, service, how.run_key)

        with running_alone(session, lock, find) as same:
            if same is not None:
                _resume(session, same, how)
                return
            _start_new(session, checked, file, how)


def _start_new(session: Session, checked: CheckedFile, file: str, how: _How) -> None:
    found = find_overlaps(session.journal, checked, session.service)
    repeats: dict[int, tuple[int, ...]] = {}
    left_out: set[int] = set()
    if how.run_key is not None:
        repeats = repeat_done(checked, found)
    else:
        left_out = skip_done(session, checked, found, skips=how.skip_done)

    def rows() -> Iterator[tuple[int, RowContent]]:
        for line, row in checked:
            if line not in left_out:
                yield line, row._replace(repeats=repeats[line]) if line in repeats else row

    sums = _sums_without(checked, left_out)
    count = sum(one.rows for one in sums.values())
    _require_expected(how, count, sums)
    if not count:
        session.console.note("all_done", f"done already: {count_rows(checked.rows)}. Nothing was sent")
        return
    _require_under_caps(session, checked.kind, sums)
    now = timestamp(session.runtime.now())
    batch = make_batch(
        session.journal, checked, session.service, source=Path(file).name, sums=sums, run_key=how.run_key, now=now
    )
    verb, noun = checked.kind.operation.verb, "escrow" if count == 1 else "escrows"
    lines = [
        f"{batch.name}, new: {verb} {count:,} {noun}, amounts as written in the file",
        *_sum_lines(sums),
        *([f"  left out, because done already: {count_rows(len(left_out))}"] if left_out else []),
    ]
    if how.dry_run:
        _show_plan(session, lines)
        return
    _confirm(session, how, lines, count, f"batch {verb} needs confirmation")
    stored = store_plan(session.journal, batch, rows())
    if stored.name != batch.name:
        taken = f"another process took the name {batch.name} meanwhile: this batch is {stored.name}"
        session.console.note("name", taken, important=True)
    _send(session, stored, how, count)


def _resume(session: Session, batch: Batch, how: _How) -> None:
    service = session.service
    if not batch.digest or batch.dropped:
        why = "its rows were given up" if batch.dropped else "the journal has lost the rows that were not sent"
        raise not_sent(ErrorCode.CONFLICT, f"{batch.name} cannot be resumed: {why}.")
    if not batch.is_for(service):
        raise not_sent(ErrorCode.CONFLICT, f"{batch.name} was made for {batch.service}, not for {service.identity}.")
    if not batch.is_of(account_of(service)):
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{batch.name} was made with another API key, which may belong to another account.",
            hint='if both keys belong to one account, name it in the profile: account = "NAME"',
        )
    sums: dict[str, Sum] = {}
    for todo in list_unsent(session.journal, batch, service):
        money = todo.row.money if todo.row is not None else todo.again and todo.again.intent.money
        known = sums.get(money.currency if money else "", Sum())
        amount = known.amount + (money.amount if money else 0)
        sums[money.currency if money else ""] = Sum(known.rows + 1, amount)
    count = sum(one.rows for one in sums.values())
    if not count:
        raise finished_before(session, batch)
    _require_expected(how, count, sums)
    made = ago(batch.made_at, session.runtime.now())
    lines = [f"{batch.name}, made {made} from {batch.source}; not sent: {count_rows(count)}", *_sum_lines(sums)]
    if how.dry_run:
        _show_plan(session, lines)
        return
    _confirm(session, how, lines, count, f"batch resume {batch.name} needs confirmation")
    _send(session, batch, how, count)


def _send(session: Session, batch: Batch, how: _How, count: int) -> None:
    """Run a batch, and show what became of it."""
    runtime, service = session.runtime, session.service
    connect, is_here = session.connector(), session.is_in_process
    progress = Progress(session, batch, rows=count, size=how.size)
    crew = Crew(lambda: Worker(service, connect, runtime), min(how.size, count), in_process=is_here)
    run = Run(
        batch,
        service=service,
        journal=session.journal,
        crew=crew,
        pace=Pace(how.rate, runtime.monotonic()),
        size=how.size,
        runtime=runtime,
        signals=session.signals,
        watch=progress,
    )
    try:
        ending = run.go(list_unsent(session.journal, batch, service))
    finally:
        progress.end()
        crew.close()
    _finish(session, batch, how, ending)


def _finish(session: Session, batch: Batch, how: _How, ending: Ending) -> None:
    standing = take_standing(session.journal, batch)
    if how.results is not None:
        save_results(session, batch, how.results)
    show_standing(session, standing)
    if ending.halted:
        session.console.note("halted", f"{batch.name} stopped early: {ending.halted}", word="stopped", important=True)
    if ending.stopped is not None and not standing.count(Outcomes.UNKNOWN):
        left = f"{batch.name}: {count_rows(standing.count(Outcomes.NOT_SENT))} not sent"
        raise Stopped(ending.stopped, f"{left}. To send the rest: {session.invocation} batch resume {batch.name}")
    raise_standing(session, standing, remarks=ending.remarks)


def _require_expected(how: _How, count: int, sums: dict[str, Sum]) -> None:
    if how.expected is not None and how.expected != count:
        raise not_sent(
            ErrorCode.EXPECTATION_FAILED, f"--expect-count {how.expected}, but {count_rows(count)} would be sent."
        )
    if not how.totals:
        return
    expected = {money.currency: Decimal(money.amount) for money in how.totals}
    for currency in sorted(expected.keys() | sums.keys()):
        found, wanted = sums.get(currency, Sum()).amount, expected.get(currency)
        if wanted is None:
            what = f"rows in {currency}" if currency else "rows without an amount in the file"
            raise not_sent(ErrorCode.EXPECTATION_FAILED, f"--expect-total says nothing of {what}.")
        if found != wanted:
            raise not_sent(
                ErrorCode.EXPECTATION_FAILED,
                f"--expect-total {currency}={wanted}, but the rows that would be sent add up to {found:f} {currency}.",
            )


def _require_under_caps(session: Session, kind: RowKind, sums: dict[str, Sum]) -> None:
    """Raise `ErrorCode.CAPPED` where the rows together are above a cap: nothing of them is sent then."""
    service = session.service
    if not service.caps:
        return
    intents = []
    for currency, found in sums.items():
        if not currency:
            continue
        row = RowContent("x", f"{found.amount:f}", currency)
        request = request_row(kind, row, service, name="", found=None)
        request = request._replace(money=Money(Number(f"{found.amount:f}"), currency))
        # A batch without a line: all of its rows.
        intents.append(make_intent(service, request, "", operator="")._replace(batch="b0"))
    session.journal.refuse_over_caps(intents, service.caps)


def _sums_without(checked: CheckedFile, left_out: set[int]) -> dict[str, Sum]:
    if not left_out:
        return checked.sums
    sums: dict[str, Sum] = {}
    for line, row in checked:
        if line not in left_out:
            known = sums.get(row.currency or "", Sum())
            sums[row.currency or ""] = Sum(known.rows + 1, known.amount + Decimal(row.amount or 0))
    return sums


def _sum_lines(sums: dict[str, Sum]) -> list[str]:
    rows = max((len(count_rows(one.rows)) for one in sums.values()), default=0)
    amounts = max((len(f"{one.amount:,f}") for one in sums.values()), default=0)
    return [
        f"  {currency}   {count_rows(one.rows):>{rows}}   {one.amount:>{amounts},f}"
        if currency
        else f"  without an amount in the file: {count_rows(one.rows)}"
        for currency, one in sorted(sums.items())
    ]


def _show_plan(session: Session, lines: list[str]) -> None:
    """End a dry run: all that is known here was checked."""
    for line in lines:
        session.console.note("plan", line.strip(), word="plan", important=True)
    session.console.note("dry_run", "nothing was sent, and nothing was stored", important=True)


def _confirm(session: Session, how: _How, lines: list[str], count: int, why: str) -> None:
    if how.yes:
        for line in lines:
            session.console.note("plan", line.strip(), word="plan")
        return
    lines = [*lines, "Type the number of rows to send them:"]
    session.prompt.confirm(lines, str(count), why=why, declined="the batch was not started")
