"""What a command hands over to be shown: values, and no decision about format."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from escrowctl.contract.body import encode
from escrowctl.contract.number import JsonValue, Number


@dataclass(frozen=True, slots=True)
class View:
    """One thing to show.

    `document` is what `--json` prints; `id` what `-q` prints (None: it cannot be told); `fields`
    are the name and value lines of a pipe and a terminal. `line`, if given, takes their place on a
    terminal. `row` is the thing's line in a listing.
    """

    document: JsonValue
    id: str | None
    fields: tuple[tuple[str, str], ...] = ()
    line: str | None = None
    row: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Several things under fixed columns. `document` of each view is an item of the JSON array."""

    columns: tuple[str, ...]
    views: tuple[View, ...] = field(default=())
    right: frozenset[str] = frozenset()


def flatten(value: JsonValue) -> tuple[tuple[str, str], ...]:
    """Return a record as dotted names and texts, in the record's own order; nothing is left out."""
    return tuple(_walk("", value))


def text_of(value: JsonValue) -> str:
    """Return a value as a cell shows it: text as it is, numbers as they stood, the rest as JSON."""
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
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _walk(f"{prefix}.{key}" if prefix else key, item)
    else:
        yield prefix or "value", text_of(value)
