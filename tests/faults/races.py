"""Eight processes release one escrow, or create under one cap, at the same time.

The fake service answers when all have started.

What leads to a service (profile, prefix, spelling of the host or the id) is drawn for each process
from the ways of a `Course`: all of its ways lead to the same escrow.
"""

import contextlib
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import KEY
from wire_server import Seen, WireServer, http_reply

from faults.kills import HarnessError, Violation, ViolationError

PROCESSES = 8
_SECONDS = 20.0

Way = tuple[str, tuple[str, ...]]
"""A profile of config.toml, and words added to the line."""


@dataclass(frozen=True)
class Course:
    """A config.toml with `{first}`, `{second}` (two ports of the fake service) and the ways through it.

    `respell` makes the id that a way types; the service echoes the id in lower case.
    """

    config: str
    ways: tuple[Way, ...]
    respell: Callable[[str, int], str] = lambda resource_id, _way: resource_id
    ports: tuple[int, int] = (0, 0)


class TwoPortService:
    """The fake service: two ports, one service. It keeps every write, and answers one when `may_answer` says so."""

    def __init__(self, ports: tuple[int, int]) -> None:
        self.writes: list[tuple[str, str, str]] = []
        self.may_answer: Callable[[], bool] = lambda: True
        self.readers: threading.Barrier | None = None
        self.lingers = 0.0
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.servers = [WireServer(self._behave, port=port) for port in ports]

    def close(self) -> None:
        for server in self.servers:
            server.close()

    def _behave(self, seen: Seen, connection: socket.socket) -> None:
        if not seen.is_write:
            self._read(seen, connection)
            return
        resource_id = seen.target.split("/")[-2].lower() if seen.method == "PUT" else f"tx_made{next(self._numbers)}"
        with self._lock:
            self.writes.append((seen.method, resource_id, seen.body.decode()))
        deadline = time.monotonic() + _SECONDS
        while not self.may_answer() and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(self.lingers)
        connection.sendall(_record(resource_id, "held" if seen.method == "POST" else "released"))

    def _read(self, seen: Seen, connection: socket.socket) -> None:
        if seen.target.startswith("/unreadable/"):
            connection.sendall(http_reply("200 OK", b"not a record"))
            return
        resource_id = seen.target.rpartition("/")[2].lower()
        released = any(written == resource_id for _, written, _ in self.writes)
        if self.readers is not None and not released:
            with contextlib.suppress(threading.BrokenBarrierError):
                self.readers.wait(_SECONDS)
        connection.sendall(_record(resource_id, "released" if released else "held"))


def _record(resource_id: str, status: str) -> bytes:
    record = {"id": resource_id, "status": status, "amount": 100, "currency": "USD"}
    return http_reply("200 OK", json.dumps(record).encode())


