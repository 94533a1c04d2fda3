"""kill -9 of a served sandbox, and a receiver that fails: no acknowledged write and no event is lost.

Eight writers create and release over HTTP, the server is killed at a random moment and started again, and the receiver
fails three times in ten. At the end the clock is advanced until nothing waits; the store is opened in-process, its
ledger adds up, and each event has arrived once after de-duplication. ESCROWCTL_TEST_SEED=N repeats a run.
"""

import contextlib
import http.client
import json
import random
import signal
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from e2e.script import Program, clean_environment
from faults.seeds import draw_seed
from wire_server import Seen, hang_up, http_reply, reset
from wire_server import serving as serving_wire

from escrowctl.sandbox.service import open_sandbox
from sandbox.conftest import balances, rows
from sandbox.racer import client_of
from sandbox.serving import SECONDS, Served, call, serving
from sandbox.test_delivery import signature

pytestmark = pytest.mark.slow

WRITERS = 8
FAILURES = 0.3
OK = http_reply("200 OK")
STATUSES = ("500 X", "503 X", "404 X", "301 X", "429 X")


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


@dataclass
class Receiver:
    """Replies 200 seven times in ten, and otherwise fails in one of several ways; it counts what it accepted."""

    seed: int
    secret: str = ""
    accepted: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    forged: int = 0
    bodies: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._lock = threading.Lock()

    def __call__(self, seen: Seen, connection: socket.socket) -> None:
        message_id = seen.header("webhook-id") or ""
        with self._lock:
            self.forged += seen.header("webhook-signature") != signature(self.secret, seen)
            self.forged += self.bodies.setdefault(message_id, seen.body) != seen.body
            fails = self._dice.random() < FAILURES
            how = self._dice.choice((hang_up, reset, *STATUSES))
            self.refused += fails
            self.accepted[message_id] += not fails
        if not fails:
            connection.sendall(OK)
        elif callable(how):
            how(seen, connection)
        else:
            connection.sendall(http_reply(how))


def ask(served: Served, method: str, path: str, body: object = None) -> Any:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)) as connection:
        text = None if body is None else json.dumps(body)
        status, found = call(connection, served.ready["key"], method, f"/sandbox{path}", text)
    assert status == 200, found
    return found


def deliver_the_rest(served: Served) -> None:
    """Advance the clock until nothing waits; what is dead by then is replayed."""
    for _ in range(10):
        for one in ask(served, "GET", "/deliveries?undelivered=true&limit=1000")["data"]:
            if one["state"] == "dead":
                ask(served, "POST", f"/events/{one['id']}/replay")
        clock = ask(served, "POST", "/clock", {"advance_seconds": 600})
        while clock["advancing_to"] is not None:
            time.sleep(0.05)
            clock = ask(served, "GET", "/clock")
        if not ask(served, "GET", "/deliveries?undelivered=true&limit=1")["data"]:
            return
    raise AssertionError(ask(served, "GET", "/status"))


def compare(folder: Path, tally: Tally, receiver: Receiver) -> None:
    """Note which acknowledged writes are not stored or have no event, and which events the receiver did not accept."""
    sandbox = open_sandbox(folder, now=lambda: datetime.now(UTC))
    with contextlib.closing(sandbox), client_of(sandbox) as client:
        for name, amount in tally.creates.items():
            stored = client.get(f"/transactions/{name}")
            if stored.status_code != 200 or f'"amount":{amount},' not in stored.text.replace(" ", ""):
                tally.wrong.append(f"{name} was acknowledged and is not stored")
            elif name in tally.releases and stored.json()["status"] != "released":
                tally.wrong.append(f"{name} was released and is {stored.json()['status']}")
        events = {name: (transaction, kind) for name, transaction, kind in rows(sandbox, _EVENTS)}
        tally.wrong += [f"{one.currency} does not add up" for one in balances(sandbox) if not one.is_consistent]
    found = set(events.values())
    wanted = [(name, "transaction.created") for name in tally.creates]
    wanted += [(name, "transaction.released") for name in tally.releases]
    tally.wrong += [f"{name} was acknowledged and has no {kind}" for name, kind in wanted if (name, kind) not in found]
    tally.wrong += [f"{name} happened twice" for name, count in Counter(events.values()).items() if count > 1]
    accepted = {name for name, count in receiver.accepted.items() if count}
    tally.wrong += [f"{name} was lost" for name in events.keys() - accepted]
    tally.wrong += [f"{name} was sent and never happened" for name in receiver.bodies.keys() - events.keys()]


_EVENTS = "SELECT id, transaction_id, kind FROM events"


def run_rounds(tmp_path: Path, *, events: int, kills: int, broken: str = "") -> tuple[Tally, Receiver]:
    seed = draw_seed()
    dice = random.Random(seed)
    program = Program(clean_environment(tmp_path / "home"))
    tally, receiver, killed = Tally(), Receiver(dice.randrange(2**32)), 0
    with serving_wire(receiver) as server:
        while killed < kills or len(tally.creates) + len(tally.releases) < events:
            with serving(program, tmp_path, broken=broken) as served:
                if not receiver.secret:
                    _, made = served.call("POST", "/webhooks", json.dumps({"url": f"{server.base_url}/hooks"}))
                    receiver.secret = made["secret"]
                write_and_kill(served, tally, dice)
            killed += 1
        with serving(program, tmp_path, broken=broken) as served:
            deliver_the_rest(served)
            assert served.end(signal.SIGTERM) == 0
    compare(program.state / "sandbox", tally, receiver)
    again = sum(receiver.accepted.values()) - len([name for name, count in receiver.accepted.items() if count])
    print(f"seed {seed}: {killed} kills, {tally}, {receiver.refused} refused, {again} accepted again")
    return tally, receiver


@pytest.mark.parametrize(
    ("events", "kills"),
    [(200, 3), pytest.param(10_000, 50, marks=pytest.mark.long), pytest.param(3_000, 300, marks=pytest.mark.long)],
)
def test_no_write_or_event_is_lost_by_kills_and_a_failing_receiver(tmp_path: Path, events: int, kills: int) -> None:
    tally, receiver = run_rounds(tmp_path, events=events, kills=kills)

    assert tally.wrong == []
    assert (receiver.forged, len(receiver.bodies) >= events, len(tally.releases) > 0) == (0, True, True)
    assert receiver.refused > len(receiver.bodies) * FAILURES / 2, "the receiver failed too rarely"


@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        ("answers before the commit", "was acknowledged and is not stored"),
        ("forgets half of a release", "does not add up"),
        ("settles before it sends", "was lost"),
        ("forgets an event", "was acknowledged and has no"),
    ],
)
def test_harness_reports_a_broken_server(tmp_path: Path, broken: str, finding: str) -> None:
    tally, _ = run_rounds(tmp_path, events=100, kills=2, broken=broken)

    assert len(tally.creates) > 10, "the server served too little"
    assert [wrong for wrong in tally.wrong if finding in wrong], str(tally)
