"""Command lines of strace: inject a fault into one system call on the journal's files, or record all of them."""

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to break into system calls")

NAMES = (".", "journal.db", "journal.db-journal", "journal.head", ".journal.head.new", "journal.lock")
_CALL = re.compile(r"^\d+ +(\w+)\(", re.MULTILINE)

WRITING = frozenset({"pwrite64", "write", "fdatasync", "fsync"})
"""The calls that a full or failing disk refuses."""


READING = frozenset({"openat", "pread64", "newfstatat", "fchmod"})
"""The calls that a disk or a file system in a bad way refuses before anything is written."""


@dataclass(frozen=True)
class Point:
    """The n-th call of one name on the journal's files; `onwards`: and every one after it."""

    call: str
    number: int
    onwards: bool = False

    def __str__(self) -> str:
        return f"{self.call}#{self.number}{'+' if self.onwards else ''}"


def journal_paths(home: Path, names: tuple[str, ...] = NAMES) -> list[str]:
    """Return strace's options for files of a journal (`.`: the folder they are in)."""
    state = home.resolve() / "state"
    return [word for name in names for word in ("-P", str(state / name))]


def recording(home: Path, log: Path, names: tuple[str, ...] = NAMES) -> list[str]:
    """Return what to run a program under, so that its calls on the journal are written to `log`."""
    return ["strace", "-f", "-qq", "-o", str(log), *journal_paths(home, names)]


def injecting(home: Path, point: Point, fault: str, names: tuple[str, ...] = NAMES) -> list[str]:
    """Return what to run a program under, so that `fault` (`signal=KILL`, `error=EIO`) meets it at a point."""
    rule = f"inject={point.call}:{fault}:when={point.number}{'+' if point.onwards else ''}"
    # The process stops at calls of this name alone, where it can: to stop at every call takes five times as long.
    # strace 6.1 then injects no signal.
    fast = () if fault.startswith("signal=") else ("--seccomp-bpf",)
    return [
        *("strace", "-f", *fast, "-qq", "-o", "/dev/null"),
        *journal_paths(home, names),
        *("-e", f"trace={point.call}", "-e", rule),
    ]


def points_in(log: Path) -> list[Point]:
    """Return every call that a log tells of, as a point."""
    counted = Counter(_CALL.findall(log.read_text(errors="replace")))
    return [Point(call, number) for call, count in sorted(counted.items()) for number in range(1, count + 1)]
