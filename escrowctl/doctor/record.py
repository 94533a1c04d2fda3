"""Which fields of an escrow's record hold its id, status, amount and currency."""

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.money import MINOR_DIGITS, Money
from escrowctl.contract.operations import CREATE_TRANSACTION, GET_TRANSACTION
from escrowctl.contract.readable import why_unreadable
from escrowctl.contract.record import (
    Pointers,
    Record,
    as_amount,
    as_text,
    find_usual,
    is_another,
    make_record,
    resolve_pointer,
    walk,
)
from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import Hint, command
from escrowctl.journal.model import Entry, State

FIELDS = ("id", "status", "amount", "currency")
"""The fields to find; the id first, because it decides which part of the reply is the record."""

_NOUN = GET_TRANSACTION.noun
_NAMES = {
    "status": re.compile(r"(stat(e|us)|phase|stage)[^/]*$", re.IGNORECASE),
    "amount": re.compile(r"(am(oun)?t|value|sum|total|price)[^/]*$", re.IGNORECASE),
    "currency": re.compile(r"(cur|ccy|iso|money)[^/]*$", re.IGNORECASE),
}
"""Patterns for the end of the JSON Pointers to such fields."""

_OF_SOMETHING_ELSE = re.compile(r"fee|tax|vat|commission|discount|refund|rate|percent|limit|balance", re.IGNORECASE)
"""Amounts and currencies under such names do not belong to the escrow itself."""

_MOST_SHOWN = 3
_MOST_CHARS = 60


class Sent(NamedTuple):
    """The money that a create sent for the escrow, and the name of its journal entry."""

    entry: str
    money: Money


def find_sent(entries: Sequence[Entry], names: Sequence[str]) -> Sent | None:
    """Return the money sent for an escrow of the service with these names; None if unknown or ambiguous."""
    own = [
        Sent(entry.name, entry.intent.money)
        for entry in entries
        if entry.intent.operation == CREATE_TRANSACTION.name
        and entry.state is State.DONE
        and entry.intent.money is not None
        and entry.intent.is_known_as(names)
    ]
    return own[0] if len({one.money for one in own}) == 1 else None


class Examination:
    """One record, as read under its id. `found` has the certain pointers by field."""

    def __init__(self, record: Record, resource_id: str, pointers: Pointers, sent: Sent | None) -> None:
        self._document = record.document
        self._id = resource_id
        self._pointers = pointers
        self._sent = sent
        self.found: dict[str, str] = {}

    def check(self, field: str) -> Finding:
        """Check one of `FIELDS`. They are checked in this order: the id decides where the others are."""
        record, pointer, proof = self._locate(), getattr(self._pointers, field), self._proof(field)
        if (value := getattr(record.located, field)) is not None:
            return self._compare(field, value)
        candidates = self._candidates(field)
        if pointer is not None:
            nothing = f"reply.{field} is {pointer}, but the reply has nothing there"
            unset = command(f"config unset reply.{field}")
            return Finding(field, Verdict.FAILED, nothing, _set(field, candidates) or (unset,))
        # Only a candidate with a fitting name gets a command. An id fits under any name: its value is unmistakable.
        fitting = [one for one in candidates if field == "id" or _NAMES[field].search(one)]
        shown = " or ".join(self._shown(one) for one in candidates[:_MOST_SHOWN])
        if proof is not None and len(candidates) == 1 and fitting:
            self.found[field] = candidates[0]
            source = f"as sent ({self._sent.entry})" if self._sent and field != "id" else "the id that was read"
            return Finding(field, Verdict.FOUND, f"{shown}, {source}", _set(field, candidates))
        if not candidates:
            shown = f"no field looks like the {field}" if proof is None else f"no field is {proof}"
        look = command(f"api GET {GET_TRANSACTION.fill(self._id)}", "to see the complete reply")
        is_another_reply = field == "id" and not candidates and why_unreadable(self._id, record) is not None
        verdict = Verdict.FAILED if is_another_reply else Verdict.UNCLEAR
        return Finding(field, verdict, shown, _set(field, fitting, f"if it is the {field}") or (look,))

    def _compare(self, field: str, value: object) -> Finding:
        """Check the value of a located field against the expected value, if that is known."""
        record, proof = self._locate(), self._proof(field)
        where = getattr(self._pointers, field) or find_usual(record.value, field, noun=_NOUN) or "in the amount:"
        shown = f"{where} {_cut(str(value))}"
        if field == "id":
            if not is_another(self._id, record.located):
                return Finding(field, Verdict.OK, shown)
            hints = _set(field, self._candidates(field))
            return Finding(field, Verdict.FAILED, f"{shown}, but {self._id} was read", hints)
        if proof is None or self._sent is None:
            return Finding(field, Verdict.OK, shown)
        if value == proof:
            return Finding(field, Verdict.OK, f"{shown}, as sent ({self._sent.entry})")
        return Finding(field, Verdict.WARNING, f"{shown}, but {proof} was sent ({self._sent.entry})")

    def _locate(self, **changed: str) -> Record:
        pointers = self._pointers._replace(**self.found)._replace(**changed)
        return make_record(self._document, pointers=pointers, noun=_NOUN)

    def _proof(self, field: str) -> object:
        """Return the value that the field must have: the id that was read, or the value sent; None if unknown."""
        if field == "id":
            return self._id
        return getattr(self._sent.money, field, None) if self._sent else None

    def _candidates(self, field: str) -> list[str]:
        """Return the possible JSON Pointers to the field: into the record, else into the complete reply."""
        proof = self._proof(field)
        for place in (self._locate().value, self._document):
            found = [pointer for pointer, value in walk(place) if pointer and self._may_be(field, pointer, value)]
            if proof is not None:
                # The record may be another part of the reply once the pointer is stored.
                found = [one for one in found if getattr(self._locate(**{field: one}).located, field) == proof]
            if found:
                return found
        return []

    def _may_be(self, field: str, pointer: str, value: JsonValue) -> bool:
        """Whether the value at a pointer may be the field's."""
        proof = self._proof(field)
        known = as_amount(value) if field == "amount" else as_text(value)
        if field in ("amount", "currency") and _OF_SOMETHING_ELSE.search(pointer):
            return False
        if proof is not None:
            return known == proof
        if field == "currency":
            return known in MINOR_DIGITS
        return _NAMES[field].search(pointer) is not None and known is not None

    def _shown(self, pointer: str) -> str:
        value = resolve_pointer(self._locate().value, pointer)
        return f"{pointer} {_cut(encode(resolve_pointer(self._document, pointer) if value is None else value))}"


def _set(field: str, candidates: Sequence[str], label: str = "") -> tuple[Hint, ...]:
    """Return the command that stores the first of the candidates, if there is one."""
    return tuple(command(f"config set reply.{field} {shlex.quote(pointer)}", label) for pointer in candidates[:1])


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."
