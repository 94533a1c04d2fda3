"""Write the result of each row to a file for programs and spreadsheets. List the rows to correct and send again."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from escrowctl.batch.plan import Batch, is_planned_again, outcome_of, read_plan_text
from escrowctl.batch.rows import RESULT, RowContent, cells_of, content_of, decode_row
from escrowctl.batch.table import NotRowsError, Row, Table
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, bad_value
from escrowctl.files import sync_folder
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry
from escrowctl.output.plain import format_csv_line, render_csv
from escrowctl.output.view import format_cell

_PAGE_SIZE = 500
_RESULT_FIELDS = ("batch", "line", "outcome", "id", "entry", "http_status", "detail", "journal")


def require_replaceable(path: Path | None, batch_name: str, journal_id: str) -> None:
    """Raise EscrowctlError `BAD_VALUE` if `path` exists and does not hold results of this journal's batch."""
    if path is None or not os.path.lexists(path):
        return
    cells: Mapping[str, JsonValue] = {}
    if path.is_file():
        with suppress(OSError, NotRowsError), path.open("rb") as file:
            table = Table(file)
            first = next(table.rows(), None)
            table.detach()
            cells = first.cells if isinstance(first, Row) else {}
    prefix = RESULT if path.suffix == ".csv" else ""
    if (cells.get(f"{prefix}batch"), cells.get(f"{prefix}journal")) != (batch_name, journal_id):
        raise bad_value(f'--results "{path}" exists, but does not hold results of {batch_name}: name another file.')


def write_results(journal: Journal, batch: Batch, path: Path) -> int:
    """Write the result of every row, in the order of the file, and return how many rows there are.

    The file is complete or unchanged: a draft is written next to `path`, synced, and renamed to `path` (rename(2)).
    Raises EscrowctlError `ErrorCode.OUTPUT_UNUSABLE` if it cannot be written.
    """
    try:
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                count = 0
                for line in _format_result_lines(journal, batch, is_csv=path.suffix == ".csv"):
                    file.write(f"{line}\n")
                    count += 1
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(path)
        finally:
            Path(draft).unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        message = f"{path} could not be written: {error.strerror or error}."
        raise EscrowctlError(ErrorCode.OUTPUT_UNUSABLE, message) from error
    return count - (path.suffix == ".csv")


def list_rejects(journal: Journal, batch: Batch, *, as_json: bool) -> Iterator[str]:
    """Yield the refused rows, and the unsent rows of a dropped batch, as lines. `as_json`: JSON even for CSV."""
    as_json = as_json or batch.is_json
    columns = (*batch.columns, f"{RESULT}detail")
    if not as_json:
        # These rows are sent again: unlike in results, no cell is escaped for spreadsheets.
        yield format_csv_line(columns)
    listed = (Outcome.REFUSED, Outcome.NOT_SENT) if batch.dropped else (Outcome.REFUSED,)
    for row in _read_rows(journal, batch):
        if row.outcome not in listed:
            continue
        cells = {**cells_of(batch.kind, row.content, flat=not as_json), f"{RESULT}detail": row.detail}
        if batch.reference_field is not None:
            cells.pop(f"body.{batch.reference_field}", None)
        yield encode(cells) if as_json else format_csv_line(format_cell(cells.get(name)) for name in columns)


def _format_result_lines(journal: Journal, batch: Batch, *, is_csv: bool) -> Iterator[str]:
    names = (batch.name, journal.storage.journal_id)
    rows = ((cells_of(batch.kind, row.content), row.make_fields(*names)) for row in _read_rows(journal, batch))
    if not is_csv:
        for cells, fields in rows:
            yield encode({**fields, "row": cells})
        return
    columns = (*batch.columns, *(f"{RESULT}{name}" for name in _RESULT_FIELDS))
    texts = ((*(cells.get(name) for name in batch.columns), *fields.values()) for cells, fields in rows)
    yield from render_csv(columns, (tuple(format_cell(value) for value in row) for row in texts))


class _RowResult(NamedTuple):
    """A row, its outcome and its journal `entry`. `detail` explains the outcome; None: no run reached the row."""

    content: RowContent
    outcome: Outcome
    detail: str | None
    entry: Entry | None = None

    def make_fields(self, batch_name: str, journal_id: str) -> dict[str, JsonValue]:
        """Return the fields that results add to a row."""
        entry = self.entry
        status = entry.settlement.http_status if entry else None
        return {
            "batch": batch_name,
            "line": Number(str(self.content.line)),
            "outcome": self.outcome.value,
            "id": entry.record_id if entry else None,
            "entry": entry.name if entry else None,
            "http_status": Number(str(status)) if status is not None else None,
            "detail": self.detail,
            "journal": journal_id,
        }


def _read_rows(journal: Journal, batch: Batch) -> Iterator[_RowResult]:
    """Yield the result of every row, in the order of lines.

    While a batch runs, a row moves from the plan to an entry. The plan is read first, so no row is missed.
    """
    after = 0
    while True:
        planned = journal.storage.read_plan(batch.name, after=after, limit=_PAGE_SIZE)
        entries = journal.read_batch(batch.name, after=after, limit=_PAGE_SIZE)
        if not (planned or entries):
            return
        rows: dict[int, _RowResult] = {}
        for one in planned:
            if is_planned_again(one):
                continue
            content = decode_row(read_plan_text(one), one.row)
            rows[one.row] = _RowResult(content, Outcome.NOT_SENT, content.held)
        for entry in entries:
            content = content_of(entry)
            detail = "; but ".join(filter(None, (entry.settlement.detail, entry.settlement.remark)))
            rows[content.line] = _RowResult(content, outcome_of(entry), detail, entry)
        # After a full page there may be more rows, and these come before the rest of the other page.
        ends = [planned[-1].row] if len(planned) == _PAGE_SIZE else []
        ends += [entries[-1].intent.line or 0] if len(entries) == _PAGE_SIZE else []
        last = min(ends, default=max(rows))
        yield from (rows[line] for line in sorted(rows) if line <= last)
        after = last
