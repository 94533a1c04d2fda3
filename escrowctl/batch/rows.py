"""The content of a row: a create or a release, with the values that the file has for it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from types import NoneType
from typing import NamedTuple, ParamSpec, TypeVar

from escrowctl.batch.table import Row, cell_text
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import fold_reference, parse_id
from escrowctl.contract.json import JsonValue, Number, encode, normalise, read_value
from escrowctl.contract.money import Money, make_money, parse_amount, parse_currency
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, Operation
from escrowctl.contract.record import KnownFields
from escrowctl.contract.redaction import hash_private_values
from escrowctl.errors import EscrowctlError
from escrowctl.journal.fold import hash_once_only, hash_reference
from escrowctl.journal.model import Entry
from escrowctl.writes.requests import (
    NO_ROW,
    RowOrigin,
    WriteOptions,
    WriteRequest,
    make_create_request,
    make_once_only_request,
)

_BODY = "body."
RESULT = "result."
"""The prefix of the columns that results and rejects add."""

REASON_COLUMN = f"{RESULT}detail"
"""The column of rejects with the reason for the refusal. A file with this column may be sent again."""

_MAX_REFERENCE_LENGTH = 500
_MAX_LISTED_COLUMNS = 20
_CELL_TYPES = (str, Number, NoneType)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class RowKind(NamedTuple):
    """The kind of rows in a file. `operation` is what each row does, `key_column` what identifies it."""

    operation: Operation
    key_column: str
    required_columns: tuple[str, ...]
    known_columns: tuple[str, ...]
    """The columns that have a meaning, apart from `body.X`. All others are only copied to the results."""

    hash_key: Callable[[str], int]
    """Returns the duplicate key of a row's key: equal for two texts that count as the same key."""


CREATES = RowKind(
    CREATE_TRANSACTION, "reference", ("amount", "currency"), ("amount", "currency", "reference"), hash_reference
)
RELEASES = RowKind(RELEASE_TRANSACTION, "id", ("id",), ("amount", "currency", "id"), hash_once_only)
KINDS = {kind.operation.verb: kind for kind in (CREATES, RELEASES)}
"""Verb of a batch -> its kind of rows."""


class RowContent(NamedTuple):
    """A checked row of a file.

    `key` is a create's reference (None: it has none) or the id to release. A create sends `amount` and `currency`;
    a release expects them in the record. `body` is a JSON object of further fields to send, `columns` one of cells
    for the results. `repeats` are the entries that the row repeats on purpose. `held` says why the last run did not
    send the row. The plan stores these fields. When it is read, the row also gets its `line` in the file, and the
    entry of a row that was `sent` before.
    """

    key: str | None
    amount: str | None = None
    currency: str | None = None
    body: str | None = None
    columns: str | None = None
    repeats: tuple[int, ...] = ()
    held: str | None = None
    line: int = 0
    sent: Entry | None = None

    def encode(self) -> str:
        """Return the row as JSON text."""
        stored = (self.key, self.amount, self.currency, self.body, self.columns)
        texts = ["null" if text is None else encode_basestring_ascii(text) for text in stored]
        held = "" if self.held is None else f",{encode_basestring_ascii(self.held)}"
        return f"[{','.join(texts)},{list(self.repeats) or '[]'}{held}]"

    @property
    def money(self) -> Money | None:
        """The amount and currency of the row; None if the file does not have them."""
        return None if self.amount is None else Money(Number(self.amount), self.currency or "")


def decode_row(text: str, line: int = 0) -> RowContent:
    """Return the row from the text that `RowContent.encode` returned."""
    return RowContent(*json.loads(text), line=line)  # type: ignore[misc] # the text has no line


def check_row(kind: RowKind, row: Row, service: Service) -> RowContent | list[str]:
    """Return the content of a row, or all its flaws."""
    cells, flaws = row.cells, list[str]()
    columns = sort_columns(kind.required_columns, kind.known_columns, tuple(cells))
    for name in kind.known_columns:
        if not isinstance(cells.get(name), _CELL_TYPES):
            found = "an object" if isinstance(cells[name], dict) else encode(cells[name])
            flaws.append(f'"{name}" must be text or a number, not {found}')
    flaws += columns.flaws
    if flaws:
        return flaws
    amount, currency = _check_money(cells, service, flaws, required=kind is CREATES)
    key = cell_text(cells.get(kind.key_column))
    if kind is RELEASES:
        _check_or_flaw(flaws, parse_id, key or "")
    elif not key and service.live:
        flaws.append("reference is empty: every row of a live create needs its own reference")
    elif key and (not fold_reference(key) or not key.isprintable() or len(key) > _MAX_REFERENCE_LENGTH):
        flaws.append(f"reference must be one line of 1 to {_MAX_REFERENCE_LENGTH} printable characters")
    body = _make_body(cells, columns.body, flaws)
    # A service may ignore case in names, and use the last field.
    if body and kind is CREATES:
        taken = {name: name for name in kind.known_columns} | {service.reference_field or "reference": "reference"}
        flaws += [
            f'column "{_BODY}{name}" is not allowed: the column "{column}" sets this field'
            for name in body
            if (column := taken.get(name, taken.get(name.casefold())))
        ]
    if flaws:
        return flaws
    others = encode({name: cells[name] for name in columns.others}) if columns.others else None
    return RowContent(key or None, amount, currency, encode(body) if body else None, others, line=row.line)


class Columns(NamedTuple):
    """The columns of a row: their flaws, the columns `body.X`, and those that are only copied to the results."""

    flaws: tuple[str, ...]
    body: tuple[str, ...]
    others: tuple[str, ...]


