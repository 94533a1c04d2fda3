"""Check the lines of an export. A file may contain records that no journal writes, even if its chain is valid.

The models are made from the table `fields.FIELDS`, so a new field needs no change here.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model, model_validator

from escrowctl.contract.identifiers import UUID_PATTERN
from escrowctl.contract.json import Number
from escrowctl.journal import fields
from escrowctl.journal.chain import JOURNAL_KINDS, NO_ENTRY, Kind
from escrowctl.journal.model import State

_MAX_INTEGER = 2**63 - 1
_MAX_ATTEMPTS = 1_000_000
_MAX_ENTRY = 2**48 - 1
"""An entry's number stays far below the largest that a database can store."""


def _require_pattern(pattern: str) -> StringConstraints:
    return StringConstraints(pattern=f"^(?:{pattern})$")


def _require_readable_by(read: Callable[[str], object]) -> AfterValidator:
    """Require a text that `read` takes without an error."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)


_TEXT = Annotated[str, _require_readable_by(str.encode)]
"""A lone surrogate cannot be encoded, so no journal can contain it."""
Time = Annotated[str, _require_pattern(fields.TIME_PATTERN), _require_readable_by(datetime.fromisoformat)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FirstLine(_StrictModel):
    """The first line of an export."""

    escrowctl_journal: Literal[1]
    journal_id: Annotated[str, _require_pattern(UUID_PATTERN)]


class RecordLine(_StrictModel):
    """A line of an export that contains one record of the chain."""

    sequence: int
    entry: Annotated[int, Field(ge=NO_ENTRY, le=_MAX_ENTRY)]
    kind: str
    at: Time
    facts: dict[str, Any]
    digest: str

    @model_validator(mode="after")
    def _check_facts(self) -> "RecordLine":
        if self.entry == NO_ENTRY:
            if self.kind not in JOURNAL_KINDS or not all(isinstance(value, str) for value in self.facts.values()):
                raise ValueError(self.kind)
        else:
            _FACTS_MODELS[self.kind].model_validate(self.facts)
        return self


class _FactsModel(_StrictModel):
    @model_validator(mode="before")
    @classmethod
    def _check_consistency(cls, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        if "amount" in facts and (facts["amount"] is None) != (facts.get("currency") is None):
            raise ValueError("amount")
        if facts.get("resends", 0) >= facts.get("attempt", 1):
            raise ValueError("resends")
        return facts


_SPECIAL_TYPES: dict[str, Any] = {
    "state": Literal[tuple(state.value for state in State)],
    "amount": Annotated[str, _require_pattern(fields.AMOUNT_PATTERN), _require_readable_by(Number)],
    "body": Annotated[_TEXT, _require_readable_by(json.loads)],
    "attempt": Annotated[int, Field(ge=0, le=_MAX_ATTEMPTS)],
    "sent_at": Time,
    "settled_at": Time,
}


def _make_model(kind: str, kind_fields: Iterable[fields.Field]) -> type[BaseModel]:
    members: dict[str, Any] = {}
    for field in kind_fields:
        is_required = field.name == "origin" or (kind == Kind.DECISION and field.name == "reason")
        usual = Annotated[int, Field(ge=0, le=_MAX_INTEGER)] if field.type is int else _TEXT
        general_type = Annotated[str, _require_pattern(field.pattern)] if field.pattern else usual
        value_type = _SPECIAL_TYPES.get(field.name) or general_type
        if field.nullable and not is_required:
            value_type = value_type | None
        members[field.name] = (value_type, ... if is_required else fields.DEFAULT_FACTS.get(field.name, ...))
    return create_model(kind, __base__=_FactsModel, **members)


_FACTS_MODELS = {kind: _make_model(kind, kind_fields) for kind, kind_fields in fields.FIELDS_BY_KIND.items()}
"""Kind of record -> the model of its facts, for the records of entries."""
