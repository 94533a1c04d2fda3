"""Views for a pipe: tab-separated, uncut, no colour, no header."""

from escrowctl.output.safe import safe
from escrowctl.output.view import Listing, View


def render_fields(view: View) -> str:
    """Return one record as field-TAB-value lines."""
    return "\n".join(f"{safe(name)}\t{safe(value)}" for name, value in view.fields)


def render_listing(listing: Listing) -> str:
    """Return one line a row, in the listing's fixed columns."""
    return "\n".join(render_row(view, listing.columns) for view in listing.views)


def render_row(view: View, columns: tuple[str, ...]) -> str:
    """Return one row."""
    return "\t".join(safe(cell) for cell in view.row(columns))
