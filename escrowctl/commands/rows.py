"""The columns of the lists of journal entries and escrows, and the views of entries."""

import re

from escrowctl.contract.json import JsonValue
from escrowctl.errors import bad_value
from escrowctl.journal.fields import VIEW_MEMBERS, view
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry
from escrowctl.journal.storage import describe_missing
from escrowctl.output.view import Listing, View
from escrowctl.session import Session

ENTRY_COLUMNS = ("entry", "sent", "operation", "state", "amount", "currency", "id", "reference", "profile")
"""Columns of a list of journal entries."""

ESCROW_COLUMNS = ("id", "amount", "currency", "status", "created", "released", "reference", "entry")
"""Columns of a list of escrows."""

_CELL_NAMES = (*ENTRY_COLUMNS, "operator", "host", "reason")
"""Columns of a list of journal entries for CSV and `--fields`."""

CSV_COLUMNS = (
    *("entry", "sent_at", "operation", "state", "detail", "amount", "currency", "id", "reference", "reason"),
    *("profile", "service", "method", "url", "idempotency_key", "request_id", "operator", "host", "process", "attempt"),
    *("http_status", "settled_at", "batch", "line", "origin"),
)
"""Columns of `journal export --csv`."""

_HISTORY_POINTER_PATTERN = r"/history(/[0-9]{1,9}(/(at|state|detail))?)?"
_DECISION_TEXTS = ("applied", "not applied")
"""If an operator decided the outcome of an entry, its detail starts with one of these texts."""


def show_entries(session: Session, entries: list[Entry]) -> None:
    """Show a list of entries."""
    columns = _CELL_NAMES if session.options.csv else ENTRY_COLUMNS
    views = tuple(
        View(view(one, is_complete=False), one.name, named=make_cells(one), record=_as_json(one)) for one in entries
    )
    session.console.show_listing(Listing(columns, views))


def view_entry(entry: Entry) -> View:
    """Return the view of an entry with everything that is stored about it."""
    document = _as_json(entry)
    return View(document, entry.name, document, named=make_cells(entry) | document, record=document)


def view_resolved(entry: Entry) -> View:
    """Return the view of a resolved entry. Its line: `j197   create   2500 EUR   tx_88F2   applied, ...`."""
    document, money = _as_json(entry), entry.intent.money
    parts = (entry.name, entry.intent.verb, str(money or ""), entry.record_id or "", describe_state(entry))
    line = "   ".join(filter(None, parts))
    return View(document, entry.name, document, line=line, named=make_cells(entry), record=document)


def describe_state(entry: Entry) -> str:
    """Return the state of an entry in a few words: `done, 200`, `not applied (operator's decision)`."""
    state, detail = entry.state.label, entry.settlement.detail
    decided, _, _ = detail.partition(", ")
    if decided in _DECISION_TEXTS:
        return f"{decided} (operator's decision)"
    if entry.is_unconfirmed:
        state = "accepted, not confirmed" if entry.settlement.remark is None else "done, but not as requested"
    return f"{state}, {detail}" if detail else state


def make_cells(entry: Entry) -> dict[str, JsonValue]:
    """Return the values of an entry by column: the `ENTRY_COLUMNS`, `operator`, `host` and `reason`."""
    intent, money = entry.intent, entry.intent.money
    return {
        "entry": entry.name,
        "sent": entry.shown_sent_at,
        "operation": intent.verb,
        "state": entry.shown_state,
        "amount": money.amount if money else None,
        "currency": money.currency if money else None,
        "id": entry.record_id,
        "reference": intent.reference,
        "profile": intent.profile,
        "operator": intent.operator,
        "host": intent.host,
        "reason": intent.reason,
    }


def _as_json(entry: Entry) -> dict[str, JsonValue]:
    """Return a JSON object with everything that is stored about an entry."""
    history: JsonValue = [{"at": one.at, "state": one.state.value, "detail": one.detail} for one in entry.history]
    return view(entry, is_complete=True) | {"history": history}


def check_fields(session: Session) -> None:
    """Raise `ErrorCode.BAD_VALUE` if `--fields` names a field that no entry has."""
    pointers = [f"/{name}" for name in VIEW_MEMBERS]
    for name in session.options.fields:
        if name not in (*_CELL_NAMES, *pointers) and not re.fullmatch(_HISTORY_POINTER_PATTERN, name):
            known = ", ".join((*_CELL_NAMES, *(one for one in pointers if one[1:] not in _CELL_NAMES), "/history"))
            raise bad_value(f'--fields "{name}" is not one of {known}.')


def open_journal_to_read(session: Session) -> Journal:
    """Return the journal for reading; if none exists, print a note. Raises `JOURNAL_UNUSABLE` if damaged."""
    journal = session.journal_to_read
    if (closing := journal.require_complete()) is not None:
        session.console.note("closed", f"this journal is closed: {closing}", important=True)
    if not journal.place.exists:
        session.console.note("no_journal", describe_missing(journal.place))
    return journal
