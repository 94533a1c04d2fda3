"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup."""

import re
from datetime import datetime
from io import StringIO

from escrowctl.output.safe import safe
from escrowctl.output.view import Listing, View
from escrowctl.surroundings import ago

_WHOLE = frozenset({"id", "entry"})
"""Columns whose cells name a thing: they are copied, so they are never folded."""

_AMOUNTS = frozenset({"amount"})
_TIMES = frozenset({"created", "sent"})
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 section 5.6, as far as services write it."""

_NARROWEST = 8
_GAP = 2


def render_fields(view: View, *, now: datetime, width: int, color: bool) -> str:
    """Return one record as two columns, long values folded, the id never cut; times say how long ago they were."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold" if color else "")
    table.add_column(overflow="fold")
    for name, value in view.fields:
        when = _relative(value, now)
        shown = f"{value}   {when}" if when else safe(value)
        table.add_row(Text(safe(name)), Text(shown, no_wrap=value == view.id))
    names = max((_cells(safe(name)) for name, _ in view.fields), default=0)
    needed = names + 2 + _cells(safe(view.id or ""))
    return _print(table, width=max(width, needed, names + _GAP + _NARROWEST), color=color)


def render_listing(listing: Listing, *, now: datetime, width: int, color: bool) -> str:
    """Return a table with a header; cells that name a thing (ids) are never cut, others are folded.

    Amounts stand with their points below each other, times as how long ago they were. A terminal
    too narrow for the ids gets longer lines: what is whole can be copied.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold" if color else "")
    cells = zip(*(view.row(listing.columns) for view in listing.views), strict=True)
    columns = [_prepare(name, list(column), now) for name, column in zip(listing.columns, cells, strict=True)]
    needed = 0
    for column, texts in zip(listing.columns, columns, strict=True):
        whole = column in _WHOLE | _AMOUNTS | _TIMES
        widest = max(len(column), *map(_cells, texts))
        needed += (widest if whole else min(widest, _NARROWEST)) + _GAP
        table.add_column(
            column.upper().rjust(widest) if column in _AMOUNTS else column.upper(),
            no_wrap=whole,
            min_width=widest if whole else min(widest, _NARROWEST),
            overflow="fold",
        )
    for row in zip(*columns, strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return _print(table, width=max(width, needed), color=color)


def _prepare(name: str, cells: list[str], now: datetime) -> list[str]:
    """Return a column's cells as they are read best; what is not of the column's kind stays as it is."""
    if name in _TIMES:
        return [_relative(cell, now) or safe(cell) for cell in cells]
    if name in _AMOUNTS:
        return _align([safe(cell) for cell in cells])
    return [safe(cell) for cell in cells]


def _align(amounts: list[str]) -> list[str]:
    """Return amounts with their points below each other; no digit is added or taken away."""
    parts = [amount.partition(".") for amount in amounts]
    before = max(_cells(whole) for whole, _, _ in parts)
    behind = max(len(point + fraction) for _, point, fraction in parts)
    return [
        " " * (before - _cells(whole)) + whole + (point + fraction).ljust(behind) for whole, point, fraction in parts
    ]


def _relative(text: str, now: datetime) -> str | None:
    """Return how long ago a timestamp was, or None for any other text."""
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return ago(text, now)
    except ValueError:
        # Shaped like a time, but no such day.
        return None


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _print(table: object, *, width: int, color: bool) -> str:
    from rich.console import Console

    target = StringIO()
    console = Console(
        file=target,
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(table)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines())
