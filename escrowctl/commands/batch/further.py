"""Start further claimants of a batch as child processes: the only way in which escrowctl uses more than one core."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL

from escrowctl.batch.plan import Batch
from escrowctl.session import Session

_ROWS_PER_PROCESS = 16
"""More threads in one process would only wait for each other."""


class Children:
    """The child processes of a run: claimants of the same batch. They end when this process ends."""

    def __init__(self, session: Session, batch: Batch, concurrency: int, count: int) -> None:
        self.is_ending = False
        options = session.options
        named = (("-p", options.profile), ("--base-url", options.base_url), ("--config", options.config))
        words = [word for name, value in named if value is not None for word in (name, value)]
        words += ["--sandbox"] if options.sandbox else []
        words += ["--timeout", str(options.timeout)] if options.timeout is not None else []
        words += ["batch", "work", batch.name, "--yes", "--concurrency", str(concurrency), "--parent", str(os.getpid())]
        # A terminal signals only its own process group: the children get each signal once, from this process.
        self._processes = [
            subprocess.Popen(  # noqa: S603 - it is this program
                [sys.executable, "-P", "-m", "escrowctl", *words],
                env=dict(session.runtime.environ),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
            )
            for _ in range(count)
        ]

    def signal(self) -> None:
        """Ask the children to end: to finish what is in flight or, at the second call, at once."""
        self.is_ending = True
        for process in self._processes:
            process.terminate()

    def wait(self) -> None:
        """Wait until the children have ended."""
        for process in self._processes:
            process.wait()


@contextmanager
def further_claimants(session: Session, batch: Batch, concurrency: int) -> Iterator[tuple[int, Children]]:
    """Start a claimant for each `_ROWS_PER_PROCESS` rows at once beyond the first, at most one a core.

    Yield how many rows at once are left for this process, and the children. A sandbox in this process has no children:
    no other process can use it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_alone = session.connector.is_in_process(session.service)
    count = 1 if is_alone else min(-(-concurrency // _ROWS_PER_PROCESS), cores)
    share = concurrency // count
    children = Children(session, batch, share, count - 1)
    try:
        yield concurrency - share * (count - 1), children
    except BaseException:
        # A second signal would leave behind what they have in flight.
        if not children.is_ending:
            children.signal()
        raise
    finally:
        children.wait()
