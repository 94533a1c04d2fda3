"""Whether a 2xx reply says that the call failed.

INTERFACE.md section 7 shows no error body. Names are compared without case, those of errors also without separators.
The list is closed: other names are no errors.
"""

import re

from escrowctl.contract.json import JsonValue, Number, plain_name
from escrowctl.contract.record import as_text, text_of

CODES = frozenset({"code", "errcode", "responsecode"})
STATUS_CODES = frozenset({"status", "statuscode"})

_ERROR_WORDS = frozenset({"error", "fail", "failed", "failure", "rejected", "declined"})
_OUTCOMES = frozenset({"status", "state", "type", "object", "result", "outcome"})
_ERRORS = frozenset({"failure", "fault", "exception", "violations"})
_OK_CODE = r"2[0-9]{2}"
_HTTP_ERROR = r"[45][0-9]{2}"


def find_error(document: JsonValue, *, sent: JsonValue = None, data: frozenset[str] = frozenset()) -> str | None:
    """Return the part of a 2xx reply that says that the call failed, as `field "error"`; None if nothing does.

    A field that returns the value that was `sent` says nothing. `data`: names of CODES, of STATUS_CODES for their
    numbers, and of lone messages, that say nothing either.
    """
    if isinstance(document, list):
        found = (find_error(item, sent=sent, data=data) for item in document if not isinstance(item, bool))
        return next(filter(None, found), None)
    if not isinstance(document, dict):
        says_error = isinstance(document, str) and _ERROR_WORDS & set(re.findall(r"[a-z]+", document.casefold()))
        return "its text" if says_error or document is False else None
    echoed = sent if isinstance(sent, dict) else {}
    fields = [(name, value) for name, value in document.items() if name not in echoed or echoed[name] != value]
    named = {plain_name(name) for name, value in fields if not _is_nothing(value)}
    # RFC 9457 section 3.1; and a message that is the only field.
    telling = {"detail"} if {"title", "detail"} <= named else set()
    telling |= {"message", "msg"} if len(document) == 1 else set()
    for name, value in fields:
        if plain_name(name) in (telling & named) - data or _fails(name, value, data):
            return f'field "{name[:40]}"'
    return None


def _fails(written: str, value: JsonValue, data: frozenset[str]) -> bool:
    name = plain_name(written)
    # A `response_code` is often the number of an approval.
    if written.casefold() in CODES:
        is_success = re.fullmatch(_OK_CODE, (as_text(value) or "").strip())
        return name not in data and not _is_nothing(value) and not is_success
    if name in STATUS_CODES and name not in data and re.fullmatch(_HTTP_ERROR, as_text(value) or ""):
        return True
    if name in _OUTCOMES:
        word = (text_of(value) or "").strip().casefold()
        return word in _ERROR_WORDS or (name == "status" and _is_false(value))
    if name.startswith("err") or name in _ERRORS:
        return not _is_nothing(value)
    is_no = _is_false(value) or (as_text(value) or "").strip().casefold() in ("no", "0")
    return (name.removeprefix("is").startswith("success") or name in ("succeeded", "ok")) and is_no


def _is_false(value: JsonValue) -> bool:
    return value is False or (isinstance(value, str) and value.strip().casefold() == "false")


def _is_nothing(value: JsonValue) -> bool:
    """Whether the value of an error field says that there is none: it is empty or zero."""
    if isinstance(value, dict | list):
        return all(map(_is_nothing, value.values() if isinstance(value, dict) else value))
    if isinstance(value, bool) or (isinstance(value, Number) and value == 0):
        return not value
    text = (as_text(value) or "").strip().casefold()
    return text in ("", "0", "00", "false", "none", "null", "ok")
