"""Two machines send one file with a shared journal, while processes, connections and the server are killed.

The service counts what arrives: no row twice, and nothing called done that did not arrive.
"""

import csv
import io
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli.replies import holding
from conftest import make_environ
from storage.postgres import Server, new_name
from wire_server import WireServer, serving

from faults.seeds import draw_seed

SHORT, LONG = 6, 100
ROWS_A_KILL = 40
_SECONDS = 120


class Machines:
    """Two homes, one shared journal, one service. `kill` ends what the last claimant needs, at a random moment."""

    def __init__(self, server: Server, service: WireServer, folder: Path, kills: int) -> None:
        self.server, self.service, self.kills = server, service, kills
        self.chance = random.Random(draw_seed())
        self.name = new_name()
        server.create_journal(self.name)
        self.homes = [folder / "one", folder / "two"]
        self.rows = folder / "rows.csv"
        count = kills * ROWS_A_KILL
        lines = (f"{row + 1},USD,order-{row}" for row in range(count))
        self.rows.write_text("\n".join(("amount,currency,reference", *lines, "")))
        self.count = count
        self.killed: Counter[str] = Counter()
        self.url = f"{server.url}?sslmode=disable"
        self.mark = folder / "broken-here"

    def environ(self, home: int) -> dict[str, str]:
        environ = make_environ(self.homes[home], self.service.base_url)
        return environ | {"ESCROWCTL_JOURNAL": f"{self.url}&journal={self.name}", "BROKEN_MARK": str(self.mark)}

    def run(self, *words: str, home: int = 0, program: Sequence[str] = ("-m", "escrowctl")) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, *program, *words], subprocess.PIPE
        return subprocess.Popen(command, env=self.environ(home), stdout=pipe, stderr=pipe, text=True)

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        out, err = process.communicate(timeout=_SECONDS)
        return process.returncode, out, err

    def kill(self, process: subprocess.Popen[str], sent: int) -> None:
        """Wait until some more rows have arrived, then kill the process, its connections, or the server."""
        wanted = sent + self.chance.randrange(1, ROWS_A_KILL)
        while process.poll() is None and len(self.service.writes) < wanted:
            time.sleep(0.002)
        time.sleep(self.chance.random() * 0.02)
        what = self.chance.choice(["process", "process", "connections", "server"])
        self.killed[what] += 1
        if what == "process":
            process.send_signal(signal.SIGKILL)
        elif what == "connections":
            self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'escrowctl'")
        else:
            self.server.stop("immediate")
            self.server.start()
        # It may go on without what was killed.
        end = len(self.service.writes) + ROWS_A_KILL
        while process.poll() is None and len(self.service.writes) < end:
            time.sleep(0.01)
        process.kill()

    def execute(self, statement: str, *values: str) -> list[Any]:
        with psycopg.connect(self.server.url, autocommit=True) as database:
            found = database.execute(statement.replace("main.", f"{self.name}.").encode(), values or None)
            return found.fetchall() if found.description else []

    def lapse_all(self) -> None:
        """End the leases of processes that have ended now, in place of waiting for 30 seconds."""
        self.execute("UPDATE main.senders SET expires_at = clock_timestamp() - interval '1 second'")


def arrived_of(service: WireServer) -> Counter[int]:
    """Return row -> how often it arrived; the amount tells which row it is."""
    found = (re.search(rb'"amount":([0-9]+)', seen.body) for seen in service.writes)
    return Counter(int(one[1]) - 1 for one in found if one)


@pytest.mark.parametrize(
    "kills", [pytest.param(SHORT, marks=pytest.mark.slow), pytest.param(LONG, marks=pytest.mark.long)]
)
def test_no_row_arrives_twice_whatever_is_killed(postgres: Server, tmp_path: Path, kills: int) -> None:
    with serving(holding()) as service:
        machines = Machines(postgres, service, tmp_path, kills)
        words: tuple[str, ...] = ("batch", "create", str(machines.rows), "--yes", "--concurrency", "8")
        ends: list[Any] = []
        for turn in range(kills):
            process = machines.run(*words, home=turn % 2)
            machines.kill(process, len(service.writes))
            ends.append(machines.end(process)[0])
            machines.lapse_all()
            words = ("batch", "resume", "b1", "--yes", "--concurrency", "8")
        last = machines.end(machines.run(*words))
        shown = machines.end(machines.run("journal", "export", "--csv", home=1))
        verified = machines.end(machines.run("journal", "verify", home=1))

        print(f"killed {dict(machines.killed)}, exits {Counter(ends)}, last {last[0]}")
        arrived = arrived_of(service)
        assert max(arrived.values()) == 1, [row for row, count in arrived.items() if count > 1]
        assert (verified[0], last[0] in (0, 12)) == (0, True), (verified, last)
        check_accounts(machines, shown[1], arrived)


def check_accounts(machines: Machines, listed: str, arrived: Counter[int]) -> None:
    """Each row is done or unknown, and no row is called done that did not arrive."""
    entries = list(csv.DictReader(io.StringIO(listed)))
    states = {int(one["amount"]) - 1: one["state"] for one in entries}
    assert len(states) == len(entries) == machines.count
    assert set(states.values()) <= {"done", "unknown"}, Counter(states.values())
    assert not [row for row, state in states.items() if state == "done" and not arrived[row]]
