"""The journal in a PostgreSQL database. Every commit is durable on the server, and every read is checked.

A transaction takes the journal's advisory lock first. Only a later statement reads the end of the chain: under READ
COMMITTED, it then sees all that others have committed (postgresql.org/docs/current/transaction-iso.html, 13.2.1).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg

from escrowctl.errors import EscrowctlError
from escrowctl.journal.postgres.connection import PostgresConnection, unusable_database
from escrowctl.journal.storage import CommitUnknownError, PlanRow, unusable
from escrowctl.journal.tables import batches
from escrowctl.journal.tables.check import compare_derived_tables
from escrowctl.journal.tables.database import translate_errors
from escrowctl.journal.tables.reading import SELECT_RECORDS, SELECT_TAIL, read_records, read_tail, record_of, tail_of
from escrowctl.journal.tables.storage import TableStorage
from escrowctl.journal.tables.transaction import MAX_CACHED, SELECT_KEYS, TableTransaction

if TYPE_CHECKING:
    from escrowctl.journal.chain import Head

FORMAT_VERSION = 1
"""The version of the newest file in `schema/`."""

_IDLE_SECONDS, _LOCK_SECONDS, _STATEMENT_SECONDS = 5, 10, 15
"""Shorter than a lease less its margin: a process whose statements are slow hears of it before its lease lapses (no
limit covers COMMIT). The others wait longer for the lock than a process that is stopped can keep it."""

_READ_STATE = f"SELECT id, version, extract(epoch FROM clock_timestamp()) FROM main.journal; {SELECT_TAIL}"
_LIMITS = f"""
SET LOCAL lock_timeout = '{_LOCK_SECONDS}s';
SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s';
SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s';
SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL client_min_messages = warning;"""
_BEGIN_CLAIM = f"""
BEGIN ISOLATION LEVEL READ COMMITTED; {_LIMITS}
SELECT set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);"""
_BEGIN = f"""{_BEGIN_CLAIM}
SELECT pg_advisory_xact_lock(hashtextextended('main.journal', 0));
{_READ_STATE}"""
# No commit ends in between: a sender whose lock is gone has then settled its writes, as read here, or never will.
_BEGIN_READING = f"""
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {_LIMITS}
SELECT pg_advisory_xact_lock_shared(hashtextextended('main.journal', 0));
{_READ_STATE}"""
_BEGIN_SNAPSHOT = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_READ_STATE}"
_UNCERTAIN_CLASSES = ("08", "57", "58", "XX")
"""Classes of errors after which a COMMIT may have been carried out all the same: of the connection, the operator and
the system (postgresql.org/docs/current/errcodes-appendix.html). All others say that it was not."""

_LOOK_SECONDS, _LOOK_WAIT_SECONDS, _CHECK_SECONDS = 30, 0.5, 3600


class PostgresStorage(TableStorage):
    """One open journal; see `storage.Storage`. `find_sender` returns the id of this process's lease, or None."""

    def __init__(self, database: PostgresConnection, find_sender: Callable[[], str | None]) -> None:
        self._find_sender = find_sender
        self._db: PostgresConnection = database
        super().__init__(self._db)

    @contextlib.contextmanager
    def reading(self, script: str = _BEGIN_READING) -> Iterator[TableTransaction]:
        """See `storage.Storage`. Inside a transaction, the transaction itself is the view."""
        if self._open_transaction is not None:
            yield self._open_transaction
            return
        try:
            with self._inside(self._begin(script)) as view:
                yield view
        finally:
            self._roll_back()

    @contextlib.contextmanager
    def transaction(self, keys: Collection[int] = ()) -> Iterator[TableTransaction]:
        """See `storage.Storage`."""
        if self._commit_failed:
            raise unusable(self._db.location, "an earlier commit of this process failed", reason="")
        try:
            transaction = self._begin(_BEGIN, keys)
            self._last_transaction = None
            with self._inside(transaction), self._committing(transaction):
                yield transaction
        except BaseException:
            self._roll_back()
            raise
        self._last_transaction = transaction

    @translate_errors
    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        """See `storage.Storage`. Other claims and commits go on meanwhile."""
        self._connect_again()
        try:
            self._db.execute_script(_BEGIN_CLAIM)
            with self._db.pipeline():
                rows = batches.claim(self._db, batch, sender, limit, is_alive)
                self._db.send("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return rows

    @contextlib.contextmanager
    def reopen(self) -> Iterator[PostgresStorage]:
        """See `storage.Storage`."""
        with contextlib.closing(type(self)(self._db.connect_again(), self._find_sender)) as storage:
            yield storage

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[PostgresStorage]:
        """See `storage.Storage`: another connection, which reads in one transaction."""
        with self.reopen() as storage, storage.reading(_BEGIN_SNAPSHOT):
            yield storage

    @translate_errors
    def find_damage(self) -> str | None:
        """See `storage.Storage`."""
        with self._db.limited(_CHECK_SECONDS):
            return compare_derived_tables(self._db)

    @translate_errors
    def _begin(self, script: str, keys: Collection[int] = ()) -> TableTransaction:
        """Begin a transaction, in one round trip."""
        self._connect_again()
        wanted, earlier = ", ".join(map(str, keys)) or "NULL", self._last_transaction
        since = (earlier.head.sequence - 1, MAX_CACHED) if earlier is not None else (0, 0)
        script = f"{script}; {SELECT_KEYS.format(wanted)}; {SELECT_RECORDS.format(*since)}"
        *_, state, tail, index, records = self._db.execute_script(script)
        ((self.journal_id, version, now),) = state
        if version != FORMAT_VERSION:
            problem = f"its tables have version {version}, but this escrowctl knows {FORMAT_VERSION}"
            raise unusable(self._db.location, problem, reason="")
        end = tail_of(tail) if tail else read_tail(self._db)
        transaction = TableTransaction(
            self._db, end, lambda: datetime.fromtimestamp(float(now), UTC), earlier, [*map(record_of, records)]
        )
        transaction.note_index(keys, index)
        return transaction

    def _connect_again(self) -> None:
        if self._db.is_lost:
            self._db = self._db.connect_again()

    @contextlib.contextmanager
    def _committing(self, transaction: TableTransaction) -> Iterator[None]:
        """Write what is pending, check the lease if that begins writes, and commit, in one round trip."""
        try:
            with self._db.pipeline():
                yield
                transaction.flush()
                self._db.warnings.clear()
                needs_lease = transaction.begun or transaction.plans_rows
                if needs_lease and (sender := self._find_sender()) is not None:
                    self._db.send("SELECT main.require_lease(?)", (sender,))
                ended = self._db.send("COMMIT")
            # So ends a transaction in which a statement failed.
            if ended.statusmessage == "ROLLBACK":
                raise psycopg.errors.InFailedSqlTransaction("a statement of the transaction failed")
        except psycopg.Error as error:
            is_uncertain = self._db.is_lost or (error.sqlstate or "08")[:2] in _UNCERTAIN_CLASSES
            # Without records there is nothing to look for, and nothing was begun.
            is_stored = self._find_record(transaction.head) if is_uncertain and transaction.has_records else False
            # A commit that did not answer may not have reached a standby: what it begins is not sent.
            if is_stored and not transaction.begun:
                return
            found = unusable_database(self._db.location, error)
            if is_stored is False:
                raise found from error
            self._commit_failed = is_stored is None
            raise CommitUnknownError(found) from error
        # The wait for a standby was cancelled: as above.
        if self._db.warnings:
            problem = f"a commit is not confirmed ({self._db.warnings[-1]})"
            raise CommitUnknownError(unusable(self._db.location, problem, reason=""))

    def _find_record(self, head: Head) -> bool | None:
        """Connect again, and return whether the last record of a lost transaction is stored. None: it is not known.

        The lock waits for the end of that transaction. Its id would not do (`pg_xact_status`): after a crash, the
        server gives the id of a transaction that left no trace to another one.
        """
        self._db.close()
        end = time.monotonic() + _LOOK_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(psycopg.Error, EscrowctlError):
                self._db = self._db.connect_again()
                self._db.execute_script(_BEGIN)
                found = read_records(self._db, after=head.sequence - 1, limit=1)
                self._db.execute("ROLLBACK")
                return bool(found) and found[0].head == head
            time.sleep(_LOOK_WAIT_SECONDS)
        return None

    def _roll_back(self) -> None:
        # After a lost connection or a failed COMMIT there is nothing to roll back; the first error counts.
        with contextlib.suppress(psycopg.Error):
            self._db.execute("ROLLBACK")
