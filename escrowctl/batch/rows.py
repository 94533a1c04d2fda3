"""The content of a row: a create or a release, with the values known before it is sent."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from escrowctl.batch.table import Row, cell_text
from escrowctl.config.service import Service
from escrowctl.contract.identifiers import fold_id, fold_reference, parse_id
from escrowctl.contract.json import Document, JsonValue, Number, encode, normalise, read_reply
from escrowctl.contract.money import Money, check_minor_digits, parse_amount, parse_currency
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, Operation
from escrowctl.contract.record import Located
from escrowctl.contract.redaction import hash_values
from escrowctl.errors import EscrowctlError
from escrowctl.journal.model import Entry
from escrowctl.writes.requests import WriteOptions, WriteRequest, request_create, request_once_only

_encode = json.JSONEncoder(separators=(",", ":")).encode
_BODY = "body."
RESULT = "result."
"""The prefix of the columns that results and rejects add."""

REJECTED = f"{RESULT}detail"
"""The column with the reason for a refusal: rejects have it, and may be sent again with it."""

_MAX_REFERENCE = 500
_MOST_NAMED = 20


class RowKind(NamedTuple):
    """One kind of file: the operation of its rows, and the column that identifies a row."""

    operation: Operation
    key: str
    required: tuple[str, ...]
    used: tuple[str, ...]
    """The columns with a meaning. `body.X` has one too; all others go into the results."""

    fold: Callable[[str], str]
    """Makes texts of the key column equal if they count as the same key."""


CREATES = RowKind(
    CREATE_TRANSACTION, "reference", ("amount", "currency"), ("amount", "currency", "reference"), fold_reference
)
RELEASES = RowKind(RELEASE_TRANSACTION, "id", ("id",), ("amount", "currency", "id"), fold_id)
KINDS = {kind.operation.verb: kind for kind in (CREATES, RELEASES)}
"""Verb of a batch -> its kind of rows."""


class RowContent(NamedTuple):
    """A checked row, as the plan stores it.

    `key` is a create's reference (None: it has none) or the id to release. `amount` and `currency` are sent, or are
    expected in the record. `body` and `columns` are JSON objects. `repeats` are the entries that a new run of a file
    repeats on purpose. `held` is the reason why the last run did not send it.
    """

    key: str | None
    amount: str | None = None
    currency: str | None = None
    body: str | None = None
    columns: str | None = None
    repeats: tuple[int, ...] = ()
    held: str | None = None

    def encode(self) -> str:
        """Return the row as text."""
        return _encode(self if self.held is not None else self[:-1])

    @property
    def money(self) -> Money | None:
        """The money that it moves, if the file has it."""
        return None if self.amount is None else Money(Number(self.amount), self.currency or "")


def decode_row(text: str) -> RowContent:
    """Return a row from its text."""
    return RowContent(*json.loads(text))


def check_row(kind: RowKind, row: Row, service: Service) -> RowContent | list[str]:
    """Return a row's content, or everything that is wrong with it."""
    cells, flaws = row.cells, list[str]()
    for name in kind.used:
        if not isinstance(cells.get(name), str | Number | None):
            found = "an object" if isinstance(cells[name], dict) else encode(cells[name])
            flaws.append(f'"{name}" must be text or a number, not {found}')
    flaws += [f'"{name}" is spelled "{known}"' for name, known in list_misspelled(kind, cells)]
    if missing := [name for name in kind.required if name not in cells]:
        flaws.append(f'has no "{missing[0]}": it has {", ".join(list(cells)[:_MOST_NAMED])}')
    if flaws:
        return flaws
    amount, currency = _check_money(cells, service, flaws, required=kind is CREATES)
    key = cell_text(cells.get(kind.key))
    if kind is RELEASES:
        _try(flaws, lambda: parse_id(key or ""))
    elif key or service.live:
        _check_reference(key, flaws)
    set_here: dict[str, str] = {}
    if kind is CREATES:
        set_here = {name: name for name in kind.used} | {service.reference_field or "reference": "reference"}
    body = _make_body(cells, flaws, set_here)
    others = {
        name: cell for name, cell in cells.items() if name not in kind.used and not name.startswith((_BODY, RESULT))
    }
    if flaws:
        return flaws
    return RowContent(key or None, amount, currency, encode(body) if body else None, encode(others) if others else None)


def list_misspelled(kind: RowKind, columns: Iterable[str]) -> list[tuple[str, str]]:
    """Return columns that would not be used, with the intended name: they differ in case or in spaces."""
    folded = ((name, name.strip().casefold()) for name in columns)
    return [(name, known) for name, known in folded if known in kind.used and name != known]


