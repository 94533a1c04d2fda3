"""Write the results of each row as files for programs and spreadsheets; and the rows to correct and send again."""

import csv
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from escrowctl.batch.plan import Batch, Outcomes, open_seal, outcome_of
from escrowctl.batch.rows import RESULT, cells_of, cells_of_content, decode_row
from escrowctl.batch.table import NotRowsError, Row, Table
from escrowctl.contract.json import JsonValue, Number, encode
from escrowctl.errors import bad_value
from escrowctl.files import sync_folder
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, PlanRow
from escrowctl.output.plain import render_csv
from escrowctl.output.view import text_of

_PAGE = 500
_FIELDS = ("batch", "line", "outcome", "id", "entry", "http_status", "detail")


def parse_results_path(text: str) -> Path:
    """Return the path of a results file; raises EscrowctlError `BAD_VALUE` for an unknown ending or folder."""
    path = Path(text)
    if path.suffix not in (".csv", ".jsonl"):
        raise bad_value(f'--results "{text}": end it with .csv or .jsonl.')
    if not path.parent.is_dir() or path.is_dir():
        raise bad_value(f'--results "{text}": there is no folder {path.parent}, or it is a folder itself.')
    return path


def require_replaceable(path: Path | None, name: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` if there is a file, and it holds no results of the batch `name`."""
    if path is not None and os.path.lexists(path) and _batch_of(path) != name:
        raise bad_value(f'--results "{path}" exists, and does not hold results of {name}: name another file.')


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
    OSError; EscrowctlError `BAD_VALUE` if another file exists at `path`.
    """
    require_replaceable(path, batch.name)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    count = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            for line in _lines(journal, batch, is_csv=path.suffix == ".csv"):
                file.write(f"{line}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return count - (path.suffix == ".csv")


def list_rejects(journal: Journal, batch: Batch, *, as_json: bool) -> Iterator[str]:
    """Yield the failed rows, and rows that were dropped, as lines in their file's format, or as JSON lines."""
    as_json = as_json or batch.is_json
    if not as_json:
        yield _csv_line([*batch.columns, f"{RESULT}detail"])
    listed = (Outcomes.FAILED, Outcomes.NOT_SENT) if batch.dropped else (Outcomes.FAILED,)
    for row in _rows(journal, batch):
        if _outcome(row) not in listed:
            continue
        cells = {**_cells(batch, row, flat=not as_json), f"{RESULT}detail": _detail(row)}
        if batch.reference_field is not None:
            cells.pop(f"body.{batch.reference_field}", None)
        if as_json:
            yield encode(cells)
        else:
            yield _csv_line([text_of(cells.get(name)) for name in (*batch.columns, f"{RESULT}detail")])


def _lines(journal: Journal, batch: Batch, *, is_csv: bool) -> Iterator[str]:
    rows = ((_cells(batch, row), _result(batch.name, row)) for row in _rows(journal, batch))
    if not is_csv:
        for cells, result in rows:
            yield encode({**result, "row": cells})
        return
    columns = (*batch.columns, *(f"{RESULT}{name}" for name in _FIELDS))
    yield from render_csv(
        columns,
        (
            tuple(text_of(value) for value in (*(cells.get(name) for name in batch.columns), *result.values()))
            for cells, result in rows
        ),
    )


def _rows(journal: Journal, batch: Batch) -> Iterator[Entry | PlanRow]:
    """Yield every row by line: its entry, or its row in the plan.

    While a batch runs, a row moves from the plan to an entry, so the plan is read first: no row is missed.
    """
    after = 0
    while True:
        planned = journal.storage.planned(batch.name, after=after, limit=_PAGE)
        entries = journal.in_batch(batch.name, after=after, limit=_PAGE)
        if not (planned or entries):
            return
        # A full page may have more rows behind it, which belong before the rest of the other page.
        pages = ([row.row for row in planned], [_line(entry) for entry in entries])
        end = min((page[-1] for page in pages if len(page) == _PAGE), default=None)
        rows = {row.row: row for row in planned} | {_line(entry): entry for entry in entries}
        for line, row in sorted(rows.items()):
            if end is not None and line > end:
                break
            after = line
            yield row


def _cells(batch: Batch, row: Entry | PlanRow, *, flat: bool = True) -> dict[str, JsonValue]:
    if isinstance(row, Entry):
        return cells_of(row, flat=flat)
    return cells_of_content(batch.kind, decode_row(open_seal(row)), flat=flat)


def _outcome(row: Entry | PlanRow) -> Outcomes:
    return outcome_of(row) if isinstance(row, Entry) else Outcomes.NOT_SENT


def _line(entry: Entry) -> int:
    return entry.intent.line or 0


def _result(name: str, row: Entry | PlanRow) -> dict[str, JsonValue]:
    if not isinstance(row, Entry):
        known = {"line": Number(str(row.row)), "outcome": Outcomes.NOT_SENT.value, "detail": _detail(row)}
        return dict.fromkeys(_FIELDS) | {"batch": name} | known
    entry, settlement = row, row.settlement
    status = settlement.http_status
    values: tuple[JsonValue, ...] = (
        name,
        Number(str(entry.intent.line)),
        outcome_of(entry).value,
        entry.record_id,
        entry.name,
        Number(str(status)) if status is not None else None,
        _detail(row),
    )
    return dict(zip(_FIELDS, values, strict=True))


def _detail(row: Entry | PlanRow) -> str | None:
    """Return the reason for a row's outcome; None for a row that no run has reached."""
    if isinstance(row, Entry):
        return "; but ".join(filter(None, (row.settlement.detail, row.settlement.remark)))
    return decode_row(open_seal(row)).held


def _csv_line(cells: list[str]) -> str:
    # Unlike the results, these are sent again: each cell stays unchanged.
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue()
