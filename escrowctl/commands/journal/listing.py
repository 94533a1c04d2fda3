"""`escrowctl journal list|show|totals`: what was written from here, and what became of it."""

import re
from itertools import islice
from typing import Annotated

import typer

from escrowctl.commands.journal.duplicates import pairs_with, report_duplicates
from escrowctl.commands.times import parse_moment
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.operations import BY_NAME, OPERATIONS, Access
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.journal.duplicates import list_duplicates
from escrowctl.journal.fields import VIEWED, view
from escrowctl.journal.model import OPEN_STATES, UNCONFIRMED, Entry, Selection, State, parse_entry_name
from escrowctl.journal.totals import Group, Sums, add_up
from escrowctl.output.view import Listing, View
from escrowctl.runtime import timestamp
from escrowctl.session import Session, session_of

COLUMNS = ("entry", "sent", "operation", "state", "amount", "currency", "id", "reference", "profile")
"""What a list of entries shows."""

_WHO = ("operator", "reason")
"""Columns that CSV has too, and that `--fields` may name."""

SHEET = (
    *("entry", "sent_at", "operation", "state", "detail", "amount", "currency", "id", "reference", "reason"),
    *("profile", "service", "method", "url", "idempotency_key", "request_id", "operator", "attempt", "http_status"),
    *("settled_at", "batch", "line", "origin"),
)
"""What a spreadsheet of entries holds."""


_MAX_ENTRIES = 10_000
_PAGE = 1000
_GROUP = ("month", "profile", "operation", "currency", "state")
_TOTALS = (*_GROUP, "writes", "amount")
_OPERATIONS = {
    one.verb if one.noun == "transaction" else one.noun: (one.name,) for one in OPERATIONS if one.access is Access.WRITE
} | {"call": ("call_post", "call_put", "call_patch", "call_delete")}
_OF_HISTORY = r"/history(/[0-9]{1,9}(/(at|state|detail))?)?"
_DECIDED = ("applied", "not applied")
"""How the details of operators' decisions begin, in journals of any age."""

_STATES = (*State, UNCONFIRMED)

