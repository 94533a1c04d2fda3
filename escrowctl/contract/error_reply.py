"""Find out whether a 2xx reply says that the call failed.

INTERFACE.md section 7 shows no error body, so this module knows usual names of error fields. Case in a name does
not matter. Separators matter only for `CODE_FIELD_NAMES`. A field with an unusual name is ignored.
"""

import re

from escrowctl.contract.json import JsonValue, Number, fold_name, list_children
from escrowctl.contract.record import as_text, unwrap_text

CODE_FIELD_NAMES = frozenset({"code", "errcode", "responsecode"})
STATUS_FIELD_NAMES = frozenset({"status", "statuscode"})

_ERROR_WORDS = frozenset({"error", "fail", "failed", "failure", "rejected", "declined"})
_OUTCOME_FIELD_NAMES = frozenset({"status", "state", "type", "object", "result", "outcome"})
_ERROR_FIELD_NAMES = frozenset({"failure", "fault", "exception", "violations"})
_PROBLEM_NAMES = frozenset({"title", "detail", "message", "msg"})
_HTTP_ERROR_STATUSES = frozenset(map(str, range(400, 600)))


def find_failure(
    document: JsonValue, *, sent_document: JsonValue = None, data_names: frozenset[str] = frozenset()
) -> str | None:
    """Return the part of a 2xx reply that reports a failure, such as `field "error"`; None if no part does.

    A field that only echoes its value in `sent_document` is ignored. `data_names` are fields that hold data in this
    reply: a code, a numeric status or a message in such a field is ignored too.
    """
    if isinstance(document, list):
        items = (item for item in document if not isinstance(item, bool))
        found = (find_failure(item, sent_document=sent_document, data_names=data_names) for item in items)
        return next(filter(None, found), None)
    if not isinstance(document, dict):
        says_error = isinstance(document, str) and _ERROR_WORDS & set(re.findall(r"[a-z]+", document.casefold()))
        return "its text" if says_error or document is False else None
    echoed = sent_document if isinstance(sent_document, dict) else {}
    fields = [(name, value) for name, value in document.items() if name not in echoed or echoed[name] != value]
    # The message of a problem document (RFC 9457 section 3.1), and a message that is the only field.
    said = {
        fold_name(name) for name, value in fields if fold_name(name) in _PROBLEM_NAMES and not _means_no_error(value)
    }
    message_names = {"detail"} & said if "title" in said else set[str]()
    message_names |= said & {"message", "msg"} if len(document) == 1 else set()
    for name, value in fields:
        if fold_name(name) in message_names - data_names or _field_says_failure(name, value, data_names):
            return f'field "{name[:40]}"'
    return None


def _field_says_failure(field: str, value: JsonValue, data_names: frozenset[str]) -> bool:
    name = fold_name(field)
    # With its separators: a `response_code` is often the number of an approval.
    if field.casefold() in CODE_FIELD_NAMES:
        is_success = re.fullmatch(r"2[0-9]{2}", (as_text(value) or "").strip())
        return name not in data_names and not _means_no_error(value) and not is_success
    if name in STATUS_FIELD_NAMES and name not in data_names and as_text(value) in _HTTP_ERROR_STATUSES:
        return True
    if name in _OUTCOME_FIELD_NAMES:
        return (unwrap_text(value) or "").strip().casefold() in _ERROR_WORDS or (name == "status" and _is_false(value))
    if name.startswith("err") or name in _ERROR_FIELD_NAMES:
        return not _means_no_error(value)
    says_no = _is_false(value) or (as_text(value) or "").strip().casefold() in ("no", "0")
    return (name.removeprefix("is").startswith("success") or name in ("succeeded", "ok")) and says_no


def _is_false(value: JsonValue) -> bool:
    return value is False or (isinstance(value, str) and value.strip().casefold() == "false")


def _means_no_error(value: JsonValue) -> bool:
    """Whether the value of an error field says that there is no error: empty, zero, false, or a word like `ok`."""
    if isinstance(value, dict | list):
        return all(map(_means_no_error, list_children(value)))
    if isinstance(value, bool) or (isinstance(value, Number) and value == 0):
        return not value
    return (as_text(value) or "").strip().casefold() in ("", "0", "00", "false", "none", "null", "ok")
