"""One record at a terminal: one name and value a line, nested values indented, arrays of objects as tables."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from escrowctl.contract.json import JsonValue
from escrowctl.output.plain import safe
from escrowctl.output.terminal import (
    GAP,
    NARROWEST,
    Column,
    make_column,
    measure,
    needed,
    print_block,
    read_out,
    relative,
    render_table,
)
from escrowctl.output.view import View, list_items

_Items = list[tuple[str, JsonValue]]
_INDENT = 2
_DEEPEST = 8
"""Values nested deeper are shown as JSON."""


class _Line(NamedTuple):
    name: str
    value: str


class _Table(NamedTuple):
    indent: int
    columns: tuple[Column, ...]


def render_fields(view: View, *, now: datetime, width: int, color: bool) -> str:
    """Return one record as two columns: long values folded, the id never cut, times with their age."""
    items = list(view.named.items()) if view.chosen else list_items(view.shown) or [("value", view.shown)]
    parts = list(_outline(items, 0, now, width))
    names = max(measure(part.name) for part in parts if isinstance(part, _Line))
    width = max(width, names + GAP + max(measure(safe(view.id or "")), NARROWEST))
    blocks = []
    for kind, group in groupby(parts, key=type):
        if kind is _Line:
            blocks.append(
                _print_lines([part for part in group if isinstance(part, _Line)], names, view, width, color=color)
            )
        else:
            blocks += [_print_table(part, width, color=color) for part in group if isinstance(part, _Table)]
    return "\n".join(blocks)


def _outline(items: _Items, depth: int, now: datetime, width: int) -> Iterator[_Line | _Table]:
    """Yield the lines of an object or an array of objects. An array becomes a table if it fits."""
    for key, item in items:
        name = " " * _INDENT * depth + safe(key)
        nested = list_items(item) if depth < _DEEPEST else []
        if not nested:
            yield _Line(name, _text(item, now))
            continue
        yield _Line(name, "")
        columns = _columns(item, now)
        indent = _INDENT * (depth + 1)
        if columns and indent + needed(columns, NARROWEST) <= width:
            yield _Table(indent, tuple(columns))
        else:
            yield from _outline(nested, depth + 1, now, width)


def _columns(value: JsonValue, now: datetime) -> list[Column]:
    """Return the columns of an array of objects; none if an object has nested values, or for any other value."""
    rows = [dict(list_items(item)) for _, item in list_items(value)] if isinstance(value, list) else []
    if any(isinstance(cell, dict | list) for row in rows for cell in row.values()):
        return []
    names = dict.fromkeys(name for row in rows for name in row)
    return [make_column(name, [row.get(name) for row in rows], now)._replace(header=safe(name)) for name in names]


def _text(value: JsonValue, now: datetime) -> str:
    text = read_out(value)
    when = relative(text, now)
    return f"{text}   {when}" if when else safe(text)


def _print_lines(lines: list[_Line], names: int, view: View, width: int, *, color: bool) -> str:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, GAP))
    grid.add_column(no_wrap=True, min_width=names, style="bold" if color else "")
    grid.add_column(overflow="fold")
    for name, value in lines:
        grid.add_row(Text(name), Text(value, no_wrap=value == safe(view.id or "")))
    return print_block(grid, width=width, color=color)


def _print_table(table: _Table, width: int, *, color: bool) -> str:
    text = render_table(list(table.columns), width - table.indent, color=color)
    return "\n".join(f"{' ' * table.indent}{line}" for line in text.splitlines())
