"""Check a complete file of rows before anything is sent: all flaws by line, the totals, and a digest."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from difflib import get_close_matches
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


class CheckedFile:
    """The rows of a file without flaws, in their order. Close it: they are stored in a temporary file.

    `sums` are by currency; releases whose amount the file does not give are under "". `has_keys`: every row has a key.
    """

    def __init__(self, kind: RowKind, *, is_json: bool) -> None:
        self.kind = kind
        self.is_json = is_json
        self.columns: tuple[str, ...] = ()
        self.rows = 0
        self.sums: dict[str, Sum] = {}
        self.has_keys = True
        self._lines: dict[int, int] = {}
        self._hash = hashlib.sha256()
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - `close` closes it

    @property
    def digest(self) -> str:
        """The digest of all rows: equal for files with the same rows in the same order."""
        return self._hash.hexdigest()

    def add_key(self, key: str, line: int) -> int:
        """Store the key of a row, and return the first line that has it."""
        return self._lines.setdefault(self._hash_key(key), line)

    def may_have_key(self, key: str) -> bool:
        """Whether a row has this key. It is compared by hash: two different keys hardly ever have the same one."""
        return self._hash_key(key) in self._lines

    def _hash_key(self, key: str) -> int:
        return int.from_bytes(hashlib.blake2b(self.kind.fold(key).encode(), digest_size=_HASH_BYTES).digest(), "big")

    def add(self, line: int, row: RowContent) -> str:
        """Store a row, and return its text. Raises EscrowctlError `STATE_UNUSABLE` on a full disk."""
        text = row.encode()
        with _storing():
            self._spool.write(f"{line}\t{text}\n")
        self._hash.update(text.encode())
        self.rows += 1
        self.sums[row.currency or ""] = self.sums.get(row.currency or "", Sum()).plus(1, Decimal(row.amount or 0))
        return text

    def __iter__(self) -> Iterator[tuple[int, RowContent]]:
        """Yield every row with its line."""
        self._spool.seek(0)
        for text in self._spool:
            line, _, content = text.partition("\t")
            yield int(line), decode_row(content)

    def with_keys(self) -> Iterator[tuple[int, RowContent, str]]:
        """Yield every row with its line and key. A missing key is made from the content: equal on every machine."""
        for position, (line, row) in enumerate(self, start=1):
            yield line, row, row.key or f"{self.digest[:_KEY_DIGITS]}-{position}"

    def finish(self) -> None:
        """Write the rows that are still in memory. Raises EscrowctlError `STATE_UNUSABLE` on a full disk."""
        with _storing():
            self._spool.flush()

    def close(self) -> None:
        """Remove the temporary file, and release the memory of the keys: sending takes long, and needs neither."""
        self._lines.clear()
        # Rows that did not fit on the disk are still in memory, and fail again.
        with contextlib.suppress(OSError):
            self._spool.close()


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


class _Check:
    def __init__(self, service: Service, checked: CheckedFile) -> None:
        self._service = service
        self._checked = checked
        self.flaws: list[Flaw] = []
        self.flawed = 0
        self._unsearched: list[tuple[int, str]] = []
        self._size = 0

    def take(self, found: Row | Flaw) -> None:
        """Add a row to the checked ones, or its flaws to the list."""
        if isinstance(found, Flaw):
            self._note(found.line, found.why)
            return
        kind = self._checked.kind
        row = check_row(kind, found, self._service)
        flaws = row if isinstance(row, list) else []
        key = cell_text(found.cells.get(kind.key))
        if key and (first := self._checked.add_key(key, found.line)) != found.line:
            flaws.append(f'{kind.key} "{key}" is also on line {first}: write each {kind.key} once')
        if flaws or isinstance(row, list):
            self._note(found.line, *flaws)
            return
        self._checked.has_keys &= row.key is not None
        text = self._checked.add(found.line, row)
        self._unsearched.append((found.line, text))
        self._size += len(text)
        if self._size > _SEARCHED:
            self.search()

    def search(self) -> None:
        """Search for the API key, in many rows at once: one by one would take longer than all the rest."""
        key = self._service.key.reveal()
        if holds_key("\n".join(text for _, text in self._unsearched), key):
            for line, text in self._unsearched:
                if holds_key(text, key):
                    self._note(line, "holds the API key: remove it")
        self._unsearched, self._size = [], 0

    def _note(self, line: int, *flaws: str) -> None:
        self.flawed += 1
        if len(self.flaws) < MOST_FLAWS:
            self.flaws += [Flaw(line, why) for why in flaws]


class FlawedFileError(Exception):
    """A file with rows that cannot be sent: the first `MOST_FLAWS` flaws by line, and how many rows have one."""

    def __init__(self, flaws: list[Flaw], flawed: int, rows: int) -> None:
        super().__init__(flawed)
        self.flaws = sorted(flaws)
        self.flawed = flawed
        self.rows = rows


def check_file(source: BinaryIO, kind: RowKind, service: Service, *, name: str) -> CheckedFile:
    """Return the rows of a file; `name` is its name in messages.

    Raises FlawedFileError; EscrowctlError (`ErrorCode.BAD_VALUE` if it is empty, of another format, or lacks a column,
    `ErrorCode.STATE_UNUSABLE` if there is no room for it); and OSError if it cannot be read.
    """
    table = Table(source)
    checked = CheckedFile(kind, is_json=table.is_json)
    check, rows = _Check(service, checked), 0
    try:
        for found in table.rows():
            rows += 1
            if rows == 1 and not table.is_json:
                _check_columns(kind, tuple(table.columns), service, name)
            check.take(found)
        if not rows:
            # A file without a header: its only row was taken for the header.
            if table.columns:
                _check_columns(kind, tuple(table.columns), service, name)
            raise bad_value(f"{name} has no rows.")
        checked.finish()
        check.search()
        if check.flawed:
            raise FlawedFileError(check.flaws, check.flawed, rows)
    except NotRowsError as error:
        checked.close()
        raise bad_value(f"{name} {error}.") from error
    except BaseException:
        checked.close()
        raise
    finally:
        table.detach()
    checked.columns = tuple(name for name in table.columns if not name.startswith(RESULT))
    return checked


def _check_columns(kind: RowKind, columns: tuple[str, ...], service: Service, name: str) -> None:
    """Refuse the header of a CSV file if it lacks a required column, or has a column that would be misread."""
    added = next((one for one in columns if one.startswith(RESULT) and one != REJECTED), None)
    if added is not None:
        # Its cells are changed for spreadsheets, so that their references would differ from the original ones.
        raise bad_value(
            f'{name} has the column "{added}", as a file of results has: leave out the columns that begin with '
            f'"{RESULT}", and take the others from the file that was sent.'
        )
    for found, known in list_misspelled(kind, columns):
        raise bad_value(f'{name} has the column "{found}": write it as "{known}".')
    required = (*kind.required, *(["reference"] if service.live and kind.key == "reference" else []))
    missing = [column for column in required if column not in columns]
    if columns and missing:
        found = ", ".join(columns[:_MOST_NAMED])
        close = get_close_matches(missing[0], columns, n=1)
        meant = f' Is "{close[0]}" meant to be "{missing[0]}"?' if close else ""
        raise bad_value(f'{name} has no column "{missing[0]}": its first line names {found}.{meant}')
