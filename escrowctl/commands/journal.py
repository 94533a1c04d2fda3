"""`escrowctl journal`: what was written from here, and what became of it."""

from typing import Annotated

import typer

from escrowctl.contract.number import JsonValue, Number
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value
from escrowctl.journal.entries import Entry, parse_entry_name
from escrowctl.journal.guards import describe
from escrowctl.output.view import Listing, View, flatten
from escrowctl.session import session_of

_COLUMNS = ("entry", "sent", "operation", "state", "amount", "currency", "id", "reference", "profile")
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
    entries = session.journal.newest(limit)
    views = tuple(View(_summary(entry), entry.name, named=_named(entry), record=_summary(entry)) for entry in entries)
    session.console.show_listing(Listing(_COLUMNS, views))
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
    found = session.journal.find(parse_entry_name(entry))
    if found is None:
        raise EscrowctlError(
            ErrorCode.NOT_FOUND,
            f"there is no entry {entry} in this journal.",
            hint=f"{session.invocation} journal list",
        )
    document = _whole(found)
    session.show(View(document, found.name, flatten(document)))


def _named(entry: Entry) -> dict[str, JsonValue]:
    intent, money = entry.intent, entry.intent.money
    values = (
        entry.name,
        f"{entry.sent_at[:19]}Z",
        describe(intent),
        entry.state.value,
        money.amount if money else None,
        money.currency if money else None,
        _id(entry),
        intent.reference,
        intent.profile,
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _summary(entry: Entry) -> JsonValue:
    money = entry.intent.money
    return {
        "entry": entry.name,
        "sent_at": entry.sent_at,
        "operation": entry.intent.operation,
        "state": entry.state.value,
        "detail": entry.verdict.detail,
        "amount": money.amount if money else None,
        "currency": money.currency if money else None,
        "id": _id(entry),
        "reference": entry.intent.reference,
        "reason": entry.intent.reason,
        "profile": entry.intent.profile,
    }


def _whole(entry: Entry) -> JsonValue:
    intent, verdict = entry.intent, entry.verdict
    summary = _summary(entry)
    assert isinstance(summary, dict)
    return summary | {
        "service": intent.service,
        "method": intent.method,
        "url": intent.url,
        "body": intent.body,
        "idempotency_key": intent.idempotency_key,
        "request_id": entry.request_id,
        "operator": intent.operator,
        "attempt": Number(str(entry.attempt)),
        "http_status": Number(str(verdict.http_status)) if verdict.http_status is not None else None,
        "reply": verdict.reply,
        "settled_at": entry.settled_at,
        "history": [{"at": event.at, "state": event.state.value, "detail": event.detail} for event in entry.history],
    }


def _id(entry: Entry) -> str | None:
    return entry.intent.resource_id or entry.verdict.result_id
