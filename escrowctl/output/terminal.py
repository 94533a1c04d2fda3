"""Views for a person at a terminal, by rich; cells are Text, so that data is never read as markup."""

from io import StringIO

from escrowctl.output.safe import safe
from escrowctl.output.view import Listing, View


def render_fields(view: View, *, width: int, color: bool) -> str:
    """Return one record as two columns, long values wrapped, ids never cut."""
    from rich.table import Table  # noqa: PLC0415 - rich is loaded for terminals only
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold" if color else "")
    table.add_column(overflow="fold")
    for name, value in view.fields:
        table.add_row(Text(safe(name)), Text(safe(value)))
    return _print(table, width=width, color=color)


def render_listing(listing: Listing, *, width: int, color: bool) -> str:
    """Return a table with a header; the first column (the id) is never cut."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold" if color else "")
    for position, column in enumerate(listing.columns):
        table.add_column(
            column.upper(),
            no_wrap=position == 0,
            overflow="fold",
            justify="right" if column in listing.right else "left",
        )
    for view in listing.views:
        table.add_row(*(Text(safe(cell)) for cell in view.row))
    return _print(table, width=width, color=color)


def _print(table: object, *, width: int, color: bool) -> str:
    from rich.console import Console  # noqa: PLC0415

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
