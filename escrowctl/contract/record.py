"""Finding the record in a reply, and the id, status, amount and currency in the record.

interface.md section 2 shows no field of any reply, so nothing here is a contract: the usual names
are tried, the profile may name fields with JSON Pointers (RFC 6901), and what is not found is None.
"""

import re
from dataclasses import dataclass
from decimal import InvalidOperation

from escrowctl.contract.number import JsonValue, Number

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_AMOUNT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_STATUS_NAMES = ("status", "state")
_CREATED_NAMES = ("created_at", "createdAt", "created", "created_on", "createdOn", "creation_date")
_ERROR_WORDS = frozenset({"error", "errors", "fail", "failed", "failure", "denied", "rejected"})
_SUCCESS_NAMES = ("success", "succeeded", "successful", "ok")
_ERROR_NAMES = ("error", "errors", "errorcode", "errormessage", "errordescription", "fault", "exception", "failure")
_FIRST_ERROR, _LAST_ERROR = 400, 599
_LIST_NAMES = ("data", "items", "results", "records", "result", "content", "entries", "_embedded")
_MOST_ENVELOPES = 3
_ENVELOPE_NAMES = ("data", "result", "record", "item", "payload", "response")


@dataclass(frozen=True, slots=True)
class Pointers:
    """Where a profile says that fields stand, as JSON Pointers into the record; None: the usual names."""

    id: str | None = None
    status: str | None = None
    amount: str | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """The fields that escrowctl understands in a record; None where it found none."""

    id: str | None = None
    status: str | None = None
    amount: Number | None = None
    currency: str | None = None
    created: str | None = None


def unwrap(document: JsonValue, *, noun: str) -> JsonValue:
    """Return the record inside one envelope (`{"data": {...}}`), or the document itself."""
    if not isinstance(document, dict) or _first_text(document, _id_names(noun)) is not None:
        return document
    for name in (*_ENVELOPE_NAMES, noun):
        inner = document.get(name)
        if isinstance(inner, dict):
            return inner
    inner = next(iter(document.values())) if len(document) == 1 else None
    return inner if isinstance(inner, dict) else document


def find_items(document: JsonValue, *, noun: str) -> list[JsonValue] | None:
    """Return the items of a collection: a bare array, or the array in one or two envelopes.

    An envelope's array stands under a usual name (`data`, `items`, ..., the noun's plural), or is the
    only array in it; an envelope may hold another alone. None where there is no such array.
    """
    return _find_array(document, (*_LIST_NAMES, f"{noun}s"), envelopes=_MOST_ENVELOPES)


def _find_array(document: JsonValue, names: tuple[str, ...], *, envelopes: int) -> list[JsonValue] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or not envelopes:
        return None
    usual = [document[name] for name in names if name in document]
    for inner in usual:
        if isinstance(inner, list):
            return inner
        if isinstance(inner, dict) and (found := _find_array(inner, names, envelopes=envelopes - 1)) is not None:
            return found
    arrays = [value for value in document.values() if isinstance(value, list)]
    if arrays:
        return arrays[0] if len(arrays) == 1 else None
    only = next(iter(document.values())) if len(document) == 1 and not usual else None
    return _find_array(only, names, envelopes=envelopes - 1) if isinstance(only, dict) else None


def locate(record: JsonValue, *, noun: str, pointers: Pointers | None = None) -> Located:
    """Return the id, status, amount, currency and time of creation of a record, as far as they can be found.

    An id may be text or a number; an amount may be a number, digits in text, or an object that
    holds both amount and currency.
    """
    if not isinstance(record, dict):
        return Located()
    named = pointers or Pointers()
    amount, currency = _money_of(record, named)
    return Located(
        id=_text_at(record, named.id) if named.id else _first_text(record, _id_names(noun)),
        status=_text_at(record, named.status) if named.status else _first_text(record, _STATUS_NAMES),
        amount=amount,
        currency=currency,
        created=_first_text(record, _CREATED_NAMES),
    )


def resolve_pointer(document: JsonValue, pointer: str) -> JsonValue:
    """Return what a JSON Pointer (RFC 6901 section 4) points to, or None where there is nothing."""
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def looks_like_error(document: JsonValue, *, noun: str) -> bool:
    """Whether a 2xx reply is shaped like a refusal: `{"success": false}`, `{"error": ...}` and kin.

    `{"status": "error"}` (JSend) is one only where no record stands beside it: a transaction may
    have a status of that name.
    """
    if isinstance(document, str):
        return bool(_ERROR_WORDS & set(re.findall(r"[a-z]+", document.casefold())))
    if isinstance(document, list):
        return any(looks_like_error(item, noun=noun) for item in document if not isinstance(item, bool))
    if not isinstance(document, dict):
        return document is False
    # Names are compared without case and separators: no interface shows how this service spells them.
    fields = {name.replace("_", "").replace("-", "").casefold(): value for name, value in document.items()}
    if _first_text(document, _id_names(noun)) is None and (_says_error(fields) or _is_problem(fields)):
        return True
    denied = any(_says_no(fields[name]) for name in _SUCCESS_NAMES if name in fields)
    return denied or any(not _is_nothing(fields[name]) for name in _ERROR_NAMES if name in fields)


def _says_error(fields: dict[str, JsonValue]) -> bool:
    words = (fields.get(name) for name in (*_STATUS_NAMES, "result", "outcome"))
    return any(isinstance(word, str) and word.casefold() in _ERROR_WORDS for word in words)


def _is_problem(fields: dict[str, JsonValue]) -> bool:
    """Whether it is problem details (RFC 9457 section 3): a status of 400 or more, beside a title or detail."""
    status = fields.get("status", fields.get("statuscode"))
    if not (isinstance(status, Number) and _FIRST_ERROR <= status <= _LAST_ERROR):
        return False
    return any(name in fields for name in ("title", "detail", "type", "message"))


def _says_no(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in ("false", "no", "0")
    return value is False or (isinstance(value, Number) and value == 0)


def _is_nothing(value: JsonValue) -> bool:
    """Whether an error field says that there is none."""
    if isinstance(value, str):
        return value.strip().casefold() in ("", "0", "false", "none", "null", "ok")
    return not value


def _id_names(noun: str) -> tuple[str, ...]:
    return ("id", f"{noun}Id", f"{noun}_id", "uuid", "_id", "uid", "guid")


def _first_text(record: dict[str, JsonValue], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := _as_text(record.get(name))) is not None), None)


def _text_at(record: JsonValue, pointer: str) -> str | None:
    return _as_text(resolve_pointer(record, pointer))


def _as_text(value: JsonValue) -> str | None:
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, str) and value else None


def _money_of(record: dict[str, JsonValue], named: Pointers) -> tuple[Number | None, str | None]:
    value = resolve_pointer(record, named.amount) if named.amount else record.get("amount")
    currency = resolve_pointer(record, named.currency) if named.currency else record.get("currency")
    if isinstance(value, dict):
        currency = currency or value.get("currency")
        value = value.get("value", value.get("amount"))
    return _as_number(value), _as_text(currency)


def _as_number(value: JsonValue) -> Number | None:
    if isinstance(value, Number):
        return value
    # Decimal accepts more spellings than JSON, and what is read here is printed as a JSON number again.
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        try:
            return Number(value)
        except InvalidOperation:
            return None
    return None
