"""The runtime environment: variables, streams, clocks, random numbers; and functions on time and terminals."""

import copy
import errno
import io
import os
import pwd
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
    """Replaces `sys.stdout` or `sys.stderr` if Python found the stream closed (`>&-`) and set it to None."""

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


_RUN_PREFIX_CHARS = len("01234567-89ab-")
"""The number of leading characters that request ids of one run share."""

_USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""The variables that getpass.getuser() reads, in its order. To import getpass would also import termios."""

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""

DrawWait = Callable[[str, float], None]
"""Called several times a second during a wait, with a description of the wait and the seconds since it began."""


class Runtime:
    """The environment of one run, which tests replace. `now` is for display and records, `monotonic` for deadlines.

    `random_fraction` returns a random number, 0 <= n < 1. `program_words` are the words before the arguments.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        now: Clock = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
        # The same as random.random(), without the cost of importing random.
        random_fraction: Callable[[], float] = lambda: int.from_bytes(os.urandom(7)) / 2**56,
        program_words: Sequence[str] = ("escrowctl",),
    ) -> None:
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.stdin: TextIO = stdin or sys.stdin or io.StringIO()
        self.stdout: TextIO = stdout or sys.stdout or _ClosedStream()
        self.stderr: TextIO = stderr or sys.stderr or _ClosedStream()
        self.now = now
        self.monotonic = monotonic
        self.sleep = sleep
        self.new_uuid = new_uuid
        self.random_fraction = random_fraction
        self._program_words = program_words

    def with_sleep(self, sleep: Callable[[float], None]) -> "Runtime":
        """Return this runtime with another function that sleeps. The request ids of both are of one run."""
        other = copy.copy(self)
        other.sleep, other.run_id = sleep, self.run_id
        return other

    @cached_property
    def run_id(self) -> str:
        """The prefix that the request ids of this run share."""
        return run_of(self.new_uuid())

    def new_request_id(self) -> str:
        """Return a UUID for one request. The request ids of one run share a prefix."""
        return self.run_id + self.new_uuid()[_RUN_PREFIX_CHARS:]

    @cached_property
    def operator(self) -> str:
        """The name of the user who runs escrowctl, or `uid=N` if the machine has no name for the user id."""
        name = next(filter(None, map(self.environ.get, _USER_VARIABLES)), None)
        if name is None:
            try:
                name = pwd.getpwuid(os.getuid()).pw_name
            except KeyError:
                name = f"uid={os.geteuid()}"
        # The environment may have a name that is not valid text.
        return name.encode("utf-8", "replace").decode()

    @cached_property
    def host(self) -> str:
        """The name of this machine."""
        return os.uname().nodename.encode("utf-8", "replace").decode()

    @cached_property
    def program(self) -> tuple[str, ...]:
        """The words that start this program from a shell: its name if PATH finds this program, else its path.

        Folders are compared, and not files: a virtual environment's python is a link to the system's python.
        """
        path, *rest = self._program_words
        name = Path(path).name
        found = shutil.which(name, path=self.environ.get("PATH")) if path != name else None
        with suppress(OSError):
            path = name if found and Path(found).parent.samefile(Path(path).parent) else path
        return path, *rest


def run_of(request_id: str) -> str:
    """Return the part of a request id that all requests of one run of escrowctl share."""
    return request_id[:_RUN_PREFIX_CHARS]


def find_program_words() -> tuple[str, ...]:
    """Return the words of the command line before the arguments: a path, or `python -m escrowctl`."""
    path = sys.argv[0]
    return (sys.orig_argv[0], "-m", "escrowctl") if Path(path).name == "__main__.py" else (path,)


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process, if the system allows that."""
    import resource  # noqa: PLC0415 - only runs with a key need it

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextmanager
def without_echo(stdin: TextIO) -> Iterator[None]:
    """Turn echo off for the terminal at `stdin` during the block.

    Raises EscrowctlError `BAD_VALUE` if turning echo off fails. A stream without a file descriptor has no
    echo: the block runs unchanged.
    """
    import termios  # noqa: PLC0415 - only a question for a key needs it

    try:
        handle = stdin.fileno()
    except (OSError, ValueError):
        yield
        return
    try:
        attributes = termios.tcgetattr(handle)
        silent = [*attributes]
        silent[3] &= ~termios.ECHO
        termios.tcsetattr(handle, termios.TCSAFLUSH, silent)
    except termios.error as error:
        raise bad_value("this terminal would show the key: pass it through a pipe.") from error
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, attributes)


def timestamp(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC with milliseconds, as it is stored and printed."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_FEW_SECONDS, _MANY_SECONDS = 90, 5400
_AGE_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def describe_age(earlier: str, now: datetime) -> str:
    """Return the age of a timestamp in its largest unit, such as `3 min ago`; `in 2 h` if it is after `now`."""
    seconds = int((now - datetime.fromisoformat(earlier)).total_seconds())
    size, unit = next(((size, unit) for size, unit in _AGE_UNITS if abs(seconds) >= size), (1, "s"))
    length = f"{abs(seconds) // size} {unit}"
    return f"in {length}" if seconds < 0 else f"{length} ago"


def describe_duration(seconds: float) -> str:
    """Return a duration as text: `41 s`, `3 min`, `1.5 h`."""
    if seconds < _FEW_SECONDS:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < _MANY_SECONDS else f"{seconds / 3600:.1f} h"


def is_writable_now(stream: TextIO) -> bool:
    """Whether text can be written to a stream now, without waiting for its reader."""
    import select  # noqa: PLC0415 - only drawn text needs it

    try:
        return bool(select.select((), (stream.fileno(),), (), 0)[1])
    except (OSError, ValueError):
        # It has no file descriptor.
        return True


def discard_typed_input(stdin: TextIO) -> None:
    """Discard input that was typed at a terminal but not read. Other streams keep their input."""
    import termios  # noqa: PLC0415 - only a question needs it

    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(stdin.fileno(), termios.TCIFLUSH)
