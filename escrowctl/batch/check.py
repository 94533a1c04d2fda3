"""Check a complete file of rows before anything is sent: all flaws by line, the totals, and a digest."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, BinaryIO, NamedTuple

from escrowctl.batch.rows import REASON_COLUMN, RESULT, RowContent, RowKind, check_row, decode_row, list_misspelled
from escrowctl.batch.table import Flaw, NotRowsError, Row, Table, cell_text
from escrowctl.config.service import Service
from escrowctl.contract.money import sum_exactly
from escrowctl.contract.redaction import holds_key
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, not_sent

MAX_SHOWN_FLAWS = 1000
"""The most flaws that are shown of one file."""
_SEARCHED_AT_ONCE = 64 * 1024
_HASH_BYTES = 8
_KEY_DIGITS = 16
_MAX_LISTED_COLUMNS = 20


class Sum(NamedTuple):
    """A number of rows, and their exact total amount."""

    rows: int = 0
    amount: Decimal = Decimal(0)

    def plus(self, rows: int, amount: Decimal) -> "Sum":
        """Return the sum with these rows and their amount added."""
        return Sum(self.rows + rows, sum_exactly((self.amount, amount)))


def count_rows(count: int) -> str:
    """Return `1 row` or `5,000 rows`."""
    return "1 row" if count == 1 else f"{count:,} rows"


def add_row(sums: dict[str, Sum], row: RowContent) -> None:
    """Add a row to the sums by currency. A release without an amount in the file counts under ""."""
    currency = row.currency or ""
    sums[currency] = sums.get(currency, Sum()).plus(1, Decimal(row.amount or 0))


class CheckedFile:
    """The valid rows of a file, in a temporary file, and the flaws of the invalid rows. Call `close` at the end.

    `sums` maps currency to `Sum`. `has_keys`: every stored row has a key (its reference or id). `flaws` has about
    the first `MAX_SHOWN_FLAWS` flaws. `rows` counts stored rows, `flawed_rows` rows with flaws, `rows_read` all rows.
    """

    def __init__(self, kind: RowKind, service: Service) -> None:
        self.kind = kind
        self.service = service
        self.is_json = False
        self.columns: tuple[str, ...] = ()
        self.rows = self.rows_read = 0
        self.sums: dict[str, Sum] = {}
        self.has_keys = True
        self.flaws: list[Flaw] = []
        self.flawed_rows = 0
        self._first_lines: dict[int, int] = {}
        self._hash = hashlib.sha256()
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - `close` closes it
        self._unsearched: list[tuple[int, str]] = []
        self._unsearched_size = 0

    @property
    def digest(self) -> str:
        """The digest of all rows: equal for files with the same rows in the same order."""
        return self._hash.hexdigest()

    def may_have_key(self, key: str) -> bool:
        """Whether a row has this key or, which hardly ever happens, a different key with the same hash."""
        return self._hash_key(key) in self._first_lines

    def check_and_store(self, found: Row | Flaw) -> None:
        """Check a row, and store it or its flaws. Raises EscrowctlError `STATE_UNUSABLE` if the disk is full."""
        self.rows_read += 1
        if isinstance(found, Flaw):
            self._add_flaws(found.line, found.why)
            return
        row = check_row(self.kind, found, self.service)
        flaws = row if isinstance(row, list) else []
        key_column = self.kind.key_column
        key = cell_text(found.cells.get(key_column))
        if key and (first := self._first_lines.setdefault(self._hash_key(key), found.line)) != found.line:
            flaws.append(f'{key_column} "{key}" is also on line {first}: write each {key_column} once')
        if flaws or isinstance(row, list):
            self._add_flaws(found.line, *flaws)
            return
        text = row.encode()
        try:
            self._spool.write(f"{found.line}\t{text}\n")
        except OSError as error:
            raise _disk_error(error) from error
        self._hash.update(text.encode())
        self.rows += 1
        add_row(self.sums, row)
        self.has_keys &= row.key is not None
        self._unsearched.append((found.line, text))
        self._unsearched_size += len(text)
        if self._unsearched_size > _SEARCHED_AT_ONCE:
            self.flag_api_keys()

    def flag_api_keys(self) -> None:
        """Add a flaw for each row that contains the API key. Many rows are searched at once, which is faster."""
        key = self.service.key.reveal()
        if holds_key("\n".join(text for _, text in self._unsearched), key):
            for line, text in self._unsearched:
                if holds_key(text, key):
                    self._add_flaws(line, "contains the API key: remove it")
        self._unsearched, self._unsearched_size = [], 0

    def __iter__(self) -> Iterator[tuple[int, RowContent]]:
        """Yield the line and the content of every row without a flaw."""
        try:
            self._spool.seek(0)
        except OSError as error:
            raise _disk_error(error) from error
        for text in self._spool:
            line, _, content = text.partition("\t")
            yield int(line), decode_row(content, int(line))

    def iterate_with_keys(self) -> Iterator[tuple[int, RowContent, str]]:
        """Yield each row's line, content and key. A missing key is made from the digest and the position."""
        for position, (line, row) in enumerate(self, start=1):
            yield line, row, row.key or f"{self.digest[:_KEY_DIGITS]}-{position}"

    def close(self) -> None:
        """Remove the temporary file, and free the memory of the keys."""
        self._first_lines.clear()
        # Rows that did not fit on the disk are still in memory, and fail again.
        with contextlib.suppress(OSError):
            self._spool.close()

    def _hash_key(self, key: str) -> int:
        return int.from_bytes(hashlib.blake2b(self.kind.fold(key).encode(), digest_size=_HASH_BYTES).digest(), "big")

    def _add_flaws(self, line: int, *flaws: str) -> None:
        self.flawed_rows += 1
        if len(self.flaws) < MAX_SHOWN_FLAWS:
            self.flaws += [Flaw(line, why) for why in flaws]


