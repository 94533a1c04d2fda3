"""What an operator sees: a terminal of some width as pyte shows it, or the log of a job, kept as a text file.

`ESCROWCTL_WRITE_SCREENS=1 pytest -m full tests/e2e/test_screens.py` writes the files.
"""

import difflib
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyte

from e2e.script import Program, Terminal, clean_environment, plain

FOLDER = Path(__file__).parent / "screens"
WRITE = os.environ.get("ESCROWCTL_WRITE_SCREENS", "")

_ROWS = 400
"""Higher than anything these tests show: nothing scrolls off."""

_VARIES = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "00000000-0000-4000-8000-{:012d}"),
    (re.compile(r"tx_[0-9A-Z]{8}\b"), "tx_{:08d}"),
    (re.compile(r"\b127\.0\.0\.1:\d{5}\b"), "127.0.0.1:4{:04d}"),
)
"""What differs from run to run, and as wide: the layout of a table stays that of the real text."""

_HOME = "/home/operator"
"""What the screens show in the place of HOME, which is as long."""

_MAY_WRAP = re.compile(
    r"\$ |error: |unknown: |warning: |note: |found: |hint: |next: |saved: |\{| {6}\S"
    r"|  (sent|idempotency key|entry|reply|service's id)  "
)
"""Sentences, and commands to paste: a line break of the program's own would end up in what is copied."""


class Clock:
    """The time that the program reads; it changes only when a test changes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set(datetime(2026, 11, 21, 3, 12, 44, tzinfo=UTC))

    def set(self, now: datetime) -> None:
        self._now = now
        # A program may read it at any moment.
        written = self.path.with_suffix(".new")
        written.write_text(now.isoformat())
        written.replace(self.path)

    def advance(self, **length: float) -> None:
        self.set(self._now + timedelta(**length))


class Settler:
    """Replaces what differs between runs by numbers in the order of their appearance."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._seen: dict[str, str] = {}

    def settle(self, text: str) -> str:
        for pattern, token in _VARIES:
            text = pattern.sub(partial(self._number, token), text)
        assert len(self._home) == len(_HOME)
        return text.replace(self._home, _HOME)

    def _number(self, token: str, found: re.Match[str]) -> str:
        if found[0] not in self._seen:
            number = 1 + sum(known[:3] == token[:3] for known in self._seen.values())
            self._seen[found[0]] = token.format(number)
        return self._seen[found[0]]


class Screen:
    """A terminal at which commands are typed one after another; `text` is what stays on it."""

    def __init__(self, program: Program, clock: Clock, settler: Settler, columns: int) -> None:
        self._program = program
        self._clock = clock
        self._settler = settler
        self._columns = columns
        self._screen = pyte.Screen(columns, _ROWS)
        self._stream = pyte.Stream(self._screen)
        self.shown = ""
        """What the last command showed, ids and ports included."""
        self.too_wide: list[str] = []
        """Lines that the terminal had to break, and should not have to."""

    def type(self, line: str, *answers: str, ends: int = 0) -> None:
        """Type a command line and answer its questions; `ends` is its exit code."""
        terminal = self.begin(line)
        for answer in answers:
            terminal.answer("\r\n> ", f"{answer}\n")
        self.end(terminal, ends=ends)

    def begin(self, line: str) -> Terminal:
        """Type a command line and return the terminal while it runs."""
        self._clock.advance(seconds=5)
        self._feed(f"$ {line}\r\n")
        return self._program.bash_terminal(line, self._columns)

    def end(self, terminal: Terminal, *, ends: int = 0) -> None:
        """Wait for the end of a command."""
        code, self.shown = terminal.finish()
        self._feed(f"{self.shown}[{code}]\r\n")
        assert code == ends, self.text

    def find(self, pattern: str) -> str:
        """Return what the last command showed that matches."""
        found = re.search(pattern, self.shown)
        assert found, self.shown
        return found[0]

    @property
    def text(self) -> str:
        rows = [row.rstrip() for row in self._screen.display]
        assert not rows[-1], "the screen is not high enough"
        return "\n".join(rows).rstrip() + "\n"

    def _feed(self, text: str) -> None:
        settled = self._settler.settle(text)
        for line in plain(settled).split("\n"):
            last = line.rpartition("\r\x1b[K")[2]
            if len(last) > self._columns and not _MAY_WRAP.match(last):
                self.too_wide.append(last)
        self._stream.feed(settled)


class Log:
    """What the commands of a job write into a pipe, stdout and stderr together."""

    def __init__(self, program: Program, clock: Clock, settler: Settler) -> None:
        self._program = program
        self._clock = clock
        self._settler = settler
        self.text = ""

    def type(self, line: str, *, ends: int = 0) -> None:
        """Run a line of bash; `ends` is its exit code."""
        self._clock.advance(seconds=5)
        ended = self._program.bash(f"set -eo pipefail; {line}", stderr=subprocess.STDOUT)
        self.text += self._settler.settle(f"$ {line}\n{ended.out}[{ended.code}]\n")
        assert ended.code == ends, self.text


def make_program(home: Path) -> tuple[Program, Clock]:
    """Return the program in a sealed environment with its own clock, and that clock."""
    folder = home / ".bin"
    folder.mkdir()
    script = folder / "escrowctl"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{Path(__file__).with_name("clocked.py")}" "$@"\n')
    script.chmod(0o700)
    clock, environ = Clock(folder / "clock"), clean_environment(home)
    path = f"{folder}{os.pathsep}{environ['PATH']}"
    return Program(environ | {"PATH": path, "TZ": "UTC", "TEST_CLOCK": str(clock.path)}), clock


def compare(name: str, *texts: str) -> None:
    """Assert that these screens are those of the file, or write it; none has a traceback, or text that is cut."""
    text = "\n=== another terminal ===\n\n".join(texts)
    path = FOLDER / f"{name}.txt"
    if WRITE:
        path.write_text(text)
    kept = path.read_text() if path.exists() else ""
    changed = difflib.unified_diff(kept.splitlines(), text.splitlines(), path.name, "this run", lineterm="")
    assert kept == text, "\n".join(["the screen changed (ESCROWCTL_WRITE_SCREENS=1 writes it):", *changed])
    assert [mark for mark in ("Traceback", "internal error", "\N{HORIZONTAL ELLIPSIS}") if mark in text] == []
