"""What is shown of a journal entry: a row of a list, its whole document, a line."""

from escrowctl.contract.json import JsonValue
from escrowctl.journal.fields import view
from escrowctl.journal.model import Entry, Event, State
from escrowctl.output.view import View, flatten

COLUMNS = ("entry", "sent", "operation", "state", "amount", "currency", "id", "reference", "profile")
"""What a list of entries shows."""

SHEET = (
    *("entry", "sent_at", "operation", "state", "detail", "amount", "currency", "id", "reference", "reason"),
    *("profile", "service", "method", "url", "idempotency_key", "request_id", "operator", "attempt", "http_status"),
    *("settled_at", "origin"),
)
"""What a spreadsheet of entries holds."""


def view_row(entry: Entry) -> View:
    """Return an entry as a row of a list."""
    summary = view(entry, whole=False)
    return View(summary, entry.name, named=_named(entry), record=summary)


def view_entry(entry: Entry) -> View:
    """Return an entry with everything that is kept of it."""
    document = _document(entry)
    return View(document, entry.name, flatten(document), named=document, record=document)


def view_resolved(entry: Entry) -> View:
    """Return an entry as what became of it: `j197   create   2500 EUR   tx_88F2   applied, ...`."""
    document, money = _document(entry), entry.intent.money
    parts = (entry.name, entry.intent.verb, str(money or ""), _id(entry) or "", describe_state(entry))
    line = "   ".join(part for part in parts if part)
    return View(document, entry.name, flatten(document), line=line, named=_named(entry), record=document)


def describe_state(entry: Entry) -> str:
    """Return the state of an entry in a few words: `done, 200`."""
    state, detail = entry.state.value.replace("_", " "), entry.settlement.detail
    return detail if not detail or detail.startswith(("applied", "not applied")) else f"{state}, {detail}"


def _named(entry: Entry) -> dict[str, JsonValue]:
    intent, money = entry.intent, entry.intent.money
    values = (
        entry.name,
        f"{entry.sent_at[:19]}Z" if entry.state is not State.NOT_SENT else None,
        intent.verb,
        entry.state.value,
        money.amount if money else None,
        money.currency if money else None,
        _id(entry),
        intent.reference,
        intent.profile,
    )
    return dict(zip(COLUMNS, values, strict=True))


def _document(entry: Entry) -> dict[str, JsonValue]:
    return view(entry, whole=True) | {"history": [_event(event) for event in entry.history]}


def _event(event: Event) -> JsonValue:
    return {"at": event.at, "state": event.state.value, "detail": event.detail}


def _id(entry: Entry) -> str | None:
    return entry.intent.resource_id or entry.settlement.result_id
