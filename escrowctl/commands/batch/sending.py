"""`escrowctl batch create|release|resume`: a file is checked, planned, confirmed and sent."""

import shlex
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from escrowctl.batch.check import CheckedFile, Sum, count_rows
from escrowctl.batch.crew import Crew
from escrowctl.batch.overlaps import find_overlaps
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import (
    Batch,
    Outcomes,
    find_batch,
    find_same,
    keep_reasons,
    list_unsent,
    lock_name,
    make_batch,
    store_plan,
    sum_unsent,
    sum_up,
)
from escrowctl.batch.results import require_replaceable
from escrowctl.batch.rows import CREATES, RELEASES, RowContent, RowKind, request_row
from escrowctl.batch.run import Run
from escrowctl.batch.worker import Worker
from escrowctl.commands.batch.opening import checked_file, running_alone
from escrowctl.commands.batch.overlap import Chosen, choose_rows
from escrowctl.commands.batch.progress import Progress
from escrowctl.commands.batch.summary import cut_short, finished_before, judge, rejects_hint, report
from escrowctl.commands.batch.typed import (
    CheckOption,
    ConcurrencyOption,
    CountOption,
    FileArgument,
    How,
    NameArgument,
    RateOption,
    ResultsOption,
    SkipOption,
    TotalOption,
    check_options,
)
from escrowctl.commands.sums import count_escrows, sum_lines
from escrowctl.commands.writing import check_text
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.money import Money
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command, not_sent
from escrowctl.options import YesOption
from escrowctl.prompt import confirmation_needed
from escrowctl.runtime import ago, timestamp
from escrowctl.session import Session, session_of
from escrowctl.writes.intents import account_of, make_intent, require_reason, require_writable
from escrowctl.writes.kinds import kind_of


