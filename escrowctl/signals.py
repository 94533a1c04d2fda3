"""SIGINT, SIGTERM and SIGHUP: held while a write is in progress, let through while the program only waits.

An exception between the last byte of a request and its record would lose the outcome. So signals raise
`Stopped` only outside `held()`, or inside `let_through()`. At other times they are remembered, and raised
when the outermost `held()` block ends.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from escrowctl.errors import ErrorCode, Stopped

_CODES = {
    signal.SIGINT: ErrorCode.INTERRUPTED,
    signal.SIGTERM: ErrorCode.TERMINATED,
    signal.SIGHUP: ErrorCode.TERMINATED,
}


class Signals:
    """The program's stop signals; one per run, installed by `main` around the command."""

    def __init__(self) -> None:
        self._holding = False
        self.pending: ErrorCode | None = None

    @contextmanager
    def installed(self, *, for_good: bool) -> Iterator[None]:
        """Handle the signals inside the block; afterwards restore the previous handlers.

        A signal that is ignored at the start stays ignored: a shell does that with SIGINT for a background
        job of a script (POSIX.1-2017, XCU 2.11).
        `for_good`: the process ends next. Ignore signals afterwards: a late one must not change the exit code.
        """
        ignored = {number for number in _CODES if signal.getsignal(number) is signal.SIG_IGN}
        before = {number: signal.signal(number, self._handle) for number in _CODES.keys() - ignored}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_IGN if for_good else handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back during the block. Raise `Stopped` for a remembered one at its end.

        If the block itself fails, its error is raised, because it says more than a signal. Signals stay held
        until that error has been reported. If the program goes on, call `resume` then.
        """
        outer, self._holding = self._holding, True
        yield
        self._holding = outer
        if not outer:
            self.raise_pending()

    def hold(self) -> None:
        """Hold signals back from here on."""
        self._holding = True

    def resume(self) -> None:
        """Let signals through again, the remembered one first."""
        self._holding = False
        self.raise_pending()

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Allow signals to interrupt the block, even inside `held()`: for waits on the network."""
        outer, self._holding = self._holding, False
        try:
            self.raise_pending()
            yield
        finally:
            self._holding = outer

    def remember(self, stopped: Stopped) -> None:
        """Raise a caught `Stopped` again later, after the caller has reported its result."""
        self.pending = stopped.code

    def take(self) -> ErrorCode | None:
        """Return a signal that was held back, once. The caller must end its work and report that."""
        code, self.pending = self.pending, None
        return code

    def raise_pending(self) -> None:
        """Raise `Stopped` for a signal that was held back, once."""
        if (code := self.take()) is not None:
            raise Stopped(code)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        code = _CODES[signal.Signals(number)]
        if number == signal.SIGHUP:
            # One hang-up sends it several times: from the kernel and from the shell.
            signal.signal(number, signal.SIG_IGN)
        if self._holding:
            self.pending = code
            return
        raise Stopped(code)
