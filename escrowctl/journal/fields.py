"""The one table of an entry's stored fields. Records, columns, import checks and views are derived from it.

A new field is one line in `FIELDS` and its attribute in `journal.model`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.money import Money
from escrowctl.errors import Outcome
from escrowctl.journal.account import Account
from escrowctl.journal.chain import Kind
from escrowctl.journal.model import STATE_OF_OUTCOME, UNSETTLED, Entry, Event, Intent, Settlement, State

Facts = dict[str, Any]
"""Field name -> stored value: text, integer or None. The names are those of `FIELDS`."""

DECODING_ERRORS = (ValueError, TypeError, KeyError, IndexError, ArithmeticError)
"""The exceptions that may be raised when an entry is built from damaged records."""

TIME_PATTERN = r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z"
AMOUNT_PATTERN = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_NUMBERS_PATTERN = r"([1-9][0-9]{0,17}(,[1-9][0-9]{0,17})*)?"
_ORIGIN_PATTERN = r"[0-9a-f-]{36} j[1-9][0-9]{0,17}"
_KEY_HASH_PATTERN = r"[0-9a-f]{16}:[0-9a-f]{8}"
_BATCH_PATTERN = r"b[1-9][0-9]{0,17}"


class Field(NamedTuple):
    """One stored value of an entry.

    `name` is used in records, columns and exports. `attribute` is the value's path in an `Entry`. `kind` is the
    kind of record that contains the value. `pattern` is a regular expression for a text. `listed`: lists and
    complete views of an entry show the value. `shown`: only complete views show the value. `queried`: the entry's
    row has a column for the value. `decode` turns the stored value into the attribute's value (None: they are equal).
    """

    name: str
    attribute: str
    kind: str
    type: type = str
    nullable: bool = False
    pattern: str = ""
    queried: bool = False
    shown: bool = False
    listed: bool = False
    decode: Callable[[Any], Any] | None = None


def _parse_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)


_INTENT, _SETTLEMENT, _IMPORT = Kind.INTENT, Kind.SETTLEMENT, Kind.IMPORT
# In the order of the views. The names are stored and hashed, so they cannot change. Two differ from the code's:
# "likeness" is the fingerprint, "despite" the allowed duplicates. `sent_at` and `settled_at` are dates of
# records: only the record of an import has them as fields.
FIELDS = (
    Field("sent_at", "sent_at", _IMPORT, pattern=TIME_PATTERN, queried=True, listed=True),
    Field("operation", "intent.operation", _INTENT, queried=True, listed=True),
    Field("state", "settlement.state", _SETTLEMENT, queried=True, listed=True),
    Field("detail", "settlement.detail", _SETTLEMENT, listed=True),
    Field("amount", "intent.amount", _INTENT, nullable=True, pattern=AMOUNT_PATTERN, listed=True),
    Field("currency", "intent.currency", _INTENT, nullable=True, listed=True),
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
    Field("despite", "intent.allowed_duplicates", _INTENT, pattern=_NUMBERS_PATTERN, decode=_parse_numbers),
    Field("account", "intent.account.as_stored.name", _INTENT, nullable=True),
    Field("key_fingerprint", "intent.account.as_stored.fingerprint", _INTENT, nullable=True, pattern=_KEY_HASH_PATTERN),
    Field("request_id", "request_id", _INTENT, shown=True),
    Field("operator", "intent.operator", _INTENT, listed=True),
    Field("host", "intent.host", _INTENT, nullable=True, listed=True),
    Field("process", "intent.process", _INTENT, int, nullable=True, shown=True),
    Field("attempt", "attempt", _INTENT, int, shown=True),
    Field("http_status", "settlement.http_status", _SETTLEMENT, int, nullable=True, shown=True),
    Field("reply", "settlement.reply", _SETTLEMENT, nullable=True, shown=True),
    Field("may_repeat", "settlement.may_repeat", _SETTLEMENT, int, decode=bool),
    Field("verified", "settlement.verified", _SETTLEMENT, int, decode=bool),
    Field("remark", "settlement.remark", _SETTLEMENT, nullable=True, queried=True, shown=True),
    Field("settled_at", "settled_at", _IMPORT, nullable=True, pattern=TIME_PATTERN, shown=True),
    Field("resends", "resends", _IMPORT, int),
    Field("batch", "intent.batch", _INTENT, nullable=True, pattern=_BATCH_PATTERN, queried=True, shown=True),
    Field("line", "intent.line", _INTENT, int, nullable=True, queried=True, shown=True),
    Field("columns", "intent.columns", _INTENT, nullable=True),
    Field("run_key", "intent.run_key", _INTENT, nullable=True),
    Field("already_sent", "intent.already_sent", _INTENT, int, decode=bool),
    Field("origin", "origin", _IMPORT, nullable=True, pattern=_ORIGIN_PATTERN, queried=True, shown=True),
)
QUERIED_FIELDS = tuple(field.name for field in FIELDS if field.queried)
"""The names of the fields that are columns of an entry's row."""

