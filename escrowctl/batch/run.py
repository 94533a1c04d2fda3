"""The loop that sends a batch: one thread, one journal, and processes that send.

Each turn collects the results, admits as many rows as may be sent, records both in one commit (outcomes, and the
intents of the next rows), and only then passes the next rows on. So no row is sent before its intent is durable, and as
many rows share a commit as finished meanwhile. Rows are begun ahead of the rows being sent. If no more may be sent, the
senders return the rows that they have not begun as not sent.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from escrowctl.batch.halts import Halts
from escrowctl.batch.in_flight import InFlight, PendingRow, Requests
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import Batch, Todo
from escrowctl.batch.progress import Progress
from escrowctl.batch.senders import Senders
from escrowctl.batch.worker import Job, JobResult
from escrowctl.client.http import THROTTLED
from escrowctl.client.retry import ATTEMPTS
from escrowctl.config.service import Service
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.guards import busy_elsewhere
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import LOST_IN_FLIGHT, Entry, Settlement, State, settled_by_reading
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.create import compare_ids
from escrowctl.writes.kinds import kind_of

_LONGEST_WAIT = 0.1
_FIRST_RETRY = 0.5
_MOST_WAITS = 20


@dataclass
class Run:
    """One run of a batch. `size` is how many requests may be on the wire at once."""

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
        self._requests = Requests(self.batch, self.service, self.runtime)
        self._halts = Halts(self.pace)
        self._in_flight = InFlight()
        self._todos: Iterator[Todo] = iter(())
        self._is_last = False
        self._unrecorded: list[tuple[PendingRow, Settlement]] = []
        self.counts = self._in_flight.counts
        """The number of ended rows by outcome."""
        self.stopped: ErrorCode | None = None
        """The code of the signal that ended the run."""
        self.defect = ""
        """The traceback of the first internal error at a row."""

    def go(self, todos: Iterator[Todo]) -> None:
        """Send rows until there are none left, or the run ends before; call it inside `signals.held()`.

        Raises EscrowctlError if the journal cannot be used; `counts` then has the rows until then.
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
                self._in_flight.end_waiting()
            self.progress.show_progress(self.counts)
            if not self._in_flight and (self._ends or self._is_last):
                return

    @property
    def halted(self) -> str:
        """Why the run ended early, because the other rows would fail too; empty: it did not."""
        return self._halts.why

    @property
    def _ends(self) -> bool:
        return self.stopped is not None or bool(self.halted)

    def _take_in(self) -> list[PendingRow]:
        """Process the results; return the rows whose record was read, and that are sent next."""
        results, lost = self._collect()
        self._in_flight.out.difference_update(result.line for result in results)
        created = self._find_created(results)
        ready: list[PendingRow] = []
        kind = kind_of(self.batch.kind.operation.name)
        for result in results:
            row = self._in_flight[result.line]
            self.defect = self.defect or result.defect
            if result.is_untouched:
                self._take_back(row)
            elif result.settlement is not None:
                settlement = compare_ids(row.sent, result.settlement, created)
                created.append(row.sent._replace(settlement=settlement))
                self._weigh(row, result, settlement)
                self._unrecorded.append((row, settlement))
            elif result.why is not None:
                self._end_or_delay_unread(row, EscrowctlError(*result.why))
            elif row.unsettled and (record := result.record) and kind.is_proven_by(record.status, self.service):
                self._settle_as_read(row, record)
            else:
                row.before = result.record
                ready.append(row)
        if self.senders.has_ended:
            self._lose(lost)
        return ready

    def _find_created(self, results: Sequence[JobResult]) -> list[Entry]:
        """Return the entries that have one of the ids that were created now.

        If the journal cannot be read, the results are still stored, except those that only a read of such an id proves.
        """
        settled = [(self._in_flight[one.line], one.settlement) for one in results if one.settlement is not None]
        try:
            return self.journal.find_created({one.result_id for _, one in settled if one.result_id is not None})
        except EscrowctlError:
            self._unrecorded += [(row, settlement) for row, settlement in settled if not settlement.verified]
            raise

    def _take_back(self, row: PendingRow) -> None:
        """Take a row back from the senders, without a byte of it sent."""
        if row.is_begun:
            self._unrecorded.append((row, row.take_back()))
        else:
            self._put_off(row, 0.0)

    def _lose(self, lines: set[int]) -> None:
        """End the run because a process that sends has ended: these rows get no result."""
        self._in_flight.out -= lines
        if self.stopped is None:
            self._halts.halt("a process that sends has ended")
        for row in [self._in_flight[line] for line in lines]:
            if row.is_begun:
                self._unrecorded.append((row, Settlement(Outcome.UNKNOWN, LOST_IN_FLIGHT)))
            else:
                self._end(row)

    def _collect(self) -> tuple[list[JobResult], set[int]]:
        now = self.runtime.monotonic()
        if not self._in_flight.out:
            if wait := min(self._delay(now), _LONGEST_WAIT):
                self.runtime.sleep(wait)
            return [], set()
        wants_more = self._window > len(self._in_flight.out) and not self._ends
        wait = min(_LONGEST_WAIT, self._delay(now)) if wants_more else _LONGEST_WAIT
        # One commit of many rows costs far less than many commits. Only while the senders have rows to send meanwhile.
        return self.senders.collect(wait, enough=(self._window - self.size) // 2)

    @property
    def _window(self) -> int:
        """How many rows the senders may have."""
        if not self._halts.canary_passed:
            return 1
        if self.pace.rate(self.runtime.monotonic()) is not None:
            return self.size
        # Some are begun ahead, so that no connection waits for a commit; few, because a crash leaves them unknown.
        return self.size + max(1, self.size // 4)

    def _delay(self, now: float) -> float:
        """Return the seconds until another row may be sent; `_LONGEST_WAIT` if there is none."""
        if self._ends:
            return _LONGEST_WAIT
        if self._takes_more:
            return self.pace.delay(now)
        due = self._in_flight.due
        return max(0.0, due - now if due is not None else _LONGEST_WAIT, self.pace.delay(now))

    @property
    def _takes_more(self) -> bool:
        """Whether new rows may be sent; until one is done, only if none is in progress."""
        return not self._is_last and (self._halts.canary_passed or not self._in_flight)

    def _hold_back(self, ready: list[PendingRow]) -> list[PendingRow]:
        """Return the rows that may be sent now: none while the service asks to wait, or after the run has ended.

        Then the senders return the rows that they have not begun; rows that were read wait, and are read again.
        """
        if not (self._ends or self.pace.is_paused(self.runtime.monotonic())):
            return ready
        if self._in_flight.out:
            self.senders.recall()
        for row in ready:
            self._put_off(row, 0.0)
        return []

    def _admit(self, ready: int) -> list[PendingRow]:
        """Return the rows to begin now, next to the `ready` ones; rows to read first go to the senders here."""
        now = self.runtime.monotonic()
        room = 0 if self._ends else min(self._window - len(self._in_flight.out) - ready, self.pace.room(now))
        admitted: list[PendingRow] = []
        while len(admitted) < room and (row := self._next(now)) is not None:
            admitted.append(row)
        self.pace.note_sent(len(admitted), now)
        if not self.batch.kind.operation.once_only:
            return admitted
        for row in admitted:
            row.sent_at = now
        self._hand_out([Job(row.line, row.request, row.options, unsettled=row.unsettled) for row in admitted])
        return []

    def _next(self, now: float) -> PendingRow | None:
        row = self._in_flight.take_due(now)
        if row is None and self._takes_more:
            todo = next(self._todos, None)
            self._is_last = todo is None
            if todo is not None:
                row = self._requests.make_row(todo)
                self._in_flight.take_up(row)
        return row

    def _hand_out(self, jobs: list[Job]) -> None:
        self._in_flight.out.update(job.line for job in jobs)
        self.senders.submit(jobs)

    def _commit(self, ready: list[PendingRow]) -> None:
        """Record outcomes and the intents of the next rows, and send those to the senders."""
        rows = [row for row in ready if self._lock(row)]
        if not rows and not self._unrecorded:
            return
        begun, settled = self.journal.write_all([self._requests.begin(row) for row in rows], self._settlements)
        now = self.runtime.monotonic()
        self._conclude_all(settled)
        jobs = []
        for row, answer in zip(rows, begun, strict=True):
            if isinstance(answer, EscrowctlError):
                self._end_unsent(row, answer)
                continue
            assert answer.state is State.IN_FLIGHT, "each row has a new idempotency key, so it replays no entry"
            row.earlier = row.sent.settlement if row.unsettled else None
            row.entry, row.sent_at = answer, now
            row.attempts += 1
            row.again_after = None
            is_last = row.attempts >= ATTEMPTS
            jobs.append(Job(row.line, row.request, row.options, answer, row.before, row.unsettled, is_last))
        if self._ends:
            for job in jobs:
                self._take_back(self._in_flight[job.line])
        else:
            self._hand_out(jobs)

    @property
    def _settlements(self) -> list[tuple[Entry, Settlement]]:
        return [(row.sent, settlement) for row, settlement in self._unrecorded]

    def _conclude_all(self, recorded: list[Entry | EscrowctlError]) -> None:
        """Count the rows whose outcomes are recorded now, or put back a row that is sent again."""
        rows, self._unrecorded = [row for row, _ in self._unrecorded], []
        for row, result in zip(rows, recorded, strict=True):
            if isinstance(result, EscrowctlError):
                self.progress.note_unrecorded(row.line, result)
                self._halts.halt("another process works on the same rows")
                self._end(row)
                continue
            row.entry, row.unsettled = result, result.state is State.UNKNOWN
            if row.again_after is not None and not self._ends:
                self._put_off(row, row.again_after)
                continue
            self._end(row)
            if result.state is State.DONE:
                self.progress.show_done(row.line, result, goes_on=not self._ends)

    def _lose_journal(self, error: EscrowctlError) -> None:
        """Record at least the results so far, if that is still possible; rows in progress become unknown."""
        self._halts.halt(error.message)
        with contextlib.suppress(EscrowctlError):
            self._conclude_all(self.journal.settle_all(self._settlements))
        self._in_flight.end_begun()

    def _weigh(self, row: PendingRow, result: JobResult, settlement: Settlement) -> None:
        """Decide how the row and the others go on, before any more are admitted."""
        now, status = self.runtime.monotonic(), settlement.http_status
        if result.is_misdirected:
            self._halts.halt(f"line {row.line}: {settlement.detail}")
        self.pace.note_reply(now, status, sent=row.sent_at, asked=result.asked)
        row.again_after = self._delay_again(row, result, settlement)
        if row.again_after is None:
            self._halts.weigh(row.line, row.sent._replace(settlement=settlement))

    def _settle_as_read(self, row: PendingRow, record: Located) -> None:
        """Record that a read proves an unknown row: it need not be sent again."""
        settlement = settled_by_reading(row.sent, f"the service reported {record.status}")
        try:
            row.entry = self.journal.settle_later(row.sent, settlement)
        except EscrowctlError as error:
            self.progress.note_unrecorded(row.line, error)
        else:
            self._halts.canary_passed = True
            self.progress.show_done(row.line, row.entry, goes_on=not self._ends)
        self._end(row)

    def _delay_again(self, row: PendingRow, result: JobResult, settlement: Settlement) -> float | None:
        """Return after how many seconds a row is retried (None: not); a throttled row has no limit of attempts."""
        if settlement.state is State.DONE or not result.may_go_again or self.pace.is_hopeless:
            return None
        if settlement.http_status in THROTTLED:
            # Only the pace limits it.
            return 0.0
        return _FIRST_RETRY * 2.0 ** (row.attempts - 1) if row.attempts < ATTEMPTS else None

    def _end_or_delay_unread(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row that cannot be read before it is sent; a throttled one waits instead."""
        if error.code is ErrorCode.RATE_LIMITED and not self._ends:
            self.pace.note_refused(self.runtime.monotonic(), sent=row.sent_at, asked=None)
            if not self.pace.is_hopeless:
                self._put_off(row, 0.0)
                return
        self._end_unsent(row, error)

    def _put_off(self, row: PendingRow, seconds: float) -> None:
        self._unlock(row)
        self._in_flight.put_off(row, self.runtime.monotonic() + seconds)

    def _end_unsent(self, row: PendingRow, error: EscrowctlError) -> None:
        """End a row that cannot be sent now; it stays in the plan, or keeps its outcome."""
        self._end(row)
        self.progress.note_unsent(row.line, error, row.outcome)
        self._halts.weigh_unsent(row.line, error)

    def _end(self, row: PendingRow) -> None:
        self._unlock(row)
        self._in_flight.end(row)

    def _lock(self, row: PendingRow) -> bool:
        """Hold a row's locks across processes; if another process has one, the row is sent later.

        A create needs none: the guards of its commit refuse an identical create.
        """
        if not self.batch.kind.operation.once_only:
            return True
        names = [f"{name}\n{lock}" for name in self.service.names for lock in row.request.locks]
        for name in dict.fromkeys(names):
            if not self.journal.locks.hold(name):
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
            self.journal.locks.free(row.locks.pop())

    def _heed_signals(self) -> None:
        """End the run at the first signal, and the requests in progress at the second."""
        code = self.signals.take()
        if code is None:
            return
        if self.stopped is None:
            self.stopped = code
            if self._in_flight.out:
                self.progress.show_stopping(min(len(self._in_flight.out), self.size))
            return
        # Finished results are still processed; the rest is lost.
        self.senders.kill()
