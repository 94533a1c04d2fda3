"""Tables for a person at a terminal, drawn by rich. Cells are `rich.text.Text`: rich finds no markup in data.

Ids and amounts are always complete. The other columns share the remaining width.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from escrowctl.contract.json import JsonValue, Number
from escrowctl.output.plain import safe
from escrowctl.output.view import Listing, View, format_cell, list_fields
from escrowctl.runtime import describe_age

_UNFOLDED_COLUMNS = frozenset({"id", "entry", "endpoint"})
"""Columns of ids. Ids are copied, so they are never folded."""

_TIME_COLUMNS = frozenset({"created", "sent", "released", "next"})
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 section 5.6, in the forms that services write."""

_COLUMN_GAP = 2
"""Cells between two columns."""

_HIDEABLE_COLUMNS = ("profile", "reference", "created", "sent", "events", "operation")
"""Columns that are hidden if there is no room, in this order. A column that identifies rows is never hidden."""

_COMFORTABLE_WIDTH, _MIN_WIDTH = 24, 8
"""The widths in cells at which a column is easy to read, and readable at all."""

_MAX_DEPTH = 8
"""Values nested deeper are shown as JSON."""


class _Column(NamedTuple):
    """A column of a table. `is_unfolded`: its cells are never folded."""

    name: str
    header: str
    cells: list[str]
    is_unfolded: bool

    def min_width(self, limit: int) -> int:
        """Return the least width that fits the header's words and all cells. `limit` fits a cell that may fold."""
        cells = max(map(cell_len, self.cells))
        return max(*map(cell_len, self.header.split()), cells if self.is_unfolded else min(cells, limit))


def render_listing(listing: Listing, *, now: datetime, width: int, color: bool) -> tuple[str, tuple[str, ...]]:
    """Return a table with a header, and the names of the hidden columns.

    Ids and amounts are never folded; other cells may be. Amounts are aligned at the decimal point. Times
    are shown as ages. Columns chosen by `--fields` are never hidden. If the terminal is too narrow for the ids,
    lines are longer than the terminal, so that complete ids can be copied.
    """
    columns = [_make_column(name, [view.named.get(name) for view in listing.views], now) for name in listing.columns]
    keys, hidden = listing.columns, list[str]()
    if not listing.has_chosen_fields:
        # The columns that identify a row are enough, unless two rows are equal in these columns.
        identifying = [column for column in columns if column.name in listing.keys] or columns[:1]
        if len(set(zip(*(column.cells for column in identifying), strict=True))) == len(listing.views):
            keys = tuple(column.name for column in identifying)
    for name in _HIDEABLE_COLUMNS:
        if name in listing.columns and name not in keys and _table_width(columns, _COMFORTABLE_WIDTH) > width:
            columns = [column for column in columns if column.name != name]
            hidden.append(name)
    table = _render_block(_make_table(columns), max(width, _table_width(columns, _MIN_WIDTH)), color=color)
    return table, tuple(hidden)


def render_row(view: View, widths: tuple[int, ...], now: datetime, *, color: bool) -> tuple[str, str, tuple[int, ...]]:
    """Return (header, row, column widths). The first call gets no `widths`. Later calls get the returned ones, and
    return an empty header. A cell wider than its column moves the cells after it.
    """
    columns = [_make_column(name, [value], now) for name, value in view.named.items()]
    cells = [column.cells[0] for column in columns]
    if widths:
        return "", _pad_row(cells, widths), widths
    widths = tuple(max(cell_len(column.header), cell_len(column.cells[0])) for column in columns)
    header = _pad_row([column.header for column in columns], widths)
    return _render_block(Text(header, style="bold"), cell_len(header), color=color), _pad_row(cells, widths), widths


def render_fields(view: View, *, now: datetime, width: int, color: bool) -> str:
    """Return one view as two columns, names and values. Long values except the id are folded. Times have ages.

    The names of nested values are indented. An array of objects is a table if it fits.
    """
    items = list(view.named.items()) if view.has_chosen_fields else list_fields(view.shown) or [("value", view.shown)]
    names = max(cell_len(name) for name, _ in _outline(items, 0, now, room=0))
    width = max(width, names + _COLUMN_GAP + max(cell_len(safe(view.id or "")), _MIN_WIDTH))
    grid = Table.grid(padding=(0, _COLUMN_GAP))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in _outline(items, 0, now, room=width - names - _COLUMN_GAP):
        grid.add_row(Text(name), Text(value) if isinstance(value, str) else value)
    return _render_block(grid, width, color=color)


