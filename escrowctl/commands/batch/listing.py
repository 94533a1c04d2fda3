"""`escrowctl batch list|show|rejects|drop`."""

import typer

from escrowctl.batch.check import count_rows
from escrowctl.batch.claimants import change_batch, list_claimants, require_idle
from escrowctl.batch.plan import Summary, find_batch, list_batches, sum_up
from escrowctl.batch.results import list_rejects
from escrowctl.commands.batch.summary import count_outcomes, make_report, rejects_hint, save_results, show_summary
from escrowctl.commands.batch.typed import NameArgument, ResultsOption
from escrowctl.commands.rows import open_journal_to_read
from escrowctl.contract.json import JsonValue
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.options import YesOption
from escrowctl.output.view import Listing, View
from escrowctl.runtime import describe_age
from escrowctl.session import session_of

_COLUMNS = ("batch", "created", "verb", "source", "profile", "rows", "done", "refused", "unknown", "not_sent", "state")


def list_all(context: typer.Context) -> None:
    """List the batches of this journal, newest first.

    \b
    Examples:
      escrowctl batch list
      escrowctl --sandbox batch list --fields batch,not_sent
    """
    session = session_of(context)
    journal = open_journal_to_read(session)
    views = []
    for batch in reversed(list_batches(journal)):
        summary = sum_up(journal, batch)
        counts = count_outcomes(summary)
        details: dict[str, JsonValue] = {
            "created": batch.made_at,
            "verb": batch.verb,
            "source": batch.source or None,
            "profile": batch.profile,
            "state": _find_state(journal, summary),
        }
        views.append(View(counts | details, batch.name, named=counts | details))
    session.console.show_listing(Listing(_COLUMNS, tuple(views)))
    session.completion_cache.add_journal_names("batch", [view.id for view in views])


def _find_state(journal: Journal, summary: Summary) -> str:
    if summary.batch.dropped:
        return "dropped"
    try:
        if list_claimants(journal, summary.batch):
            return "running"
    except EscrowctlError:
        return "damaged"
    return "open" if summary.counts[Outcome.NOT_SENT] else "ended"


def show(context: typer.Context, name: NameArgument, results: ResultsOption = None) -> None:
    """Show the outcomes of a batch's rows.

    \b
    Examples:
      escrowctl batch show b41
      escrowctl batch show b41 --results b41.csv
    """
    session = session_of(context)
    journal = session.journal_to_read
    journal.require_complete()
    batch = find_batch(journal, name)
    report = make_report(session, journal, batch)
    state = _find_state(journal, report.summary)
    when = describe_age(batch.made_at, session.runtime.now())
    source = f" from {batch.source}" if batch.source else ""
    run_key = f" with run key {batch.run_key}" if batch.run_key is not None else ""
    session.console.note("batch", f"{name}: batch of {batch.verb}s, created {when}{source}{run_key}; state: {state}")
    for one in list_claimants(journal, batch) if state == "running" else ():
        text = f"{one.operator} on {one.host}, process {one.process}, since {one.since}"
        session.console.note("claimant", text, label="works")
    if results is not None:
        save_results(session, journal, batch, results)
    show_summary(session, report.summary)
    report.show(session)
    if state != "running" and report.error is not None:
        session.console.note("rest", report.error.message.rstrip("."), hints=report.error.hints)


def rejects(context: typer.Context, name: NameArgument) -> None:
    """Print refused and dropped rows, as a file to correct.

    \b
    Examples:
      escrowctl batch rejects b41 > rejects.csv
      escrowctl batch create rejects.csv
    """
    session = session_of(context)
    journal = session.journal_to_read
    journal.require_complete()
    for line in list_rejects(journal, find_batch(journal, name), as_json=session.options.json):
        session.console.write_data(line)


def drop(context: typer.Context, name: NameArgument, yes: YesOption = False) -> None:
    """Drop the unsent rows of a batch, so that it cannot be resumed.

    \b
    Examples:
      escrowctl batch drop b41
      escrowctl batch drop b41 --yes
    """
    session = session_of(context)
    journal = session.journal
    batch = find_batch(journal, name)
    require_idle(journal, batch)
    count = sum_up(journal, batch).counts[Outcome.NOT_SENT]
    if batch.dropped or not count:
        message = f"{name} was already dropped." if batch.dropped else f"{name} has no unsent rows."
        raise not_sent(ErrorCode.ALREADY_DONE, message, effect=Effect.NOTHING_CHANGED)
    if not yes:
        lines = [f"  {name}   not sent: {count_rows(count)}", "To drop them, type the number of rows:"]
        session.prompt.confirm(lines, str(count), why="batch drop needs confirmation", declined="nothing was changed")
    with session.signals.held():
        change_batch(journal, batch, batch._replace(dropped=True))
        count = sum_up(journal, batch).counts[Outcome.NOT_SENT]
        hints = (rejects_hint(batch, "to correct them"),)
        session.console.note("dropped", f"{name}: {count_rows(count)} will not be sent", hints=hints)
