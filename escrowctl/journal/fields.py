"""The one table of an entry's stored fields. Records, columns, import checks and views are derived from it.

A new field is one line in `FIELDS` and its attribute in `journal.model`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from escrowctl.contract.identifiers import UUID
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.money import Money
from escrowctl.errors import Outcome
from escrowctl.journal.accounts import Account
from escrowctl.journal.chain import JOURNAL, JOURNAL_KINDS, ChainRecord, Kind
from escrowctl.journal.model import UNSETTLED, Entry, Event, Intent, Settlement, State

Facts = dict[str, Any]
"""Stored values by the names of `FIELDS`: text, integer or None."""

UNDECODABLE = (ValueError, TypeError, KeyError, IndexError, ArithmeticError)
"""The exceptions that a value of the wrong kind raises when an entry is built from its records."""

_MAX_INTEGER = 2**63 - 1
_MAX_ATTEMPTS = 1_000_000
_MAX_ENTRY = 2**48 - 1
"""Higher numbers collide with the hashed locks of the lock file (`journal.sqlite.locks`)."""

_TIME = r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z"
_AMOUNT = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_NUMBERS = r"([1-9][0-9]{0,17}(,[1-9][0-9]{0,17})*)?"
_ORIGIN = r"[0-9a-f-]{36} j[1-9][0-9]{0,17}"
_FINGERPRINT = r"[0-9a-f]{16}:[0-9a-f]{8}"
_BATCH = r"b[1-9][0-9]{0,17}"


class Field(NamedTuple):
    """One stored value of an entry.

    `name` is its name in records, columns and exports, `attribute` its path in an Entry, `kind` the kind
    of record that contains it. `shown`: it is in the view of a complete entry. `listed`: it is in that
    view and in lists. `queried`: it is also a column of the entry's row.
    """

    name: str
    attribute: str
    kind: Kind
    type: type = str
    nullable: bool = False
    spelling: str = ""
    queried: bool = False
    shown: bool = False
    listed: bool = False
    decode: Callable[[Any], Any] = lambda value: value


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)


_INTENT, _SETTLEMENT, _IMPORT = Kind.INTENT, Kind.SETTLEMENT, Kind.IMPORT
# In the order of the views. The names are stored and hash-chained since format 1, so some differ from the code's:
# "likeness" is the fingerprint, "despite" the allowed duplicates. `sent_at` and `settled_at` are dates of
# records: only the record of an import has them as fields.
FIELDS = (
    Field("sent_at", "sent_at", _IMPORT, spelling=_TIME, queried=True, listed=True),
    Field("operation", "intent.operation", _INTENT, queried=True, listed=True),
    Field("state", "settlement.state", _SETTLEMENT, queried=True, listed=True),
    Field("detail", "settlement.detail", _SETTLEMENT, listed=True),
    Field("amount", "intent.money.amount", _INTENT, nullable=True, spelling=_AMOUNT, listed=True),
    Field("currency", "intent.money.currency", _INTENT, nullable=True, listed=True),
    Field("resource_id", "intent.resource_id", _INTENT, nullable=True, queried=True, listed=True),
    Field("result_id", "settlement.result_id", _SETTLEMENT, nullable=True, queried=True),
    Field("reference", "intent.reference", _INTENT, nullable=True, queried=True, listed=True),
    Field("reason", "intent.reason", _INTENT, nullable=True, listed=True),
    Field("profile", "intent.profile", _INTENT, queried=True, listed=True),
    Field("service", "intent.service", _INTENT, shown=True),
    Field("site", "intent.site", _INTENT, nullable=True),
    Field("method", "intent.method", _INTENT, shown=True),
    Field("url", "intent.url", _INTENT, shown=True),
    Field("body", "intent.body", _INTENT, nullable=True, shown=True),
    Field("idempotency_key", "intent.idempotency_key", _INTENT, shown=True),
    Field("likeness", "intent.fingerprint", _INTENT),
    Field("despite", "intent.allowed_duplicates", _INTENT, spelling=_NUMBERS, decode=_split),
    Field("account", "intent.account.of_entry.name", _INTENT, nullable=True),
    Field("key_fingerprint", "intent.account.of_entry.fingerprint", _INTENT, nullable=True, spelling=_FINGERPRINT),
    Field("request_id", "request_id", _INTENT, shown=True),
    Field("operator", "intent.operator", _INTENT, listed=True),
    Field("attempt", "attempt", _INTENT, int, shown=True),
    Field("http_status", "settlement.http_status", _SETTLEMENT, int, nullable=True, shown=True),
    Field("reply", "settlement.reply", _SETTLEMENT, nullable=True, shown=True),
    Field("may_repeat", "settlement.may_repeat", _SETTLEMENT, int, decode=bool),
    Field("verified", "settlement.verified", _SETTLEMENT, int, decode=bool),
    Field("remark", "settlement.remark", _SETTLEMENT, nullable=True, queried=True, shown=True),
    Field("settled_at", "settled_at", _IMPORT, nullable=True, spelling=_TIME, shown=True),
    Field("resends", "resends", _IMPORT, int),
    Field("batch", "intent.batch", _INTENT, nullable=True, spelling=_BATCH, queried=True, shown=True),
    Field("line", "intent.line", _INTENT, int, nullable=True, queried=True, shown=True),
    Field("columns", "intent.columns", _INTENT, nullable=True),
    Field("run_key", "intent.run_key", _INTENT, nullable=True),
    Field("origin", "origin", _IMPORT, nullable=True, spelling=_ORIGIN, queried=True, shown=True),
)
QUERIED = tuple(field.name for field in FIELDS if field.queried)
"""The fields that an entry's row has as columns."""

