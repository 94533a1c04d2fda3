"""`escrowctl journal`: what was written from here, and what became of it."""

from typing import Annotated

import typer

from escrowctl.commands.entries import COLUMNS, view_entry, view_row
from escrowctl.errors import bad_value
from escrowctl.journal.entries import Selection, parse_entry_name
from escrowctl.output.view import Listing
from escrowctl.session import session_of

_MAX_ENTRIES = 10_000


def list_entries(
    context: typer.Context, limit: Annotated[int, typer.Option(metavar="N", help="How many, newest first.")] = 50
) -> None:
    """List the newest writes and their outcomes.

    \b
    Example:
      escrowctl journal list --limit 10
    """
    session = session_of(context)
    if not 1 <= limit <= _MAX_ENTRIES:
        raise bad_value(f"--limit {limit} is not from 1 to {_MAX_ENTRIES}.")
    entries = session.journal_to_read.select(Selection(limit))
    session.console.show_listing(Listing(COLUMNS, tuple(view_row(entry) for entry in entries)))
    if len(entries) == limit:
        session.console.note("more", f"these are the newest {limit}; --limit shows more")


def show(
    context: typer.Context, entry: Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's name, such as j12.")]
) -> None:
    """Show one write: what was sent, when, why, and what is known of it.

    \b
    Example:
      escrowctl journal show j12
    """
    session = session_of(context)
    session.show(view_entry(session.find_entry(parse_entry_name(entry), reading=True)))