def create(
    context: typer.Context,
    file: FileArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: CheckOption = False,
    skip_done: SkipOption = False,
    run_key: Annotated[
        str | None, typer.Option("--run-key", metavar="TEXT", help="Create again what other runs than TEXT did.")
    ] = None,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Create an escrow for each row of a file.

    Columns are amount, currency, reference (see escrowctl help batch). The complete file is
    checked before anything is sent. The same file again resumes where it stopped.

    \b
    Examples:
      escrowctl batch create payouts.csv --dry-run
      escrowctl batch create payouts.csv --yes --expect-total EUR=1284400.50
    """
    session = session_of(context)
    how = check_options(
        session,
        yes=yes,
        concurrency=concurrency,
        rps=rps,
        expect_count=expect_count,
        expect_total=expect_total,
        results=results,
        dry_run=dry_run,
    )
    key = check_text(run_key, name="--run-key")
    _start(session, CREATES, file, how, Chosen(skip_done, fold_reference(key) if key is not None else None))


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
    """Release the escrow of each row of a file. This cannot be undone.

    Columns are id, amount, currency (see escrowctl help batch). The complete file is checked
    before anything is sent; each escrow is read before and after its release.

    \b
    Examples:
      escrowctl batch release due.csv --dry-run
      escrowctl batch release due.csv --yes --expect-count 40
    """
    session = session_of(context)
    how = check_options(
        session,
        yes=yes,
        concurrency=concurrency,
        rps=rps,
        expect_count=expect_count,
        expect_total=expect_total,
        results=results,
        dry_run=dry_run,
    )
    _start(session, RELEASES, file, how, Chosen(skip_done))


def resume(
    context: typer.Context,
    name: NameArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: CheckOption = False,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Send what a batch has not sent.

    \b
    Examples:
      escrowctl batch resume b41
      escrowctl batch resume b41 --yes --rps 5
    """
    session = session_of(context)
    how = check_options(
        session,
        yes=yes,
        concurrency=concurrency,
        rps=rps,
        expect_count=expect_count,
        expect_total=expect_total,
        results=results,
        dry_run=dry_run,
    )
    session.guard_live_writes()
    lock = find_batch(session.journal, name).lock
    with running_alone(session, lock, lambda: find_batch(session.journal, name)) as batch:
        assert batch is not None, "it was found before"
        _resume(session, batch, how)


def _start(session: Session, kind: RowKind, file: str, how: How, chosen: Chosen) -> None:
    """Create a batch from a file and send it. If the file already has a batch, resume that one."""
    service = session.service
    if file == "-" and not (how.yes or how.dry_run):
        raise confirmation_needed(
            "the rows come from standard input, so escrowctl cannot ask for confirmation", "--yes"
        )
    session.guard_live_writes()
    with checked_file(session, kind, file) as checked:
        if chosen.run_key is not None and not checked.has_keys:
            raise bad_value(f'--run-key "{chosen.run_key}" needs a reference in each row, and a row has none.')

        def find() -> Batch | None:
            return find_same(session.journal, checked, service, chosen.run_key)

        with running_alone(session, lock_name(checked.digest, chosen.run_key), find) as same:
            if same is None:
                _start_new(session, checked, file, how, chosen)
            else:
                _resume(session, same, how, file=checked, skips_done=chosen.skip_done)


def _start_new(session: Session, checked: CheckedFile, file: str, how: How, chosen: Chosen) -> None:
    if checked.kind is CREATES and not checked.has_keys:
        why = "they are known by this file alone. In any other file, or in another order, they are created again"
        session.console.note("no_references", f'the rows have no "reference": {why}', important=True)
    found = find_overlaps(session.journal, checked, session.service, chosen.run_key)
    repeats, left_out = choose_rows(session, checked, found, chosen)

    def rows() -> Iterator[tuple[int, RowContent]]:
        for line, row, key in checked.with_keys():
            if line not in left_out:
                yield line, row._replace(key=key, repeats=repeats.get(line, ()))

    sums = _sums_without(checked, left_out)
    count = sum(one.rows for one in sums.values())
    # --expect-* counts the complete file, even if rows are done: so the same command line also resumes it.
    how.require_expected(checked.rows, checked.sums)
    if not count:
        _note_all_done(session, how, checked.rows)
        return
    require_reason(session.service, checked.kind.operation, session.journal, None)
    _require_under_caps(session, checked.kind, sums)
    now = timestamp(session.runtime.now())
    source = "standard input" if file == "-" else Path(file).name
    batch = make_batch(
        session.journal, checked, session.service, source=source, sums=sums, run_key=chosen.run_key, now=now
    )
    verb = checked.kind.operation.verb
    written = ", amounts as written in the file" if any(sums) else ""
    lines = [
        f"{batch.name}, new: {verb} {count_escrows(count)}{written}",
        *_sum_lines(sums),
        *([f"  left out, because done already: {count_rows(len(left_out))}"] if left_out else []),
        *([f"  created before, and created again: {count_rows(len(repeats))}"] if repeats else []),
    ]
    require_replaceable(how.results, batch.name)
    if how.dry_run:
        _show_plan(session, batch, sums, lines)
        return
    _confirm(session, how, lines, batch, count)
    with session.signals.held():
        stored = store_plan(session.journal, batch, rows())
        checked.close()
        if stored.name != batch.name:
            taken = f"another process took the name {batch.name} meanwhile: this batch is {stored.name}"
            session.console.note("name", taken, important=True)
        _send(session, stored, how, count)


def _resume(
    session: Session, batch: Batch, how: How, *, file: CheckedFile | None = None, skips_done: bool = False
) -> None:
    """Send the unsent rows of a batch. If it is resumed by its `file`, --expect-* counts that complete file."""
    service = session.service
    if batch.dropped:
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{batch.name} cannot be resumed: what it had not sent was dropped.",
            hint=rejects_hint(batch, "to send it from another file, first"),
        )
    if not batch.is_for(service):
        raise not_sent(ErrorCode.CONFLICT, f"{batch.name} was created for {batch.service}, not for {service.identity}.")
    if not batch.is_of(account_of(service)):
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{batch.name} was created with another API key, which may belong to another account.",
            hint=command(f"config set account {shlex.quote(batch.account[0])}", "if both keys belong to that account")
            if batch.account[0] is not None
            else "use the API key that it was created with",
        )
    unsent = sum_unsent(session.journal, batch, service)
    sums = unsent.sums
    count = sum(one.rows for one in sums.values())
    if not count:
        summary = sum_up(session.journal, batch)
        if skips_done and summary.count(Outcomes.DONE) == batch.rows and not summary.remarks:
            _note_all_done(session, how, batch.rows if file is None else file.rows)
            return
        raise finished_before(session, summary)
    how.require_expected(*((file.rows, file.sums) if file is not None else (count, sums)))
    when = ago(batch.made_at, session.runtime.now())
    lines = [f"{batch.name}, created {when} from {batch.source}; to send: {count_rows(count)}", *_sum_lines(sums)]
    if unsent.unknown:
        lines.append(f"  of these unknown, and sent again under their idempotency keys: {count_rows(unsent.unknown)}")
    require_replaceable(how.results, batch.name)
    if how.dry_run:
        _show_plan(session, batch, sums, lines)
        return
    _confirm(session, how, lines, batch, count)
    with session.signals.held():
        _send(session, batch, how, count)


