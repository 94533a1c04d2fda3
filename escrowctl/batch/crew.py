"""The process that sends: jobs go out to it, findings come back; the journal stays with its parent.

One process cannot do both fast enough: a row costs 0.7 ms for the journal and 0.8 ms for HTTP, and threads share one
interpreter. So a second process sends, with a thread for each connection, and the parent alone owns the journal. (Two
that send were measured: no faster with two cores.) It is forked: the lock file that it inherits keeps a row's entry
alive for as long as its request may be on its way, even if the parent is killed (open file description locks,
fcntl(2)).
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue

from escrowctl.batch.worker import Finding, Job, Worker

MakeWorker = Callable[[], Worker]


class Crew:
    """Sends rows over `size` connections; `close` it.

    `make_worker` is called once for each thread that sends. `in_process`: the threads are this process's own, for a
    service that is no other process.
    """

    def __init__(self, make_worker: MakeWorker, size: int, *, in_process: bool) -> None:
        self._pipe, theirs = connection.Pipe()
        self._pid: int | None = None
        self._lines: set[int] = set()
        if in_process:
            threading.Thread(target=_serve, args=(theirs, make_worker, size), daemon=True).start()
            return
        self._pid = os.fork()
        if self._pid:
            theirs.close()
            return
        try:
            self._pipe.close()
            # Ctrl-C reaches the whole group: the parent decides what becomes of what is on its way.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            _serve(theirs, make_worker, size)
        finally:
            # Nothing of the parent's is closed or written here, whatever happened.
            os._exit(0)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand out jobs."""
        self._lines.update(job.line for job in jobs)
        if jobs:
            # Where the process has ended, `collect` says so.
            with contextlib.suppress(OSError):
                self._pipe.send(jobs)

    def collect(self, seconds: float) -> tuple[list[Finding], set[int]]:
        """Return what has come in, after at most `seconds`; and the lines that are lost, where the process ended."""
        found: list[Finding] = []
        try:
            while self._pipe.poll(0 if found else seconds):
                finding: Finding = self._pipe.recv()
                self._lines.discard(finding.line)
                found.append(finding)
        except (EOFError, OSError):
            lost, self._lines = self._lines, set()
            return found, lost
        return found, set()

    def kill(self) -> None:
        """End the process at once: what it sent is not known."""
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Wait for what is being sent, and end the process."""
        self._pipe.close()
        if self._pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)


def _serve(pipe: Pipe, make_worker: MakeWorker, size: int) -> None:
    """Do the jobs that come in until the parent closes its end, then finish those that have begun."""
    jobs: SimpleQueue[Job | None] = SimpleQueue()
    sending, ended = threading.Lock(), threading.Event()

    def work(worker: Worker) -> None:
        while (job := jobs.get()) is not None and not ended.is_set():
            finding = worker.do(job)
            with sending, contextlib.suppress(OSError):
                pipe.send(finding)

    # However this ends, the parent sees it.
    with pipe:
        threads = [threading.Thread(target=work, args=(make_worker(),), daemon=True) for _ in range(size)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(EOFError, OSError):
            while True:
                for job in pipe.recv():
                    jobs.put(job)
        ended.set()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join()
