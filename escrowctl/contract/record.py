"""Find the record in a reply, and the id, status, amount and currency in the record.

INTERFACE.md section 2 shows no field of any reply. So usual names are tried, in any case (`Id`, `ID`), and the
profile may name fields with JSON Pointers (RFC 6901). A field that is not found is None.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import InvalidOperation
from functools import lru_cache
from typing import NamedTuple, TypeVar

from escrowctl.contract.identifiers import LOST_VALUE_WORDS, fold_reference
from escrowctl.contract.json import JsonValue, Number, encode, fold_name, list_children

# `re` compiles each pattern at its first use and caches it: most runs need none.
_ARRAY_INDEX = r"0|[1-9][0-9]{0,8}"
_AMOUNT_TEXT = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"
_MAX_DIGITS = 40
"""The most digits of an amount, before the point and after it."""
_CREATED_NAMES = ("created_at", "createdat", "created", "created_on", "createdon", "creation_date")
_TRANSACTION, _TRANSACTION_STEMS = "transaction", ("transaction", "escrow", "tx")
_NOT_ID_WORDS = LOST_VALUE_WORDS | {"na", "n/a", "pending"}
_LIKE_AN_ID = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{3,128}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PLAUSIBLE_YEARS = range(2000, 9999)
"""A year outside this range, such as 0001, 1970 or 9999, means that the time is not known."""

_LIST_FIELD_NAMES = ("data", "items", "results", "records", "result", "content", "entries", "_embedded")
_MAX_ENVELOPES = 3
_NOT_RECORD_NAMES = (
    *("error", "fault", "failure", "exception", "problem"),
    *("duplicate", "duplicate_of", "duplicateof", "existing", "user"),
)
_ENVELOPE_NAMES = ("data", "result", "record", "item", "payload", "response")


_Value = TypeVar("_Value")
_ReadText = Callable[[JsonValue], str | None]


class Pointers(NamedTuple):
    """A profile's JSON Pointers to fields, in the record or in the complete reply. None: usual names are tried."""

    id: str | None = None
    status: str | None = None
    amount: str | None = None
    currency: str | None = None


NO_POINTERS = Pointers()


class KnownFields(NamedTuple):
    """The fields of a record that escrowctl understands. A field that was not found is None.

    `unreadable` has the reasons why an amount or currency is unknown, such as `its amount "1,000" cannot be read`.
    """

    id: str | None = None
    status: str | None = None
    amount: Number | None = None
    currency: str | None = None
    created: str | None = None
    unreadable: tuple[str, ...] = ()


KNOWN_FIELD_NAMES = ("id", "status", "amount", "currency", "created")
"""The fields by name, in the order in which they are shown."""


class Record(NamedTuple):
    """A reply about one record: the complete document, the record in it (`value`), and its known fields."""

    document: JsonValue
    value: JsonValue
    known: KnownFields


class Records(NamedTuple):
    """A reply with a list of records: the complete document, and the items in it."""

    document: JsonValue
    items: list[Record]


def make_record(document: JsonValue, *, pointers: Pointers, noun: str) -> Record:
    """Return the record in a reply, taken out of its envelope, with the fields that escrowctl understands."""
    value = unwrap_record(document, noun=noun, pointers=pointers)
    return Record(document, value, find_known_fields(value, noun=noun, pointers=pointers, document=document))


def make_item(item: JsonValue, *, pointers: Pointers, noun: str) -> Record:
    """Return a list's item as a record. If the item's only field is an object, that object is the record."""
    only = next(iter(item.values())) if isinstance(item, dict) and len(item) == 1 else None
    value = only if isinstance(only, dict) else item
    return Record(item, value, find_known_fields(value, noun=noun, pointers=pointers, document=item))


def describe_record(known: KnownFields | None) -> str:
    """Return the status and money of a record, such as `held 100 USD`; `unreadable` for None."""
    if known is None:
        return "unreadable"
    return " ".join(part for part in (known.status, describe_money(known)) if part) or "no status or amount found"


