"""The processes that send: jobs go out to them, findings come back; the journal stays with their parent.

One process cannot do both fast enough: a row takes it 0.6 ms for the journal and 0.9 ms for HTTP, and threads share
one interpreter. So two processes send, each with as many threads as connections, and the parent alone owns the
journal. They are forked: the lock file that they inherit keeps a row's entry alive for as long as its request may be
on its way, even if the parent is killed (open file description locks, fcntl(2)).
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable
from multiprocessing import connection
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue

from escrowctl.batch.worker import Finding, Job, Worker

PROCESSES = 2

MakeWorker = Callable[[], Worker]


class _Member:
    """One process, or one thread of this process in its place, with its threads that send."""

    def __init__(self, pipe: Pipe, threads: int, pid: int | None) -> None:
        self.pipe = pipe
        self.threads = threads
        self.pid = pid
        self.lines: set[int] = set()

    @property
    def load(self) -> float:
        return len(self.lines) / self.threads


class Crew:
    """Sends rows over `size` connections; `close` it.

    `make_worker` is called once in each thread that sends. `in_process`: the threads are this process's own, for a
    service that is no other process.
    """

    def __init__(self, make_worker: MakeWorker, size: int, *, in_process: bool) -> None:
        count = 1 if in_process else min(PROCESSES, size)
        self._members: list[_Member] = []
        for number in range(count):
            threads = size // count + (number < size % count)
            start = self._start_thread if in_process else self._start_process
            self._members.append(start(make_worker, threads))

    @property
    def busy(self) -> int:
        """How many rows are with the crew."""
        return sum(len(member.lines) for member in self._members)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Hand out jobs, each to whoever has least to do."""
        given: dict[int, list[Job]] = {}
        for job in jobs:
            place = min(range(len(self._members)), key=lambda place: self._members[place].load)
            self._members[place].lines.add(job.line)
            given.setdefault(place, []).append(job)
        for place, some in given.items():
            # Where a process has ended, `collect` says so of its rows.
            with contextlib.suppress(OSError):
                self._members[place].pipe.send(some)

    def collect(self, seconds: float) -> tuple[list[Finding], set[int]]:
        """Return what has come in, after at most `seconds`; and the lines of rows whose process has ended."""
        found: list[Finding] = []
        lost: set[int] = set()
        by_pipe = {member.pipe: member for member in self._members if not member.pipe.closed}
        for pipe in connection.wait(list(by_pipe), seconds):
            assert isinstance(pipe, Pipe)
            member = by_pipe[pipe]
            try:
                while pipe.poll():
                    finding: Finding = pipe.recv()
                    member.lines.discard(finding.line)
                    found.append(finding)
            except (EOFError, OSError):
                lost |= member.lines
                member.lines.clear()
                pipe.close()
        return found, lost

    @property
    def is_whole(self) -> bool:
        """Whether every process is there."""
        return not any(member.pipe.closed for member in self._members)

    def kill(self) -> set[int]:
        """End all processes at once, and return the lines of the rows they had: what they sent is not known."""
        lost: set[int] = set()
        for member in self._members:
            if member.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
            lost |= member.lines
            member.lines.clear()
        return lost

    def close(self) -> None:
        """Wait for what is being sent, and end the processes."""
        for member in self._members:
            member.pipe.close()
        for member in self._members:
            if member.pid is not None:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(member.pid, 0)

    def _start_process(self, make_worker: MakeWorker, threads: int) -> _Member:
        ours, theirs = connection.Pipe()
        pid = os.fork()
        if pid:
            theirs.close()
            return _Member(ours, threads, pid)
        try:
            # A pipe of the parent that stays open here would keep another process from seeing the parent's end.
            for pipe in (ours, *(member.pipe for member in self._members)):
                pipe.close()
            # Ctrl-C reaches the whole group: the parent decides what becomes of what is on its way.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            _serve(theirs, make_worker, threads)
        finally:
            # Nothing of the parent's is closed or written here, whatever happened.
            os._exit(0)

    @staticmethod
    def _start_thread(make_worker: MakeWorker, threads: int) -> _Member:
        ours, theirs = connection.Pipe()
        threading.Thread(target=_serve, args=(theirs, make_worker, threads), daemon=True).start()
        return _Member(ours, threads, None)


def _serve(pipe: Pipe, make_worker: MakeWorker, threads: int) -> None:
    """Do the jobs that come in until the parent closes its end, then finish those that have begun."""
    jobs: SimpleQueue[Job | None] = SimpleQueue()
    sending, ended = threading.Lock(), threading.Event()

    def work() -> None:
        worker = make_worker()
        while (job := jobs.get()) is not None and not ended.is_set():
            finding = worker.do(job)
            with sending, contextlib.suppress(OSError):
                pipe.send(finding)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in workers:
        thread.start()
    try:
        while True:
            for job in pipe.recv():
                jobs.put(job)
    except (EOFError, OSError):
        ended.set()
    for _ in workers:
        jobs.put(None)
    for thread in workers:
        thread.join()
    pipe.close()