VIEWED = ("entry", *(field.name.replace("resource_id", "id") for field in FIELDS if field.listed or field.shown))
"""The members of the view of a complete entry."""

# To write records: the fields of each kind, and their paths in an Intent or a Settlement. `_EXPECTED` has the names
# that a record from a file may have.
_BY_NAME = {field.name: field for field in FIELDS}
_OF_INTENT = tuple(field for field in FIELDS if field.kind is Kind.INTENT)
_OF_SETTLEMENT = tuple(field for field in FIELDS if field.kind is Kind.SETTLEMENT)
_INTENT_PATHS = tuple((field.name, tuple(field.attribute.split("."))) for field in _OF_INTENT)
_SETTLEMENT_PATHS = tuple((field.name, tuple(field.attribute.split("."))) for field in _OF_SETTLEMENT)
_EXPECTED: Mapping[str, frozenset[str]] = {
    Kind.INTENT: frozenset(field.name for field in _OF_INTENT),
    Kind.SETTLEMENT: frozenset(field.name for field in _OF_SETTLEMENT),
    # A decision is a settlement by a person: who, and why.
    Kind.DECISION: frozenset(field.name for field in _OF_SETTLEMENT) | {"operator", "reason"},
    Kind.IMPORT: frozenset(_BY_NAME),
}
# To read them: part of the Entry ("" or "intent"), attribute there, field. Money, account and state are special.
_DECODED = tuple(
    (part, attribute, field)
    for field in FIELDS
    for part, _, attribute in (field.attribute.rpartition("."),)
    if part in ("", "intent")
)
_DECODED_SETTLEMENT = tuple(
    (field.attribute.partition(".")[2], field) for field in _OF_SETTLEMENT if field.name != "state"
)
_OUTCOMES = {State(outcome.value): outcome for outcome in Outcome} | {State.NOT_APPLIED: Outcome.UNKNOWN}
_UNSETTLED: Facts = {field.name: None if field.nullable else field.type() for field in _OF_SETTLEMENT} | {
    "state": State.IN_FLIGHT.value,
    "settled_at": None,
}
_DEFAULTS: Facts = {
    field.name: None if field.nullable else field.type()
    for field in FIELDS
    if field.nullable or field.spelling == _NUMBERS or field.name in ("may_repeat", "verified", "resends")
}
"""The values of fields that a record does not have: null, 0 and "" are not written."""


def facts_of_intent(intent: Intent, *, attempt: int, request_id: str) -> Facts:
    """Return the facts for the record of an attempt."""
    entry = Entry(0, intent, UNSETTLED, attempt, request_id, "")
    return _without_defaults({name: _encode(_read(entry, path)) for name, path in _INTENT_PATHS})


def facts_of_settlement(settlement: Settlement) -> Facts:
    """Return the facts for the record of a settlement."""
    return _without_defaults({name: _encode(_read(settlement, path[1:])) for name, path in _SETTLEMENT_PATHS})


def apply(facts: Facts, kind: str, at: str, new: Mapping[str, Any]) -> Facts:
    """Return all stored values of an entry after one more record (`facts` is empty for a new entry)."""
    match kind:
        case Kind.INTENT:
            kept: Facts = {name: facts[name] for name in ("origin", "resends") if name in facts}
            return {**_DEFAULTS, **kept, **new, **_UNSETTLED, "sent_at": at}
        case Kind.IMPORT:
            # An entry that was written here stays in its batch when it is updated from another journal.
            is_own = facts.get("origin", "") is None
            own: Facts = {name: facts[name] for name in ("origin", "despite")} if is_own else {}
            return {**_DEFAULTS, **new, **own}
        case _:
            known = {**_DEFAULTS, **new}
            return facts | {field.name: known[field.name] for field in _OF_SETTLEMENT} | {"settled_at": at}


