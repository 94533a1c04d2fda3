"""Start further claimants of a batch as child processes: the only way in which escrowctl uses more than one core."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import DEVNULL, PIPE

from escrowctl.batch.plan import Batch
from escrowctl.errors import ErrorCode
from escrowctl.session import Session

_ROWS_PER_PROCESS = 16
"""More threads in one process would only wait for each other."""
_POLL_SECONDS = 0.1


class Children:
    """The child processes of a run: claimants of the same batch.

    Each has a pipe from this process: a byte means that it is to end, and its end that this process has ended. Signals
    could get there twice, or not at all if they are ignored.
    """

    def __init__(self, session: Session, batch: Batch, concurrency: int, count: int) -> None:
        options = session.options
        named = (("-p", options.profile), ("--base-url", options.base_url), ("--config", options.config))
        words = [word for name, value in named if value is not None for word in (name, value)]
        words += ["--sandbox"] if options.sandbox else []
        words += ["--timeout", str(options.timeout)] if options.timeout is not None else []
        words += ["batch", "work", batch.name, "--yes", "--concurrency", str(concurrency), "--child"]
        self._processes = [
            subprocess.Popen(  # noqa: S603 - it is this program
                [sys.executable, "-P", "-m", "escrowctl", *words],
                env=dict(session.runtime.environ),
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
            )
            for _ in range(count)
        ]

    def end(self) -> None:
        """Ask the children to finish what is in flight and to end or, at the second call, to end at once."""
        for process in self._processes:
            with suppress(OSError):
                os.write(_pipe_of(process), b".")

    def wait(self, take_signal: Callable[[], ErrorCode | None]) -> ErrorCode | None:
        """Wait until the children have ended. Pass on signals that arrive meanwhile; return the last one."""
        last = None
        for process in self._processes:
            while process.poll() is None:
                if (code := take_signal()) is not None:
                    last = code
                    self.end()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        return last

    def close(self) -> None:
        """Close the pipes, and wait until the children have ended."""
        for process in self._processes:
            with suppress(OSError):
                process.communicate()


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
    finally:
        children.close()


def follow_parent() -> Callable[[], ErrorCode | None]:
    """Let only the parent end this process, over its standard input. Return what asks whether it has done so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    has_order = has_ended = False

    def take_order() -> ErrorCode | None:
        nonlocal has_order, has_ended
        if has_ended or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        has_ended = not os.read(sys.stdin.fileno(), 1)
        # The end of the parent is no second order: what is in flight may finish.
        is_known, has_order = has_ended and has_order, True
        return None if is_known else ErrorCode.TERMINATED

    return take_order


def _pipe_of(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdin is not None, "it has a pipe"
    return process.stdin.fileno()
