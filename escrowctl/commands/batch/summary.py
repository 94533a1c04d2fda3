"""Show the outcomes of a batch's rows, and find the error that the command ends with."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from escrowctl.batch.check import Sum, count_rows
from escrowctl.batch.plan import Batch, Summary, outcome_of, sum_up
from escrowctl.batch.results import require_replaceable, write_results
from escrowctl.commands.advice import advise, advise_throttled
from escrowctl.config.advice import advise_proving_status
from escrowctl.config.service import Service
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import (
    Effect,
    ErrorCode,
    EscrowctlError,
    Hint,
    Outcome,
    OutputClosedError,
    Stopped,
    command,
    explain_print_failure,
    not_sent,
    printing_result,
)
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import KEY_REFUSED_STATUSES, OPEN_STATES, Entry, Selection, State
from escrowctl.output.view import Listing, View
from escrowctl.runtime import describe_age
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of

_MAX_LINES, _MAX_REASONS = 5, 3
_REASON_STATES = {
    Outcome.DONE: (State.DONE,),
    Outcome.REFUSED: (State.REFUSED,),
    Outcome.UNKNOWN: OPEN_STATES,
    Outcome.NOT_SENT: (State.REFUSED,),
}
"""Outcome -> states. Entries in these states say why rows have the outcome."""


def count_outcomes(summary: Summary) -> dict[str, JsonValue]:
    """Return a JSON object with the batch's name, the number of its rows, and how many have each outcome."""
    counts = {"rows": summary.batch.rows} | {one.value: summary.counts[one] for one in Outcome}
    return {"batch": summary.batch.name} | {name: Number(str(count)) for name, count in counts.items()}


def show_summary(session: Session, summary: Summary) -> None:
    """Show for each outcome the number of its rows, and the sums of their amounts by currency."""
    document = count_outcomes(summary)
    if session.options.quiet and not session.options.fields:
        session.console.show(View(document, summary.batch.name))
        return
    currencies = sorted({currency for _, currency in summary.sums if currency})
    views = []
    for outcome in Outcome:
        named: dict[str, JsonValue] = {"outcome": outcome.label, "rows": document[outcome.value]}
        named |= {code: Number(f"{summary.sums.get((outcome, code), Sum()).amount:f}") for code in currencies}
        views.append(View(named, summary.batch.name, named=named))
    session.console.show_listing(Listing(("outcome", "rows", *currencies), tuple(views), document))


def save_results(session: Session, journal: Journal, batch: Batch, path: Path) -> None:
    """Write the results to `path`. Raises `OUTPUT_UNUSABLE`; `BAD_VALUE` if the file has no results of the batch."""
    require_replaceable(path, batch.name, journal.storage.journal_id)
    session.console.note("results", f"wrote {path} ({count_rows(write_results(journal, batch, path))})")


class BatchReport(NamedTuple):
    """The outcomes of a batch. `error` is None if all rows are done as requested; `reasons`: why rows are not."""

    summary: Summary
    error: EscrowctlError | None
    reasons: list[tuple[Outcome, str]]

    def show(self, session: Session) -> None:
        """Write notes on the rows that are not done as requested, or that no read has confirmed."""
        for outcome, text in self.reasons:
            word = "differs" if outcome is Outcome.DONE else outcome.label
            session.console.note(outcome.value, text, label=word, important=True)
        if self.summary.unread:
            message = f"accepted, but not confirmed by a reading: {count_rows(self.summary.unread)}"
            hints = _advise_reading(session, self.summary.batch)
            session.console.note("not_confirmed", message, important=True, hints=hints)


def make_report(session: Session, journal: Journal, batch: Batch) -> BatchReport:
    """Return the report of a batch, from its entries in the journal."""
    summary = sum_up(journal, batch)
    return BatchReport(summary, _find_error(session, journal, summary), list(_list_reasons(journal, summary)))


def report_run(
    session: Session, report: BatchReport, results: Path | None, *, halted: str, stopped: ErrorCode | None
) -> None:
    """Show the outcomes of a run. Raises `report.error` if rows are not done; Stopped if a signal arrived.

    `halted`: why the run ended early, or "". `stopped`: the error code for the signal; None: no signal arrived.
    """
    batch, counts = report.summary.batch, report.summary.counts
    if results is not None:
        with _showing_results(session, report):
            save_results(session, session.journal, batch, results)
    with _showing_results(session, report):
        show_summary(session, report.summary)
    report.show(session)
    if halted:
        session.console.note("halted", f"{batch.name} stopped early: {halted}", label="stopped", important=True)
    unsent = counts[Outcome.NOT_SENT]
    if stopped is not None and unsent and not counts[Outcome.UNKNOWN]:
        resume = f"{session.invocation} batch resume {batch.name}"
        raise Stopped(stopped, f"{batch.name}: {count_rows(unsent)} not sent. To send the rest: {resume}")
    if report.error is not None:
        raise report.error
    if stopped is not None:
        raise Stopped(stopped, f"{_describe_all_done(batch)}.")