def describe_money(known: KnownFields | None) -> str:
    """Return a record's amount and currency, such as `100 USD`. Without an amount, return an empty text."""
    return "" if known is None or known.amount is None else f"{known.amount} {known.currency or ''}".rstrip()


def has_other_id(resource_id: str, known: KnownFields) -> bool:
    """Whether a record has an id that differs from `resource_id`. Case does not matter."""
    return known.id is not None and known.id.casefold() != resource_id.casefold()


def unwrap_record(document: JsonValue, *, noun: str, pointers: Pointers = NO_POINTERS) -> JsonValue:
    """Return the record in a reply. If the document has an id, the record is the document.

    Else the record is the object under a usual name (`{"data": {...}}`), or in the document's only field if that is
    not one of `_NOT_RECORD_NAMES`. Without such an object, the record is the document.
    """
    if not isinstance(document, dict):
        return document
    fields = _add_folded_names(document)
    top = pointers.id if pointers.id and pointers.id.count("/") == 1 else None
    if _first_text(fields, _id_names(noun), as_text) is not None or (top and as_text(resolve_pointer(document, top))):
        return document
    for name in (*_ENVELOPE_NAMES, *_name_stems(noun)):
        inner = fields.get(name)
        if isinstance(inner, dict):
            return inner
    name, inner = next(iter(document.items())) if len(document) == 1 else ("", None)
    return inner if isinstance(inner, dict) and name.casefold() not in _NOT_RECORD_NAMES else document


def find_ids(value: JsonValue, *, noun: str) -> Iterator[str]:
    """Yield the value of every field with a usual name of an id, at any depth."""
    if isinstance(value, dict):
        named = {name: text for name, text in _add_folded_names(value).items() if name in _id_names(noun)}
        yield from (text for text in map(as_text, named.values()) if text is not None)
    for child in list_children(value):
        yield from find_ids(child, noun=noun)


def find_items(
    document: JsonValue, *, noun: str, by_name_only: bool = False, envelopes: int = _MAX_ENVELOPES
) -> list[JsonValue] | None:
    """Return the items of a list: a bare array, or an array inside at most so many nested objects (`envelopes`).

    The array has a usual name (`data`, `items`, ..., the noun's plural), or is the only array in its envelope. An
    envelope has a usual name, or is the only field of the object around it. None if there is no such array.
    `by_name_only`: in the outermost object, only usual names count.
    """
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or not envelopes:
        return None
    usual = [document[name] for name in (*_LIST_FIELD_NAMES, f"{noun}s") if name in document]
    for inner in usual:
        if isinstance(inner, list):
            return inner
        if isinstance(inner, dict) and (found := find_items(inner, noun=noun, envelopes=envelopes - 1)) is not None:
            return found
    if by_name_only:
        return None
    arrays = [value for value in document.values() if isinstance(value, list)]
    if arrays:
        return arrays[0] if len(arrays) == 1 else None
    only = next(iter(document.values())) if len(document) == 1 and not usual else None
    return find_items(only, noun=noun, envelopes=envelopes - 1) if isinstance(only, dict) else None