def _outline(
    items: list[tuple[str, JsonValue]], depth: int, now: datetime, *, room: int
) -> Iterator[tuple[str, str | Table]]:
    """Yield each indented name and its value. An array of objects is a table if it fits into `room` cells."""
    for key, item in items:
        name = "  " * depth + safe(key)
        nested = list_fields(item) if depth < _MAX_DEPTH else []
        columns = _make_columns(item, now) if nested and isinstance(item, list) else []
        if columns and _table_width(columns, _MIN_WIDTH) <= room:
            yield name, _make_table(columns)
        elif nested:
            yield name, ""
            yield from _outline(nested, depth + 1, now, room=room)
        else:
            text = _format_value(item)
            when = _describe_age(text, now)
            yield name, f"{text}   {when}" if when else safe(text)


def _make_columns(objects: list[JsonValue], now: datetime) -> list[_Column]:
    """Return the columns of an array of objects; none if an object has nested values."""
    rows = [dict(list_fields(item)) for item in objects]
    if any(isinstance(cell, dict | list) for row in rows for cell in row.values()):
        return []
    names = dict.fromkeys(name for row in rows for name in row)
    return [_make_column(name, [row.get(name) for row in rows], now, header=safe(name)) for name in names]


def _make_table(columns: list[_Column]) -> Table:
    table = Table(box=None, padding=(0, _COLUMN_GAP, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        least = column.min_width(_MIN_WIDTH)
        table.add_column(Text(column.header), min_width=least, no_wrap=column.is_unfolded, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _make_column(name: str, values: list[JsonValue], now: datetime, *, header: str = "") -> _Column:
    """Return a column whose cells are `values` as text. Amounts and numbers are aligned at the decimal point.

    Without `header`, the header is the name in capitals, or an unchanged JSON Pointer.
    """
    header = header or (name if name.startswith("/") else name.upper().replace("_", " "))
    texts = [_format_value(value) for value in values]
    if name in _TIME_COLUMNS:
        return _Column(name, header, [_describe_age(text, now) or safe(text) for text in texts], is_unfolded=True)
    cells = [safe(text) for text in texts]
    if name in _UNFOLDED_COLUMNS or (name != "amount" and not all(isinstance(value, Number) for value in values)):
        return _Column(name, header, cells, is_unfolded=name in _UNFOLDED_COLUMNS)
    parts = [cell.partition(".") for cell in cells]
    decimals = max(len(point + fraction) for _, point, fraction in parts)
    cells = [whole + (point + fraction).ljust(decimals) for whole, point, fraction in parts]
    width = max(map(len, (header, *cells)))
    return _Column(name, header.rjust(width), [cell.rjust(width) for cell in cells], is_unfolded=True)


def _format_value(value: JsonValue) -> str:
    """Return a value as text for a person: arrays of plain values with commas, else as in a cell."""
    if isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(format_cell(item) for item in value)
    return format_cell(value)


def _describe_age(text: str, now: datetime) -> str | None:
    """Return the age of a timestamp as text, or None if `text` is no timestamp."""
    try:
        return describe_age(text, now) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        # It has the form of a time, but there is no such day.
        return None


def _pad_row(cells: list[str], widths: tuple[int, ...]) -> str:
    padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    return (" " * _COLUMN_GAP).join(padded).rstrip()


def _table_width(columns: list[_Column], limit: int) -> int:
    """Return the width of a table: the sum of `min_width(limit)` of each column and a gap after each column."""
    return sum(column.min_width(limit) + _COLUMN_GAP for column in columns)


def _render_block(block: Table | Text, width: int, *, color: bool) -> str:
    """Return a block as the text that rich prints, without spaces at the ends of lines."""
    target = StringIO()
    Console(file=target, width=width, force_terminal=color, color_system="standard" if color else None).print(block)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines())