@contextmanager
def _showing_results(session: Session, report: BatchReport) -> Iterator[None]:
    """If the `with` block cannot show results, raise the failure. If `report.error` will be raised, only warn."""
    batch = report.summary.batch
    save = command(f"batch show {batch.name} --results {batch.name}.csv", "to write the results")
    try:
        with printing_result(None if report.error else _describe_all_done(batch)):
            yield
    except EscrowctlError as error:
        if report.error is None:
            error.hints = (save,)
            raise
        session.console.note("results", explain_print_failure(error), label="warning", important=True, hints=(save,))
    except OutputClosedError:
        # Nobody reads the table. The error goes to stderr.
        if report.error is None:
            raise


def _describe_all_done(batch: Batch) -> str:
    return f"{batch.name}: its 1 row is done" if batch.rows == 1 else f"{batch.name}: all {batch.rows:,} rows are done"


def early_end_error(
    session: Session, batch: Batch, counts: Counter[Outcome], error: EscrowctlError, *, is_alone: bool
) -> EscrowctlError:
    """Return the error of a run that `error` ended early.

    `counts` has the outcomes that this process knows of: they are reported if the journal cannot be read. `is_alone`:
    no child has sent rows.
    """
    unknown, scope = counts[Outcome.UNKNOWN] or not is_alone, ", as far as this process knows them"
    with suppress(EscrowctlError):
        counts = sum_up(session.journal, batch).counts
        unknown, scope = counts[Outcome.UNKNOWN] > 0, " until then"
    return EscrowctlError(
        ErrorCode.SOME_UNKNOWN if unknown else ErrorCode.SOME_FAILED,
        f"{error.message} Outcomes of {batch.name} ({count_rows(batch.rows)}){scope}: {_describe_counts(counts)}.",
        hint=(*advise(error, session).hints[:1], command(f"batch show {batch.name}", "to see the batch")),
        outcome=Outcome.UNKNOWN if unknown else None,
        facts={"batch": batch.name},
    )


def already_sent_error(session: Session, report: BatchReport) -> EscrowctlError:
    """Return the error if no row is unsent: `EARLIER_UNKNOWN` if a row is unknown, else `ALREADY_DONE`."""
    batch, counts = report.summary.batch, report.summary.counts
    when = describe_age(batch.made_at, session.runtime.now())
    message = f"these rows were already sent as {batch.name} ({when}, from {batch.source}): {_describe_counts(counts)}."
    hints = report.error.hints if report.error else (command(f"batch show {batch.name}", "to see it"),)
    if counts[Outcome.REFUSED] == batch.rows:
        hints = (*hints[:1], Hint("repeat the command with --run-key NAME", "to send the file again unchanged"))
    if not counts[Outcome.UNKNOWN]:
        return not_sent(ErrorCode.ALREADY_DONE, message, hint=hints)
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN, message, effect=Effect.NOTHING_SENT_NOW, hint=hints, outcome=Outcome.UNKNOWN
    )


def _find_error(session: Session, journal: Journal, summary: Summary) -> EscrowctlError | None:
    """Return the error of a batch if rows are unknown, not done, or done but not as requested; else None."""
    batch, counts = summary.batch, summary.counts
    is_done = counts[Outcome.DONE] == batch.rows
    if is_done and not summary.remarks:
        return None
    remarks = f" Done, but not as requested or not confirmed: {summary.remarks:,}." if summary.remarks else ""
    code = ErrorCode.CHECK_FAILED if is_done else ErrorCode.SOME_FAILED
    return EscrowctlError(
        ErrorCode.SOME_UNKNOWN if counts[Outcome.UNKNOWN] else code,
        f"{batch.name} has {count_rows(batch.rows)}: {_describe_counts(counts)}.{remarks}",
        hint=_list_hints(session, journal, summary),
        outcome=Outcome.UNKNOWN if counts[Outcome.UNKNOWN] else Outcome.DONE if is_done else None,
        facts={} if is_done else dict(count_outcomes(summary)),
    )


