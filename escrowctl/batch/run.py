"""The loop that carries a batch out: one thread, one journal, and a crew that sends.

Each turn takes what has come in, admits as many rows as may go out, records both in one commit (outcomes, and the
intents of the next rows), and only then hands the next rows out. So no row is on the wire before its intent is
durable, and a commit is shared by as many rows as came in meanwhile.
"""

import contextlib
import heapq
from collections.abc import Iterator
from typing import TypeGuard

from escrowctl.batch.crew import Crew
from escrowctl.batch.flight import Requests, Row, compare_ids
from escrowctl.batch.halts import Halts
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import Batch, Outcomes, Todo, outcome_of
from escrowctl.batch.watch import Ending, Tally, Watch
from escrowctl.batch.worker import Finding, Job
from escrowctl.client.http import THROTTLED, Fault
from escrowctl.client.retry import ATTEMPTS
from escrowctl.config.service import Service
from escrowctl.contract.record import Located
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, command
from escrowctl.journal.guards import busy_elsewhere
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry, Settlement, State, settled_by_reading
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals
from escrowctl.writes.kinds import kind_of

_LONGEST_WAIT = 0.1
_GATHERING = 0.003
_FIRST_RETRY = 0.5
_MOST_WAITS = 20
_SERVER_ERROR = 500


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
        self._requests = Requests(batch, service, runtime.new_uuid)
        self._journal = journal
        self._crew = crew
        self._pace = pace
        self._halts = Halts(pace)
        self._size = size
        self._runtime = runtime
        self._signals = signals
        self._watch = watch
        self._todos: Iterator[Todo] = iter(())
        self._is_last = False
        self._rows: dict[int, Row] = {}
        self._came: list[tuple[Row, Settlement]] = []
        """What came of rows that were sent, and is not on record yet."""
        self._later: list[tuple[float, Row]] = []
        self._counts = dict.fromkeys(Outcomes, 0)
        self._stopped: ErrorCode | None = None

    def go(self, todos: Iterator[Todo]) -> Ending:
        """Send rows until there are none left, or the run ends before; call it inside `signals.held()`.

        Raises EscrowctlError where the journal cannot be used, with what became of the rows until then.
        """
        self._todos = todos
        while True:
            try:
                self._heed_signals()
                ready = self._take_in()
                self._commit(ready + self._admit(len(ready)))
            except EscrowctlError as error:
                self._lose_journal(error)
                raise
            self._watch.show_progress(self.tally)
            if not self._rows and (self._ends or (self._is_last and not self._later)):
                return Ending(self._stopped, self._halts.why)

    @property
    def tally(self) -> Tally:
        """What the run has come to."""
        done, failed, unknown, not_sent = self._counts.values()
        return Tally(done, failed, unknown, not_sent)

    @property
    def _ends(self) -> bool:
        return self._stopped is not None or bool(self._halts.why)

    # What comes in

    def _take_in(self) -> list[Row]:
        """Take in what came of rows that were sent; return those whose record was read, and that go out next."""
        findings, lost = self._collect()
        ready: list[Row] = []
        settlements = [finding.settlement for finding in findings if finding.settlement is not None]
        twins = self._journal.find_created({one.result_id for one in settlements if one.result_id is not None})
        for finding in findings:
            row = self._rows.pop(finding.line)
            if finding.defect:
                self._watch.note_defect(finding.defect, finding.frames)
            if finding.settlement is not None:
                settlement = compare_ids(row.sent, finding.settlement, twins)
                twins.append(row.sent._replace(settlement=settlement))
                self._weigh(row, finding, settlement)
                self._came.append((row, settlement))
            elif finding.why is not None:
                self._weigh_unread(row, EscrowctlError(*finding.why))
            elif row.unsettled and self._is_proven(finding.record):
                self._settle_as_read(row, finding.record)
            else:
                row.before = finding.record
                ready.append(row)
        if lost:
            self._lose(lost)
        return [] if self._ends else ready

    def _lose(self, lines: set[int]) -> None:
        """Note that nothing more comes of these rows: the process that sends has ended."""
        why = f"the process that sent it {self._crew.ended_by}"
        if self._stopped is None:
            self._halts.halt(f"the process that sends {self._crew.ended_by}")
        else:
            why = Fault.INTERRUPTED.value
        for line in lines:
            row = self._rows.pop(line)
            if row.is_sent:
                self._came.append((row, Settlement(Outcome.UNKNOWN, why)))

    def _collect(self) -> tuple[list[Finding], set[int]]:
        now = self._runtime.monotonic()
        if not self._rows:
            if wait := min(self._delay(now), _LONGEST_WAIT):
                self._runtime.sleep(wait)
            return [], set()
        wants_more = self._window > len(self._rows) and not self._ends
        wait = min(_LONGEST_WAIT, self._delay(now)) if wants_more else _LONGEST_WAIT
        findings, lost = self._crew.collect(wait)
        # One commit of many rows costs far less than many commits, and the crew has rows to send meanwhile.
        while findings and not lost and len(findings) < self._size // 2:
            self._runtime.sleep(_GATHERING)
            more, lost = self._crew.collect(0)
            if not more:
                break
            findings += more
        return findings, lost

    # What goes out

    @property
    def _window(self) -> int:
        """How many rows may be with the crew: another for each that is being sent, so that none waits for a commit.

        No more than that: rows that are begun are unknown after a crash, sent or not.
        """
        if not self._halts.canary_passed:
            return 1
        if self._pace.rate(self._runtime.monotonic()) is not None:
            return self._size
        return 2 * self._size

    def _delay(self, now: float) -> float:
        """Return the seconds until another row may go out; a long time where there is none."""
        if self._ends or (self._is_last and not self._later):
            return _LONGEST_WAIT
        due = self._later[0][0] - now if self._later and (self._is_last or not self._halts.canary_passed) else 0.0
        return max(0.0, due, self._pace.delay(now))

    def _admit(self, ready: int) -> list[Row]:
        """Return the rows to begin now, next to those that are ready; a record to read first is asked for here."""
        now = self._runtime.monotonic()
        room = 0 if self._ends else min(self._window - len(self._rows) - ready, self._pace.room(now))
        admitted: list[Row] = []
        while len(admitted) < room and (row := self._next(now)) is not None:
            admitted.append(row)
        self._pace.note_sent(len(admitted), now)
        if not self._batch.kind.operation.once_only:
            return admitted
        for row in admitted:
            row.sent_at = now
            self._rows[row.line] = row
        self._crew.submit([Job(row.line, row.request, row.options, unsettled=row.unsettled) for row in admitted])
        return []

    def _next(self, now: float) -> Row | None:
        if self._later and (self._later[0][0] <= now or not self._halts.canary_passed):
            return heapq.heappop(self._later)[1] if self._later[0][0] <= now else None
        todo = None if self._is_last else next(self._todos, None)
        self._is_last = todo is None
        return self._requests.make_row(todo) if todo is not None else None

    # One commit

    def _commit(self, ready: list[Row]) -> None:
        """Record outcomes and the intents of the next rows, and hand those out."""
        rows = [row for row in ready if self._lock(row)]
        if not rows and not self._came:
            return
        begun, settled = self._journal.write_all([self._requests.begin(row) for row in rows], self._settlements)
        now = self._runtime.monotonic()
        self._conclude_all(settled)
        jobs = []
        for row, answer in zip(rows, begun, strict=True):
            if isinstance(answer, EscrowctlError):
                self._unlock(row)
                self._note_unsent(row, answer)
                continue
            row.entry, row.is_sent, row.sent_at = answer.entry, True, now
            row.attempts += 1
            self._rows[row.line] = row
            is_last = row.attempts >= ATTEMPTS
            # What nothing there needs is not copied to another process.
            entry = answer.entry._replace(history=(), requests=frozenset())
            jobs.append(Job(row.line, row.request, row.options, entry, row.before, row.unsettled, is_last))
        self._crew.submit(jobs)

    @property
    def _settlements(self) -> list[tuple[Entry, Settlement]]:
        return [(row.sent, settlement) for row, settlement in self._came]

    def _conclude_all(self, settled: list[Entry | EscrowctlError]) -> None:
        came, self._came = self._came, []
        for (row, _), result in zip(came, settled, strict=True):
            self._conclude(row, result)

    def _lose_journal(self, error: EscrowctlError) -> None:
        """Record at least what came in, where that is still possible; what is on its way is unknown."""
        self._halts.halt(error.message)
        with contextlib.suppress(EscrowctlError):
            self._conclude_all(self._journal.settle_all(self._settlements))
        waiting = [*self._rows.values(), *(row for _, row in self._later)]
        self._counts[Outcomes.UNKNOWN] += len(self._came) + sum(row.is_sent or row.unsettled for row in waiting)

    def with_counts(self, error: EscrowctlError) -> EscrowctlError:
        """Return the error of a run that could not go on, or not be summed up: with what it has sent until then."""
        done, failed, unknown, _ = self._counts.values()
        if not (done or failed or unknown):
            return error
        told = ", ".join(f"{count:,} {name}" for name, count in self._counts.items() if count).replace("_", " ")
        return EscrowctlError(
            ErrorCode.SOME_UNKNOWN if unknown else ErrorCode.SOME_FAILED,
            f"{error.message} Until then, this run of {self._batch.name} came to: {told}.",
            hint=(*error.hints, command(f"batch show {self._batch.name}", "to see the batch")),
            outcome=Outcome.UNKNOWN if unknown else None,
            facts={"batch": self._batch.name},
        )

    # What became of a row

    def _weigh(self, row: Row, finding: Finding, settlement: Settlement) -> None:
        """Decide what follows for the row and for the others, before any more are admitted."""
        entry = row.sent._replace(settlement=settlement)
        self._keep_pace(row, finding, settlement)
        row.goes_again = self._may_go_again(row, finding, settlement)
        if not row.goes_again:
            row.was_first = not self._halts.canary_passed
            self._halts.weigh(row, settlement, outcome_of(entry))

    def _conclude(self, row: Row, result: Entry | EscrowctlError) -> None:
        """Count a row whose outcome is on record, or put it back where it goes again."""
        self._unlock(row)
        if isinstance(result, EscrowctlError):
            self._counts[Outcomes.UNKNOWN] += 1
            self._watch.note_unrecorded(row.line, result)
            self._halts.halt("another process works on the same rows")
            return
        row.entry, row.is_sent = result, False
        if row.goes_again and not self._ends:
            # A row that the service throttles waits for the pace alone.
            throttled = result.settlement.http_status in THROTTLED
            wait = 0.0 if throttled else _FIRST_RETRY * 2.0 ** (row.attempts - 1)
            row.unsettled = result.state is State.UNKNOWN
            heapq.heappush(self._later, (self._runtime.monotonic() + wait, row))
            return
        self._counts[outcome_of(result)] += 1
        if result.state is not State.DONE:
            return
        if row.was_first:
            self._watch.show_canary(row.line, result, goes_on=not self._ends)
        elif result.settlement.remark is not None:
            self._watch.note_remark(row.line, result, result.settlement.remark)

    def _is_proven(self, record: Located | None) -> TypeGuard[Located]:
        kind = kind_of(self._batch.kind.operation.name)
        return record is not None and kind.is_proven_by(record.status, self._service)

    def _settle_as_read(self, row: Row, record: Located) -> None:
        """Record what a reading shows of a row that is unknown: it need not be sent again."""
        settlement = settled_by_reading(row.sent, f"the service reported {record.status}")
        try:
            row.entry = self._journal.settle_later(row.sent, settlement)
        except EscrowctlError as error:
            self._counts[Outcomes.UNKNOWN] += 1
            self._watch.note_unrecorded(row.line, error)
            return
        self._counts[Outcomes.DONE] += 1
        if not self._halts.canary_passed:
            self._halts.canary_passed = True
            self._watch.show_canary(row.line, row.entry, goes_on=not self._ends)

    def _keep_pace(self, row: Row, finding: Finding, settlement: Settlement) -> None:
        now, status = self._runtime.monotonic(), settlement.http_status
        if status in THROTTLED or (finding.asked is not None and status is not None and status >= _SERVER_ERROR):
            self._pace.note_refused(now, sent=row.sent_at, asked=finding.asked)
        elif status is not None:
            self._pace.note_taken(now)

    def _may_go_again(self, row: Row, finding: Finding, settlement: Settlement) -> bool:
        """Whether a row is sent again by itself: one that the service throttles as often as it takes."""
        if not finding.may_go_again or self._pace.is_hopeless:
            return False
        return settlement.http_status in THROTTLED or row.attempts < ATTEMPTS

    def _weigh_unread(self, row: Row, error: EscrowctlError) -> None:
        """Decide what follows for a row that cannot be read before it is sent: of a throttled one, that it waits."""
        if error.code is ErrorCode.RATE_LIMITED and not self._ends:
            now = self._runtime.monotonic()
            self._pace.note_refused(now, sent=row.sent_at, asked=None)
            if not self._pace.is_hopeless:
                heapq.heappush(self._later, (now, row))
                return
        self._note_unsent(row, error)

    def _note_unsent(self, row: Row, error: EscrowctlError) -> None:
        """Count a row that was not sent; it stays in the plan."""
        self._counts[Outcomes.NOT_SENT] += 1
        self._watch.note_unsent(row.line, error)
        self._halts.weigh_unsent(row, error)

    # Locks and signals

    def _lock(self, row: Row) -> bool:
        """Hold what a row locks across processes; where another process has it, the row comes later.

        A create needs none: what it would wait for, the guards of its commit refuse.
        """
        if not self._batch.kind.operation.once_only:
            return True
        names = [f"{name}\n{lock}" for name in self._service.names for lock in row.request.locks]
        for name in dict.fromkeys(names):
            if not self._journal.hold(name):
                self._unlock(row)
                self._put_off(row)
                return False
            row.locks.append(name)
        return True

    def _put_off(self, row: Row) -> None:
        row.waits += 1
        if row.waits > _MOST_WAITS:
            self._note_unsent(row, busy_elsewhere(_MOST_WAITS * _FIRST_RETRY))
            return
        row.before = None
        heapq.heappush(self._later, (self._runtime.monotonic() + _FIRST_RETRY, row))

    def _unlock(self, row: Row) -> None:
        while row.locks:
            self._journal.free(row.locks.pop())

    def _heed_signals(self) -> None:
        """End the run at the first signal, and what is on its way at the second."""
        code = self._signals.take()
        if code is None:
            return
        if self._stopped is None:
            self._stopped = code
            if self._rows:
                self._watch.show_stopping(len(self._rows))
            return
        # What it has answered is still taken in; the rest is lost.
        self._crew.kill()
