"""`journal init --from`, killed at one system call: the old journal is usable, or the same line completes the new one.

The journal knows a release that is done and a create that is unknown; the service keeps saying that everything is held.
"""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from cli.replies import holding, in_turn, writes_meet
from conftest import make_environ
from wire_server import WireServer, hang_up

from faults.strace import NAMES, Point, injecting, points_in, recording

DONE, UNKNOWN = ("tx", "release", "tx_1", "--yes"), ("tx", "create", "--amount", "7", "--currency", "EUR")
OTHER = ("tx", "create", "--amount", "101", "--currency", "USD")
FILES = (*NAMES, "journal.new", *(f"journal.new/{name}" for name in ("journal.db", "journal.head")), "journal.old-1")


class SuccessorKills:
    """Replaces copies of one journal by its export."""

    def __init__(self, folder: Path) -> None:
        self.server = WireServer(writes_meet(in_turn(holding(), hang_up, holding())))
        self.home, self._whole, self._export = folder / "home", folder / "whole", folder / "export.jsonl"
        assert [self.run(*line) for line in (DONE, UNKNOWN)] == [0, 12]
        with self._export.open("wb") as exported:
            self.run("journal", "export", stdout=exported)
        shutil.copytree(self.home, self._whole)

    def run(self, *line: str, under: tuple[str, ...] = (), stdout: object = subprocess.DEVNULL) -> int:
        """Return the exit code of a line."""
        environ = make_environ(self.home, self.server.base_url)
        words = [*under, sys.executable, "-m", "escrowctl", *line]
        return subprocess.run(words, env=environ, stdout=stdout, stderr=subprocess.DEVNULL, check=False).returncode  # type: ignore[call-overload,no-any-return] # a file or a number

    def replace(self, under: list[str] | None = None) -> int:
        """Return the exit code of the line that replaces the journal."""
        return self.run("journal", "init", "--from", str(self._export), "--yes", under=tuple(under or ()))

    def points(self, log: Path) -> list[Point]:
        """Return the system calls of an undisturbed run."""
        self._renew()
        assert self.replace(recording(self.home, log, FILES)) == 0
        return points_in(log)

    def kill_at(self, point: Point) -> None:
        """Kill one run at a point, and check what is left."""
        self._renew()
        sent = len(self.server.writes)
        assert self.replace(injecting(self.home, point, "signal=KILL", FILES)) != 0, point

        code = self.run(*OTHER)
        if code == 0:
            assert (self.run(*DONE), self.run(*UNKNOWN), len(self.server.writes)) == (7, 12, sent + 1), point
            # A new one that is complete replaced a closed one; else the old one is as it was.
            self._require_closed()
            return
        assert (code, len(self.server.writes)) == (17, sent), point
        assert self.replace() == 0, point
        codes = [self.run(*line) for line in (DONE, UNKNOWN, OTHER, ("journal", "verify"))]
        assert (codes, len(self.server.writes)) == ([7, 12, 0, 0], sent + 1), point
        self._require_closed()

    def _require_closed(self) -> None:
        for path in (self.home / "state").glob("journal.old-?"):
            with sqlite3.connect(path) as database:
                (kind,) = database.execute("SELECT kind FROM records ORDER BY sequence DESC").fetchone()
            assert kind == "closing", path

    def _renew(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self._whole, self.home)
