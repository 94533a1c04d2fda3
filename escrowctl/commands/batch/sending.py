"""`escrowctl batch create|release|resume`: check, plan, confirm and send the rows of a file."""

from pathlib import Path
from typing import Annotated

import typer

from escrowctl.batch.check import CheckedFile, Sum, add_rows, count_rows
from escrowctl.batch.claimants import SharedRun, change_batch, read_state, require_idle, require_running
from escrowctl.batch.overlaps import find_overlaps
from escrowctl.batch.plan import (
    Batch,
    find_batch,
    find_same_batch,
    make_batch,
    smaller_caps,
    store_plan,
    store_reasons,
    sum_unsent,
    sum_up,
)
from escrowctl.batch.progress import Progress
from escrowctl.batch.results import require_replaceable
from escrowctl.batch.rows import CREATES, RELEASES, RowContent, RowKind, make_request
from escrowctl.batch.run import Run
from escrowctl.batch.worker import Worker
from escrowctl.commands.batch.further import Children, follow_parent, further_claimants
from escrowctl.commands.batch.opening import checked_file, require_same_account, require_same_service
from escrowctl.commands.batch.overlap import decide_overlaps
from escrowctl.commands.batch.summary import already_sent_error, early_end_error, make_report, report_run
from escrowctl.commands.batch.typed import (
    ConcurrencyOption,
    CountOption,
    DryRunOption,
    FileArgument,
    NameArgument,
    RateOption,
    ResultsOption,
    SendOptions,
    SkipOption,
    TotalOption,
    parse_totals,
)
from escrowctl.commands.sums import describe_escrow_count, format_sums
from escrowctl.commands.writing import check_text
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import EscrowctlError, Outcome, bad_value
from escrowctl.journal.account import Account
from escrowctl.options import YesOption
from escrowctl.prompt import confirmation_needed
from escrowctl.runtime import describe_age, timestamp
from escrowctl.session import Session, session_of
from escrowctl.writes.kinds import kind_of
from escrowctl.writes.requests import account_of, make_intent, require_opened, require_writable


