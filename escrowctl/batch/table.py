"""Files of rows: CSV with a header row (RFC 4180, and other delimiters), or JSON lines.

Every row has the number of the physical line on which it begins, as an editor counts them.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from escrowctl.contract.json import JsonValue, Number, UnreadableReply, read_reply

_MAX_LINE_LENGTH = 1024 * 1024
_DELIMITERS = ",;\t|"
_MAX_SHOWN_NAME = 40


class Flaw(NamedTuple):
    """A flaw of the row on `line`. `why` continues a sentence about that row."""

    line: int
    why: str


class NotRowsError(ValueError):
    """A file that cannot be read as rows. The text continues a sentence that begins with the file's name."""


class Row(NamedTuple):
    """The cells of the row that begins on `line`, by column; in CSV, all cells are texts."""

    line: int
    cells: Mapping[str, JsonValue]


class Table:
    """The rows of one file. A line may have at most 1 MiB. Call `detach` at the end, or the file gets closed.

    `columns` are complete only when all rows were read: any JSON line may add a column.
    """

    def __init__(self, source: BinaryIO) -> None:
        self.columns: dict[str, None] = {}
        # Invalid UTF-8 becomes lone surrogates, which are found line by line.
        self._text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self._first_line = self._text.readline(_MAX_LINE_LENGTH)
        self._line_number = 0
        self._flaw = ""
        self.is_json = self._first_line.lstrip().startswith("{")

    def detach(self) -> None:
        """Stop reading without closing the file: its opener closes it."""
        self._text.detach()

    def rows(self) -> Iterator[Row | Flaw]:
        """Yield every row, or its flaw; skip blank lines. Raises NotRowsError if the file or header is unusable."""
        if self._first_line.startswith("PK\x03\x04"):
            raise NotRowsError("is a workbook or an archive, not text: save the sheet as CSV (UTF-8)")
        if self._first_line.lstrip().startswith("["):
            raise NotRowsError("is a JSON array: write one object in each line, as jq -c '.[]' does")
        return self._json_rows() if self.is_json else self._csv_rows()

    def _json_rows(self) -> Iterator[Row | Flaw]:
        for text in self._lines():
            flaw, self._flaw = self._flaw, ""
            if flaw:
                yield Flaw(self._line_number, flaw)
            elif text.strip():
                reply = read_reply(text.encode())
                if isinstance(reply, UnreadableReply):
                    yield Flaw(self._line_number, reply.defect.value)
                elif not isinstance(reply.value, dict):
                    yield Flaw(self._line_number, "is JSON, but not an object")
                else:
                    self.columns.update(dict.fromkeys(reply.value))
                    yield Row(self._line_number, reply.value)

    def _csv_rows(self) -> Iterator[Row | Flaw]:
        found = csv.reader(self._lines(), delimiter=max(_DELIMITERS, key=self._first_line.count), strict=True)
        header: list[str] | None = None
        while True:
            start = self._line_number + 1
            try:
                cells = next(found)
            except StopIteration:
                break
            except csv.Error as error:
                # After an open quote, cells cannot be separated.
                yield Flaw(start, f"cannot be read as CSV: {error}")
                return
            flaw, self._flaw = self._flaw, ""
            if flaw:
                yield Flaw(start, flaw)
            elif not any(cells):
                continue
            elif header is None:
                header = [name.strip() for name in cells]
                _check_header(header)
                self.columns = dict.fromkeys(header)
            elif len(cells) != len(header):
                yield Flaw(start, f"has {len(cells)} cells, but the header has {len(header)}")
            else:
                yield Row(start, dict(zip(header, cells, strict=True)))

    def _lines(self) -> Iterator[str]:
        """Yield every line, and note its number and its flaw."""
        line = self._first_line
        while line:
            following = self._text.readline(_MAX_LINE_LENGTH)
            self._line_number += 1
            if len(line) >= _MAX_LINE_LENGTH:
                self._flaw = f"is longer than {_MAX_LINE_LENGTH} characters"
                while following and not line.endswith("\n"):
                    line, following = following, self._text.readline(_MAX_LINE_LENGTH)
                line = "\n"
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError:
                    self._flaw = "is not UTF-8 text"
            yield line
            line = following


def _check_header(names: list[str]) -> None:
    if "" in names:
        raise NotRowsError("has a column without a name in its first line")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise NotRowsError(f'has the column "{name[:_MAX_SHOWN_NAME]}" twice in its first line')


def cell_text(value: JsonValue) -> str | None:
    """Return a text as it is, and a number as it is written in the file; None for values of all other types."""
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, str) else None