def _send(session: Session, batch: Batch, how: How, count: int) -> None:
    """Run a batch and show its outcomes."""
    runtime, service = session.runtime, session.service
    session.names.add_in_journal("batch", [batch.name])
    connect, is_here = session.opener(service), session.is_in_process
    progress = Progress(session, batch, rows=count, size=how.size)
    crew = Crew(lambda: Worker(service, connect(), runtime), min(how.size, count), in_process=is_here)
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
        _keep_reasons(session, batch, progress)
        judged = judge(session, batch)
    except EscrowctlError as error:
        if not run.tally.ended:
            raise
        raise cut_short(session, batch, run.tally, error) from error
    finally:
        progress.end()
        crew.close()
    report(session, judged, ending, how.results)


def _keep_reasons(session: Session, batch: Batch, progress: Progress) -> None:
    """Store why rows were not sent. If that fails, only note it: the result of the run does not change."""
    try:
        keep_reasons(session.journal, batch, progress.reasons)
    except EscrowctlError as error:
        why = f"why rows were not sent could not be stored, and is only shown here: {error.message}"
        session.console.note("reasons_not_kept", why, important=True)


def _require_under_caps(session: Session, kind: RowKind, sums: dict[str, Sum]) -> None:
    """Raise `ErrorCode.CAPPED`, before anything is sent, if the sum of the rows is above a cap."""
    service = session.service
    if not service.caps:
        return
    intents = []
    for currency, found in sums.items():
        if not currency:
            continue
        row = RowContent("x", f"{found.amount:f}", currency)
        request = request_row(kind, row, service)
        request = request._replace(money=Money(Number(f"{found.amount:f}"), currency))
        # A batch but no line: the intent is for all rows together.
        intents.append(make_intent(service, request, "", operator="")._replace(batch="b0"))
    session.journal.refuse_over_caps(intents, service.caps)


def _sums_without(checked: CheckedFile, left_out: set[int]) -> dict[str, Sum]:
    if not left_out:
        return checked.sums
    sums: dict[str, Sum] = {}
    for line, row in checked:
        if line not in left_out:
            sums[row.currency or ""] = sums.get(row.currency or "", Sum()).plus(1, Decimal(row.amount or 0))
    return sums


def _sum_lines(sums: dict[str, Sum]) -> list[str]:
    return sum_lines(sums, count_rows, unknown="without an amount in the file")


def _note_all_done(session: Session, how: How, rows: int) -> None:
    session.console.note("all_done", f"done already: {count_rows(rows)}. Nothing was sent")
    if session.options.json:
        counts: dict[str, JsonValue] = {one.value: Number("0") for one in Outcomes}
        rest: dict[str, JsonValue] = {"dry_run": True, "totals": {}} if how.dry_run else counts
        session.console.document({"batch": None, "rows": Number("0"), **rest})


def _show_plan(session: Session, batch: Batch, sums: dict[str, Sum], lines: list[str]) -> None:
    """Show the plan of a dry run. All checks on this machine have passed."""
    if session.options.json:
        rows = Number(str(sum(one.rows for one in sums.values())))
        totals: JsonValue = {code: Number(f"{one.amount:f}") for code, one in sums.items() if code}
        session.console.document({"dry_run": True, "batch": batch.name, "rows": rows, "totals": totals})
    for line in lines:
        session.console.note("plan", line.strip(), word="plan", important=True)
    forbidden = "; read_only would refuse to send it" if session.service.read_only else ""
    session.console.note("dry_run", f"nothing was sent, and nothing was stored{forbidden}", important=True)


def _confirm(session: Session, how: How, lines: list[str], batch: Batch, count: int) -> None:
    require_writable(session.service)
    if how.yes:
        for line in lines:
            session.console.note("plan", line.strip(), word="plan")
        return
    asked = f"{kind_of(batch.kind.operation.name).warning} Type the number of rows to send them:".lstrip()
    why = f"the {batch.verb} of {count_rows(count)} needs confirmation"
    session.prompt.confirm([*lines, asked], str(count), why=why, declined="the batch was not started")
