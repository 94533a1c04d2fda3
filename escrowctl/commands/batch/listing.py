"""`escrowctl batch list|show|rejects|drop`."""

from typing import Annotated

import typer

from escrowctl.batch.check import count_rows
from escrowctl.batch.plan import Outcomes, drop_plan, find_batch, list_batches, take_standing
from escrowctl.batch.results import list_rejects, parse_results_path
from escrowctl.commands.batch.standing import save_results, show_standing, summarise
from escrowctl.contract.json import JsonValue
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.options import YesOption
from escrowctl.output.view import Listing, View
from escrowctl.session import session_of

_COLUMNS = ("batch", "made", "verb", "profile", "rows", "done", "failed", "unknown", "not_sent")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The batch, such as b41.")]


def list_all(context: typer.Context) -> None:
    """List the batches of this journal, oldest first.

    \b
    Example:
      escrowctl batch list
    """
    session = session_of(context)
    journal = session.journal_to_read
    journal.require_complete()
    views = []
    for batch in list_batches(journal):
        document = summarise(take_standing(journal, batch))
        more: dict[str, JsonValue] = {"made": batch.made_at or None, "verb": batch.verb, "profile": batch.profile}
        views.append(View(document, batch.name, named=document | more))
    session.console.show_listing(Listing(_COLUMNS, tuple(views)))


def show(
    context: typer.Context,
    name: NameArgument,
    results: Annotated[
        str | None, typer.Option("--results", metavar="FILE", help="Write what became of each row (.csv or .jsonl).")
    ] = None,
) -> None:
    """Show what became of a batch's rows.

    \b
    Example:
      escrowctl batch show b41 --results b41.csv
    """
    session = session_of(context)
    path = parse_results_path(results) if results is not None else None
    session.journal_to_read.require_complete()
    batch = find_batch(session.journal_to_read, name)
    if path is not None:
        save_results(session, batch, path)
    show_standing(session, take_standing(session.journal_to_read, batch))


def rejects(context: typer.Context, name: NameArgument) -> None:
    """Print the rows that the service refused, as a file to correct and send again.

    \b
    Example:
      escrowctl batch rejects b41 > rejects.csv
    """
    session = session_of(context)
    session.journal_to_read.require_complete()
    batch = find_batch(session.journal_to_read, name)
    for line in list_rejects(session.journal_to_read, batch):
        session.console.data(line)


def drop(context: typer.Context, name: NameArgument, yes: YesOption = False) -> None:
    """Give up the rows that a batch has not sent: it can then not be resumed.

    \b
    Example:
      escrowctl batch drop b41
    """
    session = session_of(context)
    batch = find_batch(session.journal, name)
    count = take_standing(session.journal, batch).count(Outcomes.NOT_SENT)
    if not session.journal.hold(batch.lock):
        raise not_sent(ErrorCode.BUSY, f"another process is running {name} now.", effect="Nothing was changed.")
    if not yes:
        lines = [f"  {name}   not sent: {count_rows(count)}", "To give them up, type the number of rows:"]
        session.prompt.confirm(lines, str(count), why="batch drop needs confirmation", declined="nothing was changed")
    with session.signals.held():
        drop_plan(session.journal, batch)
        session.console.note("dropped", f"{name}: {count_rows(count)} will not be sent")
