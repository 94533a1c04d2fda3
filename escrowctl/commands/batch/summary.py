"""The outcomes of a batch: shown as a table or one document, and turned into the error of the command."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from escrowctl.batch.check import Sum, count_rows
from escrowctl.batch.plan import Batch, Outcomes, Summary, outcome_of, sum_up
from escrowctl.batch.results import write_results
from escrowctl.batch.watch import Ending, Tally
from escrowctl.commands.advice import advise, advise_throttled
from escrowctl.config.advice import advise_proving
from escrowctl.contract.json import JsonValue, Number
from escrowctl.errors import (
    NOTHING_SENT_NOW,
    ErrorCode,
    EscrowctlError,
    Hint,
    Outcome,
    OutputClosedError,
    Stopped,
    command,
    not_sent,
)
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import KEY_REFUSED, OPEN_STATES, Entry, Selection, State
from escrowctl.output.view import Listing, View
from escrowctl.runtime import ago
from escrowctl.session import Session
from escrowctl.writes.kinds import kind_of

_PAGE = 500
_MOST_LINES, _MOST_REASONS = 5, 3


def summarise(summary: Summary) -> dict[str, JsonValue]:
    """Return a batch's counts, which add up to its rows."""
    counts = {outcome.value: summary.count(outcome) for outcome in Outcomes}
    document: dict[str, JsonValue] = {"batch": summary.batch.name, "rows": _number(summary.batch.rows)}
    return document | {name: _number(count) for name, count in counts.items()}


def show_summary(session: Session, summary: Summary) -> None:
    """Show the rows and amounts by outcome."""
    document = summarise(summary)
    if session.options.quiet and not session.options.fields:
        session.console.show(View(document, summary.batch.name))
        return
    currencies = sorted({currency for _, currency in summary.sums if currency})
    views = []
    for outcome in Outcomes:
        named: dict[str, JsonValue] = {"outcome": outcome.value.replace("_", " "), "rows": document[outcome.value]}
        named |= {code: Number(f"{summary.sums.get((outcome, code), Sum()).amount:f}") for code in currencies}
        views.append(View(named, summary.batch.name, named=named))
    session.console.show_listing(Listing(("outcome", "rows", *currencies), tuple(views), document))


def save_results(journal: Journal, batch: Batch, path: Path) -> str:
    """Write the results file. Return the text of a note about it. Raises OSError."""
    return f"wrote {path} ({count_rows(write_results(journal, batch, path))})"


class RunReport(NamedTuple):
    """The report of a run. `error` is None if every row is done as requested; `reasons` are for the other rows."""

    summary: Summary
    error: EscrowctlError | None
    reasons: list[tuple["Reason", str]]


def judge(session: Session, batch: Batch) -> RunReport:
    """Return the report of a run that has ended. This reads all that it needs from the journal."""
    summary = sum_up(session.journal, batch)
    return RunReport(summary, _find_error(session, summary), list_reasons(session, summary))


def report(session: Session, judged: RunReport, ending: Ending, results: Path | None) -> None:
    """Show the outcomes. Raises `judged.error` if a row is not done as requested, or Stopped after a signal."""
    summary, verdict, reasons = judged
    batch = summary.batch
    try:
        if results is not None:
            _save_or_warn(session, batch, results, is_fatal=verdict is None)
        with session.accounting_for(None if verdict else f"{batch.name}: {_all(batch)} done"):
            show_summary(session, summary)
    except (OutputClosedError, EscrowctlError):
        if verdict is None:
            raise
    explain(session, reasons)
    note_unread(session, summary)
    if ending.halted:
        session.console.note("halted", f"{batch.name} stopped early: {ending.halted}", word="stopped", important=True)
    left = summary.count(Outcomes.NOT_SENT)
    if ending.stopped is not None and left and not summary.count(Outcomes.UNKNOWN):
        rest = f"{batch.name}: {count_rows(left)} not sent"
        raise Stopped(ending.stopped, f"{rest}. To send the rest: {session.invocation} batch resume {batch.name}")
    if verdict is not None:
        raise verdict
    if ending.stopped is not None:
        raise Stopped(ending.stopped, f"{batch.name}: {_all(batch)} done.")


def _all(batch: Batch) -> str:
    return "its 1 row is" if batch.rows == 1 else f"all {batch.rows:,} rows are"


def _save_or_warn(session: Session, batch: Batch, path: Path, *, is_fatal: bool) -> None:
    try:
        session.console.note("results", save_results(session.journal, batch, path))
    except (OSError, EscrowctlError) as error:
        # The rows were sent, even if the journal or the file fails now.
        reason = error.message if isinstance(error, EscrowctlError) else f"{error.strerror or error}."
        why = f"{path} could not be written: {reason}"
        again = command(f"batch show {batch.name} --results {batch.name}{path.suffix}", "to write it here")
        if is_fatal:
            raise EscrowctlError(
                ErrorCode.RESULT_NOT_PRINTED,
                f"{batch.name}: {_all(batch)} done, but {why}",
                hint=again,
                outcome=Outcome.DONE,
            ) from error
        advice = f"{why} {again.label.capitalize()}: {session.invocation} {again.text}"
        session.console.warn("results", advice)


