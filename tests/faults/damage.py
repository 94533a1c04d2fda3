"""Damaged journals: cut at any offset, or with any bit flipped; no write may be sent a second time.

The journal knows a release that is done, one that is unknown, and a create that is unknown. The
fake service keeps saying that everything is held: only the journal prevents a second write, or one
above the cap. Of a flipped bit in what is derived from the records (the duplicate index and the totals),
`journal verify` must show it, or it must change nothing.
Run as a program it tries a broken variant: `python -m faults.damage VARIANT FOLDER SEED`.
"""

import io
import json
import random
import re
import shutil
import socket
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from conftest import make_environ
from wire_server import Seen, WireServer, hang_up, http_reply

from escrowctl import app
from escrowctl.main import main
from escrowctl.runtime import Runtime
from faults.kills import HarnessError, Violation, ViolationError

DONE, UNKNOWN = ("tx", "release", "tx_done", "--yes"), ("tx", "release", "tx_unknown", "--yes")
CREATE = ("tx", "create", "--amount", "77", "--currency", "USD")
ABOVE_CAP = ("tx", "create", "--amount", "90", "--currency", "USD")
LINES = {DONE: {7, 17}, UNKNOWN: {12, 17}, CREATE: {12, 17}, ABOVE_CAP: {5, 17}}
"""Line -> the exit codes that it may have after any damage."""
VERIFY, DERIVED = ("journal", "verify"), ("keys", "totals")
OTHERS = {VERIFY: {0, 16, 17}, ("journal", "list"): {0, 17}}

UNDAMAGED, REFUSED = {7: 1, 12: 2, 5: 1}, {17: len(LINES)}
"""Exit code -> how many of LINES end with it, where no damage matters and where the journal is refused."""
PROFILE = '[profiles.harness]\nbase_url = "{url}"\ncaps.USD = "160"\n'
"""Two releases and one create of 77 are below the cap."""

LAST = 64 * 1024
PAGE = 4096
HEAD = 138
"""How long journal.head is."""
FILES = ("journal.db", "journal.head", "journal.lock")


@dataclass(frozen=True)
class Damage:
    """What is done to one file: everything after an offset cut off, or one bit flipped."""

    name: str
    offset: int
    bit: int | None = None

    def __str__(self) -> str:
        return f"{self.name} {'cut at' if self.bit is None else f'bit {self.bit} turned at'} {self.offset}"

    def apply(self, folder: Path) -> None:
        path = folder / self.name
        content = bytearray(path.read_bytes())
        if self.bit is None:
            del content[self.offset :]
        else:
            content[self.offset] ^= 1 << self.bit
        path.write_bytes(content)


@dataclass(frozen=True)
class Replacement:
    """What replaces a complete file: `nothing`, a `folder`, `garbage`, an `older` copy of it, or an `empty` file."""

    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} in the place of {self.name}"

    def apply(self, folder: Path) -> None:
        path = folder / self.name
        path.unlink()
        match self.kind:
            case "folder":
                path.mkdir()
            case "garbage":
                path.write_bytes(random.Random(1).randbytes(45_056))
            case "empty":
                path.touch()
            case "older":
                shutil.copy(folder.parent.parent / OLDER / self.name, path)
            case _:
                pass


KINDS = ("nothing", "folder", "garbage", "older", "empty")
OLDER = "older"


@contextmanager
def one_tree() -> Iterator[None]:
    """Build the tree of commands once for all lines: it is most of what a short line costs."""
    with mock.patch.object(app, "make_tree", return_value=app.make_tree()):
        yield