_SHOWN_ATTRIBUTES = {"state": "shown_state", "sent_at": "shown_sent_at"}
VIEW_MEMBERS = ("entry", *(field.name.replace("resource_id", "id") for field in FIELDS if field.listed or field.shown))
"""The names of the members in the view of a complete entry."""

# To write records: the fields of each kind of record, and what reads their values from an Entry or a Settlement.
_INTENT_FIELDS = tuple(field for field in FIELDS if field.kind == Kind.INTENT)
_SETTLEMENT_FIELDS = tuple(field for field in FIELDS if field.kind == Kind.SETTLEMENT)
_read_intent = attrgetter(*(field.attribute for field in _INTENT_FIELDS))
_read_settlement = attrgetter(*(field.attribute.removeprefix("settlement.") for field in _SETTLEMENT_FIELDS))
FIELDS_BY_KIND: Mapping[str, tuple[Field, ...]] = {
    Kind.INTENT: _INTENT_FIELDS,
    Kind.SETTLEMENT: _SETTLEMENT_FIELDS,
    # A decision is a settlement by an operator, who gives a reason.
    Kind.DECISION: (*_SETTLEMENT_FIELDS, *(field for field in FIELDS if field.name in ("operator", "reason"))),
    Kind.IMPORT: FIELDS,
}
"""The fields that a record of each kind may have."""


# To read records: the attributes of each part of an Entry, with their fields. `entry_of` builds the rest.
def _fields_of(part: str, attributes: Collection[str]) -> tuple[tuple[str, Field], ...]:
    found = [(field.attribute.rpartition("."), field) for field in FIELDS]
    return tuple((name, field) for (owner, _, name), field in found if owner == part and name in attributes)


_ENTRY_ATTRIBUTES = _fields_of("", Entry._fields)
_INTENT_ATTRIBUTES = _fields_of("intent", Intent._fields)
_SETTLEMENT_ATTRIBUTES = _fields_of("settlement", Settlement._fields)
_OUTCOME_OF_STATE = {state: outcome for outcome, state in STATE_OF_OUTCOME.items()} | {
    State.NOT_APPLIED: Outcome.UNKNOWN
}
_UNSETTLED: Facts = {field.name: None if field.nullable else field.type() for field in _SETTLEMENT_FIELDS} | {
    "state": State.IN_FLIGHT.value,
    "settled_at": None,
}
DEFAULT_FACTS: Facts = {
    field.name: None if field.nullable else field.type()
    for field in FIELDS
    if field.nullable or field.pattern == _NUMBERS_PATTERN or (field.type is int and field.name != "attempt")
}
"""Field name -> default value (None, 0 or ""). A record leaves out a field with its default value."""


def facts_of_intent(intent: Intent, *, attempt: int, request_id: str) -> Facts:
    """Return the facts for the record of an attempt."""
    return _make_facts(_INTENT_FIELDS, _read_intent(Entry(0, intent, UNSETTLED, attempt, request_id, "")))


