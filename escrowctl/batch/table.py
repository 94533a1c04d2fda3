"""Files of rows: CSV with a header row (RFC 4180, and other delimiters), or JSON lines.

Every row has the number of the physical line on which it begins, as an editor counts them.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from escrowctl.contract.json import Broken, JsonValue, Number, read_reply

_MAX_LINE = 1024 * 1024
_DELIMITERS = ",;\t|"
_SHOWN = 40


class Flaw(NamedTuple):
    """A flaw of a row, as a sentence without its full stop."""

    line: int
    why: str


class NotRowsError(ValueError):
    """The kind of a file without rows, as the end of a sentence about it."""


class Row(NamedTuple):
    """A row's cells under their columns; in CSV, all cells are texts."""

    line: int
    cells: Mapping[str, JsonValue]


class Table:
    """The rows of one file. `columns` are complete once all rows were read: JSON lines may add one at any time.

    `rows` raises NotRowsError if the file is something else.
    """

    def __init__(self, source: BinaryIO) -> None:
        self.columns: dict[str, None] = {}
        self._lines = _Lines(source)
        self.is_json = self._lines.first.lstrip().startswith("{")

    def detach(self) -> None:
        """Stop reading without closing the file: its opener closes it."""
        self._lines.detach()

    def rows(self) -> Iterator[Row | Flaw]:
        """Yield every row, or its flaw; blank lines are skipped. Raises NotRowsError."""
        if why := _find_other_format(self._lines.first):
            raise NotRowsError(why)
        return self._json_rows() if self.is_json else self._csv_rows()

    def _json_rows(self) -> Iterator[Row | Flaw]:
        for text in self._lines:
            line = self._lines.number
            if flaw := self._lines.find_flaw():
                yield Flaw(line, flaw)
            elif text.strip():
                reply = read_reply(text.encode())
                if isinstance(reply, Broken):
                    yield Flaw(line, reply.defect.value)
                elif not isinstance(reply.value, dict):
                    yield Flaw(line, "is JSON, but not an object")
                else:
                    self.columns.update(dict.fromkeys(reply.value))
                    yield Row(line, reply.value)

    def _csv_rows(self) -> Iterator[Row | Flaw]:
        found = csv.reader(self._lines, delimiter=_find_delimiter(self._lines.first), strict=True)
        header: list[str] | None = None
        start = 1
        while True:
            start = self._lines.number + 1
            try:
                cells = next(found)
            except StopIteration:
                break
            except csv.Error as error:
                # After an open quote, cells cannot be separated.
                yield Flaw(start, f"cannot be read as CSV: {error}")
                return
            if flaw := self._lines.find_flaw():
                yield Flaw(start, flaw)
            elif not any(cells):
                continue
            elif header is None:
                header = [name.strip() for name in cells]
                if flaw := _find_header_flaw(header):
                    raise NotRowsError(flaw)
                self.columns = dict.fromkeys(header)
            elif len(cells) != len(header):
                yield Flaw(start, f"has {len(cells)} cells, but the header has {len(header)}")
            else:
                yield Row(start, dict(zip(header, cells, strict=True)))


class _Lines:
    """The lines of a text, each at most 1 MiB; counts them, and remembers the latest flaw."""

    def __init__(self, source: BinaryIO) -> None:
        # Invalid UTF-8 becomes lone surrogates, which are found line by line.
        self._text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.number = 0
        self._flaw = ""
        self.first = self._text.readline(_MAX_LINE)
        self._next = self.first

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._next
        if not line:
            raise StopIteration
        self._next = self._text.readline(_MAX_LINE)
        self.number += 1
        if len(line) >= _MAX_LINE:
            self._flaw = f"is longer than {_MAX_LINE} characters"
            while self._next and not line.endswith("\n"):
                line, self._next = self._next, self._text.readline(_MAX_LINE)
            return "\n"
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError:
                self._flaw = "is not UTF-8 text"
        return line

    def detach(self) -> None:
        """Leave the underlying file open: without this, the end of this object would close it."""
        self._text.detach()

    def find_flaw(self) -> str:
        """Return the flaw found since the last call; empty: none."""
        flaw, self._flaw = self._flaw, ""
        return flaw


def _find_delimiter(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _find_header_flaw(names: list[str]) -> str:
    if "" in names:
        return "has a column without a name in its first line"
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    return f'has the column "{twice[:_SHOWN]}" twice in its first line' if twice is not None else ""


def _find_other_format(start: str) -> str:
    """Return the format of a file by its first line, if it is no table, and the advice; empty: it may be one."""
    if start.startswith("PK\x03\x04"):
        return "is a workbook or an archive, not text: save the sheet as CSV (UTF-8)"
    # Bytes that are no UTF-8, as `_Lines` reads them.
    if start.startswith(("\udcff\udcfe", "\udcfe\udcff")):
        return "is UTF-16 text: save it as UTF-8"
    if start.lower().startswith("sep="):
        return f'begins with "{start.strip()}", which only spreadsheets understand: remove that line'
    if start.lstrip().startswith("["):
        return "is a JSON array: write one object in each line, as jq -c '.[]' does"
    return ""


def cell_text(value: JsonValue) -> str | None:
    """Return a cell as text: a number by its token; None for any other value."""
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, str) else None
