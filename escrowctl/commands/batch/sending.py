"""`escrowctl batch create|release|resume`: a file is checked, planned, confirmed and sent."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from escrowctl.batch.check import CheckedFile, Sum, add_row, count_rows
from escrowctl.batch.overlaps import find_overlaps
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import (
    Batch,
    adopt,
    find_same,
    list_unsent,
    lock_name,
    make_batch,
    store_plan,
    store_reasons,
    sum_unsent,
    sum_up,
)
from escrowctl.batch.progress import Progress
from escrowctl.batch.rows import CREATES, RELEASES, RowContent, RowKind, request_row
from escrowctl.batch.run import Run
from escrowctl.batch.senders import Senders
from escrowctl.batch.worker import Worker
from escrowctl.commands.batch.opening import checked_file, named_batch, running_alone
from escrowctl.commands.batch.overlap import choose_rows
from escrowctl.commands.batch.summary import cut_short, finished_before, judge, rejects_hint, report_run
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
    parse_totals,
    require_replaceable,
)
from escrowctl.commands.sums import count_escrows, sum_lines
from escrowctl.commands.writing import check_text
from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, bad_value, command, not_sent
from escrowctl.journal.accounts import Account
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
    totals, key = parse_totals(session, expect_total), check_text(run_key, name="--run-key")
    key = fold_reference(key) if key is not None else None
    how = How(yes, expect_count, totals, dry_run, concurrency, rps, results, skip_done, key)
    _start(session, CREATES, file, how)


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
    totals = parse_totals(session, expect_total)
    _start(session, RELEASES, file, How(yes, expect_count, totals, dry_run, concurrency, rps, results, skip_done))


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
    how = How(yes, expect_count, parse_totals(session, expect_total), dry_run, concurrency, rps, results)
    session.journals.guard_live_writes(session.service, session.console)
    with running_alone(session, named_batch(session.journal, name).lock, name):
        _resume(session, named_batch(session.journal, name), how)


def _start(session: Session, kind: RowKind, file: str, how: How) -> None:
    """Create a batch from a file and send it. If the file already has a batch, resume that one."""
    if file == "-" and not (how.yes or how.dry_run):
        raise confirmation_needed(
            "the rows come from standard input, so escrowctl cannot ask for confirmation", "--yes"
        )
    session.journals.guard_live_writes(session.service, session.console)
    with checked_file(session, kind, file) as checked:
        if how.run_key is not None and not checked.has_keys:
            raise bad_value(f'--run-key "{how.run_key}" needs a reference in each row, and a row has none.')
        with running_alone(session, lock_name(checked.digest, how.run_key), "this file"):
            same = find_same(session.journal, checked, session.service, how.run_key)
            if same is None:
                _start_new(session, checked, file, how)
            else:
                _resume(session, same, how, file=checked)


def _start_new(session: Session, checked: CheckedFile, file: str, how: How) -> None:
    kind, service, journal = checked.kind, session.service, session.journal
    if kind is CREATES and not checked.has_keys:
        why = "they are known by this file alone. In any other file, or in another order, they are created again"
        session.console.note("no_references", f'the rows have no "reference": {why}', important=True)
    found = find_overlaps(journal, checked, service, how.run_key)
    repeats, left_out = choose_rows(session, checked, found, skip_done=how.skip_done)
    sums = _sums_without(checked, left_out)
    # --expect-* counts the complete file, even if rows are done: so the same command line also resumes it.
    how.require_expected(checked.rows, checked.sums)
    if not sums:
        _note_all_done(session, how, checked.rows)
        return
    require_reason(service, kind.operation, journal, None)
    _require_under_caps(session, kind, sums)
    source = "standard input" if file == "-" else Path(file).name
    now = timestamp(session.runtime.now())
    batch = make_batch(journal, checked, service, source=source, sums=sums, run_key=how.run_key, now=now)
    written = ", amounts as written in the file" if any(sums) else ""
    lines = [
        f"{batch.name}, new: {batch.verb} {count_escrows(batch.rows)}{written}",
        *sum_lines(sums, count_rows),
        *([f"  left out, because done already: {count_rows(len(left_out))}"] if left_out else []),
        *([f"  created before, and created again: {count_rows(len(repeats))}"] if repeats else []),
    ]
    if not _is_confirmed(session, how, batch, sums, lines):
        return
    with session.signals.held():
        stored = store_plan(
            journal,
            batch,
            (
                (line, row._replace(key=key, repeats=repeats.get(line, ())))
                for line, row, key in checked.with_keys()
                if line not in left_out
            ),
        )
        checked.close()
        if stored.name != batch.name:
            taken = f"another process took the name {batch.name} meanwhile: this batch is {stored.name}"
            session.console.note("name", taken, important=True)
        _send(session, stored, how, batch.rows)


def _resume(session: Session, batch: Batch, how: How, *, file: CheckedFile | None = None) -> None:
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
    account, earlier = account_of(service), Account(*batch.account)
    # If the service has taken no row, such as with a wrong API key, the right key of this account may go on.
    is_untaken = sum_up(session.journal, batch).counts[Outcome.NOT_SENT] == batch.rows and not account.is_other(earlier)
    if not (account.is_same(earlier) or is_untaken):
        again = command(f"batch drop {batch.name}", "or, to send the rest from the file with --skip-done, first")
        raise not_sent(
            ErrorCode.CONFLICT,
            f"{batch.name} was created with another API key, which may belong to another account.",
            hint=command(f"config set account {shlex.quote(earlier.name)}", "if both keys belong to that account")
            if earlier.name is not None
            else ("use the API key that it was created with", again),
        )
    sums, unknown = sum_unsent(session.journal, batch, service)
    count = sum(one.rows for one in sums.values())
    if not count:
        report = judge(session, session.journal, batch)
        if how.skip_done and report.error is None:
            _note_all_done(session, how, file.rows if file else batch.rows)
            return
        raise finished_before(session, report)
    how.require_expected(*((file.rows, file.sums) if file is not None else (count, sums)))
    when = ago(batch.made_at, session.runtime.now())
    header = f"{batch.name}, created {when} from {batch.source}; to send: {count_rows(count)}"
    lines = [header, *sum_lines(sums, count_rows)]
    if unknown:
        lines.append(f"  of these unknown, and sent again under their idempotency keys: {count_rows(unknown)}")
    if _is_confirmed(session, how, batch, sums, lines):
        with session.signals.held():
            if not account.is_same(earlier):
                batch = adopt(session.journal, batch, account)
            _send(session, batch, how, count)


def _send(session: Session, batch: Batch, how: How, count: int) -> None:
    """Run a batch and show its outcomes."""
    runtime, service, journal, options = session.runtime, session.service, session.journal, session.options
    session.names.add_in_journal("batch", [batch.name])
    connect, is_here = session.connector.opener(service), session.connector.is_in_process(service)
    # With -v, another process prints lines between two drawings.
    draws = session.console.can_draw and not (options.verbose or options.debug)
    progress = Progress(session.console, batch, service, runtime, rows=count, size=how.size, draws=draws)
    try:
        senders = Senders(lambda: Worker(service, connect(), runtime), min(how.size, count), in_process=is_here)
    except OSError as error:
        raise bad_value(f"--concurrency {how.size}: {error.strerror}. Use a lower number.") from error
    pace = Pace(how.rate, runtime.monotonic())
    run = Run(batch, service, journal, senders, pace, how.size, runtime, session.signals, progress)
    try:
        run.go(list_unsent(journal, batch, service))
        try:
            store_reasons(journal, batch, progress.reasons)
        except EscrowctlError as error:
            why = f"escrowctl could not store why rows were not sent, and only shows it above: {error.message}"
            session.console.note("reasons_not_kept", why, important=True)
        report = judge(session, journal, batch)
    except EscrowctlError as error:
        if not run.counts:
            raise
        raise cut_short(session, batch, run.counts, error) from error
    finally:
        session.console.erase()
        senders.close()
        if run.defect:
            defect = RuntimeError("internal error in the process that sends")
            defect.add_note(run.defect)
            session.defects.append(defect)
    report_run(session, report, how.results, halted=run.halted, stopped=run.stopped)


def _require_under_caps(session: Session, kind: RowKind, sums: dict[str, Sum]) -> None:
    """Raise `ErrorCode.CAPPED`, before anything is sent, if the sum of the rows is above a cap."""
    service, intents = session.service, []
    for currency, found in sums.items():
        if currency:
            row = RowContent("x", f"{found.amount:f}", currency)
            request = request_row(kind, row, service)._replace(money=row.money)
            # A batch but no line: the intent is for all rows together.
            intents.append(make_intent(service, request, "", operator="")._replace(batch="b0"))
    session.journal.refuse_over_caps(intents, service.caps)


def _sums_without(checked: CheckedFile, left_out: set[int]) -> dict[str, Sum]:
    if not left_out:
        return checked.sums
    sums: dict[str, Sum] = {}
    for line, row in checked:
        if line not in left_out:
            add_row(sums, row)
    return sums


def _note_all_done(session: Session, how: How, rows: int) -> None:
    session.console.note("all_done", f"done already: {count_rows(rows)}. Nothing was sent")
    if session.options.json:
        counts: dict[str, JsonValue] = {one.value: Number("0") for one in Outcome}
        rest: dict[str, JsonValue] = {"dry_run": True, "totals": {}} if how.dry_run else counts
        session.console.document({"batch": None, "rows": Number("0"), **rest})


def _is_confirmed(session: Session, how: How, batch: Batch, sums: dict[str, Sum], lines: list[str]) -> bool:
    """Confirm that the rows are sent. False after a dry run: then all checks on this machine have passed."""
    require_replaceable(how.results, batch.name)
    count = sum(one.rows for one in sums.values())
    if how.dry_run and session.options.json:
        totals: JsonValue = {code: Number(f"{one.amount:f}") for code, one in sums.items() if code}
        session.console.document({"dry_run": True, "batch": batch.name, "rows": Number(str(count)), "totals": totals})
    if not how.dry_run:
        require_writable(session.service)
    if how.dry_run or how.yes:
        for line in lines:
            session.console.note("plan", line.strip(), word="plan", important=how.dry_run)
    if how.dry_run:
        forbidden = "; read_only would refuse to send it" if session.service.read_only else ""
        session.console.note("dry_run", f"nothing was sent, and nothing was stored{forbidden}", important=True)
    elif not how.yes:
        asked = f"{kind_of(batch.kind.operation.name).warning} Type the number of rows to send them:".lstrip()
        why = f"the {batch.verb} of {count_rows(count)} needs confirmation"
        session.prompt.confirm([*lines, asked], str(count), why=why, declined="the batch was not started")
    return not how.dry_run