def create(
    context: typer.Context,
    file: FileArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: DryRunOption = False,
    skip_done: SkipOption = False,
    run_key: Annotated[
        str | None, typer.Option("--run-key", metavar="TEXT", help="Name this run; create rows of other runs again.")
    ] = None,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Create an escrow for each row of a file.

    Columns are amount, currency, reference (see escrowctl help batch). The complete file is
    checked before anything is sent. If a run stops early, the same command resumes it.

    \b
    Examples:
      escrowctl batch create payouts.csv --dry-run
      escrowctl batch create payouts.csv --yes --expect-total EUR=1284400.50
    """
    session = session_of(context)
    totals, key = parse_totals(session, expect_total), check_text(run_key, name="--run-key")
    key = fold_reference(key) if key is not None else None
    options = SendOptions(yes, expect_count, totals, dry_run, concurrency, rps, results, skip_done, key)
    _start_or_resume(session, CREATES, file, options)


def release(
    context: typer.Context,
    file: FileArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: DryRunOption = False,
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
    totals = parse_totals(session, expect_total)
    options = SendOptions(yes, expect_count, totals, dry_run, concurrency, rps, results, skip_done)
    _start_or_resume(session, RELEASES, file, options)


def resume(
    context: typer.Context,
    name: NameArgument,
    yes: YesOption = False,
    expect_count: CountOption = None,
    expect_total: TotalOption = None,
    dry_run: DryRunOption = False,
    concurrency: ConcurrencyOption = 8,
    rps: RateOption = None,
    results: ResultsOption = None,
) -> None:
    """Send the unsent rows of a batch.

    \b
    Examples:
      escrowctl batch resume b41
      escrowctl batch resume b41 --yes --rps 5
    """
    session = session_of(context)
    options = SendOptions(yes, expect_count, parse_totals(session, expect_total), dry_run, concurrency, rps, results)
    session.journals.guard_live_writes(session.service)
    _resume(session, find_batch(session.journal, name), options)


def work(
    context: typer.Context,
    name: NameArgument,
    yes: YesOption = False,
    concurrency: ConcurrencyOption = 8,
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
) -> None:
    """Send rows of a batch together with the process that started it.

    \b
    Examples:
      escrowctl batch work b41
      escrowctl batch work b41 --yes --concurrency 16
    """
    session = session_of(context)
    session.journals.guard_live_writes(session.service)
    batch = find_batch(session.journal, name)
    require_running(session.journal, batch)
    caps = smaller_caps(session.service.caps, dict(read_state(session.journal, batch.name).caps))
    service = session.service._replace(caps=caps)
    require_same_service(batch, service)
    require_same_account(batch, service)
    options, count = SendOptions(yes, concurrency=concurrency), batch.rows
    if not (child and yes):  # the parent of a child has asked, and reports
        sums, _ = sum_unsent(session.journal, batch, service, is_running=True)
        count = sum(one.rows for one in sums.values())
        lines = [f"{batch.name}, another process sends it; left: {count_rows(count)}", *format_sums(sums, count_rows)]
        if not _confirm_run(session, options, batch, sums, lines):
            return
    shared = SharedRun(session.journal, batch, service, session.runtime)
    with session.signals.held():
        shared.join()
        children = Children(follow_parent() if child else session.signals.take_pending)
        _send_rows(session, shared, options, max(1, count), children, reports=not child)


def _start_or_resume(session: Session, kind: RowKind, file: str, options: SendOptions) -> None:
    """Create a batch from a file and send it. If the file already has a batch, resume that batch."""
    if file == "-" and not (options.yes or options.dry_run):
        raise confirmation_needed("the rows come from standard input, so escrowctl cannot ask for confirmation")
    session.journals.guard_live_writes(session.service)
    with checked_file(session, kind, file) as checked:
        if options.run_key is not None and not checked.has_keys:
            raise bad_value(f'--run-key "{options.run_key}" needs a reference in each row, but a row has none.')
        verb, digest = kind.operation.verb, checked.digest
        existing = find_same_batch(session.journal, session.service, verb=verb, digest=digest, run_key=options.run_key)
        if existing is None:
            _start_new_batch(session, checked, file, options)
        else:
            _resume(session, existing, options, file=checked)


def _start_new_batch(session: Session, checked: CheckedFile, file: str, options: SendOptions) -> None:
    kind, service, journal = checked.kind, session.service, session.journal
    if kind is CREATES and not checked.has_keys:
        message = "rows without a reference are created again if you send them in another file or in another order"
        session.console.note("no_references", message, important=True)
    overlaps = find_overlaps(journal, checked, service, options.run_key)
    repeats, left_out = decide_overlaps(session, checked, overlaps, skip_done=options.skip_done)
    sums = checked.sums
    if left_out:
        sums = {}
        for row in checked:
            if row.line not in left_out:
                add_rows(sums, [row])
    # --expect-* is compared with the complete file, with rows that are done: so the same command also resumes it.
    options.require_expected(checked.rows, checked.sums)
    if not sums:
        _note_all_done(session, options, checked.rows)
        return
    require_opened(service, kind.operation, journal)
    _require_under_caps(session, kind, sums)
    source = "standard input" if file == "-" else Path(file).name
    now = timestamp(session.runtime.now())
    batch = make_batch(journal, checked, service, source=source, sums=sums, run_key=options.run_key, now=now)
    with_amounts = ", with the amounts in the file" if any(sums) else ""
    lines = [
        f"{batch.name}, new: {batch.verb} {describe_escrow_count(batch.rows)}{with_amounts}",
        *format_sums(sums, count_rows),
        *([f"  left out, because done already: {count_rows(len(left_out))}"] if left_out else []),
        *([f"  created by another run, and now created again: {count_rows(len(repeats))}"] if repeats else []),
    ]
    if not _confirm_run(session, options, batch, sums, lines):
        return
    with session.signals.held():
        planned = ((row, key) for row, key in checked.iterate_with_keys() if row.line not in left_out)
        rows = (row._replace(key=key, repeats=repeats.get(row.line, ())) for row, key in planned)
        stored = store_plan(journal, service, batch, rows)
        checked.close()
        if stored.name != batch.name:
            message = f"another process took the name {batch.name} meanwhile: this batch is {stored.name}"
            session.console.note("name", message, important=True)
        _start_run(session, stored, options, batch.rows)


def _resume(session: Session, batch: Batch, options: SendOptions, *, file: CheckedFile | None = None) -> None:
    """Send a batch's unsent rows. --expect-* is compared with all rows of `file`; None: with the unsent rows."""
    service = session.service
    require_same_service(batch, service)
    account, earlier = account_of(service), Account(*batch.account)
    # If no row was sent (a row with a refused key counts as not sent), the batch may go on with the right key.
    may_adopt = sum_up(session.journal, batch).counts[Outcome.NOT_SENT] == batch.rows and not account.is_other(earlier)
    if not may_adopt:
        require_same_account(batch, service)
    require_idle(session.journal, batch)
    sums, unknown = sum_unsent(session.journal, batch, service)
    count = sum(one.rows for one in sums.values())
    if not count:
        report = make_report(session, session.journal, batch)
        if options.skip_done and report.error is None:
            _note_all_done(session, options, file.rows if file else batch.rows)
            return
        raise already_sent_error(session, report)
    options.require_expected(*((file.rows, file.sums) if file is not None else (count, sums)))
    when = describe_age(batch.made_at, session.runtime.now())
    header = f"{batch.name}, created {when} from {batch.source}; to send: {count_rows(count)}"
    lines = [header, *format_sums(sums, count_rows)]
    if unknown:
        lines.append(f"  of these, unknown and sent again under the same idempotency key: {count_rows(unknown)}")
    if _confirm_run(session, options, batch, sums, lines):
        with session.signals.held():
            if not account.is_same(earlier):
                # No row was sent, so another account may send them.
                stored = account.as_stored
                adopted = batch._replace(account=(stored.name, stored.fingerprint))
                change_batch(session.journal, batch, adopted)
                batch = adopted
            _start_run(session, batch, options, count)


def _start_run(session: Session, batch: Batch, options: SendOptions, count: int) -> None:
    """Begin a run of a batch as its first claimant, and send the `count` unsent rows."""
    shared = SharedRun(session.journal, batch, session.service, session.runtime)
    shared.start(options.rate)
    with further_claimants(session, batch, min(options.concurrency, count)) as (size, children):
        _send_rows(session, shared, options._replace(concurrency=size), count, children)


def _send_rows(
    session: Session, shared: SharedRun, options: SendOptions, count: int, children: Children, *, reports: bool = True
) -> None:
    """Send the rows of a run. If it `reports`, show the outcomes of all rows of the batch, and raise its error.

    `children` send rows too, and are awaited before the report.
    """
    journal, batch, shared_options = session.journal, shared.batch, session.options
    session.completion_cache.add_journal_names("batch", [batch.name])
    connect = session.connector.make_opener(shared.service)
    # With -v or --debug, the threads that send print lines that would break the drawn line.
    draws = session.console.can_draw and not (shared_options.verbose or shared_options.debug)
    size = min(options.concurrency, count)
    progress = Progress(session.console, shared, rows=count, size=size, draws=draws)
    run = Run(shared, size, children.take_signal, progress)
    workers = [Worker(connect(), run, session.defects.append) for _ in range(min(run.max_begun, count))]
    try:
        run.send_rows(workers)
        if run.failure is not None and run.stopped is None:
            children.end()
        stopped = children.wait() or run.stopped
        if run.failure is not None:
            raise run.failure
        try:
            store_reasons(journal, batch, progress.reasons)
        except EscrowctlError as error:
            message = f"the reasons above, why rows were not sent, could not be stored: {error.message}"
            session.console.note("reasons_not_kept", message, important=True)
        report = make_report(session, journal, batch) if reports else None
    except RuntimeError as error:
        raise bad_value(f"--concurrency {options.concurrency}: {error}. Use a lower number.") from error
    except EscrowctlError as error:
        if not run.counts:
            raise
        raise early_end_error(session, batch, run.counts, error, is_alone=not children.count) from error
    finally:
        session.console.erase()
    if report is not None:
        report_run(session, report, options.results, halted=run.halts.reason, stopped=stopped)


def _require_under_caps(session: Session, kind: RowKind, sums: dict[str, Sum]) -> None:
    """Raise `ErrorCode.CAPPED` if the rows of a currency together exceed a cap."""
    service, intents = session.service, []
    for currency, found in sums.items():
        if currency:
            row = RowContent("x", f"{found.amount:f}", currency)
            request = make_request(kind, row, service)._replace(money=row.money)
            # The intent has a batch but no line: it is about all rows together.
            intents.append(make_intent(service, request, "")._replace(batch="b0"))
    session.journal.check_caps(intents, service.caps)


def _note_all_done(session: Session, options: SendOptions, rows: int) -> None:
    session.console.note("all_done", f"done already: {count_rows(rows)}. Nothing was sent")
    if session.options.json:
        counts: dict[str, JsonValue] = {one.value: Number("0") for one in Outcome}
        rest: dict[str, JsonValue] = {"dry_run": True, "totals": {}} if options.dry_run else counts
        session.console.write_json({"batch": None, "rows": Number("0"), **rest})


def _confirm_run(session: Session, options: SendOptions, batch: Batch, sums: dict[str, Sum], lines: list[str]) -> bool:
    """Show `lines`, the plan of a batch. Return False for a dry run. Else ask unless --yes is given; return True."""
    require_replaceable(options.results, batch.name, session.journal.storage.journal_id)
    count = sum(one.rows for one in sums.values())
    if options.dry_run and session.options.json:
        totals: JsonValue = {code: Number(f"{one.amount:f}") for code, one in sums.items() if code}
        session.console.write_json({"dry_run": True, "batch": batch.name, "rows": Number(str(count)), "totals": totals})
    if not options.dry_run:
        require_writable(session.service)
    if options.dry_run or options.yes:
        for line in lines:
            session.console.note("plan", line.strip(), label="plan", important=options.dry_run)
    if options.dry_run:
        forbidden = "; without --dry-run, read_only would refuse to send" if session.service.read_only else ""
        session.console.note("dry_run", f"nothing was sent, and nothing was stored{forbidden}", important=True)
    elif not options.yes:
        question = f"{kind_of(batch.kind.operation.name).warning} Type the number of rows to send them:".lstrip()
        why = f"the {batch.verb} of {count_rows(count)} needs confirmation"
        session.prompt.confirm([*lines, question], str(count), why=why, declined="the batch was not started")
    return not options.dry_run
