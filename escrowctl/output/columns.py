"""Which columns a terminal holds and how wide each is: ids and amounts whole, the others by importance."""

from collections.abc import Iterable
from typing import NamedTuple

GAP = 2
"""Cells between two columns."""

_LEAST_IMPORTANT = ("profile", "reference", "created", "sent", "events", "operation")
"""What goes first where there is no room; what is not among these stays, and so does the first column."""

_COMFORT, _NARROWEST = 24, 8
"""How wide a column must be for it to be read without effort, and at all."""

_LONGEST_CODE = 8
"""How long what stands as a currency may be to be put behind its amount."""


class Column(NamedTuple):
    """A column as it would be shown if there were room; `whole`: its cells are never folded."""

    name: str
    header: str
    cells: tuple[str, ...]
    whole: bool

    @property
    def widest(self) -> int:
        """How many terminal cells it takes to show it without folding anything."""
        return max(measure(text) for text in (self.header, *self.cells))

    def at_least(self, wanted: int) -> int:
        """How many cells it takes at least, `wanted` of them where it is to be folded."""
        return self.widest if self.whole else max(measure(self.header), min(self.widest, wanted))


def fit(columns: list[Column], width: int) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns that `width` cells hold, and the names of those that it does not.

    Before anything goes, the currency is put behind the amount.
    """
    if _needed(columns, _COMFORT) > width:
        columns = _with_currency_behind_amount(columns)
    hidden = []
    for name in _LEAST_IMPORTANT:
        if _needed(columns, _COMFORT) > width and any(column.name == name for column in columns[1:]):
            columns = [column for column in columns if column.name != name]
            hidden.append(name)
    return columns, tuple(hidden)


def share(columns: list[Column], width: int) -> list[int]:
    """Return how wide each column is: all of `width` is given away where anything needs it.

    Together they are wider than `width` where nothing could be folded any further.
    """
    floor = _COMFORT if _needed(columns, _COMFORT) <= width else _NARROWEST
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
    from rich.cells import cell_len  # noqa: PLC0415 - rich is loaded for terminals only

    return cell_len(text)


def _needed(columns: list[Column], floor: int) -> int:
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
    )
    return [both if column is amount else column for column in columns if column is not currency]
