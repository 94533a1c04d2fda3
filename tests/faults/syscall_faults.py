"""One command, broken at one system call on the journal: a create on a fresh home, a release on a used one."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faults.kills import OUTPUT_OPTIONS, Ended, Harness, HarnessError
from faults.seeds import draw_seed
from faults.strace import NAMES, Point, injecting, points_in, recording

CREATE = (("tx", "create", "--amount", "1000", "--currency", "USD"), '"amount":1000,')
RELEASE = (("tx", "release", "tx_swept", "--yes"), "/tx_swept/release")


@dataclass
class FaultedCommand:
    """Runs one line as often as there are points, each time in a copy of the same home.

    `names` are the files whose calls count.
    """

    folder: Path
    seed: int
    line: tuple[str, ...]
    entry_text: str
    used: bool
    variant: str | None = None
    names: tuple[str, ...] = NAMES
    codes: Counter[int] = field(default_factory=Counter)
    hit: int = 0

    def __post_init__(self) -> None:
        self.harness = Harness(self.folder / "template", self.seed, self.variant)
        if self.used:
            self.harness.measure()

    def points(self) -> list[Point]:
        """Return the points of an undisturbed run; raises HarnessError where it does not end well."""
        log = self.folder / "calls"
        self.renew()
        self.harness.fake_service.kind = "answer"
        ended = self.harness.run(self.line, under=recording(self.harness.home, log, self.names))
        if ended.code:
            raise HarnessError(f"an undisturbed {self.line} ended with {ended}")
        return points_in(log)

    def run_with_fault(self, point: Point, fault: str, *, output_options: tuple[str, ...] | None = None) -> Ended:
        """Run the line with a fault at a point, and check everything; raises ViolationError, which names the point.

        `output_options`: one of OUTPUT_OPTIONS; drawn where none is given.
        """
        self.renew()
        harness = self.harness
        harness.fake_service.kind = "answer"
        line = (*self.line, *(harness.chance.choice(OUTPUT_OPTIONS) if output_options is None else output_options))
        under = injecting(harness.home, point, fault, self.names)
        try:
            ended = harness.judge(line, self.entry_text, lambda: harness.run(line, under=under))
        except AssertionError as violation:
            violation.args = (f"at {point} ({fault}) of {' '.join(line)}: {violation}",)
            raise
        self.codes[ended.code] += 1
        self.hit += ended.killed
        return ended

    def close(self) -> None:
        self.harness.close()
        print(f"ESCROWCTL_TEST_SEED={self.seed}: {self.line[1]}: exits {dict(self.codes)}, {self.harness.tally}")

    def renew(self) -> None:
        """Start on a copy of the same home, or a fresh one."""
        home = self.folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        if self.used:
            shutil.copytree(self.folder / "template", home)
        self.harness.home = home
        self.harness.fake_service.applied.clear()


@contextmanager
def faulted_command(folder: Path, verb: str, *, variant: str | None = None) -> Iterator[FaultedCommand]:
    """Break into `create` (the home is fresh, the journal is made) or `release` (the journal has an entry)."""
    line, entry_text = CREATE if verb == "create" else RELEASE
    command = FaultedCommand(folder, draw_seed(), line, entry_text, used=verb == "release", variant=variant)
    with closing(command):
        yield command