def cut_short(session: Session, batch: Batch, tally: Tally, error: EscrowctlError) -> EscrowctlError:
    """Return the error of a run that failed after some rows had ended, with the counts so far."""
    counts = {"done": tally.done, "failed": tally.failed, "unknown": tally.unknown, "not sent": tally.not_sent}
    counted = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return EscrowctlError(
        ErrorCode.SOME_UNKNOWN if tally.unknown else ErrorCode.SOME_FAILED,
        f"{error.message} Until then, this run of {batch.name} came to: {counted}.",
        hint=(*advise(error, session).hints, command(f"batch show {batch.name}", "to see the batch")),
        outcome=Outcome.UNKNOWN if tally.unknown else None,
        facts={"batch": batch.name},
    )


def finished_before(session: Session, summary: Summary) -> EscrowctlError:
    """Return the error for a file without unsent rows: `ALREADY_DONE`, or `EARLIER_UNKNOWN`."""
    batch, counts = summary.batch, _describe(summary, Outcomes)
    unknown = summary.count(Outcomes.UNKNOWN)
    when = ago(batch.made_at, session.runtime.now())
    hints = (command(f"batch show {batch.name}", "to see it"), *list_hints(session, summary))
    source = batch.source[:1].upper() + batch.source[1:] if batch.source == "standard input" else batch.source
    message = f"{source} was sent as {batch.name}, {when}: {counts}."
    if not unknown:
        return not_sent(ErrorCode.ALREADY_DONE, message, hint=hints)
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN, message, effect=NOTHING_SENT_NOW, hint=hints, outcome=Outcome.UNKNOWN
    )


def _find_error(session: Session, summary: Summary) -> EscrowctlError | None:
    """Return the error of a batch; None if all rows are done as requested. `CHECK_FAILED`: done, but otherwise."""
    batch, name = summary.batch, summary.batch.name
    failed, unknown, left = (summary.count(one) for one in (Outcomes.FAILED, Outcomes.UNKNOWN, Outcomes.NOT_SENT))
    otherwise = f", {summary.remarks:,} done otherwise than asked, or not confirmed" if summary.remarks else ""
    if not (failed or unknown or left):
        if not otherwise:
            return None
        return EscrowctlError(
            ErrorCode.CHECK_FAILED,
            f"{name}: {_all(batch)} done, but {summary.remarks:,} otherwise than asked, or not confirmed.",
            hint=list_hints(session, summary),
            outcome=Outcome.DONE,
        )
    return EscrowctlError(
        ErrorCode.SOME_UNKNOWN if unknown else ErrorCode.SOME_FAILED,
        f"{name}: {describe_rest(summary)}{otherwise}, of {count_rows(batch.rows)}.",
        hint=list_hints(session, summary),
        outcome=Outcome.UNKNOWN if unknown else None,
        facts=dict(summarise(summary)),
    )


def list_hints(session: Session, summary: Summary) -> tuple[Hint, ...]:
    """Return the next commands for the rows of a batch that are not done as requested."""
    batch, name = summary.batch, summary.batch.name
    hints: list[Hint] = []
    if summary.remarks:
        hints.append(command(f"batch show {name} --results {name}.csv", "to see each row"))
    if summary.count(Outcomes.UNKNOWN):
        for entry in islice(_entries(session, batch, *OPEN_STATES), 1):
            which = f"to resolve {entry.name} (line {entry.intent.line})"
            hints.append(command(f"journal resolve {entry.name}", which))
        hints.append(command("journal list --unknown", "to see all that are unknown"))
    if summary.count(Outcomes.NOT_SENT) and not batch.dropped:
        hints += _hints_for_unsent(session, batch)
    if summary.count(Outcomes.FAILED):
        again = f"batch {batch.verb} {_rejects_file(batch)}{_run_key(batch)}"
        hints += [rejects_hint(batch, "to correct the failed rows, first"), command(again, "then, when corrected")]
    return tuple(hints)


def describe_rest(summary: Summary) -> str:
    """Return the counts of rows that are not done, by outcome, as text."""
    return _describe(summary, (Outcomes.UNKNOWN, Outcomes.FAILED, Outcomes.NOT_SENT))


def _describe(summary: Summary, outcomes: Iterable[Outcomes]) -> str:
    counts = ((summary.count(one), one.value.replace("_", " ")) for one in outcomes)
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


def rejects_hint(batch: Batch, label: str) -> Hint:
    """Return the command that writes a batch's rejects into a file."""
    return command(f"batch rejects {batch.name} > {_rejects_file(batch)}", label)


def _run_key(batch: Batch) -> str:
    return f" --run-key {shlex.quote(batch.run_key)}" if batch.run_key else ""