@lru_cache(maxsize=16)
def sort_columns(required: tuple[str, ...], known: tuple[str, ...], names: tuple[str, ...]) -> Columns:
    """Sort the columns of a row. All rows of a CSV file have the same ones, so this is done once."""
    folded = ((name, name.strip().casefold()) for name in names)
    wrong = [(name, right) for name, right in folded if right in known and name != right]
    flaws = [f'has the column "{name}": write it as "{right}"' for name, right in wrong]
    if missing := [name for name in required if name not in names]:
        flaws.append(f'has no column "{missing[0]}": its columns are {", ".join(names[:_MAX_LISTED_COLUMNS])}')
    body = tuple(name for name in names if name.startswith(_BODY))
    others = tuple(name for name in names if name not in known and not name.startswith((_BODY, RESULT)))
    return Columns(tuple(flaws), body, others)


def make_request(
    kind: RowKind, row: RowContent, service: Service, origin: RowOrigin = NO_ROW, found: KnownFields | None = None
) -> WriteRequest:
    """Return the request of a row. `found` is the record to release, if it was read."""
    body = _parse_object(row.body)
    if kind is RELEASES:
        assert row.key is not None, "it was checked"
        text = encode(body) if body else None
        return make_once_only_request(kind.operation, row.key, text, WriteOptions(origin=origin), found=found)
    assert row.money is not None, "it was checked"
    options = WriteOptions(reference=row.key, allowed_duplicates=tuple(row.repeats), origin=origin)
    return make_create_request(row.money, service, body, options)


def list_body_differences(row: RowContent, entry: Entry, service: Service) -> list[str]:
    """Return the names of body fields that differ between a sent create and a row. 1 and 1.0 are equal."""
    sent = _normalise_fields(_parse_object(entry.intent.body))
    wanted = _normalise_fields(_parse_object(make_request(CREATES, row, service).recorded_body))
    # The reference is the same in both, even if it has another spelling or was not sent.
    names = (name for name in {**sent, **wanted} if name != service.reference_field)
    return [name for name in names if sent.get(name) != wanted.get(name)]


def content_of(entry: Entry) -> RowContent:
    """Return the row of an entry, as a row that was sent. Its body omits the fields that have their own column."""
    intent = entry.intent
    body = {name: value for name, value in _parse_object(intent.body).items() if name not in CREATES.known_columns}
    own_fields = encode(body) if body else None
    return RowContent(
        key=intent.reference if intent.has_no_id else intent.resource_id,
        amount=str(intent.money.amount) if intent.money else None,
        currency=intent.currency,
        body=own_fields if intent.has_no_id else intent.body,
        columns=intent.columns,
        line=intent.line or 0,
        sent=entry,
    )


def cells_of(kind: RowKind, row: RowContent, *, flat: bool = True) -> dict[str, JsonValue]:
    """Return the cells of a row by column. `flat`: each field inside an object of the body has its own cell."""
    named = {kind.key_column: row.key, "amount": Number(row.amount) if row.amount else None, "currency": row.currency}
    known: dict[str, JsonValue] = {name: value for name, value in named.items() if value is not None}
    body = _parse_object(row.body)
    fields = dict(_flatten(body, _BODY)) if flat else {f"{_BODY}{name}": item for name, item in body.items()}
    return _parse_object(row.columns) | known | fields


def _check_money(
    cells: Mapping[str, JsonValue], service: Service, flaws: list[str], *, required: bool
) -> tuple[str | None, str | None]:
    amount, currency = cell_text(cells.get("amount")), cell_text(cells.get("currency"))
    if not (required or amount or currency):
        return None, None
    for name, cell in (("amount", amount), ("currency", currency)):
        if not cell:
            flaws.append(f"{name} is empty" + ("" if required else ": write both amount and currency, or neither"))
    found = _check_or_flaw(flaws, parse_amount, amount, name="amount") if amount else None
    listed = service.currencies
    known = _check_or_flaw(flaws, parse_currency, currency, listed=listed, name="currency") if currency else None
    if found is not None and known is not None:
        _check_or_flaw(flaws, make_money, found, known, name="amount")
    return amount or None, currency or None


def _make_body(cells: Mapping[str, JsonValue], names: Iterable[str], flaws: list[str]) -> dict[str, JsonValue]:
    """Return the object of the `body.X` cells, whose names are `names`, and add flaws."""
    body: dict[str, JsonValue] = {}
    for name in names:
        if (cell := cells[name]) in ("", None):
            continue
        *parents, last = name.removeprefix(_BODY).split(".")
        parent_object: JsonValue = body
        for parent in parents:
            parent_object = parent_object.setdefault(parent, {}) if isinstance(parent_object, dict) else None
        if not isinstance(parent_object, dict) or last in parent_object or "" in (*parents, last):
            flaws.append(f'column "{name}" conflicts with another column, or a part of its name is empty')
            continue
        parent_object[last] = cell
    if body and hash_private_values(body) != body:
        flaws.append("the body has a value that looks like a secret: a batch does not store secrets")
    return body


def _normalise_fields(body: dict[str, JsonValue]) -> dict[str, str]:
    return {name: encode(normalise(item)) for name, item in body.items()}


def _flatten(value: JsonValue, prefix: str) -> list[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        return [(prefix.removesuffix("."), value)]
    return [pair for name, item in value.items() for pair in _flatten(item, f"{prefix}{name}.")]


def _parse_object(text: str | None) -> dict[str, JsonValue]:
    value = read_value(text)
    return value if isinstance(value, dict) else {}


def _check_or_flaw(flaws: list[str], check: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
    """Return the result of `check`. If it fails, add the error's message to the flaws and return None."""
    try:
        return check(*args, **kwargs)
    except EscrowctlError as error:
        flaws.append(re.sub(r"\.$", "", error.message))
        return None
