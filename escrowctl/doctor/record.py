"""Find the fields of an escrow's record that hold its id, status, amount and currency."""

import re
import shlex
from collections.abc import Sequence

from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.money import MINOR_DIGITS
from escrowctl.contract.operations import CREATE_TRANSACTION, GET_TRANSACTION
from escrowctl.contract.readable import explain_wrong_record
from escrowctl.contract.record import (
    Pointers,
    Record,
    as_amount,
    as_text,
    find_usual_pointer,
    has_other_id,
    make_record,
    resolve_pointer,
    walk_values,
)
from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import Hint, command
from escrowctl.journal.model import Entry, State

FIELDS = ("id", "status", "amount", "currency")
"""The fields to find; the id first, because it decides which part of the reply is the record."""

_NOUN = GET_TRANSACTION.noun
_NAME_PATTERNS = {
    "status": re.compile(r"(stat(e|us)|phase|stage)[^/]*$", re.IGNORECASE),
    "amount": re.compile(r"(am(oun)?t|value|sum|total|price)[^/]*$", re.IGNORECASE),
    "currency": re.compile(r"(cur|ccy|iso|money)[^/]*$", re.IGNORECASE),
}
"""Maps a field to a pattern. It matches the last part of JSON Pointers that may lead to the field."""

_NON_ESCROW_AMOUNTS = re.compile(r"fee|tax|vat|commission|discount|refund|rate|percent|limit|balance", re.IGNORECASE)
"""Matches JSON Pointers to amounts and currencies that are not those of the escrow itself."""

_MAX_SHOWN_CANDIDATES = 3
_MAX_VALUE_CHARS = 60


def find_create(entries: Sequence[Entry], service_names: Sequence[str]) -> Entry | None:
    """Return the entry that created an escrow; None if no entry has the money, or if the entries differ in it.

    `entries` are the entries of the escrow. Only done creates at a service with one of `service_names` count.
    """
    own = [
        entry
        for entry in entries
        if entry.intent.operation == CREATE_TRANSACTION.name
        and entry.state is State.DONE
        and entry.intent.money is not None
        and entry.intent.goes_to_service(service_names)
    ]
    return own[0] if len({one.intent.money for one in own}) == 1 else None


class RecordCheck:
    """Checks the fields of one record. `found_pointers` maps a field to the only JSON Pointer that fits it.

    `create` is the entry with the money that was sent; None if that is not known.
    """

    def __init__(self, record: Record, resource_id: str, pointers: Pointers, create: Entry | None) -> None:
        self._document = record.document
        self._id = resource_id
        self._pointers = pointers
        self._create = create
        self.found_pointers: dict[str, str] = {}

    def check(self, field: str) -> Finding:
        """Check one of `FIELDS`. The id must be the first: it decides which part of the reply is the record."""
        record, pointer, expected = self._read_record(), getattr(self._pointers, field), self._find_expected(field)
        if (value := getattr(record.known, field)) is not None:
            return self._compare(field, value)
        candidates = self._find_candidates(field)
        if pointer is not None:
            message = f"the setting reply.{field} is {pointer}, but the reply has no value there"
            unset = command(f"config unset reply.{field}")
            return Finding(field, Verdict.FAILED, message, _hint_to_store(field, candidates) or (unset,))
        # Only a candidate with a fitting name gets a command. An id may have any name: it is known by its value.
        fitting = [one for one in candidates if field == "id" or _NAME_PATTERNS[field].search(one)]
        shown = " or ".join(self._describe_candidate(one) for one in candidates[:_MAX_SHOWN_CANDIDATES])
        if expected is not None and len(candidates) == 1 and fitting:
            self.found_pointers[field] = candidates[0]
            source = f"as sent ({self._create.name})" if self._create and field != "id" else "the requested id"
            return Finding(field, Verdict.FOUND, f"{shown}, {source}", _hint_to_store(field, candidates))
        if not candidates:
            shown = f"no field looks like the {field}" if expected is None else f"no field has the value {expected}"
        get_reply = command(f"api GET {GET_TRANSACTION.fill_path(self._id)}", "to see the complete reply")
        is_another_reply = field == "id" and not candidates and explain_wrong_record(self._id, record) is not None
        verdict = Verdict.FAILED if is_another_reply else Verdict.UNCLEAR
        return Finding(field, verdict, shown, _hint_to_store(field, fitting, f"if it is the {field}") or (get_reply,))

    def _compare(self, field: str, value: object) -> Finding:
        """Compare the value in a field with the expected value. Without an expected value, the finding is `OK`."""
        record, expected = self._read_record(), self._find_expected(field)
        pointer = getattr(self._pointers, field) or find_usual_pointer(record.value, field, noun=_NOUN)
        found = f"{pointer or 'in the amount:'} {_shorten(str(value))}"
        if field == "id":
            if not has_other_id(self._id, record.known):
                return Finding(field, Verdict.OK, found)
            hints = _hint_to_store(field, self._find_candidates(field))
            return Finding(field, Verdict.FAILED, f"{found}, but {self._id} was requested", hints)
        if expected is None or self._create is None:
            return Finding(field, Verdict.OK, found)
        if value == expected:
            return Finding(field, Verdict.OK, f"{found}, as sent ({self._create.name})")
        return Finding(field, Verdict.WARNING, f"{found}, but {expected} was sent ({self._create.name})")

    def _read_record(self, **changed_pointers: str) -> Record:
        pointers = self._pointers._replace(**self.found_pointers)._replace(**changed_pointers)
        return make_record(self._document, pointers=pointers, noun=_NOUN)

    def _find_expected(self, field: str) -> object:
        """Return the value that the field must have: the requested id, or the sent amount or currency, or None."""
        return self._id if field == "id" else getattr(self._create.intent.money, field, None) if self._create else None

    def _find_candidates(self, field: str) -> list[str]:
        """Return the JSON Pointers to possible values of the field in the record; if none, in the reply."""
        expected = self._find_expected(field)
        for place in (self._read_record().value, self._document):
            values = ((pointer, value) for pointer, value in walk_values(place) if pointer)
            found = [pointer for pointer, value in values if self._may_hold_field(field, pointer, value)]
            if expected is not None:
                # With this pointer stored, another part of the reply may be the record.
                found = [one for one in found if getattr(self._read_record(**{field: one}).known, field) == expected]
            if found:
                return found
        return []

    def _may_hold_field(self, field: str, pointer: str, value: JsonValue) -> bool:
        """Whether `value`, found at `pointer`, may be the value of the field."""
        expected = self._find_expected(field)
        known = as_amount(value) if field == "amount" else as_text(value)
        if field in ("amount", "currency") and _NON_ESCROW_AMOUNTS.search(pointer):
            return False
        if expected is not None:
            return known == expected
        if field == "currency":
            return known in MINOR_DIGITS
        return _NAME_PATTERNS[field].search(pointer) is not None and known is not None

    def _describe_candidate(self, pointer: str) -> str:
        value = resolve_pointer(self._read_record().value, pointer)
        return f"{pointer} {_shorten(encode(resolve_pointer(self._document, pointer) if value is None else value))}"


def _hint_to_store(field: str, candidates: Sequence[str], label: str = "") -> tuple[Hint, ...]:
    """Return a hint with the command that stores the first candidate; no hint without candidates."""
    return tuple(command(f"config set reply.{field} {shlex.quote(pointer)}", label) for pointer in candidates[:1])


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}..."
