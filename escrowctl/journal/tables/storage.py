"""A journal in tables: what the storages of all engines have in common, which is every read."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from escrowctl.journal.chain import NO_ENTRY, ChainRecord, Kind
from escrowctl.journal.model import Entry, Selection
from escrowctl.journal.storage import PlanRow
from escrowctl.journal.tables.database import Database, translate_errors
from escrowctl.journal.tables.reading import read_entries, read_records, read_where, select_entries

if TYPE_CHECKING:
    from escrowctl.journal.storage import BatchSum
    from escrowctl.journal.tables.transaction import TableTransaction

_SELECT_BATCHES = """
SELECT batch, 0, max(content) FROM (
  SELECT batch, content FROM main.plans WHERE row = 0
  UNION ALL SELECT DISTINCT batch, '' FROM main.entries WHERE batch IS NOT NULL AND (origin IS NULL OR ?)
) AS named GROUP BY batch ORDER BY length(batch), batch"""


class TableStorage:
    """The reads of `storage.Storage`. Inside a transaction, they see its records: those are written first."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._open_transaction: TableTransaction | None = None
        self._last_transaction: TableTransaction | None = None
        self._commit_failed = False

    @cached_property
    @translate_errors
    def journal_id(self) -> str:
        """See `storage.Storage`."""
        return str(self._db.execute("SELECT id FROM main.journal").fetchone()[0])

    def close(self) -> None:
        """See `storage.Storage`."""
        self._db.close()

    @translate_errors
    def read_last_journal_kind(self) -> str | None:
        """See `storage.Storage`."""
        query = "SELECT kind FROM main.records WHERE entry = ? ORDER BY sequence DESC LIMIT 1"
        row = self._db.execute(query, (NO_ENTRY,)).fetchone()
        return row[0] if row else None

    @translate_errors
    def count_records(self) -> int:
        """See `storage.Storage`."""
        query = "SELECT coalesce(max(sequence), 0) FROM main.records WHERE kind != ?"
        return int(self._db.execute(query, (Kind.CLOSING,)).fetchone()[0])

    @translate_errors
    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        """See `storage.Storage`."""
        return read_records(self._flushed_database, after=after, limit=limit)

    @translate_errors
    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        """See `storage.Storage`."""
        if self._open_transaction is not None:
            return self._open_transaction.read_entries(numbers)
        return [folded.entry for folded in read_entries(self._db, numbers).values()]

    @translate_errors
    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        """See `storage.Storage`."""
        return select_entries(self._flushed_database, selection, before=before)

    @translate_errors
    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        """See `storage.Storage`."""
        query = "SELECT batch, row, content FROM main.plans WHERE batch = ? AND row > ? ORDER BY row LIMIT ?"
        return [PlanRow(*row) for row in self._flushed_database.execute(query, (batch, after, limit)).fetchall()]

    @translate_errors
    def list_batches(self, *, imported: bool = False) -> list[PlanRow]:
        """See `storage.Storage`."""
        return [PlanRow(*row) for row in self._db.execute(_SELECT_BATCHES, (imported,)).fetchall()]

    @translate_errors
    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        """See `storage.Storage`."""
        condition = "batch = ? AND line > ? AND origin IS NULL ORDER BY line LIMIT ?"
        return read_where(self._flushed_database, condition, batch, after, limit)

    @translate_errors
    def sum_batch(self, batch: str) -> list[BatchSum]:
        """See `storage.Storage`."""
        from escrowctl.journal.tables.batches import add_up  # noqa: PLC0415 - for batches alone

        return add_up(self._flushed_database, batch)

    @contextlib.contextmanager
    def _inside(self, transaction: TableTransaction) -> Iterator[TableTransaction]:
        """Read inside this transaction during the `with` block."""
        self._open_transaction = transaction
        try:
            yield transaction
        finally:
            self._open_transaction = None

    @property
    def _flushed_database(self) -> Database:
        """The connection for reads. An open transaction first writes its records, so that the reads see them."""
        if self._open_transaction is not None:
            self._open_transaction.flush()
        return self._db
