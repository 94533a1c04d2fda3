"""One journal for many threads: one thread owns the storage, and what is submitted meanwhile shares one commit."""

import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from escrowctl.errors import EscrowctlError
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Begin, Begun, Entry, Settlement

_T = TypeVar("_T")
_GATHER_SECONDS = 0.002


class _Answer(Generic[_T]):
    """What the owner's thread hands back to the one that waits."""

    def __init__(self) -> None:
        self._done = threading.Lock()
        self._done.acquire()
        self._result: _T | BaseException | None = None

    def give(self, result: _T | BaseException) -> None:
        """Answer, unless it was answered."""
        if self._result is None:
            self._result = result
            self._done.release()

    def wait(self) -> _T:
        """Return what was given; raises it where it is an error."""
        result = self.outcome()
        if isinstance(result, BaseException):
            raise result
        return result

    def outcome(self) -> _T | BaseException:
        """Return what was given, an error too."""
        self._done.acquire()
        assert self._result is not None, "it was given"
        return self._result


class _Group(NamedTuple):
    """What is committed together."""

    begins: list[tuple[Begin, _Answer[Begun]]]
    settlements: list[tuple[Entry, Settlement, _Answer[Entry]]]

    @property
    def size(self) -> int:
        return len(self.begins) + len(self.settlements)

    def refuse(self, why: BaseException) -> None:
        for _, beginning in self.begins:
            beginning.give(why)
        for _, _, settling in self.settlements:
            settling.give(why)


class GroupCommit:
    """Begins and settles writes for any number of threads, each call durable when it returns.

    `open_journal` is called in the thread that owns the storage; what it raises, the constructor
    raises. `close` it: what was submitted before is committed.
    """

    def __init__(self, open_journal: Callable[[], Journal]) -> None:
        self._submitted = threading.Condition()
        self._next = _Group([], [])
        self._expected = 1
        self._closed = False
        opened: _Answer[Journal] = _Answer()
        self._owner = threading.Thread(target=self._run, args=(open_journal, opened), name="journal")
        self._owner.start()
        opened.wait()

    def begin(self, begin: Begin) -> Begun:
        """Store an intent durably, so that its bytes may leave; raises as `Journal.begin` does."""
        answer: _Answer[Begun] = _Answer()
        self._submit(lambda group: group.begins.append((begin, answer)))
        return answer.wait()

    def settle(self, entry: Entry, settlement: Settlement) -> Entry:
        """Record what became of an attempt; raises as `Journal.settle` does."""
        answer: _Answer[Entry] = _Answer()
        self._submit(lambda group: group.settlements.append((entry, settlement, answer)))
        return answer.wait()

    def settle_and_begin(
        self, entry: Entry, settlement: Settlement, begin: Begin
    ) -> tuple[Entry | BaseException, Begun | BaseException]:
        """Do `settle` and `begin` in one commit, and return what each returns or would raise.

        For a worker with a next write: it waits for half as many commits.
        """
        settled: _Answer[Entry] = _Answer()
        begun: _Answer[Begun] = _Answer()

        def add(group: _Group) -> None:
            group.settlements.append((entry, settlement, settled))
            group.begins.append((begin, begun))

        self._submit(add)
        return settled.outcome(), begun.outcome()

    def close(self) -> None:
        """Commit what was submitted, and close the journal; nothing can be submitted any more."""
        with self._submitted:
            self._closed = True
            self._submitted.notify()
        self._owner.join()

    def _submit(self, add: Callable[[_Group], None]) -> None:
        with self._submitted:
            if self._closed:
                raise RuntimeError("the journal is closed")
            add(self._next)
            # Not for each one: waking the owner again and again costs more than the commit's own work.
            if self._next.size >= self._expected:
                self._submitted.notify()

    def _run(self, open_journal: Callable[[], Journal], opened: _Answer[Journal]) -> None:
        try:
            journal = open_journal()
        except BaseException as error:  # noqa: BLE001 - the constructor raises it
            opened.give(error)
            return
        opened.give(journal)
        group, why = _Group([], []), RuntimeError("the journal is closed")
        try:
            while (group := self._gather()).size:
                _commit(journal, group)
        finally:
            # Nobody waits for an owner that has ended, for whatever reason.
            with self._submitted:
                self._closed = True
            group.refuse(why)
            self._next.refuse(why)
            journal.close()

    def _gather(self) -> _Group:
        """Return the next group; empty when all is done.

        Threads that were answered come back at once: it is worth waiting a moment for as many as came lately.
        """
        with self._submitted:
            self._submitted.wait_for(lambda: self._closed or self._next.size >= self._expected, _GATHER_SECONDS)
            if not self._next.size:
                self._expected = 1
                self._submitted.wait_for(lambda: self._closed or self._next.size)
            group, self._next = self._next, _Group([], [])
            self._expected = max(group.size, self._expected - 1)
            return group


def _commit(journal: Journal, group: _Group) -> None:
    try:
        begun, settled = journal.write_all(
            [begin for begin, _ in group.begins], [(entry, settlement) for entry, settlement, _ in group.settlements]
        )
    except BaseException as error:  # noqa: BLE001 - every thread that waits raises it
        _settle_apart(journal, group, error)
        return
    for (_, beginning), first in zip(group.begins, begun, strict=True):
        beginning.give(first)
    for (_, _, settling), second in zip(group.settlements, settled, strict=True):
        settling.give(second)


def _settle_apart(journal: Journal, group: _Group, error: BaseException) -> None:
    """Fail what began: nothing of it may be sent. Outcomes are recorded apart, where that is still possible."""
    for _, beginning in group.begins:
        beginning.give(error)
    settled: list[Entry | EscrowctlError] | None = None
    try:
        settled = journal.settle_all([(entry, settlement) for entry, settlement, _ in group.settlements])
    except BaseException as another:  # noqa: BLE001 - as above
        error = another
    for place, (_, _, settling) in enumerate(group.settlements):
        settling.give(settled[place] if settled is not None else error)