def _disk_error(error: OSError) -> EscrowctlError:
    return not_sent(
        ErrorCode.STATE_UNUSABLE,
        f"the checked rows could not be stored in {tempfile.gettempdir()}: {error.strerror or error}.",
        hint="free space there, or set TMPDIR to another folder",
    )


def check_file(source: BinaryIO, checked: CheckedFile, *, name: str) -> None:
    """Read all rows of a file into `checked`. `name` is the file's name in messages.

    Raises EscrowctlError: `BAD_VALUE` if the file is empty, has another format or lacks a column, `STATE_UNUSABLE`
    if the disk is full. Raises OSError if the file cannot be read.
    """
    table = Table(source)
    checked.is_json = table.is_json
    try:
        for found in table.rows():
            if not (checked.rows_read or table.is_json):
                _check_columns(checked.kind, tuple(table.columns), checked.service, name)
            checked.check_and_store(found)
    except NotRowsError as error:
        raise bad_value(f"{name} {error}.") from error
    finally:
        table.detach()
    if not checked.rows_read:
        raise bad_value(f"{name} has no rows under its header.")
    checked.flag_api_keys()
    checked.columns = tuple(name for name in table.columns if not name.startswith(RESULT))


def _check_columns(kind: RowKind, columns: tuple[str, ...], service: Service, name: str) -> None:
    """Raise EscrowctlError `BAD_VALUE` if a CSV header lacks or misspells a column, or is of a results file."""
    added = next((one for one in columns if one.startswith(RESULT) and one != REASON_COLUMN), None)
    if added is not None:
        # The cells of results are escaped for spreadsheets: their references may differ from the original ones.
        raise bad_value(
            f'{name} looks like a file of results (column "{added}"): send the original file, without the columns '
            f'that begin with "{RESULT}".'
        )
    for found, known in list_misspelled(kind, columns):
        raise bad_value(f'{name} has the column "{found}": write it as "{known}".')
    required = (*kind.required_columns, *(["reference"] if service.live and kind.key_column == "reference" else []))
    missing = [column for column in required if column not in columns]
    if columns and missing:
        found = ", ".join(columns[:_MAX_LISTED_COLUMNS])
        raise bad_value(f'{name} has no column "{missing[0]}": its first line names {found}.')
