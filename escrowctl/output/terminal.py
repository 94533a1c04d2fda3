"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup.

Ids and amounts are always complete. The other columns share the remaining room, by importance.
"""

import re
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from io import StringIO
from typing import NamedTuple

from escrowctl.contract.json import JsonValue, Number
from escrowctl.output.plain import safe
from escrowctl.output.view import Listing, View, text_of
from escrowctl.runtime import ago

_WHOLE = frozenset({"id", "entry", "endpoint"})
"""Columns of ids: they are copied, so they are never folded."""

_AMOUNTS = frozenset({"amount"})
_TIMES = frozenset({"created", "sent", "released", "next"})
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 section 5.6, in the forms that services write."""

GAP = 2
"""Cells between two columns."""

_LEAST_IMPORTANT = ("profile", "reference", "created", "sent", "events", "operation")
"""Columns hidden if there is no room, in this order. Others stay, and so do the ones that identify rows."""

_COMFORT, NARROWEST = 24, 8
"""The widths in cells at which a column is easy to read, and readable at all."""

_LONGEST_CODE = 8
"""The longest value of `currency` that may be appended to its amount."""


class Column(NamedTuple):
    """A column, not folded yet. `whole`: its cells are never folded. `right`: its cells are aligned at the right."""

    name: str
    header: str
    cells: tuple[str, ...]
    whole: bool
    right: bool

    @property
    def widest(self) -> int:
        """The width in terminal cells without any folding."""
        return max(measure(text) for text in (self.header, *self.cells))

    def at_least(self, wanted: int) -> int:
        """Return the least width: its cells, at most `wanted` if they fold, or the longest word of its header."""
        cells = max(map(measure, self.cells))
        return max(*map(measure, self.header.split()), cells if self.whole else min(cells, wanted))


def render_listing(listing: Listing, *, now: datetime, width: int, color: bool) -> tuple[str, tuple[str, ...]]:
    """Return a table with a header, and the names of the columns without room.

    Ids and amounts are never cut; other cells are folded. Amounts are aligned at the decimal point. Times
    are shown by their age. Chosen columns are never hidden. If the terminal is too narrow for the ids,
    lines are longer than the terminal, so that complete ids can be copied.
    """
    everything = [make_column(name, [view.named.get(name) for view in listing.views], now) for name in listing.columns]
    columns, hidden = (everything, ()) if listing.chosen else fit(everything, width, _keys(everything, listing.keys))
    return render_table(columns, width, color=color), hidden


def render_table(columns: list[Column], width: int, *, color: bool) -> str:
    """Return a table with a header. It is wider than `width` if no column can be folded further."""
    from rich.table import Table
    from rich.text import Text

    widths = share(columns, width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold" if color else "")
    for column, cells in zip(columns, widths, strict=True):
        header = Text(column.header, justify="right" if column.right else "left")
        table.add_column(header, width=cells, overflow="fold")
    for row in zip(*(_placed(column, cells) for column, cells in zip(columns, widths, strict=True)), strict=True):
        table.add_row(*(Text(cell, no_wrap=column.whole) for column, cell in zip(columns, row, strict=True)))
    return print_block(table, width=max(width, sum(widths) + GAP * len(widths)), color=color)


def render_row(view: View, widths: tuple[int, ...], now: datetime, *, color: bool) -> tuple[str, str, tuple[int, ...]]:
    """Return (header, row, widths for the next row) for rows that arrive one by one. The header is empty except for
    the first row, for which `widths` is empty. A cell wider than its column moves the cells after it.
    """
    names = tuple(view.named)
    cells = [_prepare(name, [read_out(view.named[name])], now)[0] for name in names]
    if widths:
        return "", _pad(cells, widths), widths
    widths = tuple(max(measure(name), measure(cell)) for name, cell in zip(names, cells, strict=True))
    header = _pad([_header(name) for name in names], widths)
    return f"\x1b[1m{header}\x1b[0m" if color else header, _pad(cells, widths), widths


def read_out(value: JsonValue) -> str:
    """Return a value as text for a person: an array of plain values with commas, any other by `text_of`."""
    if isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(text_of(item) for item in value)
    return text_of(value)


def _pad(cells: list[str], widths: tuple[int, ...]) -> str:
    padded = [cell + " " * (width - measure(cell)) for cell, width in zip(cells, widths, strict=True)]
    return (" " * GAP).join(padded).rstrip()


def make_column(name: str, values: list[JsonValue], now: datetime) -> Column:
    """Return a column with readable cells. Amounts, counts and sums are aligned at the right."""
    right = name in _AMOUNTS or (name not in _WHOLE and all(isinstance(value, Number) for value in values))
    cells = _prepare(name, [read_out(value) for value in values], now)
    shown = tuple(_align(cells) if right else cells)
    return Column(name, _header(name), shown, whole=right or name in _WHOLE | _TIMES, right=right)


def _header(name: str) -> str:
    """Return a column's header: its name in capitals, a JSON Pointer unchanged."""
    return name if name.startswith("/") else name.upper().replace("_", " ")


def _placed(column: Column, width: int) -> Iterator[str]:
    """Yield a column's cells, padded on the left if it is aligned at the right."""
    for cell in column.cells:
        yield " " * (width - measure(cell)) + cell if column.right else cell


def _prepare(name: str, cells: list[str], now: datetime) -> list[str]:
    """Return a column's cells in readable form; other values stay unchanged."""
    if name in _TIMES:
        return [relative(cell, now) or safe(cell) for cell in cells]
    return [safe(cell) for cell in cells]


def _align(amounts: list[str]) -> list[str]:
    """Return amounts aligned at the decimal point. No digit is added or removed."""
    parts = [amount.partition(".") for amount in amounts]
    before = max(measure(whole) for whole, _, _ in parts)
    behind = max(len(point + fraction) for _, point, fraction in parts)
    return [
        " " * (before - measure(whole)) + whole + (point + fraction).ljust(behind) for whole, point, fraction in parts
    ]


def relative(text: str, now: datetime) -> str | None:
    """Return the age of a timestamp as text, or None for any other text."""
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return ago(text, now)
    except ValueError:
        # It has the form of a time, but there is no such day.
        return None


def print_block(block: object, *, width: int, color: bool) -> str:
    """Return a renderable as the text that rich prints, without spaces at the ends of lines."""
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
    console.print(block)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines())


