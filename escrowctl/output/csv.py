"""Rows for a spreadsheet: RFC 4180, with no cell that one would calculate (OWASP ASVS 1.2.10, CWE-1236)."""

import csv
import io
from collections.abc import Iterable, Iterator

from escrowctl.output.safe import safe

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render_csv(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for the columns and one for each row, without line ends.

    A cell that would be a formula gets an apostrophe before it, which spreadsheets take for "text";
    the JSON lines have it as it was.
    """
    yield _line(columns)
    for row in rows:
        yield _line(row)


def _line(cells: tuple[str, ...]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow([_harmless(cell) for cell in cells])
    return written.getvalue()


def _harmless(cell: str) -> str:
    shown = safe(cell)
    return f"'{shown}" if cell.lstrip().startswith(_FORMULA_STARTS) else shown
