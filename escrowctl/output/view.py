"""What a command hands over to be shown: values, and no decision about format."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.contract.record import LOCATED, Record, resolve_pointer
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.output.plain import safe

_MOST_NAME_CHARS = 200
"""A dotted name is repeated for every field beneath it: below a longer one, an object is shown as JSON."""
_PLAIN_KEY = re.compile(r'[^\s."\\](?:[^."\\]*[^\s."\\])?')
"""A key that a dotted name has unquoted: no dot, no quote, no backslash, no space at its ends."""


class View(NamedTuple):
    """One record, or another result, to show.

    `document` is what `--json` prints; `id` what `-q` prints (None: it is not known); `shown` is the
    object whose names and values a pipe and a terminal show. `line`, if given, takes its place on a
    terminal. `named` are the fields that columns and `--fields` go by; `record` is what the JSON
    Pointers of `--fields` point into, and `outcome` is added to a line of several. `whole`: a
    document of any shape, which is JSON unless a table or CSV is asked for; `items` are what is in it
    where it is a list. `chosen`: `named` has what `--fields` names, each a line.
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
        """The names and texts that a pipe shows."""
        if self.chosen:
            return tuple((name, text_of(value)) for name, value in self.named.items())
        return flatten(self.shown)

    @property
    def ids(self) -> tuple[str, ...]:
        """What `-q` prints: the id, or those of the items where it has none itself."""
        views = (self,) if self.id is not None else self.items or ()
        return tuple(view.id for view in views if view.id is not None)

    def require_ids(self) -> None:
        """Raise EscrowctlError (exit 2) where `-q` asks for ids, and nothing that was read has one."""
        if not self.ids:
            raise EscrowctlError(
                ErrorCode.BAD_VALUE, "-q prints ids, and no field of this reply is known to be an id: leave -q out."
            )

    def holds(self, names: tuple[str, ...]) -> bool:
        """Whether any of the JSON Pointers among these names points to something in the record itself."""
        return any(self._find(name) is not None for name in names if name.startswith("/"))

    def only(self, names: tuple[str, ...]) -> "View":
        """Return the view of these fields alone, null where there is no such field."""
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

    `document` is what `--json` prints: unless given, an array of the views' documents. `keys` are the
    columns that tell its rows apart (unless given, the first): no terminal is too narrow for them.
    `chosen`: the columns come from `--fields`.
    """

    columns: tuple[str, ...]
    views: tuple[View, ...] = ()
    document: JsonValue = None
    keys: tuple[str, ...] = ()
    chosen: bool = False

    def only(self, names: tuple[str, ...]) -> "Listing":
        """Return the listing of these fields alone."""
        return Listing(names, tuple(view.only(names) for view in self.views), chosen=True)


def view_record(record: Record, resource_id: str | None = None, *, raw: bool) -> View:
    """Return the view of a record: the service's own document (`raw`: in its envelope), and the located fields."""
    named = record.located._replace(id=record.located.id or resource_id)
    document = record.document if raw else record.value
    return View(
        document, named.id, document, named={name: getattr(named, name) for name in LOCATED}, record=record.value
    )


def flatten(value: JsonValue) -> tuple[tuple[str, str], ...]:
    """Return a record as dotted names and texts, in the record's order; nothing is left out.

    Arrays of objects have numbers in their names, from 0; other arrays are JSON.
    No two places have the same name: a key that could be taken for another, or for several (empty,
    with a dot, with what does not print), is quoted, as JSON text.
    """
    return tuple(_walk("", value))


def text_of(value: JsonValue) -> str:
    """Return a value as a cell shows it: text and number tokens unchanged, the rest as JSON."""
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
    """Return what an object holds, by name (quoted if needed), or an array of objects, by number; else nothing."""
    if isinstance(value, dict):
        return [(_name(key), item) for key, item in value.items()]
    if isinstance(value, list) and all(isinstance(item, dict) and item for item in value):
        return [(str(number), item) for number, item in enumerate(value)]
    return []


def _name(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and safe(key) == key else encode(key)