def find_known_fields(
    record: JsonValue, *, noun: str, pointers: Pointers = NO_POINTERS, document: JsonValue = None, any_case: bool = True
) -> KnownFields:
    """Return the id, status, amount, currency and time of creation of a record; None for each field not found.

    An id may be text or a number; an amount may be a number, digits in text, or an object that holds both amount
    and currency. A pointer that finds nothing in the record is tried in `document`, the complete reply. Pointers
    are meant for escrows: in a user or webhook, id and status are also tried under their usual names. `any_case` is
    False for a request, because a service may not know `Amount`.
    """
    if not isinstance(record, dict):
        return KnownFields()
    fields = _add_folded_names(record) if any_case else record

    def resolve(pointer: str) -> JsonValue:
        found = resolve_pointer(record, pointer)
        return resolve_pointer(document, pointer) if found is None else found

    def find_text_at(pointer: str | None, usual: tuple[str, ...], read: _ReadText) -> str | None:
        pointed = read(resolve(pointer)) if pointer else None
        is_settled = pointed is not None or (pointer and noun == _TRANSACTION)
        return pointed if is_settled else _first_text(fields, usual, read)

    def find_all(pointer: str | None, usual: str) -> list[JsonValue]:
        if pointer:
            return [resolve(pointer)]
        return [value for name, value in record.items() if (name.casefold() if any_case else name) == usual]

    money = _find_money(find_all(pointers.amount, "amount"), find_all(pointers.currency, "currency"))
    return money._replace(
        id=find_text_at(pointers.id, _id_names(noun), as_text),
        status=find_text_at(pointers.status, _status_names(noun), unwrap_text),
        created=_first_text(fields, _CREATED_NAMES, as_text),
    )


def is_possible_id(text: str | None) -> bool:
    """Whether a text can be an id: blanks, zeros, negative numbers and words such as `null` cannot.

    Neither can a text with a NUL, which PostgreSQL does not store.
    """
    text = fold_reference(text or "")
    if text.casefold() in _NOT_ID_WORDS or not text.strip(" 0.-") or "\0" in text:
        return False
    return not (text.startswith("-") and not text[1:].strip("0123456789."))


def find_id_pointers(record: JsonValue, *, noun: str) -> list[str]:
    """Return JSON Pointers to the possible ids of a record: the usual field, else all texts that look like ids."""
    if not isinstance(record, dict):
        return []
    for usual in _id_names(noun):
        for name, value in record.items():
            if name.casefold() == usual and is_possible_id(as_text(value)):
                return [f"/{_escape_pointer_part(name)}"]
    texts = ((pointer, value) for pointer, value in walk_values(record) if isinstance(value, str))
    return [pointer for pointer, text in texts if re.fullmatch(_LIKE_AN_ID, text) and not re.match(_DATE, text)]


