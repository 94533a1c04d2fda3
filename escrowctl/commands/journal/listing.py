"""`escrowctl journal list|show|totals`: the writes in this journal, and their outcomes."""

from itertools import islice
from typing import Annotated

import typer

from escrowctl.commands import filters
from escrowctl.commands.journal.duplicates import report_duplicates
from escrowctl.commands.rows import check_fields, open_journal_to_read, show_entries, view_entry
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.operations import OPERATIONS_BY_NAME
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.duplicates import find_pairs_with, list_duplicates
from escrowctl.journal.model import OPEN_STATES, UNCONFIRMED, Entry, State, parse_entry_name
from escrowctl.journal.totals import SumGroup, sum_by_group
from escrowctl.output.view import Listing, View
from escrowctl.session import Session, session_of


def list_entries(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", help="Show the newest N writes.", min=1, max=10_000)] = 50,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only writes that are unknown or in flight.")] = False,
    state: filters.StateOption = None,
    operation: filters.OperationOption = None,
    since: filters.SinceOption = None,
    until: filters.UntilOption = None,
    reference: filters.ReferenceOption = None,
    resource_id: filters.IdOption = None,
    operator: Annotated[str | None, typer.Option("--operator", metavar="NAME", help="Only by this operator.")] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="NAME", help="Only from this machine.")] = None,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Only writes that two journals both did.")] = False,
) -> None:
    """List the newest writes and their outcomes (-p: of one profile).

    \b
    Examples:
      escrowctl journal list --unknown
      escrowctl -p acme-live journal list --since 24h --operation release
    """
    session = session_of(context)
    if unknown and state is not None:
        raise bad_value("use --unknown or --state, not both.")
    check_fields(session)
    shown_states = OPEN_STATES if unknown else (state,) if state is not None else ()
    journal = open_journal_to_read(session)
    stored_states = tuple(State.DONE if one == UNCONFIRMED else State(one) for one in shown_states)
    selection = filters.make_selection(session, operation=operation, since=since, until=until)._replace(
        limit=limit, states=stored_states, reference=reference, resource_id=resource_id
    )
    pairs = list_duplicates(journal) if duplicates else []
    paired_numbers = {entry.number for pair in pairs for entry in (pair.first, pair.second)}
    found = (
        one
        for one in journal.select_all(selection)
        if (not shown_states or one.shown_state in shown_states)
        and operator in (None, one.intent.operator)
        and host in (None, one.intent.host)
        and (not duplicates or one.number in paired_numbers)
    )
    entries = list(islice(found, limit))
    show_entries(session, entries)
    session.completion_cache.add_journal_names("entry", [entry.name for entry in entries])
    if pairs := find_pairs_with(pairs, entries):
        session.console.note("duplicates", report_duplicates(session, pairs), important=True)
    if len(entries) == limit:
        message = f"only the newest {limit} writes are shown; a larger --limit shows older writes, if there are any"
        session.console.note("more", message)


def show(
    context: typer.Context, entry: Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's name, such as j12.")]
) -> None:
    """Show one write: what was sent, when, why, and its outcome.

    \b
    Examples:
      escrowctl journal show j12
      escrowctl journal show j12 --json
    """
    session = session_of(context)
    check_fields(session)
    session.show(view_entry(require_entry(session, parse_entry_name(entry), read_only=True)))


def totals(context: typer.Context, since: filters.SinceOption = None, until: filters.UntilOption = None) -> None:
    """Add up the writes by month, profile, operation and state.

    The state unconfirmed means: accepted but not confirmed by a read, or done but not as requested.
    Writes that were refused or not sent do not count.

    \b
    Examples:
      escrowctl journal totals
      escrowctl -p acme-live journal totals --since 2026-11-01
    """
    session = session_of(context)
    journal = open_journal_to_read(session)
    selection = filters.make_selection(session, since=since, until=until)
    sums = sum_by_group(journal.select_all(selection))
    views = []
    for group, total in sums.items():
        known = OPERATIONS_BY_NAME.get(group.operation)
        named: dict[str, JsonValue] = {
            **group._asdict(),
            "operation": known.verb if known else group.operation.replace("_", " "),
            "writes": Number(str(total.writes)),
            "amount": Number(f"{total.amount:f}") if group.currency else None,
        }
        views.append(View(named, group.month, named=named, record=named))
    session.console.show_listing(Listing((*SumGroup._fields, "writes", "amount"), tuple(views), keys=SumGroup._fields))
    count = sum(found.writes for found in sums.values())
    noun = "write" if count == 1 else "writes"
    span = f"from {selection.since or 'the start'} until {selection.until or 'now'}"
    others = "" if journal.place.is_shared else " Writes from other machines count only if imported."
    session.console.note("coverage", f"{count} {noun} in this journal, {span}.{others}")


def require_entry(session: Session, number: int, *, read_only: bool = False) -> Entry:
    """Return an entry with its history. `read_only`: open the journal only to read. Raises `NOT_FOUND`."""
    journal = session.journal_to_read if read_only else session.journal
    if (found := journal.find(number)) is None:
        journal.require_complete()
        message = f"there is no entry j{number} in this journal."
        raise EscrowctlError(ErrorCode.NOT_FOUND, message, hint=command("journal list"))
    return found
