"""One journal for many threads: one thread owns the storage, and what queues up meanwhile shares one commit."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from escrowctl.errors import EscrowctlError
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Begin, Begun, Entry, Settlement

_T = TypeVar("_T")
_MOST = 256
_GATHER_SECONDS = 0.002


class _Answer(Generic[_T]):
    """What the owner's thread hands back to the one that waits."""

    def __init__(self) -> None:
        self._done = threading.Lock()
        self._done.acquire()
        self._result: _T | BaseException | None = None

    def give(self, result: _T | BaseException) -> None:
        self._result = result
        self._done.release()

    def wait(self) -> _T:
        self._done.acquire()
        assert self._result is not None, "it was given"
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


class _Beginning(NamedTuple):
    begin: Begin
    answer: _Answer[Begun]


class _Settling(NamedTuple):
    entry: Entry
    settlement: Settlement
    answer: _Answer[Entry]


class GroupCommit:
    """Begins and settles writes for any number of threads, each call durable when it returns.

    `open_journal` is called in the thread that owns the storage; what it raises, the constructor
    raises. `close` it: what was submitted before is committed.
    """

    def __init__(self, open_journal: Callable[[], Journal]) -> None:
        self._queue: queue.SimpleQueue[_Beginning | _Settling | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._expected = 1
        opened: _Answer[Journal] = _Answer()
        self._owner = threading.Thread(target=self._run, args=(open_journal, opened), name="journal")
        self._owner.start()
        opened.wait()

    def begin(self, begin: Begin) -> Begun:
        """Store an intent durably, so that its bytes may leave; raises as `Journal.begin` does."""
        answer: _Answer[Begun] = _Answer()
        self._submit(_Beginning(begin, answer))
        return answer.wait()

    def settle(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record what became of an attempt; raises as `Journal.settle` does."""
        answer: _Answer[Entry] = _Answer()
        self._submit(_Settling(entry, settlement, answer))
        return answer.wait()

    def close(self) -> None:
        """Commit what was submitted, and close the journal; nothing can be submitted any more."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._owner.join()

    def _submit(self, work: _Beginning | _Settling) -> None:
        with self._closing:
            if self._closed:
                raise RuntimeError("the journal is closed")
            self._queue.put(work)

    def _run(self, open_journal: Callable[[], Journal], opened: _Answer[Journal]) -> None:
        try:
            journal = open_journal()
        except BaseException as error:  # noqa: BLE001 - the constructor raises it
            opened.give(error)
            return
        opened.give(journal)
        try:
            while group := self._gather():
                self._commit(journal, group)
        finally:
            journal.close()

    def _gather(self) -> list[_Beginning | _Settling]:
        """Return the next group; empty when all is done.

        Threads that were answered come back at once: it is worth waiting a moment for as many as came lately.
        """
        group = list[_Beginning | _Settling]()
        work = self._queue.get()
        deadline = time.monotonic() + _GATHER_SECONDS
        while work is not None:
            group.append(work)
            if len(group) == _MOST:
                break
            left = deadline - time.monotonic() if len(group) < self._expected else 0
            try:
                work = self._queue.get(timeout=max(left, 0))
            except queue.Empty:
                break
        else:
            if group:
                # The end is seen again after this group.
                self._queue.put(None)
        self._expected = max(len(group), self._expected - 1)
        return group

    def _commit(self, journal: Journal, group: list[_Beginning | _Settling]) -> None:
        begins = [work for work in group if isinstance(work, _Beginning)]
        settlements = [work for work in group if isinstance(work, _Settling)]
        try:
            begun, settled = journal.write_all(
                [work.begin for work in begins], [(work.entry, work.settlement) for work in settlements]
            )
        except BaseException as error:  # noqa: BLE001 - every thread that waits raises it
            self._commit_apart(journal, begins, settlements, error)
            return
        for beginning, first in zip(begins, begun, strict=True):
            beginning.answer.give(first)
        for settling, second in zip(settlements, settled, strict=True):
            settling.answer.give(second)

    def _commit_apart(
        self, journal: Journal, begins: list[_Beginning], settlements: list[_Settling], error: BaseException
    ) -> None:
        """Fail what began: nothing of it may be sent. Outcomes are recorded apart, where that is still possible."""
        for beginning in begins:
            beginning.answer.give(error)
        settled: list[Entry | EscrowctlError] | None = None
        try:
            settled = journal.settle_all([(work.entry, work.settlement) for work in settlements])
        except BaseException as another:  # noqa: BLE001 - as above
            error = another
        for place, settling in enumerate(settlements):
            settling.answer.give(settled[place] if settled is not None else error)
