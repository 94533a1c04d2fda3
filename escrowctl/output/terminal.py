"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup."""

from io import StringIO

from escrowctl.output.safe import safe
from escrowctl.output.view import Listing, View

_WHOLE = frozenset({"id", "entry"})
"""Columns whose cells name a thing: they are copied, so they are never folded."""

_NARROWEST = 8
_GAP = 2


def render_fields(view: View, *, width: int, color: bool) -> str:
    """Return one record as two columns, long values folded, the id never cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold" if color else "")
    table.add_column(overflow="fold")
    for name, value in view.fields:
        table.add_row(Text(safe(name)), Text(safe(value), no_wrap=value == view.id))
    names = max((_cells(safe(name)) for name, _ in view.fields), default=0)
    needed = names + 2 + _cells(safe(view.id or ""))
    return _print(table, width=max(width, needed, names + _GAP + _NARROWEST), color=color)


def render_listing(listing: Listing, *, width: int, color: bool) -> str:
    """Return a table with a header; cells that name a thing (ids) are never cut, others are folded.

    A terminal too narrow for that gets longer lines: what is whole can be copied.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold" if color else "")
    rows = [tuple(safe(cell) for cell in view.row) for view in listing.views]
    needed = 0
    for position, column in enumerate(listing.columns):
        whole = column in _WHOLE
        widest = max(len(column), *(_cells(row[position]) for row in rows))
        needed += (widest if whole else min(widest, _NARROWEST)) + _GAP
        table.add_column(
            column.upper(),
            no_wrap=whole,
            min_width=widest if whole else min(widest, _NARROWEST),
            overflow="fold",
            justify="right" if column in listing.right else "left",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return _print(table, width=max(width, needed), color=color)


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
