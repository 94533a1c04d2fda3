"""The loop that sends a batch: one thread, one journal, and a crew that sends.

Each turn collects the results, admits as many rows as may be sent, records both in one commit (outcomes, and the
intents of the next rows), and only then passes the next rows on. So no row is sent before its intent is durable, and as
many rows share a commit as finished meanwhile. Rows are begun ahead of the rows being sent. If no more may be sent, the
crew returns the rows that it has not begun as not sent.
"""

import contextlib
from collections.abc import Iterator, Sequence

from escrowctl.batch.crew import Crew
from escrowctl.batch.flight import Came, Flight, PendingRow, Requests, come_untouched, lose
from escrowctl.batch.halts import Halts
from escrowctl.batch.pace import Lead, Pace
from escrowctl.batch.plan import Batch, Todo
from escrowctl.batch.watch import Ending, Tally, Watch
from escrowctl.batch.worker import Job, JobResult
from escrowctl.client.http import THROTTLED
from escrowctl.client.retry import ATTEMPTS
from escrowctl.config.service import Service
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.guards import busy_elsewhere
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Settlement, State, settled_by_reading
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.create import compare_ids
from escrowctl.writes.kinds import kind_of

_LONGEST_WAIT = 0.1
_FIRST_RETRY = 0.5
_MOST_WAITS = 20