def fit(columns: list[Column], width: int, keys: Container[str]) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns that fit into `width` cells, and the names of the others. `keys` are never removed.

    Before a column is removed, the currency is appended to the amount.
    """
    if needed(columns, _COMFORT) > width:
        columns = _with_currency_behind_amount(columns)
    hidden = []
    for name in _LEAST_IMPORTANT:
        if needed(columns, _COMFORT) > width and name not in keys and any(column.name == name for column in columns):
            columns = [column for column in columns if column.name != name]
            hidden.append(name)
    return columns, tuple(hidden)


def _keys(columns: list[Column], names: tuple[str, ...]) -> frozenset[str]:
    """Return the columns that identify a row: `names`, or the first column if none of them is shown. Return all
    columns if two rows are equal in those.
    """
    keys = [column for column in columns if column.name in names] or columns[:1]
    rows = list(zip(*(column.cells for column in keys), strict=True))
    return frozenset(column.name for column in (keys if len(set(rows)) == len(rows) else columns))


def share(columns: list[Column], width: int) -> list[int]:
    """Return the width of each column. Columns that need more share all of the remaining room.

    The sum is more than `width` if no column can be folded further.
    """
    floor = _COMFORT if needed(columns, _COMFORT) <= width else NARROWEST
    widths = [column.at_least(floor) for column in columns]
    spare = width - _sum(widths)
    while spare > 0:
        needy = [place for place, column in enumerate(columns) if widths[place] < column.widest]
        if not needy:
            break
        for place in needy[:spare]:
            widths[place] += 1
        spare -= len(needy[:spare])
    return widths


def measure(text: str) -> int:
    """Return the width of a text in terminal cells."""
    from rich.cells import cell_len

    return cell_len(text)


def needed(columns: list[Column], floor: int) -> int:
    """Return the total width of columns at their least widths for `floor`, gaps included."""
    return _sum(column.at_least(floor) for column in columns)


def _sum(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + GAP * (len(found) - 1)


def _with_currency_behind_amount(columns: list[Column]) -> list[Column]:
    by_name = {column.name: column for column in columns}
    amount, currency = by_name.get("amount"), by_name.get("currency")
    if amount is None or currency is None or any(measure(code) > _LONGEST_CODE for code in currency.cells):
        return columns
    both = Column(
        amount.name,
        amount.header,
        tuple(f"{money} {code}".rstrip() for money, code in zip(amount.cells, currency.cells, strict=True)),
        whole=True,
        right=True,
    )
    return [both if column is amount else column for column in columns if column is not currency]