def _rejects_file(batch: Batch) -> str:
    return f"{batch.name}-rejects.{'jsonl' if batch.is_json else 'csv'}"


def _hints_for_unsent(session: Session, batch: Batch) -> list[Hint]:
    """Return the commands that send or drop the rest. Before throttled rows are sent, a setting is needed."""
    resume = command(f"batch resume {batch.name}", "to send what is not sent")
    drop = command(f"batch drop {batch.name}", "to give up or correct what is not sent")
    refused = [entry.settlement for entry in _entries(session, batch, State.REFUSED)]
    if any(one.http_status in KEY_REFUSED for one in refused):
        check = command("auth status --check", "to check the API key, first")
        return [check, resume._replace(label="then, to send what is not sent"), drop]
    advice = _advise_throttled(session) if any(one.may_repeat for one in refused) else ()
    return [*advice, resume._replace(label="then, to send what is not sent") if advice else resume, drop]


def _advise_throttled(session: Session) -> tuple[Hint, ...]:
    """Return a hint for the setting that repeats throttled rows; none if it is set or no service is configured."""
    try:
        service = session.service
    except EscrowctlError:
        return ()
    return () if service.repeats_throttled else advise_throttled(service)


def note_unread(session: Session, summary: Summary) -> None:
    """Note how many done rows were only accepted: no reading has confirmed them."""
    batch = summary.batch
    if summary.unread:
        session.console.note(
            "not_confirmed",
            f"{count_rows(summary.unread)} {'is' if summary.unread == 1 else 'are'} done only as far as the service "
            f"accepted the {batch.verb}: no reading has confirmed it",
            important=True,
            hints=(
                command(f"batch show {batch.name} --results {batch.name}.csv", "to see each row"),
                *_advise_reading(session, batch),
            ),
            invocation=session.invocation,
        )


def _advise_reading(session: Session, batch: Batch) -> tuple[Hint, ...]:
    """Return hints for confirming rows by reading, with a missing setting first. None without a service."""
    try:
        service = session.service
    except EscrowctlError:
        return ()
    operation = batch.kind.operation
    is_known = kind_of(operation.name).proving_statuses(service)
    needed = () if is_known else advise_proving(service, operation.done)
    again = "then, to read one of them again" if needed else "to read one of them again"
    return (*needed, command("journal resolve ENTRY", again))


class Reason(StrEnum):
    """Why rows are listed. The value is the word before the list."""

    UNKNOWN = "unknown"
    FAILED = "failed"
    PUT_OFF = "not sent"
    REMARK = "differs"


def explain(session: Session, reasons: list[tuple[Reason, str]]) -> None:
    """Report the rows that are not done as requested, with the reasons."""
    for reason, text in reasons:
        session.console.note(reason.name.lower(), text, word=reason.value, important=True)


def list_reasons(session: Session, summary: Summary) -> list[tuple[Reason, str]]:
    """Return the rows that are not done as requested, one line for each explanation."""
    counts = (*(summary.count(one) for one in (Outcomes.UNKNOWN, Outcomes.FAILED, Outcomes.NOT_SENT)), summary.remarks)
    return [
        (reason, text)
        for reason, count in zip(Reason, counts, strict=True)
        if count
        for text in _list_lines(session, summary.batch, reason)
    ]


def _list_lines(session: Session, batch: Batch, reason: Reason) -> Iterator[str]:
    """Yield one line for each explanation under a reason, with all rows that share it."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for entry in _entries(session, batch, *_STATES[reason]):
        if (why := _why(entry, reason)) is not None:
            named = f"{entry.intent.line}" if reason is Reason.FAILED else f"{entry.intent.line} ({entry.name})"
            lines[why].append(named)
    for why, found in sorted(lines.items(), key=lambda one: -len(one[1]))[:_MOST_REASONS]:
        named = ", ".join(reversed(found[-_MOST_LINES:]))
        more = f" and {len(found) - _MOST_LINES:,} more" if len(found) > _MOST_LINES else ""
        yield f"{'line' if len(found) == 1 else 'lines'} {named}{more}: {why}"


def _why(entry: Entry, reason: Reason) -> str | None:
    """Return why an entry is listed; None if it is not."""
    if reason is Reason.REMARK:
        return entry.settlement.remark
    is_put_off = outcome_of(entry) is Outcomes.NOT_SENT
    return entry.settlement.detail if is_put_off == (reason is Reason.PUT_OFF) else None


_STATES: dict[Reason, tuple[State, ...]] = {
    Reason.UNKNOWN: OPEN_STATES,
    Reason.FAILED: (State.REFUSED,),
    Reason.PUT_OFF: (State.REFUSED,),
    Reason.REMARK: (State.DONE,),
}


def _entries(session: Session, batch: Batch, *states: State) -> Iterable[Entry]:
    return session.journal.all(Selection(_PAGE, states=states, batch=batch.name))


def _number(count: int) -> Number:
    return Number(str(count))