def request_row(kind: RowKind, row: RowContent, service: Service, *, found: Located | None = None) -> WriteRequest:
    """Return the request of a row; `found` is the record to release."""
    body = _read_object(row.body)
    if kind is RELEASES:
        assert row.key is not None, "it was checked"
        text = encode(body) if body else None
        return request_once_only(kind.operation, row.key, text, WriteOptions(), found=found)
    assert row.money is not None, "it was checked"
    options = WriteOptions(reference=row.key, allowed_duplicates=tuple(row.repeats))
    return request_create(row.money, service, body, options)


def list_differences(row: RowContent, entry: Entry, service: Service) -> list[str]:
    """Return the fields in which the sent body of a create differs from a row's; equal numbers are equal."""
    sent = _by_value(_read_object(entry.intent.body))
    wanted = _by_value(_read_object(request_row(CREATES, row, service).recorded_body))
    # Entry and row have one reference, however it is spelled, and whether or not it was sent.
    names = (name for name in {**sent, **wanted} if name != service.reference_field)
    return [name for name in names if sent.get(name) != wanted.get(name)]


def content_of(entry: Entry) -> RowContent:
    """Return the row that an entry was made from, without the fields of its body that columns set."""
    intent = entry.intent
    body = {name: value for name, value in _read_object(intent.body).items() if name not in CREATES.used}
    return RowContent(
        intent.reference if intent.has_no_id else intent.resource_id,
        str(intent.money.amount) if intent.money else None,
        intent.money.currency if intent.money else None,
        (encode(body) if body else None) if intent.has_no_id else intent.body,
        intent.columns,
    )


def cells_of(kind: RowKind, row: RowContent, *, flat: bool = True) -> dict[str, JsonValue]:
    """Return the cells of a row by column; `flat`: none is an object."""
    named = {kind.key: row.key, "amount": Number(row.amount) if row.amount else None, "currency": row.currency}
    known: dict[str, JsonValue] = {name: value for name, value in named.items() if value is not None}
    body = _read_object(row.body)
    fields = dict(_flat(body, _BODY)) if flat else {f"{_BODY}{name}": item for name, item in body.items()}
    return _read_object(row.columns) | known | fields


def _check_money(
    cells: Mapping[str, JsonValue], service: Service, flaws: list[str], *, required: bool
) -> tuple[str | None, str | None]:
    amount, currency = (cell_text(cells.get(name)) for name in ("amount", "currency"))
    if not (required or amount or currency):
        return None, None
    for name, cell in (("amount", amount), ("currency", currency)):
        if not cell:
            flaws.append(f"{name} is empty" + ("" if required else ": write both amount and currency, or neither"))
    found = _try(flaws, lambda: parse_amount(amount, name="amount")) if amount else None
    known = (
        _try(flaws, lambda: parse_currency(currency, listed=service.currencies, name="currency")) if currency else None
    )
    if isinstance(found, Number) and isinstance(known, str):
        _try(flaws, lambda: check_minor_digits(found, known, name="amount"))
    return amount or None, currency or None


def _check_reference(reference: str | None, flaws: list[str]) -> None:
    if not reference:
        flaws.append("reference is empty: every row of a live create needs its own reference")
    elif not fold_reference(reference) or not reference.isprintable() or len(reference) > _MAX_REFERENCE:
        flaws.append(f"reference must be one line of 1 to {_MAX_REFERENCE} printable characters")


def _make_body(cells: Mapping[str, JsonValue], flaws: list[str], set_here: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the object of the `body.X` cells, without fields that a column sets; an empty cell adds nothing."""
    body: dict[str, JsonValue] = {}
    for name, cell in cells.items():
        if not name.startswith(_BODY) or cell in ("", None):
            continue
        *parents, last = name.removeprefix(_BODY).split(".")
        place: JsonValue = body
        for parent in parents:
            place = place.setdefault(parent, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last in place or "" in (*parents, last):
            flaws.append(f'column "{name}" cannot be put into the body')
            continue
        place[last] = cell
    # A service may ignore case in names, and use the last field.
    flaws += [
        f'column "{_BODY}{name}" is not allowed: the column "{column}" sets it'
        for name in body
        if (column := set_here.get(name, set_here.get(name.casefold())))
    ]
    if body and hash_values(body) != body:
        flaws.append("the body has a value that looks like a secret: a batch does not store secrets")
    return body


def _by_value(body: dict[str, JsonValue]) -> dict[str, str]:
    return {name: encode(normalise(item)) for name, item in body.items()}


def _flat(value: JsonValue, prefix: str) -> list[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        return [(prefix.removesuffix("."), value)]
    return [pair for name, item in value.items() for pair in _flat(item, f"{prefix}{name}.")]


def _read_object(text: str | None) -> dict[str, JsonValue]:
    reply = read_reply(text.encode()) if text is not None else None
    return reply.value if isinstance(reply, Document) and isinstance(reply.value, dict) else {}


def _try(flaws: list[str], check: Callable[[], object]) -> object:
    try:
        return check()
    except EscrowctlError as error:
        flaws.append(re.sub(r"\.$", "", error.message))
        return None
