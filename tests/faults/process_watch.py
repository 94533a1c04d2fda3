"""The installed script, watched: all command lines on this machine while it waits, all programs that it starts."""

import contextlib
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conftest import Result
from wire_server import Behave, Seen

from faults.canary import Canary


@dataclass
class ProcessWatch:
    """Looks for a canary outside of a process that strace runs; `lines` are the command lines that were seen.

    `log` takes what strace tells: every program that was started, with its whole environment.
    """

    canary: Canary
    log: Path
    lines: set[bytes] = field(default_factory=set)

    def run(self, *command: str, environ: Mapping[str, str], stdin: str) -> Result:
        """Run a command to its end, and look at the programs that it started."""
        traced = ["strace", "-f", "-qq", "-v", "-s", "8192", "-e", "trace=execve,execveat", "-o", str(self.log)]
        done = subprocess.run(
            [*traced, *command], env=environ, input=stdin, capture_output=True, text=True, check=False, timeout=60
        )
        pid, *_ = self.log.read_text().split(maxsplit=1)
        for started in self.log.read_text(errors="replace").splitlines():
            # What it was given itself, it has; what it gives to others is looked at, arguments and environment.
            if started.split(maxsplit=1)[0] != pid:
                self.canary.look("a child", started.encode())
        return Result(done.returncode, done.stdout, done.stderr)

    def looking(self, behave: Behave) -> Behave:
        """Return the behaviour that looks at every command line first: the client is alive then, and waits."""

        def look_and_behave(seen: Seen, connection: socket.socket) -> None:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    line = path.read_bytes()
                    self.lines.add(line)
                    self.canary.look("a command line", line)
            behave(seen, connection)

        return look_and_behave
