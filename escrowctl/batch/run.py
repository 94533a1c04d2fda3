"""One run of a batch: threads that each carry out one row at a time, and what they share.

The thread that calls `Run.send_rows` owns the journal and serves the others. A row goes the way of a single command
(`batch.worker`); the run decides when the next row may begin, when its request may be sent, and when the run ends.
"""

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from escrowctl.batch.claimants import RunState, SharedRun, note_ended
from escrowctl.batch.halts import HaltRules
from escrowctl.batch.pace import Pace
from escrowctl.batch.plan import outcome_of
from escrowctl.batch.progress import Progress
from escrowctl.batch.rows import RowContent
from escrowctl.client.connection import Connection
from escrowctl.client.http import Exchange, Request
from escrowctl.client.retry import MAX_RETRY_AFTER_SECONDS, find_retry_after, is_throttled
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome, Reason, Stopped, not_sent
from escrowctl.journal.model import Entry, State
from escrowctl.journal.served import ServedJournal
from escrowctl.runtime import timestamp

_MAX_WAIT = 0.1
_LOOK_SECONDS = 0.1
"""Seconds between two looks at what the other claimants have done."""
_COUNT_SECONDS = 1.0
"""Seconds between two moments when a claimant that is not alone stores how many rows it has ended."""
_RESERVED_SECONDS = 0.25
"""The time for which a claimant takes slots of --rps in advance."""
_PAUSE_TOLERANCE = 0.05
_FIRST_SERVER_ERROR = 500


class RowResult(NamedTuple):
    """The entry of a row that was taken (None: it was not begun), and the error that it ended with."""

    entry: Entry | None
    error: EscrowctlError | Stopped | None = None


class Sender(Protocol):
    """Carries out rows in one thread."""

    def send(self, row: RowContent) -> RowResult:
        """Carry out one row. Never raises."""

    def close(self) -> None:
        """Close the network connection."""