class Run:
    """One run of a batch. `size` is how many requests may be on the wire at once."""

    def __init__(
        self,
        batch: Batch,
        *,
        service: Service,
        journal: Journal,
        crew: Crew,
        pace: Pace,
        size: int,
        runtime: Runtime,
        signals: Signals,
        watch: Watch,
    ) -> None:
        self._batch = batch
        self._service = service
        self._requests = Requests(batch, service, runtime)
        self._journal = journal
        self._crew = crew
        self._pace = pace
        self._halts = Halts(pace)
        self._size = size
        self._lead = Lead(runtime.monotonic())
        self._runtime = runtime
        self._signals = signals
        self._watch = watch
        self._todos: Iterator[Todo] = iter(())
        self._is_last = False
        self._flight = Flight()
        self._came: list[Came] = []
        self._stopped: ErrorCode | None = None

    def go(self, todos: Iterator[Todo]) -> Ending:
        """Send rows until there are none left, or the run ends before; call it inside `signals.held()`.

        Raises EscrowctlError if the journal cannot be used; `tally` then has the rows until then.
        """
        self._todos = todos
        while True:
            try:
                self._heed_signals()
                ready = self._hold_back(self._take_in())
                self._commit(ready + self._admit(len(ready)))
            except EscrowctlError as error:
                self._lose_journal(error)
                raise
            if self._ends:
                self._flight.end_waiting()
            self._watch.show_progress(self.tally)
            if not self._flight and (self._ends or self._is_last):
                return Ending(self._stopped, self._halts.why)

    @property
    def tally(self) -> Tally:
        """The number of rows of this run so far, by outcome."""
        return self._flight.tally

    @property
    def _ends(self) -> bool:
        return self._stopped is not None or bool(self._halts.why)

    def _take_in(self) -> list[PendingRow]:
        """Process the results; return the rows whose record was read, and that are sent next."""
        results, lost = self._collect()
        self._flight.out.difference_update(result.line for result in results)
        twins = self._find_twins(results)
        ready: list[PendingRow] = []
        for result in results:
            row = self._flight[result.line]
            if result.defect:
                self._watch.note_defect(result.defect, result.frames)
            if result.is_untouched:
                self._take_back(row)
            elif result.settlement is not None:
                settlement = compare_ids(row.sent, result.settlement, twins)
                twins.append(row.sent._replace(settlement=settlement))
                self._came.append(self._weigh(row, result, settlement))
            elif result.why is not None:
                self._weigh_unread(row, EscrowctlError(*result.why))
            elif row.unsettled and (record := result.record) and self._proves(record):
                self._settle_as_read(row, record)
            else:
                row.before = result.record
                ready.append(row)
        if self._crew.has_ended:
            self._lose(lost)
        return ready

    def _find_twins(self, results: Sequence[JobResult]) -> list[Entry]:
        """Return the entries that have one of the ids that were created now.

        If the journal cannot be read, the results are still kept, except those that only a read of such an id proves.
        """
        settled = [(one.line, one.settlement) for one in results if one.settlement is not None]
        try:
            return self._journal.find_created({one.result_id for _, one in settled if one.result_id is not None})
        except EscrowctlError:
            self._came += [Came(self._flight[line], one) for line, one in settled if not one.verified]
            raise

    def _take_back(self, row: PendingRow) -> None:
        """Note that the crew has returned a row, without a byte of it sent."""
        if not row.is_begun:
            self._put_off(row, 0.0)
            return
        row.attempts -= 1
        self._came.append(come_untouched(row))

    def _lose(self, lines: set[int]) -> None:
        """End the run because a process that sends has ended: these rows get no result."""
        self._flight.out -= lines
        if self._stopped is None:
            self._halts.halt(f"the process that sends {self._crew.ended_by}")
        for row in [self._flight[line] for line in lines]:
            if row.is_begun:
                self._came.append(lose(row))
            else:
                self._end(row)

    def _collect(self) -> tuple[list[JobResult], set[int]]:
        now = self._runtime.monotonic()
        if not self._flight.out:
            if wait := min(self._delay(now), _LONGEST_WAIT):
                self._runtime.sleep(wait)
            return [], set()
        wants_more = self._window > len(self._flight.out) and not self._ends
        wait = min(_LONGEST_WAIT, self._delay(now)) if wants_more else _LONGEST_WAIT
        # One commit of many rows costs far less than many commits. Only while the crew has rows to send meanwhile.
        return self._crew.collect(wait, enough=(self._window - self._size) // 2)

    @property
    def _window(self) -> int:
        """How many rows the crew may have."""
        if not self._halts.canary_passed:
            return 1
        if self._pace.rate(self._runtime.monotonic()) is not None:
            return self._size
        return self._size + min(self._lead.rows, self._size)

    def _delay(self, now: float) -> float:
        """Return the seconds until another row may be sent; `_LONGEST_WAIT` if there is none."""
        if self._ends:
            return _LONGEST_WAIT
        if self._takes_more:
            return self._pace.delay(now)
        due = self._flight.due
        return max(0.0, due - now if due is not None else _LONGEST_WAIT, self._pace.delay(now))

    @property
    def _takes_more(self) -> bool:
        """Whether new rows may be sent; until one is done, only if none is in progress."""
        return not self._is_last and (self._halts.canary_passed or not self._flight)

    def _hold_back(self, ready: list[PendingRow]) -> list[PendingRow]:
        """Return the rows that may be sent now: none while the service asks to wait, or after the run has ended.

        Then the crew returns the rows that it has not begun; rows that were read wait, and are read again.
        """
        if not (self._ends or self._pace.is_paused(self._runtime.monotonic())):
            return ready
        if self._flight.out:
            self._crew.recall()
        for row in ready:
            self._put_off(row, 0.0)
        return []

    def _admit(self, ready: int) -> list[PendingRow]:
        """Return the rows to begin now, next to the `ready` ones; rows to read first are sent to the crew here."""
        now = self._runtime.monotonic()
        room = 0 if self._ends else min(self._window - len(self._flight.out) - ready, self._pace.room(now))
        admitted: list[PendingRow] = []
        while len(admitted) < room and (row := self._next(now)) is not None:
            admitted.append(row)
        self._pace.note_sent(len(admitted), now)
        if not self._batch.kind.operation.once_only:
            return admitted
        for row in admitted:
            row.sent_at = now
        self._hand_out([Job(row.line, row.request, row.options, unsettled=row.unsettled) for row in admitted])
        return []

    def _next(self, now: float) -> PendingRow | None:
        row = self._flight.take_due(now)
        if row is None and self._takes_more:
            todo = next(self._todos, None)
            self._is_last = todo is None
            if todo is not None:
                row = self._requests.make_row(todo)
                self._flight.take_up(row)
        return row

    def _hand_out(self, jobs: list[Job]) -> None:
        self._flight.out.update(job.line for job in jobs)
        self._crew.submit(jobs)

    def _commit(self, ready: list[PendingRow]) -> None:
        """Record outcomes and the intents of the next rows, and send those to the crew."""
        rows = [row for row in ready if self._lock(row)]
        if not rows and not self._came:
            return
        started = self._runtime.monotonic()
        begun, settled = self._journal.write_all([self._requests.begin(row) for row in rows], self._settlements)
        now = self._runtime.monotonic()
        self._lead.note_commit(len(settled), now - started, now)
        self._conclude_all(settled)
        jobs = []
        for row, answer in zip(rows, begun, strict=True):
            if isinstance(answer, EscrowctlError):
                self._end_unsent(row, answer)
                continue
            row.earlier = row.sent.settlement if row.unsettled else None
            row.entry, row.sent_at = answer, now
            row.attempts += 1
            is_last = row.attempts >= ATTEMPTS
            jobs.append(Job(row.line, row.request, row.options, answer, row.before, row.unsettled, is_last))
        if self._ends:
            self._came += [come_untouched(self._flight[job.line]) for job in jobs]
        else:
            self._hand_out(jobs)

    @property
    def _settlements(self) -> list[tuple[Entry, Settlement]]:
        return [(came.row.sent, came.settlement) for came in self._came]

    def _conclude_all(self, settled: list[Entry | EscrowctlError]) -> None:
        all_came, self._came = self._came, []
        for came, result in zip(all_came, settled, strict=True):
            self._conclude(came, result)

    def _lose_journal(self, error: EscrowctlError) -> None:
        """Record at least the results so far, if that is still possible; rows in progress become unknown."""
        self._halts.halt(error.message)
        with contextlib.suppress(EscrowctlError):
            self._conclude_all(self._journal.settle_all(self._settlements))
        self._flight.end_begun()

    def _weigh(self, row: PendingRow, result: JobResult, settlement: Settlement) -> Came:
        """Decide how the row and the others go on, before any more are admitted."""
        now, status = self._runtime.monotonic(), settlement.http_status
        if result.is_misdirected:
            self._halts.halt(f"line {row.line}: {settlement.detail}")
        self._pace.note_reply(now, status, sent=row.sent_at, asked=result.asked)
        again_after = self._delay_again(row, result, settlement)
        is_first = not self._halts.canary_passed
        if again_after is None:
            self._halts.weigh(row.line, row.sent._replace(settlement=settlement))
        return Came(row, settlement, again_after, is_first)

    def _conclude(self, came: Came, result: Entry | EscrowctlError) -> None:
        """Count a row whose outcome is recorded, or put it back if it is sent again."""
        row = came.row
        if isinstance(result, EscrowctlError):
            self._watch.note_unrecorded(row.line, result)
            self._halts.halt("another process works on the same rows")
            self._end(row)
            return
        row.entry, row.unsettled = result, result.state is State.UNKNOWN
        if came.again_after is not None and not self._ends:
            self._put_off(row, came.again_after)
            return
        self._end(row)
        if result.state is not State.DONE:
            return
        if came.is_first:
            self._watch.show_canary(row.line, result, goes_on=not self._ends)
        elif result.settlement.remark is not None:
            self._watch.note_remark(row.line, result, result.settlement.remark)

    def _proves(self, record: Located) -> bool:
        return kind_of(self._batch.kind.operation.name).is_proven_by(record.status, self._service)

    def _settle_as_read(self, row: PendingRow, record: Located) -> None:
        """Record that a read proves an unknown row: it need not be sent again."""
        settlement = settled_by_reading(row.sent, f"the service reported {record.status}")
        try:
            row.entry = self._journal.settle_later(row.sent, settlement)
        except EscrowctlError as error:
            self._watch.note_unrecorded(row.line, error)
        else:
            if not self._halts.canary_passed:
                self._halts.canary_passed = True
                self._watch.show_canary(row.line, row.entry, goes_on=not self._ends)
        self._end(row)

    def _delay_again(self, row: PendingRow, result: JobResult, settlement: Settlement) -> float | None:
        """Return after how many seconds a row is retried (None: not); a throttled row has no limit of attempts."""
        if settlement.state is State.DONE or not result.may_go_again or self._pace.is_hopeless:
            return None
        if settlement.http_status in THROTTLED:
            # Only the pace limits it.
            return 0.0
        return _FIRST_RETRY * 2.0 ** (row.attempts - 1) if row.attempts < ATTEMPTS else None

    def _weigh_unread(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row that cannot be read before it is sent; a throttled one waits instead."""
        if error.code is ErrorCode.RATE_LIMITED and not self._ends:
            self._pace.note_refused(self._runtime.monotonic(), sent=row.sent_at, asked=None)
            if not self._pace.is_hopeless:
                self._put_off(row, 0.0)
                return
        self._end_unsent(row, error)

    def _put_off(self, row: PendingRow, seconds: float) -> None:
        self._unlock(row)
        self._flight.put_off(row, self._runtime.monotonic() + seconds)

    def _end_unsent(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row that cannot be sent now; it stays in the plan, or keeps its outcome."""
        self._end(row)
        self._watch.note_unsent(row.line, error, row.outcome)
        self._halts.weigh_unsent(row.line, error)

    def _end(self, row: PendingRow) -> None:
        self._unlock(row)
        self._flight.end(row)

    def _lock(self, row: PendingRow) -> bool:
        """Hold a row's locks across processes; if another process has one, the row is sent later.

        A create needs none: the guards of its commit refuse an identical create.
        """
        if not self._batch.kind.operation.once_only:
            return True
        names = [f"{name}\n{lock}" for name in self._service.names for lock in row.request.locks]
        for name in dict.fromkeys(names):
            if not self._journal.locks.hold(name):
                row.waits += 1
                if row.waits > _MOST_WAITS:
                    self._end_unsent(row, busy_elsewhere(_MOST_WAITS * _FIRST_RETRY))
                else:
                    self._put_off(row, _FIRST_RETRY)
                return False
            row.locks.append(name)
        return True

    def _unlock(self, row: PendingRow) -> None:
        while row.locks:
            self._journal.locks.free(row.locks.pop())

    def _heed_signals(self) -> None:
        """End the run at the first signal, and the requests in progress at the second."""
        code = self._signals.take()
        if code is None:
            return
        if self._stopped is None:
            self._stopped = code
            if self._flight.out:
                self._watch.show_stopping(min(len(self._flight.out), self._size))
            return
        # Finished results are still processed; the rest is lost.
        self._crew.kill()