def entry_of(
    number: int,
    facts: Facts,
    *,
    history: tuple[Event, ...] = (),
    requests: frozenset[str] = frozenset(),
    resends: int = 0,
    counted_on: str = "",
) -> Entry:
    """Return the entry with these stored values. Raises one of `UNDECODABLE` if they are not valid."""
    parts: dict[str, dict[str, Any]] = {"": {}, "intent": {}}
    for part, attribute, field in _DECODED:
        parts[part][attribute] = field.decode(facts[field.name])
    amount = facts["amount"]
    intent = Intent(
        **parts["intent"],
        money=None if amount is None else Money(Number(amount), facts["currency"]),
        account=Account(facts["account"], facts["key_fingerprint"]),
    )
    settlement = settlement_of(facts)
    parts[""] |= {"history": history, "requests": requests, "resends": resends, "counted_on": counted_on}
    return Entry(number, intent, settlement, **parts[""])


def settlement_of(facts: Facts) -> Settlement:
    """Return the settlement in an entry's stored values. Raises one of `UNDECODABLE` if they are not valid."""
    state = State(facts["state"])
    values = {attribute: field.decode(facts[field.name]) for attribute, field in _DECODED_SETTLEMENT}
    return Settlement(_OUTCOMES.get(state), **values, not_applied=state is State.NOT_APPLIED)


def event_of(kind: str, at: str, facts: Mapping[str, Any]) -> Event:
    """Return a record as a line of its entry's history."""
    match kind:
        case Kind.INTENT:
            return Event(at, State.IN_FLIGHT, f"attempt {facts['attempt']}")
        case Kind.IMPORT:
            return Event(at, State(facts["state"]), f"imported: {facts['origin']}")
        case Kind.DECISION:
            return Event(at, State(facts["state"]), f"{facts['detail']} ({facts['operator']}: {facts['reason']})")
        case _:
            return Event(at, State(facts["state"]), facts["detail"])


def view(entry: Entry, *, whole: bool) -> dict[str, JsonValue]:
    """Return an entry as JSON, without its history: the fields of a list, or (`whole`) the members `VIEWED`."""
    document: dict[str, JsonValue] = {"entry": entry.name}
    for field in FIELDS:
        if field.name == "resource_id":
            document["id"] = entry.record_id
        elif field.listed or (whole and field.shown):
            value = entry.shown_state if field.name == "state" else _read(entry, field.attribute.split("."))
            document[field.name] = Number(str(value)) if isinstance(value, int) else value
    if entry.state is State.NOT_SENT:
        document["sent_at"] = None
    if whole and entry.is_open:
        document["settled_at"] = None
    return document


def check_journal_id(text: object) -> str:
    """Return a journal's id from a file. Raises ValueError if it is not a valid id."""
    if not isinstance(text, str) or not re.fullmatch(UUID, text, re.ASCII):
        raise ValueError(text)
    return text


def check_record(record: ChainRecord, facts: Mapping[str, Any]) -> None:
    """Raise one of `UNDECODABLE` if a record from a file is not valid: no journal writes it."""
    _check_time(record.at)
    if record.entry == JOURNAL:
        if record.kind not in JOURNAL_KINDS or not all(isinstance(value, str) for value in facts.values()):
            raise ValueError(record.kind)
        return
    _check_facts(record, facts)


def _check_facts(record: ChainRecord, facts: Mapping[str, Any]) -> None:
    expected = _EXPECTED[record.kind]
    if not expected - _DEFAULTS.keys() <= facts.keys() <= expected:
        raise ValueError(record.kind)
    if not 1 <= record.entry <= _MAX_ENTRY or facts.get("attempt", 1) > _MAX_ATTEMPTS:
        raise ValueError(record.entry)
    for name, value in facts.items():
        required = record.kind == Kind.DECISION and name == "reason"
        _check_value(_BY_NAME[name], value, required=required or name == "origin")
    if facts.get("resends", 0) >= facts.get("attempt", 1):
        raise ValueError("resends")
    if "state" in facts:
        State(facts["state"])
    if facts.get("amount") is not None:
        Number(facts["amount"])
    if facts.get("body") is not None:
        json.loads(facts["body"])
    if "amount" in facts and (facts["amount"] is None) != (facts["currency"] is None):
        raise ValueError("amount")


def _check_value(field: Field, value: object, *, required: bool) -> None:
    if value is None and field.nullable and not required:
        return
    # A boolean is an integer to Python, and not to SQLite's strict tables.
    if type(value) is not field.type:
        raise ValueError(field.name)
    if isinstance(value, int) and not 0 <= value <= _MAX_INTEGER:
        raise ValueError(field.name)
    if isinstance(value, str):
        # A lone surrogate cannot be encoded, so no file can contain it.
        value.encode()
        if field.spelling == _TIME:
            _check_time(value)
        elif field.spelling and not re.fullmatch(field.spelling, value, re.ASCII):
            raise ValueError(field.name)


def _check_time(text: str) -> None:
    if not re.fullmatch(_TIME, text, re.ASCII):
        raise ValueError(text)
    datetime.fromisoformat(text)


def _without_defaults(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def _read(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        value = None if value is None else getattr(value, name)
    return value


def _encode(value: object) -> str | int | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return ",".join(str(one) for one in value)
    return int(value) if isinstance(value, int) else str(value)