def walk_values(value: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield JSON Pointer and value of each field that is no object, at any depth. `pointer` is that of `value`."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk_values(inner, f"{pointer}/{_escape_pointer_part(name)}")
    else:
        yield pointer, value


def find_text(document: JsonValue, name: str) -> str | None:
    """Return the text of the field `name`, or its number as text; else None. Case and separators do not matter."""
    fields, wanted = document.items() if isinstance(document, dict) else (), fold_name(name)
    return next((as_text(value) for field, value in fields if fold_name(field) == wanted), None)


def find_usual_pointer(record: JsonValue, field: str, *, noun: str) -> str | None:
    """Return the JSON Pointer at which `find_known_fields` finds a field (such as `id`) by its usual name, or None."""
    names = {"id": _id_names, "status": _status_names}.get(field, lambda _: (field,))(noun)
    fields = record.items() if isinstance(record, dict) else ()
    spelled = {name.casefold(): name for name, value in fields if value is not None}
    return next((f"/{_escape_pointer_part(spelled[name])}" for name in names if name in spelled), None)


def _escape_pointer_part(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def resolve_pointer(document: JsonValue, pointer: str) -> JsonValue:
    """Return the value that a JSON Pointer (RFC 6901 section 4) points to, or None if there is none."""
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and re.fullmatch(_ARRAY_INDEX, key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _name_stems(noun: str) -> tuple[str, ...]:
    return _TRANSACTION_STEMS if noun == _TRANSACTION else (noun,)


@lru_cache(maxsize=16)
def _id_names(noun: str) -> tuple[str, ...]:
    own = (f"{stem}{ending}" for stem in _name_stems(noun) for ending in ("id", "_id"))
    return ("id", *own, "uuid", "guid", "uid", "_id")


@lru_cache(maxsize=16)
def _status_names(noun: str) -> tuple[str, ...]:
    """Return the usual names of a status. `escrow_status` comes first: `status` may be the status of the call."""
    return (*(f"{stem}{ending}" for stem in _name_stems(noun) for ending in ("status", "_status")), "status", "state")


def _add_folded_names(record: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields, each also under its lower-case name. An existing field with that name is not replaced."""
    return {name.casefold(): value for name, value in record.items()} | record


def _first_text(record: dict[str, JsonValue], names: tuple[str, ...], read: _ReadText) -> str | None:
    for name in names:
        if name in record and (text := read(record[name])) is not None:
            return text
    return None


def as_text(value: JsonValue) -> str | None:
    """Return a text, or a number as written; None for an empty text and for any other value."""
    return value.text if isinstance(value, Number) else value if isinstance(value, str) and value else None


def unwrap_text(value: JsonValue) -> str | None:
    """Return the text of a value, of a list's only item, or of an object's field `name`; else None."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return as_text(value.get("name") if isinstance(value, dict) else value)


def fold_status(text: str) -> str:
    """Return a status for comparison: trimmed, without case and invisible characters.

    A letter that only case folding makes ASCII stays: `relea\u017fed` is not `released`.
    """
    visible = fold_reference(text)
    folded = visible.casefold()
    return visible if folded.isascii() and not visible.isascii() else folded


def _find_money(amounts: Sequence[JsonValue], currencies: Sequence[JsonValue]) -> KnownFields:
    """Return the amount and currency; in `unreadable`, why one is unknown, such as fields that disagree."""
    outer: list[JsonValue] = []
    inner: list[JsonValue] = []
    currencies = [*currencies]
    for value in amounts:
        fields = [(name.casefold(), item) for name, item in value.items()] if isinstance(value, dict) else []
        found = [item for name, item in fields if name in ("value", "amount")]
        inner += found
        outer += [] if found else [value]
        currencies += [item for name, item in fields if name == "currency"]
    amount, bad_amount = _find_agreed_value("amount", [*outer, *inner], as_amount)
    currency, bad_currency = _find_agreed_value("currency", currencies, as_text)
    return KnownFields(amount=amount, currency=currency, unreadable=(*bad_amount, *bad_currency))


def _find_agreed_value(
    field: str, values: Sequence[JsonValue], read: Callable[[JsonValue], _Value | None]
) -> tuple[_Value | None, tuple[str, ...]]:
    """Return the value on which all fields with a value agree; None and the reason if one is bad or two differ."""
    found: dict[object, _Value] = {}
    for value in values:
        if value is None or value in ("", [], {}):
            continue
        if (known := read(value)) is None:
            return None, (f"its {field} {encode(value)[:40]} cannot be read",)
        found.setdefault(known.casefold() if isinstance(known, str) else known, known)
    if len(found) > 1:
        return None, (f"its record has more than one {field}: {', '.join(map(str, found.values()))}",)
    return next(iter(found.values()), None), ()


def as_amount(value: JsonValue) -> Number | None:
    """Return a number, or a text that spells a JSON number; None for other values, and for more than 40 digits."""
    # Decimal accepts more spellings than JSON, and this value is printed as a JSON number again.
    if isinstance(value, str) and re.fullmatch(_AMOUNT_TEXT, value):
        with suppress(InvalidOperation):
            value = Number(value)
    if not isinstance(value, Number):
        return None
    exponent = value.as_tuple().exponent
    # Sums must stay exact and short enough to print: even 1e2000000 is valid JSON.
    return value if isinstance(exponent, int) and exponent >= -_MAX_DIGITS and value.adjusted() < _MAX_DIGITS else None


def read_time(text: str | None) -> datetime | None:
    """Return a service's timestamp in UTC; None for a text that is not one, and outside `_PLAUSIBLE_YEARS`."""
    # Without its hyphens, a count of milliseconds such as 1801010112345 would be a day of the year 1801.
    if text is None or not re.match(_DATE, text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found.year in _PLAUSIBLE_YEARS else None
