"""Check a complete file of rows before anything is sent: all flaws by line, the totals, and a digest."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, BinaryIO, NamedTuple

from escrowctl.batch.rows import REJECTED, RESULT, RowContent, RowKind, check_row, decode_row, list_misspelled
from escrowctl.batch.table import Flaw, NotRowsError, Row, Table, cell_text
from escrowctl.config.service import Service
from escrowctl.contract.money import sum_exactly
from escrowctl.contract.redaction import holds_key
from escrowctl.errors import ErrorCode, bad_value, not_sent

MOST_FLAWS = 1000
"""The most flaws that are shown of one file."""
_SEARCHED = 64 * 1024
_HASH_BYTES = 8
_KEY_DIGITS = 16
_MOST_NAMED = 20


class Sum(NamedTuple):
    """A number of rows, and their exact total amount."""

    rows: int = 0
    amount: Decimal = Decimal(0)

    def plus(self, rows: int, amount: Decimal) -> "Sum":
        """Return the sum with more rows."""
        return Sum(self.rows + rows, sum_exactly((self.amount, amount)))


def count_rows(count: int) -> str:
    """Return `1 row` or `5,000 rows`."""
    return "1 row" if count == 1 else f"{count:,} rows"


def add_row(sums: dict[str, Sum], row: RowContent) -> None:
    """Add a row to the sums by currency; a release whose amount is not known is under ""."""
    currency = row.currency or ""
    sums[currency] = sums.get(currency, Sum()).plus(1, Decimal(row.amount or 0))


class CheckedFile:
    """The rows of a file, in their order. Close it: they are stored in a temporary file.

    `sums` are by currency. `has_keys`: every row has a key. `flaws` are the first `MOST_FLAWS` flaws; `flawed` counts
    the rows that have one, and cannot be sent. `read` counts all rows.
    """

    def __init__(self, kind: RowKind, service: Service) -> None:
        self.kind = kind
        self.service = service
        self.is_json = False
        self.columns: tuple[str, ...] = ()
        self.rows = self.read = 0
        self.sums: dict[str, Sum] = {}
        self.has_keys = True
        self.flaws: list[Flaw] = []
        self.flawed = 0
        self._lines: dict[int, int] = {}
        self._hash = hashlib.sha256()
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - `close` closes it
        self._unsearched: list[tuple[int, str]] = []
        self._size = 0

    @property
    def digest(self) -> str:
        """The digest of all rows: equal for files with the same rows in the same order."""
        return self._hash.hexdigest()

    def may_have_key(self, key: str) -> bool:
        """Whether a row has this key. It is compared by hash: two different keys hardly ever have the same one."""
        return self._hash_key(key) in self._lines

    def take(self, found: Row | Flaw) -> None:
        """Store a row, or its flaws. Raises EscrowctlError `STATE_UNUSABLE` on a full disk."""
        self.read += 1
        if isinstance(found, Flaw):
            self._note(found.line, found.why)
            return
        row = check_row(self.kind, found, self.service)
        flaws = row if isinstance(row, list) else []
        name = self.kind.key
        key = cell_text(found.cells.get(name))
        if key and (first := self._lines.setdefault(self._hash_key(key), found.line)) != found.line:
            flaws.append(f'{name} "{key}" is also on line {first}: write each {name} once')
        if flaws or isinstance(row, list):
            self._note(found.line, *flaws)
            return
        text = row.encode()
        with _storing():
            self._spool.write(f"{found.line}\t{text}\n")
        self._hash.update(text.encode())
        self.rows += 1
        add_row(self.sums, row)
        self.has_keys &= row.key is not None
        self._unsearched.append((found.line, text))
        self._size += len(text)
        if self._size > _SEARCHED:
            self.search()

    def search(self) -> None:
        """Search for the API key, in many rows at once: one by one would take longer than all the rest."""
        key = self.service.key.reveal()
        if holds_key("\n".join(text for _, text in self._unsearched), key):
            for line, text in self._unsearched:
                if holds_key(text, key):
                    self._note(line, "holds the API key: remove it")
        self._unsearched, self._size = [], 0

    def __iter__(self) -> Iterator[tuple[int, RowContent]]:
        """Yield every row with its line."""
        with _storing():
            self._spool.seek(0)
        for text in self._spool:
            line, _, content = text.partition("\t")
            yield int(line), decode_row(content)

    def with_keys(self) -> Iterator[tuple[int, RowContent, str]]:
        """Yield every row with its line and key. A missing key is made from the content: equal on every machine."""
        for position, (line, row) in enumerate(self, start=1):
            yield line, row, row.key or f"{self.digest[:_KEY_DIGITS]}-{position}"

    def close(self) -> None:
        """Remove the temporary file, and release the memory of the keys: sending takes long, and needs neither."""
        self._lines.clear()
        # Rows that did not fit on the disk are still in memory, and fail again.
        with contextlib.suppress(OSError):
            self._spool.close()

    def _hash_key(self, key: str) -> int:
        return int.from_bytes(hashlib.blake2b(self.kind.fold(key).encode(), digest_size=_HASH_BYTES).digest(), "big")

    def _note(self, line: int, *flaws: str) -> None:
        self.flawed += 1
        if len(self.flaws) < MOST_FLAWS:
            self.flaws += [Flaw(line, why) for why in flaws]


@contextlib.contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise not_sent(
            ErrorCode.STATE_UNUSABLE,
            f"the checked rows could not be stored in {tempfile.gettempdir()}: {error.strerror or error}.",
            hint="make room there, or name another folder in TMPDIR",
        ) from error


def check_file(source: BinaryIO, checked: CheckedFile, *, name: str) -> None:
    """Take the rows of a file, and their flaws; `name` is its name in messages.

    Raises EscrowctlError (`ErrorCode.BAD_VALUE` if it is empty, of another format, or lacks a column,
    `ErrorCode.STATE_UNUSABLE` if there is no room for it); and OSError if it cannot be read.
    """
    table = Table(source)
    checked.is_json = table.is_json
    try:
        for found in table.rows():
            if not (checked.read or table.is_json):
                _check_columns(checked.kind, tuple(table.columns), checked.service, name)
            checked.take(found)
    except NotRowsError as error:
        raise bad_value(f"{name} {error}.") from error
    finally:
        table.detach()
    if not checked.read:
        raise bad_value(f"{name} has no rows under its header.")
    checked.search()
    checked.columns = tuple(name for name in table.columns if not name.startswith(RESULT))


def _check_columns(kind: RowKind, columns: tuple[str, ...], service: Service, name: str) -> None:
    """Refuse the header of a CSV file if it lacks a required column, or has a column that would be misread."""
    added = next((one for one in columns if one.startswith(RESULT) and one != REJECTED), None)
    if added is not None:
        # Its cells are changed for spreadsheets, so that their references would differ from the original ones.
        raise bad_value(
            f'{name} looks like a file of results (column "{added}"): send the original file, without the columns '
            f'that begin with "{RESULT}".'
        )
    for found, known in list_misspelled(kind, columns):
        raise bad_value(f'{name} has the column "{found}": write it as "{known}".')
    required = (*kind.required, *(["reference"] if service.live and kind.key == "reference" else []))
    missing = [column for column in required if column not in columns]
    if columns and missing:
        found = ", ".join(columns[:_MOST_NAMED])
        raise bad_value(f'{name} has no column "{missing[0]}": its first line names {found}.')
