"""Check a complete file of rows before anything is sent: all flaws by line, the totals, and a digest."""

import contextlib
import hashlib
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import IO, BinaryIO, NamedTuple

from escrowctl.batch.rows import REASON_COLUMN, RESULT, RowContent, RowKind, check_row, decode_row, sort_columns
from escrowctl.batch.table import Flaw, NotRowsError, Row, Table, cell_text
from escrowctl.config.service import Service
from escrowctl.contract.money import sum_exactly
from escrowctl.contract.redaction import holds_key
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, not_sent

MAX_SHOWN_FLAWS = 1000
"""The most flaws that are shown of one file."""
_STORED_AT_ONCE = 64 * 1024
_BUCKET_BITS = 0xFFFF
_KEY_DIGITS = 16


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


def add_rows(sums: dict[str, Sum], rows: Iterable[RowContent]) -> None:
    """Add rows to the sums by currency. A release without an amount in the file counts under ""."""
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for row in rows:
        amounts[row.currency or ""].append(Decimal(row.amount or 0))
    for currency, found in amounts.items():
        sums[currency] = sums.get(currency, Sum()).plus(len(found), sum_exactly(found))


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
        # Hashes of keys, and the first line of each, in buckets of some 15 keys: a dict needs four times the memory.
        self._keys: dict[int, tuple[array[int], array[int]]] = defaultdict(lambda: (array("Q"), array("Q")))
        self._hash = hashlib.sha256()
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - `close` closes it
        self._unstored: list[tuple[RowContent, str]] = []
        self._unstored_size = 0

    @property
    def digest(self) -> str:
        """The digest of all rows: equal for files with the same rows in the same order."""
        return self._hash.hexdigest()

    @property
    def hashed_keys(self) -> Iterator[int]:
        """The hash of each row's key, in no order."""
        return (hashed for hashes, _ in self._keys.values() for hashed in hashes)

    def has_hashed_key(self, hashed: int) -> bool:
        """Whether a row has the key with this hash (or a different key with the same hash: no two are known)."""
        return hashed in self._keys[hashed & _BUCKET_BITS][0]

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
        if key and (first := self._note_key(key, found.line)) != found.line:
            flaws.append(f'{key_column} "{key}" is also on line {first}: write each {key_column} once')
        if flaws or isinstance(row, list):
            self._add_flaws(found.line, *flaws)
            return
        text = row.encode()
        self.rows += 1
        self.has_keys &= row.key is not None
        self._unstored.append((row, text))
        self._unstored_size += len(text)
        if self._unstored_size > _STORED_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Store the last rows, and add a flaw for each that contains the API key. Many at once are faster.

        Raises EscrowctlError `STATE_UNUSABLE` if the disk is full.
        """
        key, texts = self.service.key.reveal(), [text for _, text in self._unstored]
        if holds_key("\n".join(texts), key):
            for row, text in self._unstored:
                if holds_key(text, key):
                    self._add_flaws(row.line, "contains the API key: remove it")
        add_rows(self.sums, (row for row, _ in self._unstored))
        self._hash.update("".join(texts).encode())
        try:
            self._spool.writelines(f"{row.line}\t{text}\n" for row, text in self._unstored)
        except OSError as error:
            raise _disk_error(error) from error
        self._unstored, self._unstored_size = [], 0

    def __iter__(self) -> Iterator[RowContent]:
        """Yield every row without a flaw."""
        try:
            self._spool.seek(0)
        except OSError as error:
            raise _disk_error(error) from error
        for text in self._spool:
            line, _, content = text.partition("\t")
            yield decode_row(content, int(line))

    def iterate_with_keys(self) -> Iterator[tuple[RowContent, str]]:
        """Yield each row and its key. A missing key is made from the digest and the position."""
        for position, row in enumerate(self, start=1):
            yield row, row.key or f"{self.digest[:_KEY_DIGITS]}-{position}"

    def close(self) -> None:
        """Remove the temporary file, and free the memory of the keys."""
        self._keys.clear()
        # Rows that did not fit on the disk are still in memory, and fail again.
        with contextlib.suppress(OSError):
            self._spool.close()

    def _note_key(self, key: str, line: int) -> int:
        """Return the first line with this key, which is `line` if no earlier one had it."""
        hashed = self.kind.hash_key(key)
        hashes, lines = self._keys[hashed & _BUCKET_BITS]
        if hashed in hashes:
            return lines[hashes.index(hashed)]
        hashes.append(hashed)
        lines.append(line)
        return line

    def _add_flaws(self, line: int, *flaws: str) -> None:
        self.flawed_rows += 1
        if len(self.flaws) < MAX_SHOWN_FLAWS:
            self.flaws += [Flaw(line, why) for why in flaws]


def _disk_error(error: OSError) -> EscrowctlError:
    message = f"the checked rows could not be stored in {tempfile.gettempdir()}: {error.strerror or error}."
    return not_sent(ErrorCode.STATE_UNUSABLE, message, hint="free space there, or set TMPDIR to another folder")


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
    checked.flush()
    checked.columns = tuple(name for name in table.columns if not name.startswith(RESULT))


def _check_columns(kind: RowKind, columns: tuple[str, ...], service: Service, name: str) -> None:
    """Raise EscrowctlError `BAD_VALUE` if a CSV header lacks or misspells a column, or is of a results file."""
    if added := next((one for one in columns if one.startswith(RESULT) and one != REASON_COLUMN), None):
        # The cells of results are escaped for spreadsheets: their references may differ from the original ones.
        raise bad_value(
            f'{name} looks like a file of results (column "{added}"): send the original file, without the columns '
            f'that begin with "{RESULT}".'
        )
    required = (*kind.required_columns, *(["reference"] if service.live and kind.key_column == "reference" else []))
    if columns and (flaws := sort_columns(required, kind.known_columns, columns).flaws):
        raise bad_value(f"{name} {flaws[0]}.")
