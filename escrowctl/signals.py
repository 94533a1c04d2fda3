"""SIGINT, SIGTERM and SIGHUP: held while a write is in progress, let through while the program only waits.

A handler that raises could do so between a request's last byte and the record of it. So signals
raise `Stopped` only outside `held()`, or inside `let_through()`; in between they are remembered and
raised when the innermost `held()` block ends.
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
        """Handle them inside the block; afterwards put back what was there before.

        A signal that is ignored at the start stays ignored: a shell sets SIGINT so for a background job
        of a script (POSIX.1-2017, XCU 2.11).
        `for_good`: the process ends next, and a late signal must not change the code it ends with.
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
        """Keep signals back for the length of the block; a remembered one is raised at its end.

        When the block itself fails, its error is raised, because it says more than a signal, and signals
        are held until it has been reported: call `resume` then, where the program goes on.
        """
        outer, self._holding = self._holding, True
        yield
        self._holding = outer
        if not outer:
            self.raise_pending()

    def hold(self) -> None:
        """Keep signals back from here on."""
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
        """Raise a stop later that was caught where something must be reported first."""
        self.pending = stopped.code

    def take(self) -> ErrorCode | None:
        """Return a signal that was held back, once: who takes it ends what it does, and says so."""
        code, self.pending = self.pending, None
        return code

    def raise_pending(self) -> None:
        """Raise `Stopped` for a signal that was held back, once."""
        if (code := self.take()) is not None:
            raise Stopped(code)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        code = _CODES[signal.Signals(number)]
        if number == signal.SIGHUP:
            # One hang-up sends it several times: the kernel does, and the shell.
            signal.signal(number, signal.SIG_IGN)
        if self._holding:
            self.pending = code
            return
        raise Stopped(code)
