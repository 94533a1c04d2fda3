"""A file of rows, checked as a whole before anything is sent: every flaw by its line, totals, and a digest."""

import hashlib
import tempfile
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import IO, BinaryIO, NamedTuple

from escrowctl.batch.rows import RESULT, RowContent, RowKind, check_row, decode_row
from escrowctl.batch.table import Flaw, Row, Table
from escrowctl.config.service import Service
from escrowctl.contract.redaction import holds_key
from escrowctl.errors import bad_value

MOST_FLAWS = 1000
"""Of a file with more, only these are shown."""
_SUM_DIGITS = 500
_SEARCHED = 64 * 1024
_HASH_BYTES = 8


class Sum(NamedTuple):
    """How many rows, and what they add up to, exactly."""

    rows: int = 0
    amount: Decimal = Decimal(0)


def count_rows(count: int) -> str:
    """Return `1 row` or `5,000 rows`."""
    return "1 row" if count == 1 else f"{count:,} rows"


class CheckedFile:
    """The rows of a file in which nothing is wrong, in their order. Close it: they are kept in a temporary file.

    `sums` are by currency, those of releases whose amount the file does not say under "". `digest` is
    equal for files with the same rows in the same order.
    """

    def __init__(self, kind: RowKind, *, is_json: bool) -> None:
        self.kind = kind
        self.is_json = is_json
        self.columns: tuple[str, ...] = ()
        self.rows = 0
        self.sums: dict[str, Sum] = {}
        self.keys: set[int] = set()
        """What every key hashes to: for two keys that differ it is hardly ever equal."""
        self._hash = hashlib.sha256()
        self._spool: IO[str] = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - `close` closes it

    @property
    def digest(self) -> str:
        """What tells files with other rows apart."""
        return self._hash.hexdigest()

    def add(self, line: int, row: RowContent) -> str:
        """Take a row, and return its text."""
        text = row.encode()
        self._spool.write(f"{line}\t{text}\n")
        self._hash.update(text.encode())
        self.rows += 1
        known = self.sums.get(row.currency or "", Sum())
        self.sums[row.currency or ""] = Sum(known.rows + 1, known.amount + Decimal(row.amount or 0))
        return text

    def __iter__(self) -> Iterator[tuple[int, RowContent]]:
        """Yield every row with its line."""
        self._spool.seek(0)
        for text in self._spool:
            line, _, content = text.partition("\t")
            yield int(line), decode_row(content)

    def close(self) -> None:
        """Remove the temporary file."""
        self._spool.close()


class _Check:
    def __init__(self, kind: RowKind, service: Service, checked: CheckedFile) -> None:
        self._kind = kind
        self._service = service
        self._checked = checked
        self.flaws: list[Flaw] = []
        self.flawed = 0
        self._unsearched: list[tuple[int, str]] = []
        self._size = 0
        self._twice: set[int] = set()

    def take(self, found: Row | Flaw) -> None:
        if isinstance(found, Flaw):
            self._note(found.line, found.why)
            return
        row = check_row(self._kind, found, self._service)
        if isinstance(row, list):
            self._note(found.line, *row)
            return
        self._search(found.line, self._checked.add(found.line, row))
        if row.key is not None:
            hashed = hash_key(self._kind, row.key)
            if hashed in self._checked.keys:
                self._twice.add(hashed)
            self._checked.keys.add(hashed)

    def finish(self) -> None:
        self._search_all()
        if self._twice:
            self._name_repeated()

    def _note(self, line: int, *flaws: str) -> None:
        self.flawed += 1
        if len(self.flaws) < MOST_FLAWS:
            self.flaws += [Flaw(line, why) for why in flaws]

    def _search(self, line: int, text: str) -> None:
        """Look for the API key, in many rows at once: one by one would take longer than all the rest."""
        self._unsearched.append((line, text))
        self._size += len(text)
        if self._size > _SEARCHED:
            self._search_all()

    def _search_all(self) -> None:
        key = self._service.key.reveal()
        if holds_key("\n".join(text for _, text in self._unsearched), key):
            for line, text in self._unsearched:
                if holds_key(text, key):
                    self._note(line, "holds the API key: remove it")
        self._unsearched, self._size = [], 0

    def _name_repeated(self) -> None:
        first: dict[str, int] = {}
        for line, row in self._checked:
            if row.key is None or hash_key(self._kind, row.key) not in self._twice:
                continue
            other = first.setdefault(self._kind.fold(row.key), line)
            if other != line:
                self._note(
                    line, f'{self._kind.key} "{row.key}" is also on line {other}: write each {self._kind.key} once'
                )


def hash_key(kind: RowKind, key: str) -> int:
    """Return what a row's key is found by among very many."""
    return int.from_bytes(hashlib.blake2b(kind.fold(key).encode(), digest_size=_HASH_BYTES).digest(), "big")


class FlawedFileError(Exception):
    """A file with rows that cannot be sent: the first `MOST_FLAWS` flaws by line, and how many rows have one."""

    def __init__(self, flaws: list[Flaw], flawed: int, rows: int) -> None:
        super().__init__(flawed)
        self.flaws = sorted(flaws)
        self.flawed = flawed
        self.rows = rows


def check_file(source: BinaryIO, kind: RowKind, service: Service, *, name: str) -> CheckedFile:
    """Return the rows of a file; `name` is what messages call it.

    Raises FlawedFileError, EscrowctlError (`ErrorCode.BAD_VALUE`) where it is empty or a column is missing,
    and OSError where it cannot be read.
    """
    table = Table(source)
    checked = CheckedFile(kind, is_json=table.is_json)
    check, rows = _Check(kind, service, checked), 0
    try:
        with localcontext(prec=_SUM_DIGITS):
            for found in table.rows():
                rows += 1
                if rows == 1 and not table.is_json:
                    _require_columns(kind, tuple(table.columns), service, name)
                check.take(found)
        if not rows:
            raise bad_value(f"{name} has no rows.")
        check.finish()
        if check.flawed:
            raise FlawedFileError(check.flaws, check.flawed, rows)
    except BaseException:
        checked.close()
        raise
    finally:
        table.detach()
    checked.columns = tuple(name for name in table.columns if not name.startswith(RESULT))
    return checked


def _require_columns(kind: RowKind, columns: tuple[str, ...], service: Service, name: str) -> None:
    required = (*kind.required, *(["reference"] if service.live and kind.key == "reference" else []))
    missing = [column for column in required if column not in columns]
    if columns and missing:
        found = ", ".join(columns[:20])
        raise bad_value(f'{name} has no column "{missing[0]}": its first line names {found}.')
