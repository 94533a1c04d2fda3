"""kill -9 at random, against a service that drops, fails and throttles: no row twice, none lost, all counted."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import KEY
from e2e.script import Program, clean_environment
from faults.seeds import draw_seed
from wire_server import Seen, serving

from batch.conftest import WriteRows
from batch.services import Answer, BatchService, as_usual

pytestmark = pytest.mark.slow

RUN = ("--yes", "--json", "--concurrency", "8")
PROFILE = """default_profile = "a"
[profiles.a]
base_url = "{url}"
api_key_file = "a.key"
reference_field = "ref"
status.released = ["released"]
timeout = 5
"""


class Chaos:
    """Answers mostly as usual; some writes are refused, throttled, failed after they were done, or dropped."""

    def __init__(self, seed: int, *, refuses: bool = True) -> None:
        self._chance = random.Random(seed)
        self._refused = "422 Unprocessable" if refuses else ""
        self.is_calm = False
        self.lost = 0
        """How many writes it failed or dropped: each may leave a row unknown."""

    def __call__(self, _number: int, _seen: Seen) -> str | None:
        if self.is_calm:
            return ""
        drawn = self._chance.random()
        if drawn < 0.06:
            self.lost += 1
            return None if drawn < 0.03 else "500 Internal Server Error"
        return self._refused if drawn < 0.08 else "429 Too Many Requests" if drawn < 0.1 else ""


@contextmanager
def served(
    tmp_path: Path, answer: Answer = as_usual, *lines: str, deduplicates: bool = False
) -> Iterator[tuple[BatchService, Program]]:
    service = BatchService(answer, deduplicates=deduplicates)
    with serving(service.behave) as server:
        program = Program(clean_environment(tmp_path / "home"))
        program.config.mkdir(parents=True, mode=0o700)
        (program.config / "config.toml").write_text("\n".join([PROFILE.format(url=server.base_url), *lines]))
        (program.config / "a.key").write_text(KEY)
        (program.config / "a.key").chmod(0o600)
        yield service, program


def kill_at_random(program: Program, words: tuple[str, ...], chance: random.Random, service: BatchService) -> int:
    """Start a run, kill it after some writes, or after some time, and return its code (negative: it was killed)."""
    before, limit = len(service.received), chance.choice((1, 2, 4, 8))
    # One in eight is killed before its first write, somewhere between the interpreter's start and the first commits.
    early = chance.uniform(0.2, 0.8) if chance.random() < 1 / 8 else None
    process = program.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    while process.poll() is None and time.monotonic() < started + 20:
        if early is not None and time.monotonic() - started > early:
            process.send_signal(signal.SIGKILL)
            break
        if len(service.received) - before >= limit:
            time.sleep(chance.uniform(0, 0.01))
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    return process.wait()


def audit(program: Program, service: BatchService, rows: int, name: str = "b1") -> dict[str, int]:
    """Return a batch's counts, checked against what the service did."""
    shown: dict[str, int] = program.run("batch", "show", name, "--json").json
    assert shown["rows"] == rows
    assert shown["done"] + shown["refused"] + shown["unknown"] + shown["not_sent"] == rows
    assert [name for name, count in service.applied.items() if count > 1] == []
    assert shown["done"] <= len(service.applied) <= shown["done"] + shown["unknown"]
    return shown


def run_with_kills(
    program: Program, service: BatchService, first: tuple[str, ...], *, rows: int, kills: int, chance: random.Random
) -> int:
    """Start a batch and resume it until it was killed so often, and return how often it was."""
    killed, words = 0, first
    for _ in range(kills * 4):
        if killed >= kills:
            break
        killed += kill_at_random(program, words, chance, service) == -signal.SIGKILL
        known = program.run("batch", "list", "--json").json
        if known:
            audit(program, service, rows)
            words = ("batch", "resume", "b1", *RUN)
            if not known[0]["not_sent"] and not service.deduplicates:
                break
    return killed


def finish(program: Program, first: tuple[str, ...], tries: int = 30) -> None:
    words = first
    for _ in range(tries):
        # On a slow machine, the kills leave a thousand rows.
        if program.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(300) in (0, 7, 12):
            break
        words = ("batch", "resume", "b1", *RUN)


@pytest.mark.parametrize(("rows_", "kills"), [(150, 4), pytest.param(1500, 100, marks=pytest.mark.long)])
def test_creates_killed_at_random(tmp_path: Path, rows: WriteRows, rows_: int, kills: int) -> None:
    seed = draw_seed()
    chance, chaos = random.Random(seed), Chaos(seed)
    with served(tmp_path, chaos) as (service, program):
        first = ("batch", "create", str(rows(rows_)), *RUN)

        killed = run_with_kills(program, service, first, rows=rows_, kills=kills, chance=chance)
        chaos.is_calm = True
        finish(program, first)
        found = audit(program, service, rows_)

    print(killed, "kills", found, len(service.received), "received")
    assert killed == kills
    assert program.run("journal", "verify").code == 0
    assert set(service.applied) <= {f"A-{number}" for number in range(1, rows_ + 1)}
    # Each kill leaves unknown what was on the wire, and what was begun ahead of it.
    assert found["unknown"] <= kills * 16 + chaos.lost


@pytest.mark.parametrize(("rows_", "kills"), [(100, 3), pytest.param(1500, 100, marks=pytest.mark.long)])
def test_releases_of_a_service_that_deduplicates_end_done_once(
    tmp_path: Path, rows: WriteRows, rows_: int, kills: int
) -> None:
    seed = draw_seed()
    chance, chaos = random.Random(seed), Chaos(seed, refuses=False)
    ids = [f"tx_{number}" for number in range(1, rows_ + 1)]
    with served(tmp_path, chaos, 'idempotency = "header"', deduplicates=True) as (service, program):
        first = ("batch", "release", str(rows(text="id\n" + "\n".join(ids) + "\n")), *RUN)

        killed = run_with_kills(program, service, first, rows=rows_, kills=kills, chance=chance)
        chaos.is_calm = True
        finish(program, first)
        found = audit(program, service, rows_)

    print(killed, "kills", found, len(service.received), "received")
    assert (killed, found["done"]) == (kills, rows_), found
    assert service.applied == dict.fromkeys(ids, 1)


def test_harness_notices_a_run_that_sends_again(tmp_path: Path, rows: WriteRows) -> None:
    """The same audit, with a batch whose rows go out again under new keys."""
    with served(tmp_path) as (service, program):
        program.run("batch", "create", str(rows(5)), *RUN)
        broken = Path(tmp_path) / "broken.py"
        broken.write_text(
            "import sys\n"
            "from escrowctl.batch import plan\n"
            "from escrowctl.journal.commit import Commit\n"
            "from escrowctl.journal.journal import Journal\n"
            "from escrowctl.main import main\n"
            "plan.find_same_batch.__code__ = (lambda *a, **k: None).__code__\n"
            "Journal.find_possible_repeats = lambda self, intents: [[] for _ in intents]\n"
            "Commit.find_duplicates = lambda self, *a, **k: []\n"
            "main(sys.argv[1:])\n"
        )
        again = subprocess.run(
            [sys.executable, str(broken), "batch", "create", str(rows(5)), *RUN],
            env=dict(program.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert len(service.received) == 10, again.stderr

        with pytest.raises(AssertionError):
            audit(program, service, 5)
