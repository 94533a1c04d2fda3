"""The claimants of a batch, that is, the processes that send its rows, and the state of the run that they share.

The command that starts a run (`batch create`, `release` or `resume`) is the first claimant; `batch work` joins the run.
Row -1 of the plan has the state. A claimant is alive as long as it holds the lock of its sender.
"""

import contextlib
import json
import os
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from escrowctl.batch.plan import (
    Batch,
    damaged_plan,
    encode_batch,
    find_batch,
    list_again,
    make_plan_row,
    may_send_again,
    plan_again,
    read_plan_text,
    read_row,
    sum_up,
)
from escrowctl.batch.rows import RowContent
from escrowctl.config.service import Service
from escrowctl.errors import ErrorCode, Outcome, command, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.storage import PlanRow
from escrowctl.runtime import Runtime, timestamp

_STATE_ROW = -1
_EQUAL_FAILURES = 5
"""After so many consecutive rows with the same failure, the run ends: the next rows would fail too."""


class Claimant(NamedTuple):
    """One process that works on a batch. `sender` is its run id. `is_idle`: it has found no more rows."""

    sender: str
    operator: str
    host: str
    process: int
    since: str
    is_idle: bool = False


class RunState(NamedTuple):
    """What the claimants of a run share.

    `first_sender` is the claimant that sends the first row; None: that row is done. `halted` says why the run ends.
    Nothing is sent before `paused_until`. With a `rate` (rows a second), the next row may be taken at `next_slot`.
    `failure` is the kind of the last failure, and how many rows in a row had it. `caps` are those of the profile that
    started the run. `ended` is how many rows have ended by outcome, as far as the claimants have stored it.
    """

    claimants: tuple[Claimant, ...] = ()
    first_sender: str | None = None
    halted: str = ""
    paused_until: str = ""
    rate: float | None = None
    next_slot: str = ""
    failure: tuple[str, int] = ("", 0)
    caps: tuple[tuple[str, str], ...] = ()
    ended: Counter[Outcome] = Counter()  # noqa: RUF012 - a state is not changed


class SharedRun:
    """The run of a batch, as one of its claimants sees it."""

    def __init__(self, journal: Journal, batch: Batch, service: Service, runtime: Runtime) -> None:
        self.journal = journal
        self.batch = batch
        self.service = service
        self.runtime = runtime
        self._sender = runtime.run_id
        self._is_idle = False
        self._clock_offset = timedelta()
        self._cores = os.sched_getaffinity(0) if sys.platform == "linux" else set[int]()
        self._working_here: list[str] = []
        """The senders on this host among which the cores are divided."""

    def now(self) -> datetime:
        """Return the time by the journal's clock, which the claimants on all hosts share, as of the last change."""
        return self.runtime.now() + self._clock_offset

    def start(self, rate: float | None) -> None:
        """Begin a run as its first claimant; plan rows that go again. Raises `BUSY` if another process works on it."""

        def begin(_state: RunState) -> RunState:
            require_idle(self.journal, self.batch)
            _require_unchanged(self.journal, self.batch)
            caps = tuple((code, str(cap)) for code, cap in self.service.caps.items())
            return RunState((self._describe_self(),), first_sender=self._sender, rate=rate, caps=caps)

        self.journal.hold(self._sender)
        self.change(begin)
        plan_again(self.journal, self.batch, list_again(self.journal, self.batch, self.service))

    def join(self) -> None:
        """Join the run in progress. Raises `ErrorCode.CONFLICT` if there is none."""

        def add(state: RunState) -> RunState:
            return state._replace(claimants=(*require_running(self.journal, self.batch), self._describe_self()))

        self.journal.hold(self._sender)
        self.change(add)

    def read(self) -> RunState:
        """Return the state as stored now."""
        return read_state(self.journal, self.batch.name)

    def change(self, change: Callable[[RunState], RunState]) -> RunState:
        """Replace the state by the one that `change` makes of it, durably. Return the new state."""

        def change_row(row: PlanRow | None, now: datetime) -> PlanRow:
            self._clock_offset = now - self.runtime.now()
            return make_plan_row(self.batch.name, _STATE_ROW, json.dumps(change(_decode_state(row))))

        return _decode_state(self.journal.change_plan_row(self.batch.name, _STATE_ROW, change_row))

    def is_first(self, state: RunState) -> bool:
        """Whether this process sends the first row."""
        return state.first_sender == self._sender

    def claim(self, limit: int) -> list[RowContent] | None:
        """Take up to `limit` rows, so that no other claimant sends them; None: none is left.

        The result is shorter if an entry has changed since its row was planned, and may not be sent again.
        """
        planned = self.journal.claim(self.batch.name, sender=self._sender, limit=limit)
        if not planned:
            return None
        self.note_idle(is_idle=False)
        rows = [read_row(self.journal, one) for one in planned]
        return [one for one in rows if one.sent is None or may_send_again(one.sent, self.service)]

    def reserve(self, rate: float, count: int) -> float:
        """Reserve the next slots of the rate (rows a second) for `count` rows. Return the seconds until the first."""
        now, slot = self.now(), timedelta()

        def take(state: RunState) -> RunState:
            nonlocal slot
            due = max(now, datetime.fromisoformat(state.next_slot)) if state.next_slot else now
            if due - now > (len(state.claimants) + 1) * timedelta(seconds=max(1.0, 2 / rate)):
                # No claimants reserve so far ahead: the clock was set back.
                due = now
            slot = due - now
            return state._replace(next_slot=timestamp(due + timedelta(seconds=count / rate)))

        self.change(take)
        return slot.total_seconds()

    def has_working_others(self, *, is_idle: bool) -> bool:
        """Whether another claimant may still send rows. `is_idle`: this one has found no more rows."""
        state = self.read()
        if self.is_first(state):
            # The others wait until a row is done.
            return False
        others = [one for one in _list_alive(self.journal, state) if one.sender != self._sender]
        if is_idle and others:
            self.note_idle()
        return any(not one.is_idle for one in others)

    def keep_to_core(self, state: RunState) -> None:
        """Keep to a core while others on this host send rows too, if there is one for each. Linux alone can do it.

        One thread of a process runs at a time. To wake the next one on another core costs up to a quarter of the speed.
        """
        here = [one.sender for one in state.claimants if one.host == self.runtime.host and not one.is_idle]
        if here == self._working_here or sys.platform != "linux":
            return
        self._working_here, cores = here, self._cores
        if self._sender in here and 1 < len(here) <= len(cores):
            first = zlib.crc32(here[0].encode())  # other batches begin with another core
            cores = {sorted(cores)[(first + here.index(self._sender)) % len(cores)]}
        for thread in threading.enumerate():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread.native_id or 0, cores)

    def leave(self, rows: Iterable[RowContent]) -> None:
        """Put rows that this claimant has taken, but not sent, back into the plan, and tell the others that it ends."""
        plan_again(self.journal, self.batch, rows)
        self.note_idle()

    def note_idle(self, *, is_idle: bool = True) -> None:
        """Tell the others whether this claimant has found no more rows. If no row is done then, none may be begun."""

        def mark(state: RunState) -> RunState:
            marked = (one._replace(is_idle=is_idle) if one.sender == self._sender else one for one in state.claimants)
            halted = state.halted or ("no row of this run is done" if is_idle and self.is_first(state) else "")
            return state._replace(claimants=tuple(marked), halted=halted)

        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self.change(mark)

    def _describe_self(self) -> Claimant:
        runtime = self.runtime
        return Claimant(self._sender, runtime.operator, runtime.host, os.getpid(), timestamp(runtime.now()))


