"""The process that sends: jobs go out to it, findings come back; the journal stays with its parent.

One process cannot do both fast enough: a row costs 0.5 ms for the journal and 0.5 ms for HTTP, and threads share one
interpreter. So a second process sends, with a thread for each connection, and the parent alone owns the journal. (Two
that send were measured: no faster with two cores.) It is forked while signals are held, so that only the parent heeds a
Ctrl-C, which reaches both. The lock file that it inherits keeps a row's entry alive for as long as its request may be
on its way, even if the parent is killed (open file description locks, fcntl(2)).
"""

import contextlib
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue
from typing import NoReturn

from escrowctl.batch.worker import Finding, Job, Worker, find_defect
from escrowctl.errors import bad_value

MakeWorker = Callable[[], Worker]


class Crew:
    """Sends rows over `size` connections; `close` it.

    `make_worker` is called once for each thread that sends. `in_process`: the threads are this process's own, for a
    service that is no other process. Raises EscrowctlError (exit 2) where so many threads cannot be started.
    """

    def __init__(self, make_worker: MakeWorker, size: int, *, in_process: bool) -> None:
        self._pipe, theirs = connection.Pipe()
        self._pid: int | None = None
        self._lines: set[int] = set()
        self.ended_by = "ended"
        """How the process ended, once it has."""
        if in_process:
            threading.Thread(target=_serve, args=(theirs, make_worker, size), daemon=True).start()
        else:
            self._pid = os.fork()
            if not self._pid:
                self._pipe.close()
                _be_the_child(theirs, make_worker, size)
            theirs.close()
        self._wait_until_ready(size)

    def _wait_until_ready(self, size: int) -> None:
        """Return when every thread runs, so that no row is begun for a process that cannot send it."""
        try:
            failure: str = self._pipe.recv()
        except EOFError:
            self._note_end()
            failure = f"the process that sends {self.ended_by}"
        if failure:
            self.close()
            raise bad_value(f"--concurrency {size}: {failure}. Use a lower number.")

    def submit(self, jobs: Sequence[Job]) -> None:
        """Hand out jobs."""
        self._lines.update(job.line for job in jobs)
        if jobs:
            # Where the process has ended, `collect` says so.
            with contextlib.suppress(OSError):
                self._pipe.send(jobs)

    def collect(self, seconds: float, enough: int) -> tuple[list[Finding], set[int]]:
        """Return what has come in, and the lines that are lost, where the process ended.

        Waits until `enough` have, but for none longer than `seconds`.
        """
        found: list[Finding] = []
        try:
            while self._pipe.poll(0 if len(found) >= enough else seconds):
                finding: Finding = self._pipe.recv()
                self._lines.discard(finding.line)
                found.append(finding)
        except (EOFError, OSError):
            self._note_end()
            lost, self._lines = self._lines, set()
            return found, lost
        return found, set()

    def kill(self) -> None:
        """End the process at once. `collect` still returns what it has answered, and what is lost."""
        if self._pid is None:
            self._pipe.close()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Wait for what is being sent, and end the process."""
        self._pipe.close()
        self._note_end()

    def _note_end(self) -> None:
        if self._pid is None:
            return
        with contextlib.suppress(ChildProcessError):
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self.ended_by = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"


def _be_the_child(pipe: Pipe, make_worker: MakeWorker, size: int) -> NoReturn:
    code = 1
    try:
        _serve(pipe, make_worker, size)
        code = 0
    finally:
        # Nothing of the parent's is closed or written here, whatever happened.
        os._exit(code)


def _serve(pipe: Pipe, make_worker: MakeWorker, size: int) -> None:
    """Do the jobs that come in until the parent closes its end, then finish those that have begun."""
    jobs: SimpleQueue[Job | None] = SimpleQueue()
    sending, ended = threading.Lock(), threading.Event()

    def work(worker: Worker) -> None:
        while (job := jobs.get()) is not None and not ended.is_set():
            finding = worker.do(job)
            with sending, contextlib.suppress(OSError):
                try:
                    pipe.send(finding)
                except (TypeError, AttributeError, ValueError, pickle.PicklingError) as error:
                    pipe.send(find_defect(job, error))

    # However this ends, the parent sees it.
    with pipe:
        threads = [threading.Thread(target=work, args=(make_worker(),), daemon=True) for _ in range(size)]
        try:
            for thread in threads:
                thread.start()
        except RuntimeError as error:
            pipe.send(str(error))
            return
        pipe.send("")
        with contextlib.suppress(EOFError, OSError):
            while True:
                for job in pipe.recv():
                    jobs.put(job)
        ended.set()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join()
