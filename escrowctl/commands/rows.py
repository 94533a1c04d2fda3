"""The columns and rows of every list of journal entries or escrows."""

import re

from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.operations import BY_NAME
from escrowctl.errors import bad_value
from escrowctl.journal.fields import VIEWED, view
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, State
from escrowctl.journal.totals import Group, Sums
from escrowctl.output.view import Listing, View
from escrowctl.session import Session

COLUMNS = ("entry", "sent", "operation", "state", "amount", "currency", "id", "reference", "profile")
"""Columns of a list of entries."""

REGISTER = ("id", "amount", "currency", "status", "created", "released", "reference", "entry")
"""Columns of a list of escrows."""

_WHO = ("operator", "reason")
"""More columns for CSV and `--fields`."""

SHEET = (
    *("entry", "sent_at", "operation", "state", "detail", "amount", "currency", "id", "reference", "reason"),
    *("profile", "service", "method", "url", "idempotency_key", "request_id", "operator", "attempt", "http_status"),
    *("settled_at", "batch", "line", "origin"),
)
"""Columns of a spreadsheet of entries."""

_OF_HISTORY = r"/history(/[0-9]{1,9}(/(at|state|detail))?)?"
_DECIDED = ("applied", "not applied")
"""The first words of the details of operators' decisions, in journals of any age."""


def show_entries(session: Session, entries: list[Entry]) -> None:
    """Show a list of entries."""
    columns = (*COLUMNS, *_WHO) if session.options.csv else COLUMNS
    views = tuple(View(view(one, whole=False), one.name, named=row_of(one), record=_document(one)) for one in entries)
    session.console.show_listing(Listing(columns, views))


def show_totals(session: Session, sums: dict[Group, Sums]) -> None:
    """Show the sums of writes."""
    views = []
    for group, found in sums.items():
        known = BY_NAME.get(group.operation)
        named: dict[str, JsonValue] = {
            **group._asdict(),
            "operation": known.verb if known else group.operation.replace("_", " "),
            "writes": Number(str(found.writes)),
            "amount": Number(f"{found.amount:f}") if group.currency else None,
        }
        views.append(View(named, group.month, named=named, record=named))
    session.console.show_listing(Listing((*Group._fields, "writes", "amount"), tuple(views), keys=Group._fields))


def view_entry(entry: Entry) -> View:
    """Return the view of an entry with all its stored data."""
    document = _document(entry)
    return View(document, entry.name, document, named=row_of(entry) | document, record=document)


def view_resolved(entry: Entry) -> View:
    """Return the view of a resolved entry: `j197   create   2500 EUR   tx_88F2   applied, ...`."""
    document, money = _document(entry), entry.intent.money
    parts = (entry.name, entry.intent.verb, str(money or ""), entry.record_id or "", describe_state(entry))
    line = "   ".join(part for part in parts if part)
    return View(document, entry.name, document, line=line, named=row_of(entry), record=document)


def describe_state(entry: Entry) -> str:
    """Return the state of an entry in a few words: `done, 200`, `not applied (operator's decision)`."""
    state, detail = entry.state.value.replace("_", " "), entry.settlement.detail
    decided, _, _ = detail.partition(", ")
    if decided in _DECIDED:
        return f"{decided} (operator's decision)"
    if entry.is_unconfirmed:
        state = "accepted, not confirmed" if entry.settlement.remark is None else "done otherwise than asked"
    return f"{state}, {detail}" if detail else state


def row_of(entry: Entry) -> dict[str, JsonValue]:
    """Return the cells of an entry, by column."""
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


def check_fields(session: Session) -> None:
    """Raise `ErrorCode.BAD_VALUE` if `--fields` names a field that no entry has."""
    names, pointers = [*COLUMNS, *_WHO], [f"/{name}" for name in VIEWED]
    for name in session.options.fields:
        if name not in names + pointers and not re.fullmatch(_OF_HISTORY, name):
            others = (one for one in pointers if one[1:] not in names)
            raise bad_value(f'--fields "{name}" is not one of {", ".join((*names, *others, "/history"))}.')


def journal_to_list(session: Session) -> Journal:
    """Return the journal to read, with a note if there is none. Raises `JOURNAL_UNUSABLE` if it is incomplete."""
    journal = session.journal_to_read
    journal.require_complete()
    if not journal.storage.is_there:
        session.console.note("no_journal", f"there is no journal yet: the first write creates {journal.storage.where}")
    return journal
