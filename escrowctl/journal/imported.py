"""Checks the lines of an export. A file may contain records that no journal writes, even if its chain is valid.

The models are made of the table of fields, so that a new field needs no second line.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model, model_validator

from escrowctl.contract.identifiers import UUID
from escrowctl.contract.json import Number
from escrowctl.journal import fields
from escrowctl.journal.chain import JOURNAL, JOURNAL_KINDS, Kind
from escrowctl.journal.model import State

_MAX_INTEGER = 2**63 - 1
_MAX_ATTEMPTS = 1_000_000
_MAX_ENTRY = 2**48 - 1
"""Higher numbers collide with the hashed locks of the lock file (`journal.sqlite.locks`)."""


def _spelled(pattern: str) -> StringConstraints:
    return StringConstraints(pattern=f"^(?:{pattern})$")


def _date(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _number(text: str) -> str:
    Number(text)
    return text


def _document(text: str) -> str:
    json.loads(text)
    return text


def _encodable(text: str) -> str:
    # A lone surrogate cannot be encoded, so no journal can contain it.
    text.encode()
    return text


_TEXT = Annotated[str, AfterValidator(_encodable)]
Time = Annotated[str, _spelled(fields.TIME), AfterValidator(_date)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FirstLine(_Strict):
    """The first line of an export."""

    escrowctl_journal: Literal[1]
    journal_id: Annotated[str, _spelled(UUID)]


class Line(_Strict):
    """A record of the chain."""

    sequence: int
    entry: Annotated[int, Field(ge=JOURNAL, le=_MAX_ENTRY)]
    kind: Kind = Field(strict=False)
    at: Time
    facts: dict[str, Any]
    digest: str

    @model_validator(mode="after")
    def _check_facts(self) -> "Line":
        if self.entry == JOURNAL:
            if self.kind not in JOURNAL_KINDS or not all(isinstance(value, str) for value in self.facts.values()):
                raise ValueError(self.kind)
        else:
            _FACTS[self.kind].model_validate(self.facts)
        return self


class _Facts(_Strict):
    @model_validator(mode="before")
    @classmethod
    def _compare(cls, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        if "amount" in facts and (facts["amount"] is None) != (facts.get("currency") is None):
            raise ValueError("amount")
        if facts.get("resends", 0) >= facts.get("attempt", 1):
            raise ValueError("resends")
        return facts


_SPECIAL: dict[str, Any] = {
    "state": Literal[tuple(state.value for state in State)],
    "amount": Annotated[str, _spelled(fields.AMOUNT), AfterValidator(_number)],
    "body": Annotated[_TEXT, AfterValidator(_document)],
    "attempt": Annotated[int, Field(ge=0, le=_MAX_ATTEMPTS)],
    "sent_at": Time,
    "settled_at": Time,
}


def _model_of(kind: Kind, found: Iterable[fields.Field]) -> type[BaseModel]:
    members: dict[str, Any] = {}
    for field in found:
        is_required = field.name == "origin" or (kind is Kind.DECISION and field.name == "reason")
        plain = Annotated[int, Field(ge=0, le=_MAX_INTEGER)] if field.type is int else _TEXT
        accepted = _SPECIAL.get(field.name) or (Annotated[str, _spelled(field.spelling)] if field.spelling else plain)
        if field.nullable and not is_required:
            accepted = accepted | None
        members[field.name] = (accepted, ... if is_required else fields.DEFAULTS.get(field.name, ...))
    return create_model(kind.name, __base__=_Facts, **members)


_FACTS = {kind: _model_of(kind, found) for kind, found in fields.FIELDS_OF.items()}
"""The kinds of records of an entry -> the model of their facts."""
