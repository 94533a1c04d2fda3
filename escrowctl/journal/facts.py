"""What a record of the chain may hold: closed sets of names, each with the kind of its value.

A record that was written from here holds it by construction. One that comes from a file is checked:
its facts become columns, and what stands in them decides what is sent.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from escrowctl.contract.json import Number
from escrowctl.journal.chain import Kind, Record
from escrowctl.journal.entries import State

_MAX_INTEGER = 2**63 - 1
_MAX_ATTEMPTS = 1_000_000
_MAX_ENTRY = 2**48 - 1
"""Above these numbers, bytes of the lock file stand for other things (`journal.locks`)."""
_TEXT, _TEXT_OR_NONE = (str,), (str, type(None))
_INTEGER, _INTEGER_OR_NONE = (int,), (int, type(None))

_INTENT: Mapping[str, tuple[type, ...]] = {
    "operation": _TEXT,
    "service": _TEXT,
    "site": _TEXT_OR_NONE,
    "profile": _TEXT,
    "method": _TEXT,
    "url": _TEXT,
    "body": _TEXT_OR_NONE,
    "idempotency_key": _TEXT,
    "likeness": _TEXT,
    "resource_id": _TEXT_OR_NONE,
    "amount": _TEXT_OR_NONE,
    "currency": _TEXT_OR_NONE,
    "reference": _TEXT_OR_NONE,
    "reason": _TEXT_OR_NONE,
    "despite": _TEXT,
    "operator": _TEXT,
    "account": _TEXT_OR_NONE,
    "key_fingerprint": _TEXT_OR_NONE,
    "attempt": _INTEGER,
    "request_id": _TEXT,
}
_VERDICT: Mapping[str, tuple[type, ...]] = {
    "state": _TEXT,
    "detail": _TEXT,
    "http_status": _INTEGER_OR_NONE,
    "result_id": _TEXT_OR_NONE,
    "reply": _TEXT_OR_NONE,
    "may_repeat": _INTEGER,
    "verified": _INTEGER,
}
_OF_KIND: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    Kind.INTENT: _INTENT,
    Kind.VERDICT: _VERDICT,
    Kind.DECISION: {**_VERDICT, "operator": _TEXT, "reason": _TEXT},
    Kind.IMPORT: {**_INTENT, **_VERDICT, "origin": _TEXT, "sent_at": _TEXT, "settled_at": _TEXT_OR_NONE},
}
_ADDED_LATER = frozenset({"site", "verified", "account", "key_fingerprint"})
"""Names that records of earlier formats do not have."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_TIME = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z", re.ASCII)
_AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_NUMBERS = re.compile(r"([1-9][0-9]{0,17}(,[1-9][0-9]{0,17})*)?", re.ASCII)
_ORIGIN = re.compile(r"[0-9a-f-]{36} j[1-9][0-9]{0,17}", re.ASCII)
_FINGERPRINT = re.compile(r"[0-9a-f]{16}:[0-9a-f]{8}", re.ASCII)
_SPELLED = {"amount": _AMOUNT, "despite": _NUMBERS, "origin": _ORIGIN, "key_fingerprint": _FINGERPRINT}


def check_journal_id(text: object) -> str:
    """Return a journal's id as a file spells it; raises ValueError for what is none."""
    if not isinstance(text, str) or not _UUID.fullmatch(text):
        raise ValueError(text)
    return text


def check_record(record: Record, facts: Mapping[str, Any]) -> None:
    """Raise ValueError or ArithmeticError where a record that was read from a file is none that a journal writes."""
    expected = _OF_KIND[Kind(record.kind)]
    if not expected.keys() - _ADDED_LATER <= facts.keys() <= expected.keys():
        raise ValueError(record.kind)
    _check_time(record.at)
    if not 1 <= record.entry <= _MAX_ENTRY or facts.get("attempt", 1) > _MAX_ATTEMPTS:
        raise ValueError(record.entry)
    for name, value in facts.items():
        _check_value(name, value, expected[name])
    if "state" in facts:
        State(facts["state"])
    if facts.get("amount") is not None:
        Number(facts["amount"])
    if facts.get("body") is not None:
        json.loads(facts["body"])
    if "amount" in facts and (facts["amount"] is None) != (facts["currency"] is None):
        raise ValueError("amount")


def _check_value(name: str, value: object, kinds: tuple[type, ...]) -> None:
    # A boolean is an integer to Python, and not to SQLite's strict tables.
    if type(value) not in kinds:
        raise ValueError(name)
    if isinstance(value, int) and not 0 <= value <= _MAX_INTEGER:
        raise ValueError(name)
    if isinstance(value, str):
        # A lone surrogate is no text that a file can hold.
        value.encode()
        if name in ("sent_at", "settled_at"):
            _check_time(value)
        if name in _SPELLED and not _SPELLED[name].fullmatch(value):
            raise ValueError(name)


def _check_time(text: str) -> None:
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    datetime.fromisoformat(text)
