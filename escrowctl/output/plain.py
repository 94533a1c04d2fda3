"""Plain text for pipes and files. `safe` makes text from outside harmless for a terminal."""

import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from escrowctl.characters import is_visible

_FORMULA_STARTS = ("=", "+", "-", "@", "\0", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def safe(text: str) -> str:
    """Return `text` with every invisible character shown by its code, such as `\\u{1b}`.

    Invisible are C0, DEL and C1 controls, bidirectional and zero-width characters, line separators,
    lone surrogates, fillers and variation selectors. They could move the cursor, hide text, end a
    line or make two texts look the same (CVE-2021-25743, CVE-2021-42574 and similar).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if is_visible(char) else f"\\u{{{ord(char):x}}}" for char in text)


def fold_line(line: str, width: int) -> str:
    """Break a line that is wider than `width` between two cells. Cells are separated by two or more spaces.

    A new line starts below the second cell. A cell wider than `width` is not broken.
    """
    first, *others = re.findall(r"\S+(?: \S+)* *", line) or [line]
    lines = [first]
    for cell in others:
        if len(lines[-1] + cell.rstrip()) > width:
            lines.append(" " * len(first))
        lines[-1] += cell
    return "\n".join(one.rstrip() for one in lines)


def render_rows(rows: Iterable[tuple[str, ...]]) -> str:
    """Return one line for each row, with tabs between the cells."""
    return "\n".join("\t".join(safe(cell) for cell in row) for row in rows)


def render_csv(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a header line and one line for each row, without line ends (RFC 4180).

    A cell that a spreadsheet would run as a formula (OWASP ASVS 1.2.10, CWE-1236) begins with an apostrophe,
    which spreadsheets read as "text".
    """
    for row in chain([columns], rows):
        yield format_csv_line(f"'{safe(one)}" if one.lstrip().startswith(_FORMULA_STARTS) else safe(one) for one in row)


def format_csv_line(cells: Iterable[str]) -> str:
    """Return a row as one line of CSV, without its line end. No cell is changed."""
    import csv  # noqa: PLC0415 - only CSV output needs it

    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()
