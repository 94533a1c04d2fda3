"""Values that a command passes to the console. They say nothing about the format."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.record import LOCATED, Record, resolve_pointer
from escrowctl.output.plain import safe

_MOST_NAME_CHARS = 200
"""A dotted name is repeated for each field below it. An object with a longer name is shown as JSON."""
_PLAIN_KEY = re.compile(r'[^\s."\\](?:[^."\\]*[^\s."\\])?')
"""A key that needs no quotes in a dotted name: no dot, quote or backslash, and no space at its ends."""


class View(NamedTuple):
    """One record, or another result, to show.

    `--json` prints `document`; `-q` prints `id` (None: not known). A pipe and a terminal show the names and
    values of `shown`; `line`, if given, replaces it on a terminal. `named` has the fields for columns and
    `--fields`; JSON Pointers of `--fields` point into `record`. `outcome` is added to a line of several.
    `whole`: a document of any shape, printed as JSON unless a table or CSV is requested; `items` are the
    elements if it is a list. `chosen`: `named` has the fields of `--fields`, one a line.
    """

    document: JsonValue
    id: str | None
    shown: JsonValue = None
    line: str | None = None
    named: Mapping[str, JsonValue] = MappingProxyType({})
    record: JsonValue = None
    outcome: str | None = None
    whole: bool = False
    items: "tuple[View, ...] | None" = None
    chosen: bool = False

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The names and texts for a pipe."""
        if self.chosen:
            return tuple((name, text_of(value)) for name, value in self.named.items())
        return flatten(self.shown)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that `-q` prints: its own, or those of the items if it has none itself."""
        views = (self,) if self.id is not None else self.items or ()
        return tuple(view.id for view in views if view.id is not None)

    def holds(self, names: tuple[str, ...]) -> bool:
        """Whether any JSON Pointer among these names points to a value other than null in the record itself."""
        return any(self._find(name) is not None for name in names if name.startswith("/"))

    def only(self, names: tuple[str, ...]) -> "View":
        """Return a view of these fields only; missing ones are null."""
        chosen = {name: self._find(name) for name in names}
        outcome = {"outcome": self.outcome} if self.outcome is not None else {}
        return View(document={**outcome, **chosen}, id=self.id, shown=chosen, named=chosen, chosen=True)

    def row(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the cells under these columns."""
        return tuple(text_of(self.named.get(column)) for column in columns)

    def _find(self, name: str) -> JsonValue:
        if not name.startswith("/"):
            return self.named.get(name)
        return resolve_pointer(self.record, name)


class Listing(NamedTuple):
    """Several views under fixed columns.

    `--json` prints `document`: unless given, an array of the views' documents. `keys` are the columns that
    identify a row (unless given, the first); they are shown on any terminal.
    `chosen`: the columns come from `--fields`.
    """

    columns: tuple[str, ...]
    views: tuple[View, ...] = ()
    document: JsonValue = None
    keys: tuple[str, ...] = ()
    chosen: bool = False

    def only(self, names: tuple[str, ...]) -> "Listing":
        """Return a listing of these fields only."""
        return Listing(names, tuple(view.only(names) for view in self.views), chosen=True)


def view_record(record: Record, resource_id: str | None = None, *, raw: bool) -> View:
    """Return the view of a record: the service's own document (`raw`: in its envelope), and the located fields."""
    named = record.located._replace(id=record.located.id or resource_id)
    document = record.document if raw else record.value
    return View(
        document, named.id, document, named={name: getattr(named, name) for name in LOCATED}, record=record.value
    )


def flatten(value: JsonValue) -> tuple[tuple[str, str], ...]:
    """Return all of a record as dotted names and texts, in the record's order.

    Arrays of objects have numbers in their names, from 0; other arrays are JSON.
    Each name is unique: an ambiguous key (empty, with a dot, with invisible characters) is quoted, as
    JSON text.
    """
    return tuple(_walk("", value))


def text_of(value: JsonValue) -> str:
    """Return a value as the text of a cell: text and number tokens unchanged, others as JSON."""
    match value:
        case str():
            return value
        case Number():
            return value.text
        case None:
            return ""
        case _:
            return encode(value)


def _walk(prefix: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    items = list_items(value) if len(prefix) <= _MOST_NAME_CHARS else []
    if items:
        for name, item in items:
            yield from _walk(f"{prefix}.{name}" if prefix else name, item)
    else:
        yield prefix or "value", text_of(value)


def list_items(value: JsonValue) -> list[tuple[str, JsonValue]]:
    """Return the values of an object by name (quoted if needed), or of an array of objects by number; else none."""
    if isinstance(value, dict):
        return [(_name(key), item) for key, item in value.items()]
    if isinstance(value, list) and all(isinstance(item, dict) and item for item in value):
        return [(str(number), item) for number, item in enumerate(value)]
    return []


def _name(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and safe(key) == key else encode(key)