class Starter:
    """The program of faults/prefork_runner.py; `variant` names a function of `faults.variants`."""

    def __init__(self, variant: str | None = None) -> None:
        words = [sys.executable, str(Path(__file__).with_name("prefork_runner.py")), *([variant] if variant else [])]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": os.defpath}
        )
        if self._read() != "ready\n":
            raise HarnessError("what starts the processes did not start")

    def start(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Start all jobs at once, and return how each ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        ended: list[dict[str, Any]] = json.loads(self._read())
        return ended

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@dataclass
class Races:
    """Rounds of PROCESSES processes through one course; `starter` starts them.

    `make_journal` makes a shared journal and returns its URL: then each process has a home of its own.
    """

    folder: Path
    seed: int
    course: Course
    starter: "Starter"
    renews: bool = False
    make_journal: Callable[[], str] | None = None
    rounds: int = 0
    codes: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.service = TwoPortService(self.course.ports)

    @property
    def mark(self) -> Path:
        """The file that a broken variant leaves when what it broke is called."""
        return self.folder / "broken-here"

    def close(self) -> None:
        self.service.close()
        summary = f"{self.rounds} rounds of {PROCESSES}, exits {dict(self.codes)}"
        print(f"ESCROWCTL_TEST_SEED={self.seed}: {summary}")

    def release(self) -> None:
        """All processes release one escrow: one PUT, one exit 0, all others ErrorCode.BUSY or ALREADY_DONE (exit 7)."""
        ended = self._round(lambda way: ("tx", "release", self.course.respell(self._id, way), "--yes"), gathers=True)
        codes = Counter(one["code"] for one in ended)
        if len(self.service.writes) != 1:
            self._fail(Violation.SENT_TWICE, f"{len(self.service.writes)} PUTs, exits {codes}", ended)
        if codes != {0: 1, 7: PROCESSES - 1}:
            self._fail(Violation.NOT_HELD_BACK, f"exits {codes}", ended)
        if any(bool(one["out"]) != (one["code"] == 0) for one in ended):
            self._fail(Violation.SAID_FALSELY, "a loser spoke as if it had released", ended)

    def create_under_one_reference(self) -> None:
        """All processes create 100 USD under one reference: one POST, one exit 0, all others exit 7."""
        line = ("tx", "create", "--amount", "100", "--currency", "USD", "--reference", f"order-{self.rounds}")
        ended = self._round(lambda _way: line, gathers=False)
        codes = Counter(one["code"] for one in ended)
        if len(self.service.writes) != 1 or codes != {0: 1, 7: PROCESSES - 1}:
            self._fail(Violation.SENT_TWICE, f"{len(self.service.writes)} POSTs, exits {codes}", ended)

    def create_under_cap(self, cap: int) -> None:
        """Each process creates 100 USD under one daily cap: as many requests arrive as the cap allows."""
        numbers = itertools.count()
        line = ("tx", "create", "--amount", "100", "--currency", "USD", "--reference")
        ended = self._round(lambda _way: (*line, f"own-{next(numbers)}"), gathers=False)
        room = cap // 100
        codes = Counter(one["code"] for one in ended)
        if len(self.service.writes) > room:
            self._fail(Violation.NOT_HELD_BACK, f"{len(self.service.writes)} times 100 under a cap of {cap}", ended)
        if codes != {0: room, 5: PROCESSES - room} or len(self.service.writes) != room:
            self._fail(Violation.BROKE, f"exits {codes}, {len(self.service.writes)} arrived", ended)

    # Playing

    @property
    def _id(self) -> str:
        return f"tx_round{self.rounds}"

    def _round(self, line: Callable[[int], tuple[str, ...]], *, gathers: bool) -> list[dict[str, Any]]:
        self.rounds += 1
        # In some rounds they also create the journal at the same time.
        if self.rounds == 1 or self.renews or self.chance.random() < 0.3:
            self._home = self._make_home(self.folder / f"home{self.rounds}")
            self._journal = self.make_journal() if self.make_journal is not None else None
        started = [self.folder / f"started{self.rounds}-{process}" for process in range(PROCESSES)]
        self.service.writes.clear()
        self.service.may_answer = lambda: all(path.exists() for path in started)
        ways = [process % len(self.course.ways) for process in range(PROCESSES)]
        self.chance.shuffle(ways)
        reading = sum(self.course.ways[way][0] != "unreadable" for way in ways)
        # In half of the rounds no process sends before all have read the record as held.
        together = gathers and self.chance.random() < 0.5
        self.service.readers = threading.Barrier(reading) if together and reading == PROCESSES else None
        jobs = [
            {
                "argv": ["--no-input", "-p", self.course.ways[way][0], *line(way), *self.course.ways[way][1]],
                "environ": self._environ(process),
                "started": str(started[process]),
            }
            for process, way in enumerate(ways)
        ]
        ended = self.starter.start(jobs)
        self.codes.update(one["code"] for one in ended)
        return ended

    def _environ(self, process: int) -> dict[str, str]:
        home, shared = self._home, dict[str, str]()
        if self._journal is not None:
            home, shared = self._home / f"machine{process}", {"ESCROWCTL_JOURNAL": self._journal}
            if not home.exists():
                self._make_home(home)
        return {
            "PATH": os.defpath,
            "HOME": str(home),
            "ESCROWCTL_HOME": str(home),
            "BROKEN_MARK": str(self.mark),
            **shared,
        }

    def _make_home(self, home: Path) -> Path:
        home.mkdir(mode=0o700)
        first, second = (server.port for server in self.service.servers)
        (home / "config.toml").write_text(self.course.config.format(first=first, second=second))
        (home / "key").write_text(KEY + "\n")
        (home / "key").chmod(0o600)
        return home

    def _fail(self, kind: Violation, what: str, ended: list[dict[str, Any]]) -> None:
        output = "\n".join(f"{one['code']}: {one['err'].strip()}" for one in ended)
        raise ViolationError(kind, f"{what} (round {self.rounds}, ESCROWCTL_TEST_SEED={self.seed})\n{output}")
