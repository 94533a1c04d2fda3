"""Several processes send one batch: no row twice, one first row, one rate, one end; and one report."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest
from e2e.script import SECONDS, Program
from faults.seeds import draw_seed
from webhooks.listener import wait_until
from wire_server import Seen

from batch.conftest import WriteRows
from batch.services import Answer, BatchService
from batch.test_kills import audit, served
from escrowctl.batch.claimants import Claimant, RunState, SharedRun
from escrowctl.commands.batch.further import follow_parent
from escrowctl.errors import ErrorCode
from escrowctl.runtime import Runtime

pytestmark = pytest.mark.slow

RUN = ("--yes", "--json", "--concurrency", "4")
WORK = ("batch", "work", "b1", *RUN)


class Senders:
    """Answers after a while, and counts the writes of each process by the start of its request ids."""

    def __init__(self, seconds: float, answer: Answer = lambda _number, _seen: "") -> None:
        self.writes: Counter[str] = Counter()
        self.moments: list[float] = []
        self._seconds = seconds
        self._answer = answer

    def __call__(self, number: int, seen: Seen) -> str | None:
        self.writes[(seen.header("X-Request-Id") or "")[:13]] += 1
        self.moments.append(time.monotonic())
        time.sleep(self._seconds)
        return self._answer(number, seen)


def begin(program: Program, service: BatchService, *words: str, after: int) -> "subprocess.Popen[str]":
    """Start a command, and return it when the service has received so many writes."""
    process: subprocess.Popen[str] = program.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while len(service.received) < after and process.poll() is None:
        time.sleep(0.005)
    return process


def test_processes_share_the_rows_of_a_batch(tmp_path: Path, rows: WriteRows) -> None:
    senders = Senders(0.05)
    with served(tmp_path, senders) as (service, program):
        path = str(rows(400))
        first = begin(program, service, "batch", "create", path, *RUN, after=10)
        again = program.run("batch", "create", path, *RUN)
        leaving, second = (begin(program, service, *WORK, after=0) for _ in range(2))
        wait_until(lambda: len(senders.writes) == 3 and min(senders.writes.values()) > 10)
        leaving.send_signal(signal.SIGINT)
        for process in (leaving, first, second):
            process.communicate(timeout=30)
        found, late = audit(program, service, 400), program.run(*WORK)

    assert (again.code, "batch work b1" in again.error["hint"]) == (7, True)
    assert (late.code, "batch resume b1" in late.error["hint"], "another process" in late.err) == (7, True, False)
    # The others send what the one that leaves has taken and begun.
    assert (first.returncode, second.returncode, leaving.returncode in (12, 130)) == (0, 0, True)
    assert (found["done"], min(senders.writes.values()) > 10) == (400, True)


def test_end_of_one_is_the_end_of_all(tmp_path: Path, rows: WriteRows) -> None:
    senders = Senders(0.1, lambda number, _seen: "403 Forbidden" if number == 100 else "")
    with served(tmp_path, senders) as (service, program):
        first = begin(program, service, "batch", "create", str(rows(400)), *RUN, after=10)
        second = program.run(*WORK)
        first.communicate(timeout=30)

    # Both have heard of it before they begin another row: what was begun ahead is taken back.
    # The one that ends sooner counts what the other has in flight as unknown.
    assert (first.returncode in (12, 15), second.code in (12, 15), len(senders.writes)) == (True, True, 2)
    assert len(service.received) <= 100 + 2 * 8


def test_first_row_whose_process_dies_ends_the_run(tmp_path: Path, rows: WriteRows) -> None:
    senders = Senders(4)
    with served(tmp_path, senders) as (service, program):
        first = begin(program, service, "batch", "create", str(rows(9)), *RUN, after=1)
        second = program.start(*WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1.5)
        first.kill()
        first.communicate()
        _, err = second.communicate(timeout=30)

    assert (second.returncode, len(service.received), "the first row has ended" in err) == (12, 1, True)


def test_rate_is_that_of_all(tmp_path: Path, rows: WriteRows) -> None:
    senders = Senders(0)
    with served(tmp_path, senders) as (service, program):
        first = begin(program, service, "batch", "create", str(rows(60)), *RUN, "--rps", "20", after=3)
        second = program.run(*WORK)
        first.communicate(timeout=30)

    assert (first.returncode, second.code, len(senders.writes)) == (0, 0, 2)
    assert senders.moments[-1] - senders.moments[0] > 0.9 * 59 / 20


def test_more_rows_at_once_than_sixteen_are_sent_by_children_too(tmp_path: Path, rows: WriteRows) -> None:
    senders = Senders(0.1)
    with served(tmp_path, senders) as (service, program):
        ended = program.run("batch", "create", str(rows(400)), "--yes", "--json", "--concurrency", "32")

    assert (ended.code, max(service.applied.values()), len(service.received)) == (0, 1, 400)
    assert len(senders.writes) == 2


def test_children_do_not_wait_for_a_first_row_that_no_row_becomes(tmp_path: Path, rows: WriteRows) -> None:
    with served(tmp_path, Senders(0)) as (service, program):
        path = rows(text="id,amount,currency\n" + "".join(f"tx_{number},1,EUR\n" for number in range(1, 21)))
        ended = program.run("batch", "release", str(path), "--yes", "--json", "--concurrency", "32")

    assert (ended.code, service.received) == (15, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_children_end_with_their_parent(tmp_path: Path, rows: WriteRows, number: signal.Signals) -> None:
    senders = Senders(0.05)
    with served(tmp_path, senders) as (service, program):
        words = ("batch", "create", str(rows(3000)), "--yes", "--json", "--concurrency", "32")
        parent = begin(program, service, *words, after=500)
        parent.send_signal(number)
        parent.communicate(timeout=30)
        time.sleep(1)
        sent = len(service.received)
        time.sleep(0.5)
        shown = program.run("batch", "list", "--json").json

    assert (len(service.received), sent < 2000, len(senders.writes)) == (sent, True, 2)
    assert (shown[0]["state"], shown[0]["unknown"] == 0) == ("open", number is signal.SIGTERM)


def test_child_stops_with_its_group_and_ends_by_its_parent_alone(tmp_path: Path, rows: WriteRows) -> None:
    is_slow, released, waiting = threading.Event(), threading.Event(), list[int]()

    def answer(number: int, seen: Seen) -> str:
        if is_slow.is_set() and (seen.header("X-Request-Id") or "")[:13] != next(iter(senders.writes)):
            waiting.append(number)
            released.wait(SECONDS)
        return ""

    senders = Senders(0.02, answer)
    with served(tmp_path, senders) as (service, program):
        words = ("batch", "create", str(rows(9000)), "--yes", "--json", "--concurrency", "32", "--timeout", "60")
        parent = program.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda: len(senders.writes) == 2)
        (child,) = map(int, Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split())

        os.killpg(parent.pid, signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{child}/stat").read_text().split()[2] == "T")
        os.killpg(parent.pid, signal.SIGCONT)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(child, number)
        before = [*senders.writes.values()][1]
        wait_until(lambda: [*senders.writes.values()][1] > before + 50)
        cores = [os.sched_getaffinity(process) for process in (parent.pid, child)]
        is_slow.set()
        wait_until(lambda: len(waiting) == 16)
        parent.send_signal(signal.SIGINT)
        wait_until(lambda: service.at_once == 16)
        time.sleep(0.5)
        # By now it waits for its child, to which it passes this on.
        parent.send_signal(signal.SIGINT)
        code = parent.wait(SECONDS / 2)
        released.set()

    assert (code, [len(one) for one in cores], set.isdisjoint(*cores)) == (12, [1, 1], True)


def test_processes_divide_the_cores_of_their_host_if_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, runtime = list[set[int]](), Runtime()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {4, 6})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _thread, cores: chosen.append(cores))
    shared = SharedRun(Mock(), Mock(), Mock(), runtime)
    own, other = (Claimant(sender, "", runtime.host, 1, "") for sender in (runtime.run_id, "x"))

    found = []
    for others in ([], [other], [other._replace(host="else")], [other], [other._replace(is_idle=True)], [other] * 2):
        shared.keep_to_core(RunState((own, *others)))
        found.append(len(chosen[-1]))

    assert found == [2, 1, 2, 1, 2, 2]


@pytest.mark.parametrize(("orders", "taken"), [("", 1), (".", 1), ("..", 2)], ids=["none", "one", "two"])
def test_end_of_a_parent_is_no_second_order(monkeypatch: pytest.MonkeyPatch, orders: str, taken: int) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        take_order = follow_parent()
        before = take_order()
        os.write(writing, orders.encode())
        os.close(writing)
        found = [take_order() for _ in range(4)]

    assert (before, found.count(ErrorCode.TERMINATED)) == (None, taken)


@pytest.mark.parametrize("verb", ["create", "release"])
@pytest.mark.parametrize(("count", "kills"), [(150, 3), pytest.param(3000, 100, marks=pytest.mark.long)])
def test_one_of_two_killed_at_random(tmp_path: Path, rows: WriteRows, verb: str, count: int, kills: int) -> None:
    chance = random.Random(draw_seed())
    ids = [f"tx_{number}" for number in range(1, count + 1)]
    with served(tmp_path, Senders(0.15)) as (service, program):
        path = str(rows(count) if verb == "create" else rows(text="id\n" + "\n".join(ids) + "\n"))
        running = [begin(program, service, "batch", verb, path, *RUN, after=2)]
        killed = 0
        for _ in range(2 * kills):
            if killed == kills or not running:
                break
            if len(running) < 2:
                running.append(begin(program, service, *WORK, after=len(service.received) + 5))
            time.sleep(chance.uniform(0, 0.3))
            victim = running.pop(chance.randrange(len(running)))
            victim.kill()
            victim.communicate()
            killed += victim.returncode == -signal.SIGKILL
            if running and running[0].poll() is not None:
                running.pop().communicate()
            if not running:
                words = ("batch", "resume", "b1", *RUN)
                running = [begin(program, service, *words, after=len(service.received) + 2)]
        for one in running:
            one.communicate(timeout=300)
        # If the other one was killed before the last one had joined, rows are left.
        program.start("batch", "resume", "b1", *RUN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(300)
        found = audit(program, service, count)

    print(killed, "kills", found)
    assert killed == kills
    assert (found["refused"], found["not_sent"], found["done"] >= count // 2) == (0, 0, True)
    assert program.run("journal", "verify").code == 0


def test_harness_notices_a_process_that_ignores_the_marks(tmp_path: Path, rows: WriteRows) -> None:
    """Two processes, of which one takes rows that the other has taken, and looks for no duplicates."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys, time\n"
        "from escrowctl.batch.claimants import SharedRun\n"
        "from escrowctl.journal.commit import Commit\n"
        "from escrowctl.journal.tables import batches\n"
        "from escrowctl.main import main\n"
        "claim, claim_rows = batches.claim, SharedRun.claim\n"
        "def claim_without_mark(database, batch, sender, *words):\n"
        "    rows = claim(database, batch, sender, *words)\n"
        "    database.execute('UPDATE main.plans SET sender = NULL WHERE sender = ?', (sender,))\n"
        "    return rows\n"
        "def claim_slowly(*words):\n"
        "    rows = claim_rows(*words)\n"
        "    time.sleep(2)\n"
        "    return rows\n"
        "batches.claim, SharedRun.claim = claim_without_mark, claim_slowly\n"
        "Commit.find_duplicates = lambda self, *a, **k: []\n"
        "main(sys.argv[1:])\n"
    )
    with served(tmp_path, Senders(0.03)) as (service, program):
        first = begin(program, service, "batch", "create", str(rows(600)), *RUN, after=10)
        environment = dict(program.environ)
        subprocess.run([sys.executable, str(broken), *WORK], env=environment, capture_output=True, check=False)
        first.communicate(timeout=30)

        with pytest.raises(AssertionError):
            audit(program, service, 600)
