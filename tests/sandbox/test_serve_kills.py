"""kill -9 of a served sandbox under load: every acknowledged write is stored, and the ledger adds up.

Eight writers create and release over HTTP, the server is killed at a random moment, and the store is
opened again in-process. ESCROWCTL_TEST_SEED=N repeats a run.
"""

import contextlib
import http.client
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from e2e.script import Program, clean_environment
from faults.seeds import draw_seed

from escrowctl.sandbox.service import open_sandbox
from sandbox.conftest import balances, judged_client
from sandbox.serving import SECONDS, Served, call, serving

WRITERS = 8


@dataclass
class Tally:
    """The result of rounds: acknowledged writes, and faults of the store afterwards."""

    creates: dict[str, str] = field(default_factory=dict)
    releases: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{len(self.creates)} creates and {len(self.releases)} releases acknowledged, wrong: {self.wrong[:5]}"


def write_until_killed(served: Served, tally: Tally, seed: int) -> None:
    """Create and release until the server ends; record only acknowledged writes."""
    dice = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError), contextlib.closing(connection):
        while True:
            amount = f"{dice.randint(1, 999)}.{dice.randint(10, 99)}"
            body = f'{{"amount":{amount},"currency":"{dice.choice(("USD", "EUR"))}"}}'
            status, made = call(connection, served.ready["key"], "POST", "/api/v1/transactions", body)
            if status == 200:
                tally.creates[made["id"]] = amount
            if status == 200 and dice.random() < 0.4:
                path = f"/api/v1/transactions/{made['id']}/release"
                if call(connection, served.ready["key"], "PUT", path)[0] == 200:
                    tally.releases.add(made["id"])


def write_and_kill(served: Served, tally: Tally, dice: random.Random) -> None:
    """Let the writers write, and kill the server at a random moment after a random number of acknowledged creates."""
    goal, end = len(tally.creates) + dice.randint(10, 60), time.monotonic() + SECONDS
    writers = [
        threading.Thread(target=write_until_killed, args=(served, tally, dice.randrange(2**32))) for _ in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    while len(tally.creates) < goal and time.monotonic() < end:
        time.sleep(0.001)
    time.sleep(dice.uniform(0, 0.02))
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    for writer in writers:
        writer.join()


def check_store(folder: Path, tally: Tally) -> None:
    """Compare the acknowledged writes with the store, opened in-process."""
    sandbox = open_sandbox(folder, now=lambda: datetime.now(UTC))
    with contextlib.closing(sandbox), judged_client(sandbox) as client:
        for resource_id, amount in tally.creates.items():
            found: Any = client.get(f"/transactions/{resource_id}")
            if found.status_code != 200:
                tally.wrong.append(f"{resource_id} was acknowledged and is not stored")
            elif f'"amount":{amount},' not in found.text.replace(" ", ""):
                tally.wrong.append(f"{resource_id} is not {amount}")
            elif resource_id in tally.releases and found.json()["status"] != "released":
                tally.wrong.append(f"{resource_id} was released and is {found.json()['status']}")
        tally.wrong += [f"{one.currency} does not add up" for one in balances(sandbox) if not one.consistent]


def run_rounds(tmp_path: Path, rounds: int, *, broken: str = "") -> Tally:
    seed = draw_seed()
    program = Program(clean_environment(tmp_path / "home"))
    folder = program.state / "sandbox"
    total = Tally()
    dice = random.Random(seed)
    for _ in range(rounds):
        tally = Tally()
        with serving(program, tmp_path, broken=broken) as served:
            write_and_kill(served, tally, dice)
        check_store(folder, tally)
        total.creates |= tally.creates
        total.releases |= tally.releases
        total.wrong += tally.wrong
    print(f"seed {seed}: {rounds} kills, {total}")
    return total


@pytest.mark.thorough
def test_acknowledged_writes_survive_a_few_kills(tmp_path: Path) -> None:
    tally = run_rounds(tmp_path, 4)

    assert tally.wrong == []
    assert len(tally.creates) > 20, "the writers wrote too little"
    assert tally.releases


@pytest.mark.long
def test_acknowledged_writes_survive_300_kills(tmp_path: Path) -> None:
    tally = run_rounds(tmp_path, 300)

    assert tally.wrong == []
    assert len(tally.creates) > 3000


@pytest.mark.representative("answers before the commit*")
@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        ("answers before the commit", "was acknowledged and is not stored"),
        ("forgets half of a release", "does not add up"),
    ],
)
def test_harness_reports_a_broken_server(tmp_path: Path, broken: str, finding: str) -> None:
    tally = run_rounds(tmp_path, 2, broken=broken)

    assert len(tally.creates) > 10, "the server served too little"
    assert [wrong for wrong in tally.wrong if finding in wrong], str(tally)
