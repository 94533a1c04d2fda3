"""`webhook listen` as a process of its own, which waits a thousandth of the time between two attempts."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from e2e.script import Program

SECONDS = 60.0

_FAST = """
import sys, time
from escrowctl.main import main
from escrowctl.runtime import Runtime
sys.exit(main(sys.argv[1:], Runtime(sleep=lambda seconds: time.sleep(seconds / 1000))))
"""


def wait_until(condition: Callable[[], object], what: str = "it came to that") -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {SECONDS} s until {what}"
        time.sleep(0.005)


class Listener:
    """One listener at one port, started again after each kill."""

    def __init__(self, program: Program, folder: Path, *words: str) -> None:
        self._program = program
        self._words = words
        self._ready = folder / "listener.json"
        self._output = folder / "listener.txt"
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, and wait until it can be called."""
        self._ready.unlink(missing_ok=True)
        line = ("webhook", "listen", "--port", str(self.port), "--ready-file", str(self._ready), *self._words)
        with self._output.open("a") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", _FAST, *line],
                env=dict(self._program.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: self._ready.exists() or self._process.poll() is not None)
        assert self._process.poll() is None, self.output
        self.port = int(json.loads(self._ready.read_text())["url"].rpartition(":")[2])

    def kill(self) -> None:
        """Kill it, so that it can do nothing any more."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Stop it by SIGTERM and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(SECONDS)

    def close(self) -> None:
        """End it, whatever it does."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()

    @property
    def output(self) -> str:
        """What all of them have printed."""
        return self._output.read_text()