def facts_of_settlement(settlement: Settlement) -> Facts:
    """Return the facts for the record of a settlement."""
    return _make_facts(_SETTLEMENT_FIELDS, _read_settlement(settlement))


def apply_record(facts: Facts, kind: str, at: str, new: Mapping[str, Any]) -> Facts:
    """Return an entry's stored values after one more record. `facts` are the old values, `new` are the record's."""
    match kind:
        case Kind.INTENT:
            kept: Facts = {name: facts[name] for name in ("origin", "resends") if name in facts}
            return {**DEFAULT_FACTS, **kept, **new, **_UNSETTLED, "sent_at": at}
        case Kind.IMPORT:
            # An entry that was written here stays in its batch when it is updated from another journal.
            is_own = facts.get("origin", "") is None
            own: Facts = {name: facts[name] for name in ("origin", "despite")} if is_own else {}
            return {**DEFAULT_FACTS, **new, **own}
        case _:
            known = {**DEFAULT_FACTS, **new}
            return facts | {field.name: known[field.name] for field in _SETTLEMENT_FIELDS} | {"settled_at": at}


def entry_of(number: int, facts: Facts) -> Entry:
    """Return the entry with these stored values. Raises one of `DECODING_ERRORS` if they are not valid."""
    amount = facts["amount"]
    intent = Intent(
        **_decode(facts, _INTENT_ATTRIBUTES),
        money=None if amount is None else Money(Number(amount), facts["currency"]),
        account=Account(facts["account"], facts["key_fingerprint"]),
    )
    return Entry(number, intent, settlement_of(facts), **_decode(facts, _ENTRY_ATTRIBUTES))


def settlement_of(facts: Facts) -> Settlement:
    """Return the settlement in an entry's stored values. Raises one of `DECODING_ERRORS` if they are not valid."""
    state = State(facts["state"])
    values = _decode(facts, _SETTLEMENT_ATTRIBUTES)
    return Settlement(_OUTCOME_OF_STATE.get(state), **values, not_applied=state is State.NOT_APPLIED)


def event_of(kind: str, at: str, facts: Mapping[str, Any]) -> Event:
    """Return a record as a line of its entry's history."""
    match kind:
        case Kind.INTENT:
            return Event(at, State.IN_FLIGHT, f"attempt {facts['attempt']}")
        case Kind.IMPORT:
            return Event(at, State(facts["state"]), f"imported from {facts['origin']}")
        case Kind.DECISION:
            return Event(at, State(facts["state"]), f"{facts['detail']} ({facts['operator']}: {facts['reason']})")
        case _:
            return Event(at, State(facts["state"]), facts["detail"])


def view(entry: Entry, *, is_complete: bool) -> dict[str, JsonValue]:
    """Return an entry as JSON, without its history: the members that lists show, or if `is_complete` all."""
    document: dict[str, JsonValue] = {"entry": entry.name}
    for field in FIELDS:
        if field.name == "resource_id":
            document["id"] = entry.record_id
        elif field.listed or (is_complete and field.shown):
            value = attrgetter(_SHOWN_ATTRIBUTES.get(field.name, field.attribute))(entry)
            document[field.name] = Number(str(value)) if isinstance(value, int) else value
    if is_complete and entry.is_open:
        document["settled_at"] = None
    return document


def _make_facts(record_fields: Iterable[Field], values: Iterable[object]) -> Facts:
    """Return the facts of a record from the values of its fields, without those that have their default."""
    facts = {}
    for field, value in zip(record_fields, values, strict=True):
        if value is not None and (stored := _encode(value)) != DEFAULT_FACTS.get(field.name):
            facts[field.name] = stored
    return facts


def _decode(facts: Facts, attributes: Iterable[tuple[str, Field]]) -> dict[str, Any]:
    return {
        attribute: facts[field.name] if field.decode is None else field.decode(facts[field.name])
        for attribute, field in attributes
    }


def _encode(value: object) -> str | int:
    if type(value) is str:
        return value
    if isinstance(value, tuple):
        return ",".join(str(one) for one in value)
    return int(value) if isinstance(value, int) else str(value)
