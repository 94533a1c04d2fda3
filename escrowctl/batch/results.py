"""Write the results of each row as files for programs and spreadsheets; and the rows to correct and send again."""

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from escrowctl.batch.plan import Batch, outcome_of, read_planned
from escrowctl.batch.rows import RESULT, RowContent, cells_of, content_of, decode_row
from escrowctl.batch.table import NotRowsError, Row, Table
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.files import sync_folder
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry
from escrowctl.output.plain import render_csv
from escrowctl.output.view import text_of

_PAGE = 500
_FIELDS = ("batch", "line", "outcome", "id", "entry", "http_status", "detail")


def may_replace(path: Path, name: str) -> bool:
    """Whether there is no file, or it has results of the batch `name`."""
    return not os.path.lexists(path) or _batch_of(path) == name


def _batch_of(path: Path) -> JsonValue:
    """Return the batch that a results file names in its first row; None for any other file."""
    cells: Mapping[str, JsonValue] = {}
    if path.is_file():
        with suppress(OSError, NotRowsError), path.open("rb") as file:
            table = Table(file)
            first = next(table.rows(), None)
            table.detach()
            cells = first.cells if isinstance(first, Row) else {}
    prefix = RESULT if path.suffix == ".csv" else ""
    return cells[f"{prefix}batch"] if all(f"{prefix}{field}" in cells for field in _FIELDS) else None


def write_results(journal: Journal, batch: Batch, path: Path) -> int:
    """Write the result of every row, in the order of the file, and return how many there are.

    The file is complete or absent: it is written next to `path`, synced, and renamed to `path` (rename(2)). Raises
    EscrowctlError `ErrorCode.OUTPUT_UNUSABLE` if it cannot be written.
    """
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                count = 0
                for line in _lines(journal, batch, is_csv=path.suffix == ".csv"):
                    file.write(f"{line}\n")
                    count += 1
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(path)
        finally:
            Path(draft).unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise EscrowctlError(
            ErrorCode.OUTPUT_UNUSABLE, f"{path} could not be written: {error.strerror or error}."
        ) from error
    return count - (path.suffix == ".csv")


def list_rejects(journal: Journal, batch: Batch, *, as_json: bool) -> Iterator[str]:
    """Yield the refused rows, and rows that were dropped, as lines in their file's format, or as JSON lines."""
    as_json = as_json or batch.is_json
    columns = (*batch.columns, f"{RESULT}detail")
    if not as_json:
        yield _csv_line(columns)
    listed = (Outcome.REFUSED, Outcome.NOT_SENT) if batch.dropped else (Outcome.REFUSED,)
    for row in _rows(journal, batch):
        if row.outcome not in listed:
            continue
        cells = {**cells_of(batch.kind, row.content, flat=not as_json), f"{RESULT}detail": row.detail}
        if batch.reference_field is not None:
            cells.pop(f"body.{batch.reference_field}", None)
        yield encode(cells) if as_json else _csv_line(text_of(cells.get(name)) for name in columns)


def _lines(journal: Journal, batch: Batch, *, is_csv: bool) -> Iterator[str]:
    rows = ((cells_of(batch.kind, row.content), row.fields(batch.name)) for row in _rows(journal, batch))
    if not is_csv:
        for cells, fields in rows:
            yield encode({**fields, "row": cells})
        return
    columns = (*batch.columns, *(f"{RESULT}{name}" for name in _FIELDS))
    texts = ((*(cells.get(name) for name in batch.columns), *fields.values()) for cells, fields in rows)
    yield from render_csv(columns, (tuple(text_of(value) for value in row) for row in texts))


class _Result(NamedTuple):
    """A row and its outcome. `detail` is the reason (None: no run has reached the row), `entry` its journal entry."""

    line: int
    content: RowContent
    outcome: Outcome
    detail: str | None
    entry: Entry | None = None

    def fields(self, batch: str) -> dict[str, JsonValue]:
        """Return the fields that results add to a row."""
        entry = self.entry
        status = entry.settlement.http_status if entry else None
        return {
            "batch": batch,
            "line": Number(str(self.line)),
            "outcome": self.outcome.value,
            "id": entry.record_id if entry else None,
            "entry": entry.name if entry else None,
            "http_status": Number(str(status)) if status is not None else None,
            "detail": self.detail,
        }


def _rows(journal: Journal, batch: Batch) -> Iterator[_Result]:
    """Yield every row by line.

    While a batch runs, a row moves from the plan to an entry, so the plan is read first: no row is missed.
    """
    after = 0
    while True:
        planned = journal.storage.planned(batch.name, after=after, limit=_PAGE)
        entries = journal.in_batch(batch.name, after=after, limit=_PAGE)
        if not (planned or entries):
            return
        rows: dict[int, _Result] = {}
        for one in planned:
            content = decode_row(read_planned(one))
            rows[one.row] = _Result(one.row, content, Outcome.NOT_SENT, content.held)
        for entry in entries:
            line = entry.intent.line or 0
            detail = "; but ".join(filter(None, (entry.settlement.detail, entry.settlement.remark)))
            rows[line] = _Result(line, content_of(entry), outcome_of(entry), detail, entry)
        # A full page may have more rows behind it, which belong before the rest of the other page.
        ends = [planned[-1].row] if len(planned) == _PAGE else []
        ends += [entries[-1].intent.line or 0] if len(entries) == _PAGE else []
        last = min(ends, default=max(rows))
        yield from (rows[line] for line in sorted(rows) if line <= last)
        after = last


def _csv_line(cells: Iterable[str]) -> str:
    # Unlike the results, these are sent again: each cell stays unchanged.
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue()
