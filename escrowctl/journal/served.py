"""One journal for all threads of a run: one thread owns the storage and serves the others.

The attempts and outcomes that the other threads want to record at the same time share one durable commit.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from escrowctl.errors import EscrowctlError
from escrowctl.journal.commit import keys_of
from escrowctl.journal.journal import Journal, WriteGroup, WriteResults
from escrowctl.journal.model import AttemptRequest, Entry, Intent, Selection, Settlement

_T = TypeVar("_T")

_GATHERING_SECONDS = 0.002
"""The wait for one more call that could share a commit. A commit costs more time than that."""

_JOINING_SECONDS = 0.01
"""The time in which calls may join a commit: the processes that share the journal wait for its end."""


class ServedJournal(Journal):
    """A journal whose methods for sending a write may be called by any thread.

    The thread that creates it owns the storage, and calls `serve` again and again. A call of another thread returns
    when the owner has served it. `refuse`: see `Journal`.
    """

    def __init__(self, journal: Journal, refuse: Callable[[], EscrowctlError | None] = lambda: None) -> None:
        super().__init__(journal.storage, journal.locks, journal.place, refuse)
        self.senders = journal.senders
        self._owner = threading.get_ident()
        self._lock, self._signals = threading.Lock(), SimpleQueue[None]()
        self._tasks = list[_Task]()
        self._callers = 1

    def serve(self, seconds: float, *, callers: int) -> None:
        """Serve the calls of other threads that wait. If none waits, wait at most `seconds` for one or for `wake`.

        `callers` is the number of these threads. Until all of them wait, each next call is waited for a moment.
        """
        self._callers, waiting = callers, 0
        with contextlib.suppress(Empty):
            self._signals.get(timeout=seconds)
            while waiting < len(self._tasks) < callers:
                waiting = len(self._tasks)
                with contextlib.suppress(Empty):
                    self._signals.get(timeout=_GATHERING_SECONDS)
                    break
        if writes := self._take(are_writes=True):
            self._write_together(writes)
        for task in self._take(are_writes=False):
            assert task.function is not None, "it is not a write"
            try:
                task.answer.put((task.function(), None))
            except Exception as error:  # noqa: BLE001 - the thread that waits must hear of it
                task.answer.put((None, error))

    def wake(self) -> None:
        """End the wait of `serve`."""
        self._signals.put(None)

    def add(self, task: "_Task") -> None:
        """Add a call. Only the first and the last one wake the owner: each time, two threads take turns."""
        with self._lock:
            self._tasks.append(task)
            if len(self._tasks) in (1, self._callers):
                self.wake()

    def write_all(
        self, attempts: Sequence[AttemptRequest], settlements: Sequence[tuple[Entry, Settlement]]
    ) -> WriteResults:
        """See `Journal.write_all`."""
        if threading.get_ident() == self._owner:
            return super().write_all(attempts, settlements)
        return cast("WriteResults", self._wait_for(_Task(attempts, settlements)))

    def settle_later(self, entry: Entry, settlement: Settlement) -> Entry:
        """See `Journal.settle_later`."""
        return self._ask(lambda: Journal.settle_later(self, entry, settlement))

    def find_repeated(self, intent: Intent, *, resend_throttled: bool) -> Entry | None:
        """See `Journal.find_repeated`."""
        return self._ask(lambda: Journal.find_repeated(self, intent, resend_throttled=resend_throttled))

    def select_all(self, selection: Selection) -> Iterator[Entry]:
        """See `Journal.select_all`. For other threads, all pages are read before the first entry is yielded."""
        if threading.get_ident() == self._owner:
            return super().select_all(selection)
        return iter(self._ask(lambda: [*Journal.select_all(self, selection)]))

    def is_unopened(self) -> bool:
        """See `Journal.is_unopened`. A run asks before it begins, and no run changes the answer."""
        return False

    def _ask(self, function: Callable[[], _T]) -> _T:
        if threading.get_ident() == self._owner:
            return function()
        return cast("_T", self._wait_for(_Task(function=function)))

    def _wait_for(self, task: "_Task") -> Any:
        self.add(task)
        result, error = task.answer.get()
        if error is not None:
            raise error
        return result

    def _take(self, *, are_writes: bool) -> list["_Task"]:
        """Remove the writes, or the other tasks, from those that wait, and return them."""
        with self._lock:
            taken = [task for task in self._tasks if (task.function is None) is are_writes]
            self._tasks = [task for task in self._tasks if task not in taken]
            while not (self._tasks or self._signals.empty()):
                self._signals.get()
            if self._tasks and self._signals.empty():
                self.wake()
        return taken

    def _write_together(self, first: list["_Task"]) -> None:
        """Record the attempts and outcomes of tasks in one commit, and of those that come soon after it has begun."""
        groups = [first]

        def take_groups() -> Iterator[WriteGroup]:
            end = time.monotonic() + _JOINING_SECONDS
            while group := groups[-1]:
                yield (
                    [attempt for task in group for attempt in task.attempts],
                    [settlement for task in group for settlement in task.settlements],
                )
                groups.append(self._take(are_writes=True) if time.monotonic() < end else [])

        try:
            results = self.write_groups(take_groups(), keys_of(one.intent for task in first for one in task.attempts))
        except Exception as error:  # noqa: BLE001 - the threads that wait must hear of it
            for task in chain.from_iterable(groups):
                task.answer.put((None, error))
            return
        for group, (begun, settled) in zip(groups, results, strict=False):
            for task in group:
                task.answer.put(((begun[: len(task.attempts)], settled[: len(task.settlements)]), None))
                del begun[: len(task.attempts)], settled[: len(task.settlements)]


class _Task:
    """What one thread waits for: attempts or outcomes to record, or else the result of `function`."""

    def __init__(
        self,
        attempts: Sequence[AttemptRequest] = (),
        settlements: Sequence[tuple[Entry, Settlement]] = (),
        *,
        function: Callable[[], object] | None = None,
    ) -> None:
        self.attempts = attempts
        self.settlements = settlements
        self.function = function
        self.answer = SimpleQueue[tuple[Any, Exception | None]]()
