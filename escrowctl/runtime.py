"""The runtime environment: variables, streams, clocks, random numbers. Tests replace them."""

import errno
import io
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TextIO

from escrowctl.errors import bad_value


class _ClosedStream(io.StringIO):
    """Replaces None, which Python has for a stream closed before the program began (`>&-`)."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _draw() -> float:
    # The same as random.random(), without the cost of importing random.
    return int.from_bytes(os.urandom(7)) / 2**56


_RUN_MARK = len("01234567-89ab-")
"""The number of leading characters that request ids of one run share."""


class Runtime:
    """The outside world of one run. `now` is for display and records, `monotonic` for deadlines.

    `chance` returns a random number, 0 <= n < 1. `called`: the words that started the program, without its arguments.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
        chance: Callable[[], float] = _draw,
        called: Sequence[str] = ("escrowctl",),
    ) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.stdin: TextIO = stdin or sys.stdin or io.StringIO()
        self.stdout: TextIO = stdout or sys.stdout or _ClosedStream()
        self.stderr: TextIO = stderr or sys.stderr or _ClosedStream()
        self.now = now
        self.monotonic = monotonic
        self.sleep = sleep
        self.new_uuid = new_uuid
        self.chance = chance
        self._called = called

    @cached_property
    def _run_mark(self) -> str:
        return self.new_uuid()[:_RUN_MARK]

    def new_request_id(self) -> str:
        """Return a UUID for one request. Those of one run share a prefix: see `are_of_one_run`."""
        return self._run_mark + self.new_uuid()[_RUN_MARK:]

    @cached_property
    def program(self) -> tuple[str, ...]:
        """The words that start this program again: its name if PATH finds this file, else its path.

        A link and its target count as different: a virtual environment's python is a link to the system's.
        """
        path, *rest = self._called
        name = Path(path).name
        found = shutil.which(name, path=self.environ.get("PATH")) if path != name else None
        with suppress(OSError):
            path = name if found and Path(found).parent.samefile(Path(path).parent) else path
        return path, *rest


def are_of_one_run(one: str, other: str) -> bool:
    """Whether two request ids come from one run of escrowctl."""
    return one[:_RUN_MARK] == other[:_RUN_MARK]


def read_call() -> tuple[str, ...]:
    """Return the words before the arguments: the program's path, or `python -m escrowctl`."""
    path = sys.argv[0]
    return (sys.orig_argv[0], "-m", "escrowctl") if Path(path).name == "__main__.py" else (path,)


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, if the system allows that."""
    import resource  # noqa: PLC0415 - for those who hold a key

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextmanager
def without_echo(stdin: TextIO) -> Iterator[None]:
    """Turn echo off for the terminal at `stdin` during the block.

    Raises EscrowctlError `BAD_VALUE` if echo cannot be turned off. A stream without a file descriptor has
    no echo: nothing is done.
    """
    import termios  # noqa: PLC0415 - for those who are asked for a key

    try:
        handle = stdin.fileno()
    except (OSError, ValueError):
        yield
        return
    try:
        before = termios.tcgetattr(handle)
        silent = [*before]
        silent[3] &= ~termios.ECHO
        termios.tcsetattr(handle, termios.TCSAFLUSH, silent)
    except termios.error as error:
        raise bad_value("this terminal would show the key: pass it through a pipe.") from error
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def timestamp(moment: datetime) -> str:
    """Return RFC 3339 text in UTC with milliseconds, the form of stored and printed times."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_FEW_SECONDS, _MANY_SECONDS = 90, 5400
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def ago(earlier: str, now: datetime) -> str:
    """Return the age of a timestamp in its largest full unit: `20 s ago`, `3 min ago`; or `in 2 h`."""
    seconds = int((now - datetime.fromisoformat(earlier)).total_seconds())
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, "s"))
    length = f"{abs(seconds) // size} {unit}"
    return f"in {length}" if seconds < 0 else f"{length} ago"


def describe_duration(seconds: float) -> str:
    """Return a duration as text: `41 s`, `3 min`, `1.5 h`."""
    if seconds < _FEW_SECONDS:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < _MANY_SECONDS else f"{seconds / 3600:.1f} h"


def takes_text(stream: TextIO) -> bool:
    """Whether a stream takes text without waiting."""
    import select  # noqa: PLC0415 - for what is drawn

    try:
        return bool(select.select((), (stream.fileno(),), (), 0)[1])
    except (OSError, ValueError):
        # It has no file descriptor.
        return True


def forget_typed(stdin: TextIO) -> None:
    """Discard unread input of a terminal. Other streams keep theirs."""
    import termios  # noqa: PLC0415 - for those who are asked

    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(stdin.fileno(), termios.TCIFLUSH)
