"""Start further claimants of a batch as child processes: the only way in which escrowctl uses more than one core."""

import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from escrowctl.batch.plan import Batch
from escrowctl.errors import ErrorCode
from escrowctl.session import Session

_ROWS_PER_PROCESS = 16
"""More threads in one process would only wait for each other."""
_POLL_SECONDS = 0.1


class Children:
    """The child processes of a run, perhaps none: claimants of the same batch.

    Each has a pipe from this process: a byte means that it is to end, and its end that this process has ended. Signals
    could get there twice, or not at all if they are ignored.
    """

    def __init__(self, take_signal: Callable[[], ErrorCode | None], processes: Sequence[Popen[bytes]] = ()) -> None:
        self._take_signal = take_signal
        self._processes = processes
        self.count = len(processes)

    def end(self) -> None:
        """Ask the children to finish what is in flight and to end or, at the second call, to end at once."""
        for process in self._processes:
            assert process.stdin is not None, "it has a pipe"
            with suppress(OSError):
                os.write(process.stdin.fileno(), b".")

    def take_signal(self) -> ErrorCode | None:
        """Return the code of a signal that has arrived, and pass the signal on; None: none has arrived."""
        if (code := self._take_signal()) is not None:
            self.end()
        return code

    def wait(self) -> ErrorCode | None:
        """Wait until the children have ended. Pass on signals that arrive meanwhile; return the last one."""
        last = None
        for process in self._processes:
            while process.poll() is None:
                last = self.take_signal() or last
                with suppress(TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        return last


@contextmanager
def further_claimants(session: Session, batch: Batch, concurrency: int) -> Iterator[tuple[int, Children]]:
    """Start a claimant for each `_ROWS_PER_PROCESS` rows at once beyond the first, at most one a core.

    Yield how many rows at once are left for this process, and the children. A sandbox in this process has no children:
    no other process can use it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = 1 if session.connector.is_in_process(session.service) else min(-(-concurrency // _ROWS_PER_PROCESS), cores)
    share = concurrency // count
    options = session.options
    given = {"-p": options.profile, "--base-url": options.base_url, "--config": options.config}
    given["--timeout"] = str(options.timeout) if options.timeout is not None else None
    words = [sys.executable, "-P", "-m", "escrowctl"]
    words += [word for name, value in given.items() if value is not None for word in (name, value)]
    words += ["--sandbox"] if options.sandbox else []
    words += ["batch", "work", batch.name, "--yes", "--concurrency", str(share), "--child"]
    processes: list[Popen[bytes]] = []
    # At its end, each pipe is closed, and each child awaited.
    with ExitStack() as stack:
        try:
            for _ in range(count - 1):
                # A child stays in this process's group, so that Ctrl-Z stops it too.
                process = Popen(  # noqa: S603 - it is this program
                    words, env=dict(session.runtime.environ), stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
                )
                processes.append(stack.enter_context(process))
        except OSError as error:
            why = f"only {len(processes) + 1} of {count} processes send rows, because no other can be started"
            session.console.warn("processes", f"{why}: {error.strerror}")
        yield concurrency - share * (count - 1), Children(session.signals.take_pending, processes)


def follow_parent() -> Callable[[], ErrorCode | None]:
    """Return what asks whether the parent ends this process, over its standard input. Signals do not."""
    has_order = has_ended = False

    def take_order() -> ErrorCode | None:
        nonlocal has_order, has_ended
        if has_ended or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        has_ended = not os.read(sys.stdin.fileno(), 1)
        if has_ended and has_order:
            # The end of the parent is no second order: what is in flight may finish.
            return None
        has_order = True
        return ErrorCode.TERMINATED

    return take_order
