"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup.

Ids and amounts are complete; the other columns get the room that is left, by importance.
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
"""RFC 3339 section 5.6, as far as services write it."""

GAP = 2
"""Cells between two columns."""

_LEAST_IMPORTANT = ("profile", "reference", "created", "sent", "events", "operation")
"""What goes first where there is no room; what is not among these stays, and so does what tells rows apart."""

_COMFORT, NARROWEST = 24, 8
"""How wide a column must be for it to be read without effort, and at all."""

_LONGEST_CODE = 8
"""The longest text under `currency` that is put behind its amount."""


class Column(NamedTuple):
    """A column as it would be shown if there were room; `whole`: its cells are never folded; `right`: at the right."""

    name: str
    header: str
    cells: tuple[str, ...]
    whole: bool
    right: bool

    @property
    def widest(self) -> int:
        """How many terminal cells it takes to show it without folding anything."""
        return max(measure(text) for text in (self.header, *self.cells))

    def at_least(self, wanted: int) -> int:
        """How many cells it takes at least, `wanted` of them where it is to be folded; a header folds between words."""
        cells = max(map(measure, self.cells))
        return max(*map(measure, self.header.split()), cells if self.whole else min(cells, wanted))


def render_listing(listing: Listing, *, now: datetime, width: int, color: bool) -> tuple[str, tuple[str, ...]]:
    """Return a table with a header, and the names of the columns that there was no room for.

    Ids and amounts are never cut, others are folded. The points of amounts are below each other; times
    are shown as how long ago they were. Columns that were chosen are all
    shown. A terminal too narrow for the ids gets longer lines: a complete id can be copied.
    """
    everything = [make_column(name, [view.named.get(name) for view in listing.views], now) for name in listing.columns]
    columns, hidden = (everything, ()) if listing.chosen else fit(everything, width, _keys(everything, listing.keys))
    return render_table(columns, width, color=color), hidden


def render_table(columns: list[Column], width: int, *, color: bool) -> str:
    """Return a table with a header, wider than `width` where nothing could be folded any further."""
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
    """Return one of several rows that come one by one: its header where it is the first (`widths` is empty), the
    row, and the widths for the next. A cell that is wider than the first row's pushes the others aside.
    """
    names = tuple(view.named)
    cells = [_prepare(name, [read_out(view.named[name])], now)[0] for name in names]
    if widths:
        return "", _pad(cells, widths), widths
    widths = tuple(max(measure(name), measure(cell)) for name, cell in zip(names, cells, strict=True))
    header = _pad([_header(name) for name in names], widths)
    return f"\x1b[1m{header}\x1b[0m" if color else header, _pad(cells, widths), widths


def read_out(value: JsonValue) -> str:
    """Return a value as a person reads it: an array of plain values with commas, the rest as `text_of` has it."""
    if isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(text_of(item) for item in value)
    return text_of(value)


def _pad(cells: list[str], widths: tuple[int, ...]) -> str:
    padded = [cell + " " * (width - measure(cell)) for cell, width in zip(cells, widths, strict=True)]
    return (" " * GAP).join(padded).rstrip()


def make_column(name: str, values: list[JsonValue], now: datetime) -> Column:
    """Return a column with its cells in the form that is easiest to read: amounts, counts and sums at the right."""
    right = name in _AMOUNTS or (name not in _WHOLE and all(isinstance(value, Number) for value in values))
    cells = _prepare(name, [read_out(value) for value in values], now)
    shown = tuple(_align(cells) if right else cells)
    return Column(name, _header(name), shown, whole=right or name in _WHOLE | _TIMES, right=right)


def _header(name: str) -> str:
    """Return a column's header: in words, but a JSON Pointer unchanged."""
    return name if name.startswith("/") else name.upper().replace("_", " ")


def _placed(column: Column, width: int) -> Iterator[str]:
    """Yield a column's cells where they are in its width."""
    for cell in column.cells:
        yield " " * (width - measure(cell)) + cell if column.right else cell


def _prepare(name: str, cells: list[str], now: datetime) -> list[str]:
    """Return a column's cells in the form that is easiest to read; other values stay unchanged."""
    if name in _TIMES:
        return [relative(cell, now) or safe(cell) for cell in cells]
    return [safe(cell) for cell in cells]


def _align(amounts: list[str]) -> list[str]:
    """Return amounts with their points below each other; no digit is added or taken away."""
    parts = [amount.partition(".") for amount in amounts]
    before = max(measure(whole) for whole, _, _ in parts)
    behind = max(len(point + fraction) for _, point, fraction in parts)
    return [
        " " * (before - measure(whole)) + whole + (point + fraction).ljust(behind) for whole, point, fraction in parts
    ]


def relative(text: str, now: datetime) -> str | None:
    """Return how long ago a timestamp was, or None for any other text."""
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return ago(text, now)
    except ValueError:
        # Shaped like a time, but no such day.
        return None


def print_block(block: object, *, width: int, color: bool) -> str:
    """Return what rich prints of a renderable, without spaces at the ends of lines."""
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
    """Return the columns that `width` cells hold, and the names of those that it does not; `keys` all stay.

    Before anything goes, the currency is put behind the amount.
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
    """Return the columns that tell the rows apart: all, where two rows are alike under `names` (unless given, the
    first column).
    """
    keys = [column for column in columns if column.name in names] or columns[:1]
    rows = list(zip(*(column.cells for column in keys), strict=True))
    return frozenset(column.name for column in (keys if len(set(rows)) == len(rows) else columns))


def share(columns: list[Column], width: int) -> list[int]:
    """Return how wide each column is: all of `width` is given away where anything needs it.

    Together they are wider than `width` where nothing could be folded any further.
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
    """Return how many cells of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def needed(columns: list[Column], floor: int) -> int:
    """Return how wide columns are together where those that fold are at least `floor` wide, if their cells are."""
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
