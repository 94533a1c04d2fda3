"""The processes that send: they receive jobs and return results. Only their parent has the journal.

One process is not fast enough: a row costs 0.5 ms for the journal and 0.5 ms for HTTP, and threads share one
interpreter. So other processes send, with a thread for each connection. They are forked while signals are held: a
Ctrl-C reaches all processes, but only the parent handles it. They inherit the lock file, so an entry counts as in
flight as long as its request may be in progress, even if the parent is killed (open file description locks,
fcntl(2)).
"""

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue
from typing import NoReturn

from escrowctl.batch.worker import Job, JobResult, Worker

_MAX_THREADS = 16
"""The most threads in one process: more would wait for the interpreter longer than a second process costs."""

_GATHER_SECONDS = 0.003

MakeWorker = Callable[[], Worker]


class Senders:
    """The processes that send rows, over `size` connections. Call `close` at the end.

    `make_worker` is called once for each thread that sends. `in_process`: the threads belong to this process, for a
    service that runs in this process. Raises OSError if a process or a thread cannot be started.
    """

    def __init__(self, make_worker: MakeWorker, size: int, *, in_process: bool) -> None:
        self._processes: list[_Process] = []
        count = 1 if in_process or size <= _MAX_THREADS else 2
        try:
            for number in range(count):
                share = size // count + (number < size % count)
                self._processes.append(_Process(make_worker, share, in_process=in_process, others=self._processes))
            for process in self._processes:
                process.wait_until_ready()
        except OSError:
            self.kill()
            self.close()
            raise

    @property
    def has_ended_process(self) -> bool:
        """Whether any of the processes has ended."""
        return any(process.has_ended for process in self._processes)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send each job to the process that has the fewest jobs."""
        shares: dict[_Process, list[Job]] = {}
        for job in jobs:
            process = min(self._processes, key=lambda one: len(one.lines))
            process.lines.add(job.line)
            shares.setdefault(process, []).append(job)
        for process, share in shares.items():
            process.submit(share)

    def recall(self) -> None:
        """Take back the jobs that no thread has begun: each returns as a result with `is_untouched`."""
        for process in self._processes:
            process.submit(None)

    def collect(self, seconds: float, *, enough: int = 1) -> tuple[list[JobResult], set[int]]:
        """Return the results so far, and the lines of jobs that are lost because their process ended.

        It waits at most `seconds` for a first result. Then it waits while more results arrive, until there are
        `enough`.
        """
        found, lost = self._collect_once(seconds)
        while found and not lost and len(found) < enough:
            time.sleep(_GATHER_SECONDS)
            more, lost = self._collect_once(0)
            if not more:
                break
            found += more
        return found, lost

    def _collect_once(self, seconds: float) -> tuple[list[JobResult], set[int]]:
        found: list[JobResult] = []
        while True:
            lost = {line for process in self._processes if process.has_ended for line in process.lines}
            alive = {process.pipe: process for process in self._processes if not process.has_ended}
            if lost or not alive:
                break
            ready = connection.wait(list(alive), 0 if found else seconds)
            if not ready:
                break
            for pipe, process in alive.items():
                if pipe in ready:
                    found += process.receive()
        for process in self._processes:
            process.lines -= lost
        return found, lost

    def kill(self) -> None:
        """End the processes at once. `collect` still returns the finished results and the lost lines."""
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        """Wait for the requests in progress, and end the processes."""
        for process in self._processes:
            process.pipe.close()
        for process in self._processes:
            process.wait_for_end()


class _Process:
    """One process that sends, and the parent's end of its pipe. `lines` are the lines of its jobs."""

    def __init__(
        self, make_worker: MakeWorker, thread_count: int, *, in_process: bool, others: Sequence["_Process"]
    ) -> None:
        self.pipe, child_end = connection.Pipe()
        self.lines: set[int] = set()
        self.has_ended = False
        self._pid: int | None = None
        if in_process:
            threading.Thread(target=_serve_jobs, args=(child_end, make_worker, thread_count), daemon=True).start()
            return
        self._pid = os.fork()
        if not self._pid:
            # A pipe seems closed only when no process has its other end open.
            for process in (self, *others):
                process.pipe.close()
            _run_child(child_end, make_worker, thread_count)
        child_end.close()

    def wait_until_ready(self) -> None:
        """Wait until every thread of the process runs. Raises OSError if a thread cannot start."""
        try:
            failure: str = self.pipe.recv()
        except EOFError:
            self.wait_for_end()
            failure = "a sender process ended unexpectedly"
        if failure:
            raise OSError(errno.EAGAIN, failure)

    def submit(self, jobs: Sequence[Job] | None) -> None:
        """Send jobs to the process. None recalls the jobs that no thread has begun."""
        # If the process has ended, `Senders.collect` reports it.
        with contextlib.suppress(OSError):
            self.pipe.send(jobs)

    def receive(self) -> list[JobResult]:
        """Return the results that have arrived."""
        found: list[JobResult] = []
        try:
            while self.pipe.poll(0):
                found.append(self.pipe.recv())
        except (EOFError, OSError):
            self.wait_for_end()
        self.lines.difference_update(result.line for result in found)
        return found

    def kill(self) -> None:
        """End the process at once."""
        if self._pid is None:
            self.pipe.close()
            self.wait_for_end()
        elif not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def wait_for_end(self) -> None:
        """Wait until the process has ended."""
        self.has_ended = True
        if self._pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


def _run_child(pipe: Pipe, make_worker: MakeWorker, thread_count: int) -> NoReturn:
    code = 1
    try:
        _serve_jobs(pipe, make_worker, thread_count)
        code = 0
    finally:
        # The child never closes or writes files of the parent, even after an error.
        os._exit(code)


def _serve_jobs(pipe: Pipe, make_worker: MakeWorker, thread_count: int) -> None:
    """Do the jobs that arrive until the parent closes its end of the pipe. Then finish the jobs in progress."""
    # The parent notices the closed pipe, even after an error.
    with pipe:
        queue = _Queue(pipe)
        threads = [threading.Thread(target=queue.work, args=(make_worker(),), daemon=True) for _ in range(thread_count)]
        try:
            for thread in threads:
                thread.start()
        except RuntimeError as error:
            pipe.send(str(error))
            return
        pipe.send("")
        with contextlib.suppress(EOFError, OSError):
            while True:
                queue.add_or_recall(pipe.recv())
        queue.close(thread_count)
        for thread in threads:
            thread.join()


class _Queue:
    """The jobs of one sender process. Its threads take jobs from here, and return the results through `pipe`."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._jobs: SimpleQueue[tuple[int, Job] | None] = SimpleQueue()
        self._added = self._recalled = 0
        self._sending, self._ended = threading.Lock(), threading.Event()

    def work(self, worker: Worker) -> None:
        """Do one job after the other. A recalled job returns as a result with `is_untouched`."""
        while (taken := self._jobs.get()) is not None and not self._ended.is_set():
            number, job = taken
            result = worker.do(job) if number > self._recalled else JobResult(job.line, is_untouched=True)
            with self._sending, contextlib.suppress(OSError):
                self._pipe.send(result)

    def add_or_recall(self, jobs: Sequence[Job] | None) -> None:
        """Add jobs; None recalls the jobs not yet begun. Sends nothing, because the parent may be sending too."""
        if jobs is None:
            self._recalled = self._added
            return
        for job in jobs:
            self._added += 1
            self._jobs.put((self._added, job))

    def close(self, thread_count: int) -> None:
        """End each thread after its current job."""
        self._ended.set()
        for _ in range(thread_count):
            self._jobs.put(None)
