"""Kill -9 at random moments, and what must hold afterwards.

The fake service counts; the journal is read through SQLite as well as by escrowctl itself. A violated
invariant raises `ViolationError` with the seed. A release has a profile that says which word means
released, and so ends with one more commit: what reading it back has shown. A create does without: a
config file doubles the time of a run.
"""

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from conftest import KEY, make_environ

from faults.fake_service import FakeService
from faults.journal_audit import find_fault

UNKNOWN = 12
OUTPUT_OPTIONS: tuple[tuple[str, ...], ...] = ((), ("--json",))
"""What is added to a line: output for a person, or for a program."""
PROFILE = '[profiles.harness]\nbase_url = "{url}"\nstatus.released = ["released"]\n'


class Violation(StrEnum):
    """What must never happen, by kind."""

    SENT_TWICE = "one command sent it more than once"
    NO_INTENT = "it was sent without a durable intent"
    SAID_FALSELY = "the program reported what was not so"
    RECORDED_FALSELY = "the journal recorded what was not so"
    NOT_HELD_BACK = "the same line again did what it must not"
    DAMAGED = "the journal is damaged"
    BROKE = "it ended without saying what was wrong in a sentence"
    SHOWED_THE_KEY = "the key is where it must not be"


class ViolationError(AssertionError):
    """An invariant was violated; `kind` says which."""

    def __init__(self, kind: Violation, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class HarnessError(AssertionError):
    """The harness itself proves nothing: the program that it breaks does not run, or does not run broken."""


@dataclass
class Tally:
    """Counts of a run. `kills` are the processes that our signal ended: the sum of the next three.

    `in_flight`: with an intent on disk and no outcome; `ended` are rounds whose process was over before.
    """

    kills: int = 0
    before_intent: int = 0
    in_flight: int = 0
    after_outcome: int = 0
    ended: int = 0
    writes: int = 0

    def count(self, entry: sqlite3.Row | None, *, killed: bool) -> None:
        """Count one round by what the process left in the journal."""
        if not killed:
            self.ended += 1
            return
        self.kills += 1
        if entry is None:
            self.before_intent += 1
        elif entry["state"] == "in_flight":
            self.in_flight += 1
        else:
            self.after_outcome += 1


@dataclass(frozen=True)
class Ended:
    """How one process ended: `code` is negative where a signal ended it."""

    code: int
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def error(self) -> dict[str, Any] | None:
        """The error as JSON; None where none was printed, or not to its end."""
        for line in self.err.splitlines():
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if isinstance(document, dict) and isinstance(document.get("error"), dict):
                error: dict[str, Any] = document["error"]
                return error
        return None


def code_of(variant: str | None) -> str:
    """Return a program that is escrowctl, or the broken variant of it; what it needs is BROKEN_MARK."""
    tests = str(Path(__file__).parents[1])
    broken = f"sys.path.insert(0, {tests!r}); from faults import variants; variants.apply({variant!r}); "
    return f"import sys; {broken if variant else ''}from escrowctl.main import main; sys.exit(main())"


def go_on() -> None:
    """Change nothing between a command and its repetition."""


@dataclass
class Harness:
    """Kills `tx create` and `tx release` in one home; `variant` is for `variants.apply`."""

    home: Path
    seed: int
    variant: str | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.fake_service = FakeService(self.chance)
        self.seconds = 0.5
        self._round = 0
        # Next to the home, which others copy, fill and throw away.
        self._config = self.home.with_name(f"{self.home.name}.toml")
        self._config.write_text(PROFILE.format(url=self.fake_service.server.base_url))

    def close(self) -> None:
        self.fake_service.server.close()

    def measure(self) -> None:
        """Measure how long a command takes here, so that kills are spread over all of it.

        Raises HarnessError where an undisturbed create does not end well: then nothing would be proved.
        """
        self.fake_service.kind = "answer"
        start = time.monotonic()
        code = self.run(("tx", "create", "--amount", "999999", "--currency", "USD")).code
        self.seconds = time.monotonic() - start
        if (code, len(self.fake_service.applied)) != (0, 1):
            raise HarnessError(f"an undisturbed create ended with {code}, and {len(self.fake_service.applied)} arrived")

    @property
    def mark(self) -> Path:
        """The file that a broken variant leaves when what it broke is called."""
        return self.home / "broken-here"

    def run_and_kill(self, *, moment: str | None = None, kind: str | None = None) -> None:
        """Start one command, kill it at some moment, and check everything that must hold."""
        self._round += 1
        moment = moment or self.chance.choice(("any", "intent", "request", "request"))
        self.fake_service.kind = kind
        line, entry_text = self._draw_line()
        line = (*line, *self.chance.choice(OUTPUT_OPTIONS))
        self.judge(line, entry_text, lambda: self._kill(line, moment))

    def judge(
        self, line: tuple[str, ...], entry_text: str, run: Callable[[], Ended], *, between: Callable[[], None] = go_on
    ) -> Ended:
        """Run one command, with any fault, and check everything that must hold; then run the same line again.

        `entry_text` is a text that only its journal entry has in its body or URL.
        """
        applied_before = len(self.fake_service.applied)
        ended = run()
        self.fake_service.server.drain()
        applied = self.fake_service.applied[applied_before:]
        between()
        entry = self._entry(entry_text)
        self.tally.count(entry, killed=ended.killed)
        self._check_first(ended, applied, entry)
        self._check_key(ended)
        # A user who knows that it is done, and its id, may repeat it although the journal may not know the outcome.
        told_done = " is done (" in ended.err and bool(applied) and applied[0][2] in ended.err
        self._check_again(line, applied, entry, told_unknown=ended.code == UNKNOWN and not told_done)
        self.tally.writes += len(applied)
        return ended

    def run(self, line: tuple[str, ...], *, under: Sequence[str] = ()) -> Ended:
        """Run one command to its end, `under` another program where one is given."""
        command = [*under, *self.command(line)]
        done = subprocess.run(
            command, env=self._environ(line), capture_output=True, check=False, text=True, timeout=60, errors="replace"
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    # Playing

    def _draw_line(self) -> tuple[tuple[str, ...], str]:
        if self.chance.random() < 0.5:
            amount = str(1000 + self._round)
            return ("tx", "create", "--amount", amount, "--currency", "USD"), f'"amount":{amount},'
        return ("tx", "release", f"tx_round{self._round}", "--yes"), f"/tx_round{self._round}/release"

    def _kill(self, line: tuple[str, ...], moment: str) -> Ended:
        self.fake_service.received.clear()
        before = self._journal_mark()
        # With no answer coming, the process would wait: its time-out outlasts the round.
        process = subprocess.Popen(
            self.command(("--timeout", "20", *line)), env=self._environ(line), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._await(moment, before, process)
        process.kill()
        out, err = process.communicate()
        return Ended(process.returncode, out, err)

    def _await(self, moment: str, before: tuple[int, int], process: "subprocess.Popen[str]") -> None:
        if moment == "any":
            time.sleep(self.chance.uniform(0, self.seconds))
            return
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and process.poll() is None:
            if (moment == "request" and self.fake_service.received.is_set()) or (
                moment == "intent" and self._journal_mark() != before
            ):
                break
            time.sleep(0.0005)
        time.sleep(self.chance.choice((0, 0, 0.001, 0.005, 0.02)))

    def _journal_mark(self) -> tuple[int, int]:
        try:
            status = (self.home / "state" / "journal.db").stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    # Checking

    def _check_first(self, ended: Ended, applied: list[tuple[str, str, str]], entry: sqlite3.Row | None) -> None:
        if len(applied) > 1:
            self._fail(Violation.SENT_TWICE, f"{len(applied)} times")
        if applied and (entry is None or entry["idempotency_key"] != applied[0][0]):
            self._fail(Violation.NO_INTENT, str(applied))
        said = any(word in ended.out for word in ("tx_", "released"))
        if said and not (applied and applied[0][2] in ended.out):
            self._fail(Violation.SAID_FALSELY, repr(ended.out))
        if applied:
            self._check_claims(ended)
        if not ended.killed:
            self._check_ending(ended, applied)
        if entry is not None and entry["state"] == "done" and not applied:
            self._fail(Violation.RECORDED_FALSELY, "done, and never applied")
        if entry is not None and entry["state"] in ("not_sent", "refused") and applied:
            self._fail(Violation.RECORDED_FALSELY, f"{entry['state']}, but applied")

    def _check_ending(self, ended: Ended, applied: list[tuple[str, str, str]]) -> None:
        """A process that ended by itself reports the truth, in a sentence."""
        error = ended.error
        told = error is not None and error["exit_code"] == ended.code
        sentence = ended.code == 0 or told or ended.err.startswith(("error: ", "unknown: "))
        if "Traceback" in ended.err or ended.code in (1, 2) or ended.code < 0 or not sentence:
            self._fail(Violation.BROKE, f"exit {ended.code}: {ended.err[-2000:]}")
        if (ended.code == 0 and not applied) or (ended.code not in (0, UNKNOWN) and applied):
            self._fail(Violation.SAID_FALSELY, f"exit {ended.code}, and {len(applied)} arrived: {ended.err}")

    def _check_claims(self, ended: Ended) -> None:
        """A run that sent a write never says that nothing was sent, nor that it was refused: none is refused.

        This holds for every exit code, and when it was killed right after it printed that.
        """
        outcome = (ended.error or {}).get("outcome", "done")
        if "nothing was sent" in (ended.out + ended.err).lower() or outcome not in ("done", "unknown"):
            self._fail(Violation.SAID_FALSELY, f"exit {ended.code}, and it arrived: {ended.out}{ended.err}")

    def _check_key(self, ended: Ended) -> None:
        """The key is in nothing that was printed or stored."""
        kept = [path for path in self.home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
        if KEY in ended.out or KEY in ended.err or kept:
            self._fail(Violation.SHOWED_THE_KEY, f"{kept or 'on a stream'}")

    def _check_again(
        self,
        line: tuple[str, ...],
        applied: list[tuple[str, str, str]],
        entry: sqlite3.Row | None,
        *,
        told_unknown: bool,
    ) -> None:
        """The same line once more: refused while unknown, refused where a release is done, else sent once."""
        self.fake_service.kind = "answer"
        before = len(self.fake_service.applied)
        code = self.run(line).code
        self.fake_service.server.drain()
        sent = len(self.fake_service.applied) - before
        state = entry["state"] if entry is not None else None
        releases = line[1] == "release"
        if state in ("in_flight", "unknown") or told_unknown:
            # A release that reads back as released is known as done by reading alone.
            expected, allowed = 0, ({12} if not (releases and applied) else {12, 7})
        elif state == "done" and releases:
            expected, allowed = 0, {7}
        else:
            expected, allowed = 1, {0}
        if sent != expected or code not in allowed:
            right = f"{expected} and {allowed} were right"
            self._fail(Violation.NOT_HELD_BACK, f"after {state}: sent {sent} times, exit {code}; {right}")

    def _entry(self, entry_text: str) -> sqlite3.Row | None:
        path = self.home / "state" / "journal.db"
        if not path.exists():
            return None
        if fault := find_fault(path):
            self._fail(Violation.DAMAGED, fault)
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        try:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
                return None
            rows = database.execute(
                "SELECT e.*, facts ->> 'idempotency_key' AS idempotency_key FROM entries e "
                "JOIN records ON entry = number WHERE kind = 'intent' "
                "AND (instr(coalesce(facts ->> 'body', ''), ?) OR instr(facts ->> 'url', ?)) GROUP BY number",
                (entry_text, entry_text),
            ).fetchall()
        finally:
            database.close()
        if len(rows) > 1:
            self._fail(Violation.DAMAGED, f"{len(rows)} entries for one command")
        return rows[0] if rows else None

    def _fail(self, kind: Violation, what: str) -> None:
        raise ViolationError(kind, f"{what} (round {self._round}, ESCROWCTL_TEST_SEED={self.seed})")

    # Running

    def command(self, line: tuple[str, ...]) -> list[str]:
        """Return the words that start escrowctl, or the broken variant of it."""
        return [sys.executable, "-c", code_of(self.variant), *line]

    def _environ(self, line: tuple[str, ...]) -> dict[str, str]:
        environ = make_environ(self.home, self.fake_service.server.base_url) | {"BROKEN_MARK": str(self.mark)}
        if "release" in line:
            environ |= {"ESCROWCTL_CONFIG": str(self._config), "ESCROWCTL_PROFILE": "harness"}
        return environ
