"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup."""

import re
from datetime import datetime
from io import StringIO

from escrowctl.output.columns import GAP, Column, fit, measure, share
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
    names = max((measure(safe(name)) for name, _ in view.fields), default=0)
    needed = names + 2 + measure(safe(view.id or ""))
    return _print(table, width=max(width, needed, names + GAP + _NARROWEST), color=color)


def render_listing(listing: Listing, *, now: datetime, width: int, color: bool) -> tuple[str, tuple[str, ...]]:
    """Return a table with a header, and the names of the columns that there was no room for.

    Cells that name a thing (ids) and amounts are never cut, others are folded. Amounts stand with
    their points below each other, times as how long ago they were. Columns that were chosen are all
    shown. A terminal too narrow for the ids gets longer lines: what is whole can be copied.
    """
    from rich.table import Table
    from rich.text import Text

    everything = _columns(listing, now)
    columns, hidden = (everything, ()) if listing.chosen else fit(everything, width)
    widths = share(columns, width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold" if color else "")
    for column, cells in zip(columns, widths, strict=True):
        table.add_column(column.header, no_wrap=column.whole, width=cells, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return _print(table, width=max(width, sum(widths) + GAP * len(widths)), color=color), hidden


def render_row(view: View, widths: tuple[int, ...], now: datetime, *, color: bool) -> tuple[str, str, tuple[int, ...]]:
    """Return one of several rows that come one by one: its header where it is the first (`widths` is empty), the
    row, and the widths for the next. A cell that is wider than the first row's pushes the others aside.
    """
    names = tuple(view.named)
    cells = [_prepare(name, [cell], now)[0] for name, cell in zip(names, view.row(names), strict=True)]
    if widths:
        return "", _pad(cells, widths), widths
    widths = tuple(max(measure(name), measure(cell)) for name, cell in zip(names, cells, strict=True))
    header = _pad([name.upper() for name in names], widths)
    return f"\x1b[1m{header}\x1b[0m" if color else header, _pad(cells, widths), widths


def _pad(cells: list[str], widths: tuple[int, ...]) -> str:
    padded = [cell + " " * (width - measure(cell)) for cell, width in zip(cells, widths, strict=True)]
    return (" " * GAP).join(padded).rstrip()


def _columns(listing: Listing, now: datetime) -> list[Column]:
    rows = zip(*(view.row(listing.columns) for view in listing.views), strict=True)
    return [_column(name, list(cells), now) for name, cells in zip(listing.columns, rows, strict=True)]


def _column(name: str, cells: list[str], now: datetime) -> Column:
    shown = tuple(_prepare(name, cells, now))
    header = name.upper()
    if name in _AMOUNTS:
        header = header.rjust(max(map(measure, shown)))
    return Column(name, header, shown, whole=name in _WHOLE | _AMOUNTS | _TIMES)


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
    before = max(measure(whole) for whole, _, _ in parts)
    behind = max(len(point + fraction) for _, point, fraction in parts)
    return [
        " " * (before - measure(whole)) + whole + (point + fraction).ljust(behind) for whole, point, fraction in parts
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
