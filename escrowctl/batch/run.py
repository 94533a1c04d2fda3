"""The loop that sends a batch: one thread, one journal, and processes that send.

Each turn collects results and chooses the next rows. It records outcomes and the intents of the next rows in one
commit, and only then submits these rows to the senders. So no row is sent before its intent is durable, and all
rows that finished meanwhile share a commit. The senders get a few rows in advance. If no more may be sent, the
senders return the rows that they have not begun.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from escrowctl.batch.halts import HaltRules
from escrowctl.batch.in_flight import InFlight, PendingRow, RowMaker
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import Batch, RowToSend
from escrowctl.batch.progress import Progress
from escrowctl.batch.senders import Senders
from escrowctl.batch.worker import Job, JobResult
from escrowctl.client.http import THROTTLED_STATUSES
from escrowctl.client.retry import MAX_ATTEMPTS
from escrowctl.config.service import Service
from escrowctl.contract.record import KnownFields
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.guards import correct_shared_id, lock_wait_expired
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import LOST_IN_FLIGHT, Entry, Settlement, State, confirmed_by_read
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.kinds import kind_of

_MAX_WAIT = 0.1
_FIRST_RETRY_DELAY = 0.5
_MAX_LOCK_WAITS = 20


@dataclass
class Run:
    """One run of a batch. `size` is how many requests may be in progress at once."""

    batch: Batch
    service: Service
    journal: Journal
    senders: Senders
    pace: Pace
    size: int
    runtime: Runtime
    signals: Signals
    progress: Progress

    def __post_init__(self) -> None:
        self._row_maker = RowMaker(self.batch, self.service, self.runtime)
        self.halts = HaltRules(self.pace)
        self._in_flight = InFlight()
        self._rows_to_send: Iterator[RowToSend] = iter(())
        self._has_taken_all = False
        self._unrecorded: list[tuple[PendingRow, Settlement]] = []
        self.counts = self._in_flight.counts
        """The number of ended rows by outcome."""
        self.stopped: ErrorCode | None = None
        """The code of the signal that ended the run."""
        self.defect = ""
        """The traceback of the first internal error at a row."""

    def send_rows(self, rows: Iterator[RowToSend]) -> None:
        """Send rows until none is left, or the run ends early; call it inside `signals.held()`.

        Raises EscrowctlError if the journal cannot be used. `counts` then has the rows that ended before the error.
        """
        self._rows_to_send = rows
        while True:
            try:
                self._handle_signals()
                ready = self._filter_sendable(self._process_results())
                self._commit(ready + self._choose_rows(len(ready)))
            except EscrowctlError as error:
                self._save_results(error)
                raise
            if self._is_ending:
                self._in_flight.end_waiting()
            self.progress.show_progress(self.counts)
            if not self._in_flight and (self._is_ending or self._has_taken_all):
                return

    @property
    def _is_ending(self) -> bool:
        return self.stopped is not None or bool(self.halts.reason)

    def _process_results(self) -> list[PendingRow]:
        """Process the results of the senders. Return the rows whose records were read: they are sent next."""
        results, lost = self._collect_results()
        self._in_flight.at_senders.difference_update(result.line for result in results)
        created = self._find_created(results)
        ready: list[PendingRow] = []
        kind = kind_of(self.batch.kind.operation.name)
        for result in results:
            row = self._in_flight[result.line]
            self.defect = self.defect or result.defect
            if result.is_untouched:
                self._take_back(row)
            elif result.settlement is not None:
                settlement = correct_shared_id(row.begun_entry, result.settlement, created)
                created.append(row.begun_entry._replace(settlement=settlement))
                self._decide_after_result(row, result, settlement)
                self._unrecorded.append((row, result.settlement))
            elif result.failure is not None:
                self._end_or_postpone_unread(row, EscrowctlError(*result.failure))
            elif row.may_be_applied and (record := result.record) and kind.is_proven_by(record.status, self.service):
                self._settle_as_read(row, record)
            else:
                row.before = result.record
                ready.append(row)
        if self.senders.has_ended_process:
            self._end_lost_rows(lost)
        return ready

    def _find_created(self, results: Sequence[JobResult]) -> list[Entry]:
        """Return the journal's entries with a created id that is also in these results.

        If the journal cannot be read, the results are still to be recorded, except those that only a read proves.
        """
        settled = [(self._in_flight[one.line], one.settlement) for one in results if one.settlement is not None]
        try:
            return self.journal.find_created({one.result_id for _, one in settled if one.result_id is not None})
        except EscrowctlError:
            self._unrecorded += [(row, settlement) for row, settlement in settled if not settlement.verified]
            raise

    def _take_back(self, row: PendingRow) -> None:
        """Take a row back from the senders. No byte of it was sent."""
        if row.is_begun:
            self._unrecorded.append((row, row.settle_as_unsent()))
        else:
            self._postpone_row(row, 0.0)

    def _end_lost_rows(self, lines: set[int]) -> None:
        """End the run because a sender process has ended. Begun rows on `lines` become unknown."""
        self._in_flight.at_senders -= lines
        if self.stopped is None:
            self.halts.halt("a sender process ended unexpectedly")
        for row in [self._in_flight[line] for line in lines]:
            if row.is_begun:
                self._unrecorded.append((row, Settlement(Outcome.UNKNOWN, LOST_IN_FLIGHT)))
            else:
                self._end_row(row)

    def _collect_results(self) -> tuple[list[JobResult], set[int]]:
        now = self.runtime.monotonic()
        if not self._in_flight.at_senders:
            if wait := min(self._find_send_delay(now), _MAX_WAIT):
                self.runtime.sleep(wait)
            return [], set()
        wants_more = self._max_at_senders > len(self._in_flight.at_senders) and not self._is_ending
        wait = min(_MAX_WAIT, self._find_send_delay(now)) if wants_more else _MAX_WAIT
        # One commit for many rows costs less than many commits: wait for more while the senders have rows to send.
        return self.senders.collect(wait, enough=(self._max_at_senders - self.size) // 2)

    @property
    def _max_at_senders(self) -> int:
        """How many rows the senders may have at once."""
        if not self.halts.canary_passed:
            return 1
        if self.pace.rate(self.runtime.monotonic()) is not None:
            return self.size
        # A few are begun in advance, so that no connection waits for a commit. After a crash they are unknown.
        return self.size + max(1, self.size // 2)

    def _find_send_delay(self, now: float) -> float:
        """Return the seconds until the next row may be sent; `_MAX_WAIT` if there is no next row."""
        if self._is_ending:
            return _MAX_WAIT
        if self._may_take_new_row:
            return self.pace.delay(now)
        due = self._in_flight.next_due
        return max(0.0, due - now if due is not None else _MAX_WAIT, self.pace.delay(now))

    @property
    def _may_take_new_row(self) -> bool:
        """Whether to take a new row. Until the first row is done, only one row is in progress at a time."""
        return not self._has_taken_all and (self.halts.canary_passed or not self._in_flight)

    def _filter_sendable(self, ready: list[PendingRow]) -> list[PendingRow]:
        """Return the `ready` rows, or no rows if the service asks to wait or the run is ending.

        If no rows: the senders return the rows that they have not begun. The `ready` rows wait and are read again.
        """
        if not (self._is_ending or self.pace.is_paused(self.runtime.monotonic())):
            return ready
        if self._in_flight.at_senders:
            self.senders.recall()
        for row in ready:
            self._postpone_row(row, 0.0)
        return []

    def _choose_rows(self, ready_count: int) -> list[PendingRow]:
        """Return the creates to begin now, next to `ready_count` others. Submit the reads of releases instead."""
        now = self.runtime.monotonic()
        room = min(self._max_at_senders - len(self._in_flight.at_senders) - ready_count, self.pace.count_allowed(now))
        admitted: list[PendingRow] = []
        while not self._is_ending and len(admitted) < room and (row := self._take_next_row(now)) is not None:
            admitted.append(row)
        self.pace.note_sent(len(admitted), now)
        if not self.batch.kind.operation.is_once_only:
            return admitted
        for row in admitted:
            row.sent_at = now
        self._submit([Job(row.line, row.request, row.options, may_be_applied=row.may_be_applied) for row in admitted])
        return []

    def _take_next_row(self, now: float) -> PendingRow | None:
        row = self._in_flight.pop_due(now)
        if row is None and self._may_take_new_row:
            to_send = next(self._rows_to_send, None)
            self._has_taken_all = to_send is None
            if to_send is not None:
                row = self._row_maker.make_row(to_send)
                self._in_flight.add(row)
        return row

    def _submit(self, jobs: list[Job]) -> None:
        self._in_flight.at_senders.update(job.line for job in jobs)
        self.senders.submit(jobs)

    def _commit(self, ready: list[PendingRow]) -> None:
        """Record the outcomes, and the intents of the next rows. Then submit these rows to the senders."""
        rows = [row for row in ready if self._lock_row(row)]
        if not rows and not self._unrecorded:
            return
        begun, settled = self.journal.write_all([self._row_maker.make_attempt(row) for row in rows], self._settlements)
        now = self.runtime.monotonic()
        self._conclude_all(settled)
        jobs = []
        for row, entry in zip(rows, begun, strict=True):
            if isinstance(entry, EscrowctlError):
                self._end_unsent(row, entry)
                continue
            assert entry.state is State.IN_FLIGHT, "each row has a new idempotency key, so it replays no entry"
            row.earlier_settlement = row.begun_entry.settlement if row.may_be_applied else None
            row.entry, row.sent_at = entry, now
            row.attempts += 1
            row.retry_delay = None
            is_last = row.attempts >= MAX_ATTEMPTS
            jobs.append(Job(row.line, row.request, row.options, entry, row.before, row.may_be_applied, is_last))
        if self._is_ending:
            for job in jobs:
                self._take_back(self._in_flight[job.line])
        else:
            self._submit(jobs)

    @property
    def _settlements(self) -> list[tuple[Entry, Settlement]]:
        return [(row.begun_entry, settlement) for row, settlement in self._unrecorded]

    def _conclude_all(self, recorded: list[Entry | EscrowctlError]) -> None:
        """End the unrecorded rows; `recorded` has their entries or errors. A row to send again waits instead."""
        rows, self._unrecorded = [row for row, _ in self._unrecorded], []
        for row, result in zip(rows, recorded, strict=True):
            if isinstance(result, EscrowctlError):
                self.progress.note_unrecorded(row.line, result)
                self.halts.halt("another process is working on the same rows")
                self._end_row(row)
                continue
            row.entry, row.may_be_applied = result, result.state is State.UNKNOWN
            if row.retry_delay is not None and not self._is_ending:
                self._postpone_row(row, row.retry_delay)
                continue
            self._end_row(row)
            if result.state is State.DONE:
                self.progress.show_done(row.line, result, goes_on=not self._is_ending)

    def _save_results(self, error: EscrowctlError) -> None:
        """End the run after a journal error. Try to record the results so far. Other begun rows are unknown."""
        self.halts.halt(error.message)
        with contextlib.suppress(EscrowctlError):
            self._conclude_all(self.journal.settle_all(self._settlements))
        self._in_flight.end_begun()

    def _decide_after_result(self, row: PendingRow, result: JobResult, settlement: Settlement) -> None:
        """Decide whether the row is sent again, and whether and how fast the run goes on."""
        now, status = self.runtime.monotonic(), settlement.http_status
        if result.is_misdirected:
            self.halts.halt(f"line {row.line}: {settlement.detail}")
        self.pace.note_reply(now, status, sent=row.sent_at, requested_wait=result.requested_wait)
        row.retry_delay = self._find_retry_delay(row, result, settlement)
        if row.retry_delay is None:
            self.halts.check_outcome(row.line, row.begun_entry._replace(settlement=settlement))

    def _settle_as_read(self, row: PendingRow, record: KnownFields) -> None:
        """Record an unknown row as done, because a read of its record proves it. The row is not sent again."""
        settlement = confirmed_by_read(row.begun_entry, f"the service reported {record.status}")
        try:
            row.entry = self.journal.settle_later(row.begun_entry, settlement)
        except EscrowctlError as error:
            self.progress.note_unrecorded(row.line, error)
        else:
            self.halts.canary_passed = True
            self.progress.show_done(row.line, row.entry, goes_on=not self._is_ending)
        self._end_row(row)

    def _find_retry_delay(self, row: PendingRow, result: JobResult, settlement: Settlement) -> float | None:
        """Return the seconds until a row is retried; None: no retry. A throttled row is retried without limit."""
        if settlement.state is State.DONE or not result.may_go_again or self.pace.must_give_up:
            return None
        if settlement.http_status in THROTTLED_STATUSES:
            return 0.0
        return _FIRST_RETRY_DELAY * 2.0 ** (row.attempts - 1) if row.attempts < MAX_ATTEMPTS else None

    def _end_or_postpone_unread(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row whose record cannot be read before sending. If the read was throttled, let the row wait."""
        if error.code is ErrorCode.RATE_LIMITED and not self._is_ending:
            self.pace.note_throttled(self.runtime.monotonic(), sent_at=row.sent_at, requested_wait=None)
            if not self.pace.must_give_up:
                self._postpone_row(row, 0.0)
                return
        self._end_unsent(row, error)

    def _postpone_row(self, row: PendingRow, seconds: float) -> None:
        self._unlock_row(row)
        self._in_flight.postpone(row, self.runtime.monotonic() + seconds)

    def _end_unsent(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row that cannot be sent now. It stays in the plan, or its entry keeps its outcome."""
        self._end_row(row)
        self.progress.note_unsent(row.line, error, row.outcome)
        self.halts.check_unsent(row.line, error)

    def _end_row(self, row: PendingRow) -> None:
        self._unlock_row(row)
        self._in_flight.end(row)

    def _lock_row(self, row: PendingRow) -> bool:
        """Take a row's locks across processes, and return whether all were free. If not, the row waits or ends.

        A create needs no lock: the journal refuses an identical create when it records the intent.
        """
        if not self.batch.kind.operation.is_once_only:
            return True
        names = [f"{name}\n{lock}" for name in self.service.journal_names for lock in row.request.locks]
        for name in dict.fromkeys(names):
            if not self.journal.locks.hold(name):
                row.lock_waits += 1
                if row.lock_waits > _MAX_LOCK_WAITS:
                    self._end_unsent(row, lock_wait_expired(_MAX_LOCK_WAITS * _FIRST_RETRY_DELAY))
                else:
                    self._postpone_row(row, _FIRST_RETRY_DELAY)
                return False
            row.locks.append(name)
        return True

    def _unlock_row(self, row: PendingRow) -> None:
        while row.locks:
            self.journal.locks.free(row.locks.pop())

    def _handle_signals(self) -> None:
        """End the run at the first signal, and the requests in progress at the second."""
        code = self.signals.take_pending()
        if code is None:
            return
        if self.stopped is None:
            self.stopped = code
            if self._in_flight.at_senders:
                self.progress.show_stopping(min(len(self._in_flight.at_senders), self.size))
            return
        # Finished results are still processed; the rest is lost.
        self.senders.kill()