StateOption = Annotated[str | None, typer.Option("--state", metavar="STATE", help=f"Only {', '.join(_STATES)}.")]
OperationOption = Annotated[
    str | None, typer.Option("--operation", metavar="WORD", help=f"Only this: {', '.join(_OPERATIONS)}.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Sent then or later: a date, a time, or 24h (ago).")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Sent before then.")]
ReferenceOption = Annotated[str | None, typer.Option("--reference", metavar="TEXT", help="Only this reference.")]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Only what was written to, or made, this.")]


def list_entries(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", help="How many, newest first.")] = 50,
    unknown: Annotated[bool, typer.Option("--unknown", help="Only what is unknown or in flight.")] = False,
    state: StateOption = None,
    operation: OperationOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reference: ReferenceOption = None,
    resource_id: IdOption = None,
    operator: Annotated[str | None, typer.Option("--operator", metavar="NAME", help="Only this operator's.")] = None,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Only what is done twice, in two journals.")] = False,
) -> None:
    """List the newest writes and their outcomes (-p: of one profile).

    \b
    Examples:
      escrowctl journal list --unknown
      escrowctl -p acme-live journal list --since 24h --operation release
    """
    session = session_of(context)
    if not 1 <= limit <= _MAX_ENTRIES:
        raise bad_value(f"--limit {limit} is out of range: 1 to {_MAX_ENTRIES}.")
    if unknown and state is not None:
        raise bad_value("use --unknown or --state, not both.")
    _check_fields(session)
    wanted = OPEN_STATES if unknown else (_parse_state(state),) if state is not None else ()
    journal = session.journal_to_list()
    stored = tuple(State.DONE if one == UNCONFIRMED else State(one) for one in wanted)
    selection = _select(session, min(limit, _PAGE), stored, operation, since, until, reference, resource_id)
    found = (
        one
        for one in journal.all(selection)
        if (not wanted or one.shown_state in wanted) and operator in (None, one.intent.operator)
    )
    pairs = list_duplicates(journal) if duplicates else []
    if duplicates:
        paired = {entry.number for pair in pairs for entry in (pair.first, pair.second)}
        found = (one for one in found if one.number in paired)
    entries = list(islice(found, limit))
    columns = (*COLUMNS, *_WHO) if session.options.csv else COLUMNS
    session.console.show_listing(Listing(columns, tuple(view_row(entry) for entry in entries)))
    session.names.add_in_journal("entry", [entry.name for entry in entries])
    if pairs := pairs_with(pairs, entries):
        session.console.note("duplicates", report_duplicates(session, pairs), important=True)
    if len(entries) == limit:
        session.console.note(
            "more", f"only the newest {limit} are shown; a larger --limit shows older ones, if there are any"
        )


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
    _check_fields(session)
    session.show(view_entry(find_entry(session, parse_entry_name(entry), reading=True)))


def totals(context: typer.Context, since: SinceOption = None, until: UntilOption = None) -> None:
    """Add up the writes by month, profile, operation and state.

    unconfirmed: accepted, but no reading has shown it, or done otherwise than asked. Refused writes,
    and writes that were not sent, do not count.

    \b
    Examples:
      escrowctl journal totals
      escrowctl -p acme-live journal totals --since 2026-11-01
    """
    session = session_of(context)
    journal = session.journal_to_list()
    selection = _select(session, _PAGE, (), None, since, until, None, None)
    sums = add_up(journal.all(selection))
    views = tuple(_row(group, found) for group, found in sums.items())
    session.console.show_listing(Listing(_TOTALS, views, keys=_GROUP))
    count = sum(found.writes for found in sums.values())
    noun = "write" if count == 1 else "writes"
    span = f"from {selection.since or 'the start'} until {selection.until or 'now'}"
    session.console.note(
        "coverage", f"{count} {noun} in this journal, {span}. Writes from other machines count only if imported."
    )


def _row(group: Group, sums: Sums) -> View:
    known = BY_NAME.get(group.operation)
    named: dict[str, JsonValue] = {
        "month": group.month,
        "profile": group.profile,
        "operation": known.verb if known else group.operation.replace("_", " "),
        "currency": group.currency,
        "state": group.state,
        "writes": Number(str(sums.writes)),
        "amount": Number(f"{sums.amount:f}") if group.currency else None,
    }
    return View(named, group.month, named=named, record=named)


def find_entry(session: Session, number: int, *, reading: bool = False) -> Entry:
    """Return a journal entry with its history; raises EscrowctlError `not_found` (6) where there is none."""
    journal = session.journal_to_read if reading else session.journal
    found = journal.find(number)
    if found is None:
        journal.require_complete()
        raise EscrowctlError(
            ErrorCode.NOT_FOUND, f"there is no entry j{number} in this journal.", hint=command("journal list")
        )
    return found


def view_row(entry: Entry) -> View:
    """Return an entry as a row of a list."""
    return View(view(entry, whole=False), entry.name, named=_named(entry), record=_document(entry))


def view_entry(entry: Entry) -> View:
    """Return an entry with everything that is kept of it."""
    document = _document(entry)
    return View(document, entry.name, document, named=_named(entry) | document, record=document)


def view_resolved(entry: Entry) -> View:
    """Return an entry as what became of it: `j197   create   2500 EUR   tx_88F2   applied, ...`."""
    document, money = _document(entry), entry.intent.money
    parts = (entry.name, entry.intent.verb, str(money or ""), entry.record_id or "", describe_state(entry))
    line = "   ".join(part for part in parts if part)
    return View(document, entry.name, document, line=line, named=_named(entry), record=document)


def describe_state(entry: Entry) -> str:
    """Return the state of an entry in a few words: `done, 200`, `not applied (operator's decision)`."""
    state, detail = entry.state.value.replace("_", " "), entry.settlement.detail
    decided, _, _ = detail.partition(", ")
    if decided in _DECIDED:
        return f"{decided} (operator's decision)"
    if entry.is_unconfirmed:
        state = "accepted, not confirmed" if entry.settlement.remark is None else "done otherwise than asked"
    return f"{state}, {detail}" if detail else state


def _named(entry: Entry) -> dict[str, JsonValue]:
    intent, money = entry.intent, entry.intent.money
    values = (
        entry.name,
        entry.sent_at if entry.state is not State.NOT_SENT else None,
        intent.verb,
        entry.shown_state,
        money.amount if money else None,
        money.currency if money else None,
        entry.record_id,
        intent.reference,
        intent.profile,
        intent.operator,
        intent.reason,
    )
    return dict(zip((*COLUMNS, *_WHO), values, strict=True))


def _document(entry: Entry) -> dict[str, JsonValue]:
    history: JsonValue = [{"at": one.at, "state": one.state.value, "detail": one.detail} for one in entry.history]
    return view(entry, whole=True) | {"history": history}


def _select(
    session: Session,
    limit: int,
    states: tuple[State, ...],
    operation: str | None,
    since: str | None,
    until: str | None,
    reference: str | None,
    resource_id: str | None,
) -> Selection:
    """Return what the options ask for; raises EscrowctlError (exit 2) for a word or time that is none."""
    now = session.runtime.now()
    first = timestamp(parse_moment(since, name="--since", now=now)) if since is not None else None
    end = timestamp(parse_moment(until, name="--until", now=now)) if until is not None else None
    if first is not None and end is not None and first >= end:
        raise bad_value(f"--since {since} is not before --until {until}.")
    return Selection(
        limit=limit,
        states=states,
        profile=_profile(session),
        operations=_operations(operation) if operation is not None else (),
        since=first,
        until=end,
        reference=reference,
        resource_id=resource_id,
    )


def _check_fields(session: Session) -> None:
    """Raise `ErrorCode.BAD_VALUE` if `--fields` names what no entry can have."""
    names, pointers = [*COLUMNS, *_WHO], [f"/{name}" for name in VIEWED]
    for name in session.options.fields:
        if name not in names + pointers and not re.fullmatch(_OF_HISTORY, name):
            raise _not_one("--fields", name, [*names, *(one for one in pointers if one[1:] not in names), "/history"])


def _profile(session: Session) -> str | None:
    """Return the profile that -p names; a name that nothing is known of is more likely a slip than an empty list."""
    name = session.options.profile
    if name is None or session.journal_to_read.select(Selection(1, profile=name)):
        return name
    config = session.resolver.config
    if config is None or name not in config.profiles:
        raise bad_value(f'there is no profile "{name}", and no entry in the journal under that name.')
    return name


def _parse_state(word: str) -> str:
    if word not in _STATES:
        raise _not_one("--state", word, list(_STATES))
    return word


def _operations(word: str) -> tuple[str, ...]:
    found = _OPERATIONS.get(word)
    if found is None:
        raise _not_one("--operation", word, list(_OPERATIONS))
    return found


def _not_one(name: str, word: str, words: list[str]) -> EscrowctlError:
    return bad_value(f'{name} "{word}" is not one of {", ".join(words)}.')