class Run:
    """One run of a batch, for one of its claimants. `size` is how many requests may be in progress at once.

    `take_signal` returns the code of a signal that has arrived, or None.
    """

    def __init__(
        self, shared: SharedRun, size: int, take_signal: Callable[[], ErrorCode | None], progress: Progress
    ) -> None:
        self.journal = ServedJournal(shared.journal, self._refuse)
        self.shared = shared
        self._runtime = shared.runtime
        self._state = shared.read()
        self.pace = pace = Pace(self._state.rate, self._runtime.monotonic())
        self._size = size
        self.max_begun = 2 * size if size > 1 else 1
        """How many rows are begun at once: twice the size, so that no connection waits for a commit."""
        self._take_signal = take_signal
        self._progress = progress
        self.halts = HaltRules(pace, self._state)
        self._ended: Counter[Outcome] = Counter()
        """The rows that this claimant has ended, and that are not counted in the state of the run yet."""
        self.stopped: ErrorCode | None = None
        """The code of the signal that ended the run."""
        self.failure: EscrowctlError | None = None
        """The error of the journal that ended the run."""
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self._row_ended, self._request_ended = threading.Condition(self._lock), threading.Condition(self._lock)
        self._rows: deque[tuple[RowContent, float]] = deque()
        self._has_more_rows = True
        self._in_progress = self._requests = self._threads = 0
        self._next_read = self._next_count = self._next_claim = 0.0

    @property
    def counts(self) -> Counter[Outcome]:
        """The number of rows that have ended in the run, by outcome; of other claimants, what they have stored."""
        return self._state.ended + self._ended

    @property
    def is_ending(self) -> bool:
        """Whether no more rows are sent."""
        return self.stopped is not None or bool(self.halts.reason)

    def send_rows(self, senders: Sequence[Sender]) -> None:
        """Send rows, with a thread for each of `senders`, until no claimant has any left or the run ends early.

        Call it inside `signals.held()`. A second signal leaves the rows in progress behind: they are unknown. If the
        journal cannot be used, `failure` is set. Raises RuntimeError if a thread cannot be started: then nothing was
        sent.
        """
        self._claim_rows()
        with self._taking:
            try:
                for sender in senders:
                    threading.Thread(target=self._work, args=(sender,), daemon=True).start()
                    self._threads += 1
            except RuntimeError:
                self.halts.halt("a thread could not be started")
                raise
        while self._threads and self._signals_allow():
            self.journal.serve(_MAX_WAIT, callers=self._threads)
            self._share()
            self._claim_rows()
            with self._lock:
                self._progress.show_progress(self.counts)
        self._share()
        if self.failure is None:
            with self._lock, contextlib.suppress(EscrowctlError):
                # Its children may wait for it, while it waits for their end.
                self.shared.leave(row for row, _ in self._rows)

    def wait_for_turn(self) -> None:
        """Wait until the pace allows one more row. Raises `Stopped` if the run ends meanwhile."""
        while delay := self._find_delay():
            self.sleep(min(delay, _MAX_WAIT))

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises `Stopped` if the run ends meanwhile."""
        end = self._runtime.monotonic() + seconds
        while (left := end - self._runtime.monotonic()) > 0:
            self._require_going_on()
            self._runtime.sleep(min(left, _MAX_WAIT))

    @contextlib.contextmanager
    def admit(self, connection: Connection, request: Request) -> Iterator[None]:
        """Wait until a request may be sent. Count it as in progress in the block, then adjust the pace to its result.

        After a pause, it waits for its turn again: not all that waited are sent at once. Raises `Stopped` if it is a
        write and the run is ending.
        """
        is_write = request.method != "GET"
        while not self._try_to_start_request(is_write=is_write):
            if self.pace.pause(self._runtime.monotonic()):
                # Only a write is given up if the run ends meanwhile.
                with contextlib.suppress(Stopped):
                    self.wait_for_turn()
        sent_at = self._runtime.monotonic()
        try:
            yield
            self._note_exchange(connection.last, is_write=is_write, sent_at=sent_at)
        finally:
            with self._lock:
                self._requests -= 1
                self._request_ended.notify()

    def _note_exchange(self, exchange: Exchange | None, *, is_write: bool, sent_at: float) -> None:
        """Adjust the pace to the result of a request that was sent at `sent_at`."""
        if exchange is None or (answer := exchange.answer) is None:
            return
        now = self._runtime.monotonic()
        throttled, has_failed = is_throttled(exchange), answer.status >= _FIRST_SERVER_ERROR
        wait = find_retry_after(answer, now=self._runtime.now()) if throttled or has_failed else None
        with self._lock:
            if throttled or (is_write and wait is not None):
                self.pace.note_throttled(now, sent_at=sent_at, requested_wait=wait)
            elif is_write:
                self.pace.note_accepted(now)

    def note_judged(self, line: int, entry: Entry, exchange: Exchange) -> None:
        """End the run at once, before the outcome is recorded, if the reply to a row shows that it must end."""
        with self._lock:
            self.halts.check_reply(line, entry, exchange.fault)

    def _work(self, sender: Sender) -> None:
        try:
            with contextlib.closing(sender), contextlib.suppress(Stopped):
                while (row := self._take_row()) is not None:
                    self._end_row(row, sender.send(row))
        finally:
            with self._lock:
                self._threads -= 1
            self.journal.wake()

    def _take_row(self) -> RowContent | None:
        """Wait until the next row may begin, and return it; None: there is none. Raises `Stopped` if the run ends.

        Until a row is done, only one row is in progress at a time. One thread waits at a time, so that rows begin in
        their order.
        """
        with self._taking:
            with self._lock:
                while (self._in_progress and not self.halts.canary_passed) or (self._has_more_rows and not self._rows):
                    self._require_going_on()
                    self.journal.wake()
                    self._row_ended.wait(_MAX_WAIT)
                if self.is_ending or not self._rows:
                    return None
                row, due = self._rows.popleft()
                self._in_progress += 1
            try:
                self.sleep(due - self._runtime.monotonic())
                self.wait_for_turn()
            except Stopped:
                self._end_row(row, RowResult(row.sent, Stopped(ErrorCode.INTERRUPTED)))
                raise
            return row

    def _claim_rows(self) -> None:
        """Keep a row ready for each thread: only this thread can read the plan. Take one at first, until it is done."""
        now, rate = self._runtime.monotonic(), self._state.rate
        # A claim is a commit: take many, but leave some to the others.
        limit = 8 * self.max_begun // max(1, len(self._state.claimants))
        if rate is not None:
            limit = max(1, min(limit, int(rate * _RESERVED_SECONDS)))
        if not self.halts.canary_passed:
            limit = 1 - self._in_progress - len(self._rows) if self.shared.is_first(self._state) else 0
        is_full = len(self._rows) >= (self.max_begun if rate is None else 1)
        if self.is_ending or not self._has_more_rows or limit < 1 or is_full or now < self._next_claim:
            return
        try:
            found = self.shared.claim(limit)
            if found is None:
                if self.shared.has_working_others(is_idle=not (self._in_progress or self._rows)):
                    self._next_claim = now + _LOOK_SECONDS
                    return
                # Since then, one that has left may have put rows back.
                found = self.shared.claim(limit)
            first = now + (self.shared.reserve(rate, len(found)) if rate is not None and found else 0.0)
        except EscrowctlError as error:
            self._fail(error)
            return
        with self._lock:
            gap = 1 / rate if rate is not None else 0.0
            self._rows.extend((row, first + number * gap) for number, row in enumerate(found or ()))
            self._has_more_rows = found is not None
            self._row_ended.notify_all()

    def _share(self) -> None:
        """Store what this claimant adds to the state of the run, and apply what the others have added."""
        now, known = self._runtime.monotonic(), self._state
        with self._lock:
            ended = [*self.halts.ended]
            reason, pause = self.halts.reason, self.pace.pause(now)
            counts = self._ended.copy() if len(known.claimants) > 1 and now >= self._next_count else Counter[Outcome]()
        until = timestamp(self.shared.now() + timedelta(seconds=pause - _PAUSE_TOLERANCE))

        def add(state: RunState) -> RunState:
            return note_ended(state, ended)._replace(
                halted=state.halted or reason,
                first_sender=None if self.halts.canary_passed else state.first_sender,
                paused_until=until if pause and state.paused_until < until else state.paused_until,
                ended=state.ended + counts,
            )

        try:
            if add(known) != known:
                self._state = self.shared.change(add)
                if counts:
                    self._next_count = now + _COUNT_SECONDS
            elif now >= self._next_read:
                self._next_read = now + _LOOK_SECONDS
                self._state = self.shared.read()
            self._apply(self._state, len(ended), counts)
            self.shared.keep_to_core(self._state)
        except EscrowctlError as error:
            self._fail(error)

    def _apply(self, state: RunState, noted: int, counts: Counter[Outcome]) -> None:
        """Apply the state of the run. It has the first `noted` rows that have ended, and these `counts`."""
        with self._lock:
            self._ended -= counts
            self.halts.known = state
            del self.halts.ended[:noted]
            if state.halted:
                self.halts.halt(state.halted)
            elif state.first_sender is not None and not self.shared.journal.is_alive(state.first_sender):
                self.halts.halt("the process that sent the first row has ended")
            self.halts.canary_passed |= state.first_sender is None
            if state.paused_until:
                left = (datetime.fromisoformat(state.paused_until) - self.shared.now()).total_seconds()
                # After a longer wait, the clock was set back.
                if left <= MAX_RETRY_AFTER_SECONDS:
                    self.pace.pause_until(self._runtime.monotonic() + left)

    def _refuse(self) -> EscrowctlError | None:
        """Return the error for rows that would be begun now, if a claimant has ended the run."""
        self._state, self._next_read = self.shared.read(), self._runtime.monotonic() + _LOOK_SECONDS
        if not self._state.halted:
            return None
        return not_sent(ErrorCode.CONFLICT, f"the run has ended: {self._state.halted}.", reason=Reason.RUN_ENDED)

    def _end_row(self, row: RowContent, result: RowResult) -> None:
        """Count a row under its outcome, and decide whether the run goes on. A row that was given up is put back."""
        entry, error = result
        with self._lock:
            self._in_progress -= 1
            outcome = outcome_of(entry) if entry is not None else Outcome.NOT_SENT
            self._ended[outcome] += 1
            if isinstance(error, EscrowctlError):
                self._check_error(row, entry, error, outcome)
            elif error is not None:
                self._rows.append((row._replace(sent=entry), 0.0))
            elif entry is not None:
                self._check_entry(row, entry)
            self._row_ended.notify_all()

    def _check_error(self, row: RowContent, entry: Entry | None, error: EscrowctlError, outcome: Outcome) -> None:
        if (failure := _find_journal_failure(error)) is not None:
            self._fail(failure)
        elif error.reason == Reason.RUN_ENDED:
            self.halts.halt(self._state.halted)
        elif error.reason == Reason.TAKEN_OVER:
            text = f"the outcome of line {row.line} could not be recorded: {error.message}"
            self._progress.note_about_row("unrecorded", text)
            self.halts.halt("another process is working on the same rows")
        elif entry is None or entry == row.sent:
            self._progress.note_unsent(row.line, error, outcome)
            self.halts.check_unsent(row.line, error)
        else:
            self._check_entry(row, entry)

    def _check_entry(self, row: RowContent, entry: Entry) -> None:
        self.halts.check_outcome(row.line, entry)
        if entry.state is State.DONE:
            self._progress.show_done(row.line, entry, goes_on=not self.is_ending)

    def _fail(self, error: EscrowctlError) -> None:
        """End the run because of an error of the journal. The results of the requests in progress are awaited."""
        self.failure = self.failure or error
        self.halts.halt(error.message)

    def _find_delay(self) -> float:
        """Return the seconds until the next row may be sent. If it may be sent now, count it and return 0."""
        with self._lock:
            self._require_going_on()
            now = self._runtime.monotonic()
            if not (delay := self.pace.delay(now)):
                self.pace.note_sent(now)
            return delay

    def _try_to_start_request(self, *, is_write: bool) -> bool:
        """Start a request and return True. Return False if there is a pause, or no connection has become free."""
        with self._lock:
            if is_write:
                self._require_going_on()
            if not self.is_ending and self.pace.pause(self._runtime.monotonic()):
                return False
            if self._requests >= self._size and not self._request_ended.wait(_MAX_WAIT):
                return False
            is_free = self._requests < self._size
            self._requests += is_free
            return is_free

    def _require_going_on(self) -> None:
        if self.is_ending:
            raise Stopped(self.stopped or ErrorCode.INTERRUPTED)

    def _signals_allow(self) -> bool:
        """End the run at the first signal. Return False at the second: do not wait for the requests in progress."""
        if (code := self._take_signal()) is None:
            return True
        if self.stopped is not None:
            return False
        with self._lock:
            self.stopped = code
            if self._requests:
                self._progress.show_stopping(self._requests)
        return True


def _find_journal_failure(error: EscrowctlError) -> EscrowctlError | None:
    """Return the error of the journal that a row ended with: itself, or the cause if an outcome is not recorded."""
    for one in (error, error.__cause__):
        if isinstance(one, EscrowctlError) and one.code is ErrorCode.JOURNAL_UNUSABLE:
            return one
    return None