def _describe_counts(counts: Counter[Outcome]) -> str:
    return ", ".join(f"{counts[one]:,} {one.label}" for one in Outcome if counts[one])


def _list_hints(session: Session, journal: Journal, summary: Summary) -> tuple[Hint, ...]:
    """Return the next commands for the first of these that the batch has: unknown, unsent, refused, other rows."""
    batch, counts = summary.batch, summary.counts
    if (entry := next(_select_entries(journal, batch, *OPEN_STATES), None)) is not None:
        resolve = command(f"journal resolve {entry.name}", f"to resolve {entry.name} (line {entry.intent.line})")
        return (resolve, command("journal list --unknown", "to see all unknown writes"))
    if counts[Outcome.NOT_SENT] and not batch.dropped:
        return _advise_resuming(session, journal, batch)
    if counts[Outcome.REFUSED] or counts[Outcome.NOT_SENT]:
        run_key = f" --run-key {shlex.quote(batch.run_key)}" if batch.run_key else ""
        resend = command(f"batch {batch.verb} {_make_rejects_name(batch)}{run_key}", "then send the corrected file")
        return (rejects_hint(batch, "to correct these rows, first save them"), resend)
    return (command(f"batch show {batch.name} --results {batch.name}.csv", "to see each row"),)


def rejects_hint(batch: Batch, purpose: str) -> Hint:
    """Return the hint to save a batch's refused and dropped rows to a file. `purpose`: why to save them."""
    return command(f"batch rejects {batch.name} > {_make_rejects_name(batch)}", purpose)


def _make_rejects_name(batch: Batch) -> str:
    return f"{batch.name}-rejects.{'jsonl' if batch.is_json else 'csv'}"


def _advise_resuming(session: Session, journal: Journal, batch: Batch) -> tuple[Hint, ...]:
    """Return two hints: a command to run first and `batch resume`, or `batch resume` and `batch drop`."""
    refused = [entry.settlement for entry in _select_entries(journal, batch, State.REFUSED)]
    service = _find_service(session)
    first: tuple[Hint, ...] = ()
    if any(one.http_status in KEY_REFUSED_STATUSES for one in refused):
        first = (command("auth status --check", "to check the API key, first"),)
    elif service and not service.may_repeat_throttled and any(one.may_repeat for one in refused):
        first = advise_throttled(service)
    resume = command(f"batch resume {batch.name}", f"{'then, ' if first else ''}to send the unsent rows")
    return (*first, resume)[:2] if first else (resume, command(f"batch drop {batch.name}", "or, to drop these rows"))


def _advise_reading(session: Session, batch: Batch) -> tuple[Hint, ...]:
    """Return hints: set the statuses that prove a write, if none is set; then read the escrow of a row again."""
    service = _find_service(session)
    if service is None:
        return ()
    operation = batch.kind.operation
    is_set = bool(kind_of(operation.name).proving_statuses(service))
    settings = () if is_set else advise_proving_status(service, operation.done)
    purpose = f"{'then, ' if settings else ''}to read the escrow of a row again"
    return (*settings, command("journal resolve ENTRY", purpose))[:2]


def _find_service(session: Session) -> Service | None:
    with suppress(EscrowctlError):
        return session.service
    return None


def _list_reasons(journal: Journal, summary: Summary) -> Iterator[tuple[Outcome, str]]:
    """Yield pairs of an outcome and a text: a frequent reason for this outcome, and the lines that have it."""
    for outcome in Outcome:
        if not (summary.remarks if outcome is Outcome.DONE else summary.counts[outcome]):
            continue
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for entry in _select_entries(journal, summary.batch, *_REASON_STATES[outcome]):
            why = entry.settlement.remark if outcome is Outcome.DONE else entry.settlement.detail or "in flight now"
            if why is not None and outcome_of(entry) is outcome:
                lines[why].append(f"{entry.intent.line} ({entry.name})")
        for why, found in sorted(lines.items(), key=lambda one: -len(one[1]))[:_MAX_REASONS]:
            named = ", ".join(reversed(found[-_MAX_LINES:]))
            more = f" and {len(found) - _MAX_LINES:,} more" if len(found) > _MAX_LINES else ""
            yield outcome, f"{'line' if len(found) == 1 else 'lines'} {named}{more}: {why}"


def _select_entries(journal: Journal, batch: Batch, *states: State) -> Iterator[Entry]:
    return journal.select_all(Selection(states=states, batch=batch.name))
