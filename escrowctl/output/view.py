"""The values that a command passes to the console, independent of the output format."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, encode
from escrowctl.contract.record import KNOWN_FIELD_NAMES, Record, resolve_pointer
from escrowctl.output.plain import safe

_MAX_NAME_CHARS = 200
"""An object with a longer dotted name is shown as JSON, because each of its fields would repeat the name."""
_PLAIN_KEY = re.compile(r'[^\s."\\](?:[^."\\]*[^\s."\\])?')
"""A key that needs no quotes in a dotted name: no dot, quote or backslash, and no space at its ends."""


class View(NamedTuple):
    """One record, or another result, to show.

    `--json` prints `document`. `-q` prints `id`, if it is not None. A pipe gets the names and values in `shown`; a
    terminal gets `line`, or `shown` if `line` is None. `named` has the fields for columns and `--fields`. JSON
    Pointers in `--fields` point into `record`. For a command with several ids, `--fields --json` adds `outcome`.
    `is_free_form`: `document` may have any shape, and is printed as JSON unless a table or CSV is requested.
    `items` are the elements of a list. `has_chosen_fields`: `named` has the fields of `--fields`.
    """

    document: JsonValue
    id: str | None
    shown: JsonValue = None
    line: str | None = None
    named: Mapping[str, JsonValue] = MappingProxyType({})
    record: JsonValue = None
    outcome: str | None = None
    is_free_form: bool = False
    items: "tuple[View, ...] | None" = None
    has_chosen_fields: bool = False

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The names and values as text, for a pipe or CSV."""
        if self.has_chosen_fields:
            return tuple((name, format_cell(value)) for name, value in self.named.items())
        return tuple(flatten(self.shown))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that `-q` prints: the view's own id; without an own id, the ids of `items`."""
        views = (self,) if self.id is not None else self.items or ()
        return tuple(view.id for view in views if view.id is not None)

    def has_value_at(self, names: tuple[str, ...]) -> bool:
        """Whether a JSON Pointer in `names` points to a value in `record` that is not null."""
        return any(self._find_value(name) is not None for name in names if name.startswith("/"))

    def select_fields(self, names: tuple[str, ...]) -> "View":
        """Return a view with these fields only. A missing field is null."""
        chosen = {name: self._find_value(name) for name in names}
        outcome = {"outcome": self.outcome} if self.outcome is not None else {}
        return View(document={**outcome, **chosen}, id=self.id, shown=chosen, named=chosen, has_chosen_fields=True)

    def row(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the fields with these names as texts of cells; a missing field is empty."""
        return tuple(format_cell(self.named.get(column)) for column in columns)

    def _find_value(self, name: str) -> JsonValue:
        return resolve_pointer(self.record, name) if name.startswith("/") else self.named.get(name)


class Listing(NamedTuple):
    """Several views under fixed columns.

    `--json` prints `document`; if `document` is None, an array of the views' documents. `keys` are the columns that
    identify a row, by default the first column. Key columns are never hidden.
    `has_chosen_fields`: the columns come from `--fields`.
    """

    columns: tuple[str, ...]
    views: tuple[View, ...] = ()
    document: JsonValue = None
    keys: tuple[str, ...] = ()
    has_chosen_fields: bool = False

    def only(self, names: tuple[str, ...]) -> "Listing":
        """Return a listing with these fields only."""
        return Listing(names, tuple(view.select_fields(names) for view in self.views), has_chosen_fields=True)


def view_record(record: Record, resource_id: str | None = None, *, raw: bool) -> View:
    """Return the view of a record: its JSON (`raw`: the complete reply) and its known fields.

    `resource_id` is the id of the view if the record has none.
    """
    named = record.known._replace(id=record.known.id or resource_id)
    document = record.document if raw else record.value
    fields = {name: getattr(named, name) for name in KNOWN_FIELD_NAMES}
    return View(document, named.id, document, named=fields, record=record.value)


def flatten(value: JsonValue, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield all fields of a value, in their order, as pairs of a dotted name and a text.

    In an array of objects, the name has the number of the object, from 0. An array of other values is JSON.
    Each name is unique: an ambiguous key (empty, with a dot, with invisible characters) is quoted, as in JSON.
    """
    items = list_fields(value) if len(prefix) <= _MAX_NAME_CHARS else []
    for name, item in items:
        yield from flatten(item, f"{prefix}.{name}" if prefix else name)
    if not items:
        yield prefix or "value", format_cell(value)


def format_cell(value: JsonValue) -> str:
    """Return a value as the text of a cell. Strings and numbers are unchanged, null is empty, others are JSON."""
    return "" if value is None else value if isinstance(value, str) else encode(value)


def list_fields(value: JsonValue) -> list[tuple[str, JsonValue]]:
    """Return (name, value) of each field of an object, or (number, object) of an array of objects; else []."""
    if isinstance(value, dict):
        return [
            (key if _PLAIN_KEY.fullmatch(key) and safe(key) == key else encode(key), item)
            for key, item in value.items()
        ]
    if isinstance(value, list) and all(isinstance(item, dict) and item for item in value):
        return [(str(number), item) for number, item in enumerate(value)]
    return []
