"""The peak memory of a process, as the kernel reports it.

Linux counts the memory of whoever forked a process into that process's own peak, and a test run holds
much by then: so a small process starts it, and asks.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as figure:
    figure.write(str(usage.ru_maxrss // 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Measured:
    """How a process ended, what it printed, and the most MiB it held."""

    code: int
    out: str
    err: str
    megabytes: int


def measure(command: Sequence[str], folder: Path, *, environ: Mapping[str, str] | None = None) -> Measured:
    """Run a command (its program by path) and measure it; `folder` takes the figure."""
    figure = folder / "megabytes"
    done = subprocess.run(
        [sys.executable, "-S", "-c", _LAUNCHER, str(figure), *command],
        env=environ,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=3600,
    )
    return Measured(done.returncode, done.stdout, done.stderr, int(figure.read_text()))