@dataclass
class Damages:
    """Builds the journal once, and tries any number of damages on copies of it."""

    folder: Path
    seed: int
    codes: Counter[int] = field(default_factory=Counter)
    runs: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._stack = ExitStack()
        self._stack.enter_context(one_tree())
        self.answers = True
        self.server = WireServer(self._behave)
        self._whole = self.folder / "whole"
        self._home = self.folder / "home"
        self._config = self.folder / "harness.toml"
        self._build()

    def close(self) -> None:
        self._stack.close()
        self.server.close()
        summary = f"{self.runs} damages, exits {dict(self.codes)}"
        print(f"ESCROWCTL_TEST_SEED={self.seed}: {summary}")

    # Which

    def sizes(self) -> dict[str, int]:
        return {name: (self._whole / "state" / name).stat().st_size for name in FILES}

    def cuts(self) -> Iterator[Damage]:
        """Yield every cut within the last 64 KiB of each file."""
        for name, size in self.sizes().items():
            yield from (Damage(name, offset) for offset in range(max(0, size - LAST), size))

    def turns(self, count: int) -> Iterator[Damage]:
        """Yield bits to flip, drawn from the seed: one in ten of the head, and most of the others where a byte is."""
        size = self.sizes()["journal.db"]
        content = (self._whole / "state" / "journal.db").read_bytes()
        used = [offset for offset, byte in enumerate(content) if byte]
        for number in range(count):
            if number % 10 == 0:
                yield Damage("journal.head", self.chance.randrange(HEAD), self.chance.randrange(8))
                continue
            offset = self.chance.choice(used) if number % 4 else self.chance.randrange(size)
            yield Damage("journal.db", offset, self.chance.randrange(8))

    def find(self, text: bytes) -> int:
        """Return the offset of a text in the journal."""
        return (self._whole / "state" / "journal.db").read_bytes().index(text)

    def changed_totals(self) -> Iterator[Damage]:
        """Yield one flipped bit in the day of each total, which makes it an earlier one."""
        content = (self._whole / "state" / "journal.db").read_bytes()
        for operation in (b"create_transaction", b"release_transaction"):
            day = operation + b"USD20"
            yield from (Damage("journal.db", found.end(), 1) for found in re.finditer(day, content))

    def find_last_facts_type(self) -> int:
        """Return the offset of the low bits of the type of `facts` in the newest record of the chain.

        A row's header ends `kind at facts digest`, facts with a two-byte type; then come the entry and the texts.
        """
        return self.find_last_date() - len("verdict") - 3

    def find_last_date(self) -> int:
        """Return the offset of the date of the newest record of the chain."""
        page = (self._whole / "state" / "journal.db").read_bytes()[8192:12288]
        return 8192 + page.index(b"verdict20") + len("verdict")

    # Playing

    def run_with_damage(self, damage: Damage | Replacement) -> None:
        """Damage a copy and try all lines on it; raises ViolationError, which names the damage."""
        self._renew()
        damage.apply(self._home / "state")
        self.runs += 1
        if self._is_derived(damage) and self._try(VERIFY, f"{damage}, verify"):
            return
        lines = list(LINES)
        self.chance.shuffle(lines)
        # A look before or after: neither may fall, nor make good what is not.
        looks_at = self.chance.randrange(len(lines) + 1)
        for place, line in enumerate([*lines[:looks_at], ("journal", "list"), *lines[looks_at:]]):
            self._try(line, f"{damage}, line {place + 1}")

    def play_all(self, damages: Iterable[Damage]) -> None:
        for damage in damages:
            self.run_with_damage(damage)

    def _is_derived(self, damage: Damage | Replacement) -> bool:
        """Whether a bit is flipped in a table that is derived from the records; each is one page here."""
        if not isinstance(damage, Damage) or damage.name != "journal.db" or damage.bit is None:
            return False
        return damage.offset // PAGE + 1 in self._derived

    def _try(self, line: tuple[str, ...], damage: str) -> int:
        before = len(self.server.writes)
        code, err = self._run(line)
        where = f"{' '.join(line)}: exit {code} ({damage}, ESCROWCTL_TEST_SEED={self.seed})\n{err}"
        if len(self.server.writes) != before:
            raise ViolationError(Violation.SENT_TWICE, where)
        if "Traceback" in err or "defect" in err or code not in (LINES | OTHERS)[line]:
            raise ViolationError(Violation.BROKE, where)
        if code and not err.startswith("error: "):
            raise ViolationError(Violation.BROKE, where)
        if line in LINES:
            self.codes[code] += 1
        return code

    def _run(self, line: tuple[str, ...]) -> tuple[int, str]:
        out, err = io.StringIO(), io.StringIO()
        environ = make_environ(self._home, self.server.base_url)
        environ |= {"ESCROWCTL_CONFIG": str(self._config), "ESCROWCTL_PROFILE": "harness"}
        around = Runtime(environ=environ, stdin=io.StringIO(), stdout=out, stderr=err, sleep=lambda _seconds: None)
        return int(main(line, around)), err.getvalue()

    # The journal

    def _renew(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        shutil.copytree(self._whole, self._home)

    def _build(self) -> None:
        self._home = self._whole
        self._home.mkdir(parents=True)
        self._config.write_text(PROFILE.format(url=self.server.base_url))
        codes = []
        for line, answers in ((DONE, True), (UNKNOWN, False), (CREATE, False)):
            self.answers = answers
            codes.append(self._run(line)[0])
            if line == DONE:
                shutil.copytree(self._whole / "state", self.folder / OLDER)
        self.answers = True
        if (codes, len(self.server.writes)) != ([0, 12, 12], 3):
            raise HarnessError(f"the journal to be damaged came to {codes}")
        self._home = self.folder / "home"
        with sqlite3.connect(self._whole / "state" / "journal.db") as database:
            roots = dict(database.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
            (pages,) = database.execute("PRAGMA page_count").fetchone()
        if len(set(roots.values())) != pages - 1:
            raise HarnessError("each table and index of the journal should be one page")
        self._derived = {roots[name] for name in DERIVED}

    def _behave(self, seen: Seen, connection: socket.socket) -> None:
        if seen.is_write and not self.answers:
            hang_up(seen, connection)
            return
        resource_id = seen.target.split("/")[4] if seen.method != "POST" else "tx_again"
        record = {"id": resource_id, "status": "held", "amount": 77, "currency": "USD"}
        connection.sendall(http_reply("200 OK", json.dumps(record).encode()))


def run_undamaged(damages: Damages) -> None:
    """Require that without damage every line is refused by what the journal knows, not by 17."""
    damages.run_with_damage(Damage("journal.lock", 0))
    if damages.codes[17]:
        raise HarnessError("an undamaged journal must not be refused as damaged")


def play_variant(name: str, folder: Path, seed: int) -> Violation | None:
    """Break escrowctl for this process, and return what damages then show."""
    from faults import variants

    broken: Callable[[], None] = getattr(variants, name)
    damages = Damages(folder, seed)
    broken()
    try:
        # In the order of their worth: what is cut most is noticed first.
        damages.play_all([*damages.changed_totals(), *damages.turns(150), Damage("journal.db", 0)])
    except ViolationError as violation:
        print(violation)
        return violation.kind
    finally:
        damages.close()
    return None


if __name__ == "__main__":
    noticed = play_variant(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    print(f"noticed: {noticed.name if noticed else None}")