def list_claimants(journal: Journal, batch: Batch) -> list[Claimant]:
    """Return the processes that work on a batch now."""
    return _list_alive(journal, read_state(journal, batch.name))


def require_running(journal: Journal, batch: Batch) -> list[Claimant]:
    """Return the processes that work on a batch now. Raises `ErrorCode.CONFLICT` if there is none."""
    if not (claimants := list_claimants(journal, batch)):
        hint = command(f"batch resume {batch.name}", "to send its unsent rows")
        raise not_sent(ErrorCode.CONFLICT, f"no process works on {batch.name} now.", hint=hint)
    return claimants


def require_idle(journal: Journal, batch: Batch) -> None:
    """Raise `ErrorCode.BUSY` if a process works on a batch now."""
    if list_claimants(journal, batch):
        lease = "; one that was killed counts for up to 30 s more" if journal.place.is_shared else ""
        message = f"another process is working on {batch.name} now{lease}."
        work = command(f"batch work {batch.name}", "to send its rows from here too")
        show = command(f"batch show {batch.name}", "to see its progress")
        raise not_sent(ErrorCode.BUSY, message, hint=(work, show))


def change_batch(journal: Journal, before: Batch, after: Batch) -> None:
    """Store what has changed in a batch, but not in its rows.

    Raises EscrowctlError: `BUSY` if a process works on the batch, `CONFLICT` if another process has changed it since it
    was read as `before`, or if the account changes although rows were sent.
    """

    def change(_row: PlanRow | None, _now: datetime) -> PlanRow:
        require_idle(journal, before)
        is_sent = sum_up(journal, before).counts[Outcome.NOT_SENT] != before.rows
        _require_unchanged(journal, before, is_changed=is_sent and before.account != after.account)
        return encode_batch(after)

    journal.change_plan_row(before.name, 0, change)


def _require_unchanged(journal: Journal, batch: Batch, *, is_changed: bool = False) -> None:
    if is_changed or find_batch(journal, batch.name) != batch:
        message = f"another process has changed {batch.name} since this command read it."
        raise not_sent(ErrorCode.CONFLICT, message, hint=command(f"batch show {batch.name}", "to see it"))


def read_state(journal: Journal, batch: str) -> RunState:
    """Return the state of a batch's last run. An empty state: the batch was never sent."""
    rows = journal.storage.read_plan(batch, after=_STATE_ROW - 1, limit=1)
    return _decode_state(rows[0] if rows and rows[0].row == _STATE_ROW else None)


def note_ended(state: RunState, ended: Iterable[tuple[str, str]]) -> RunState:
    """Return the state after more rows have ended: pairs of the kind of failure ("": done) and its detail."""
    last, count = state.failure
    for kind, detail in ended:
        count = count + 1 if kind == last else 1
        if not kind:
            count = 0
        last = kind
        if count >= _EQUAL_FAILURES and not state.halted:
            state = state._replace(halted=f"the last {_EQUAL_FAILURES} rows had the same failure: {detail}")
    return state._replace(failure=(last, count))


def _list_alive(journal: Journal, state: RunState) -> list[Claimant]:
    return [one for one in state.claimants if journal.is_alive(one.sender)]


@lru_cache(maxsize=4)
def _decode_state(row: PlanRow | None) -> RunState:
    # It is read in each commit, and seldom changes.
    if row is None:
        return RunState()
    try:
        state = RunState(*map(_freeze, json.loads(read_plan_text(row))))
        ended = Counter({Outcome(name): count for name, count in state.ended.items()})
        return state._replace(claimants=tuple(Claimant(*one) for one in state.claimants), ended=ended)
    except (AttributeError, TypeError, ValueError) as error:
        raise damaged_plan("the state of its run was written by another version of escrowctl") from error


def _freeze(value: Any) -> Any:
    """Return a JSON value with tuples in place of lists."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
