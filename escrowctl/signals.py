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

_ERROR_CODES = {
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
    def installed(self, *, until_exit: bool) -> Iterator[None]:
        """Handle the signals inside the block; afterwards restore the previous handlers.

        A signal that is ignored at the start stays ignored: a shell does that with SIGINT for a background
        job of a script (POSIX.1-2017, XCU 2.11).
        `until_exit`: the process ends after the block. Then signals are ignored: none may change the exit code.
        """
        ignored = {number for number in _ERROR_CODES if signal.getsignal(number) is signal.SIG_IGN}
        previous = {number: signal.signal(number, self._handle) for number in _ERROR_CODES.keys() - ignored}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, signal.SIG_IGN if until_exit else handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back during the block. If a signal came, raise `Stopped` at the end of the outermost block.

        If the block raises an error, signals stay held while the caller reports the error. If the program goes on
        after the report, the caller calls `resume`.
        """
        outer, self._holding = self._holding, True
        yield
        self._holding = outer
        if not outer:
            self.raise_pending()

    def hold(self) -> None:
        """Hold signals back until `resume`."""
        self._holding = True

    def resume(self) -> None:
        """Stop holding signals back. Raise `Stopped` if a signal is pending."""
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
        """Make the signal of a caught `Stopped` pending again, so that a result can be reported first."""
        self.pending = stopped.code

    def take_pending(self) -> ErrorCode | None:
        """Return the code of the pending signal and forget the signal. None: no signal is pending."""
        code, self.pending = self.pending, None
        return code

    def raise_pending(self) -> None:
        """Raise `Stopped` if a signal is pending, and forget the signal."""
        if (code := self.take_pending()) is not None:
            raise Stopped(code)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        code = _ERROR_CODES[signal.Signals(number)]
        if number == signal.SIGHUP:
            # For one hang-up, both the kernel and the shell may send a SIGHUP.
            signal.signal(number, signal.SIG_IGN)
        if self._holding:
            self.pending = code
            return
        raise Stopped(code)
