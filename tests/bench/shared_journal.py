"""What a journal in PostgreSQL costs next to one in a file: on loopback, medians, in turns.

Run it with `PYTHONPATH=tests python tests/bench/shared_journal.py`; it starts a server. It fails if a
`tx create` takes more than 2.0 times one with a file (without the time to import the driver), or if a create on
a journal of 100,000 entries takes more than 1.2 times one on an empty journal. Records a second have no bound: most
of their time is spent in Python, for both engines.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from cli.replies import holding
from conftest import KEY
from journal_growth import begin_of, create, fill, medians, settlement_of, times
from storage.postgres import Server, find_programs
from wire_server import serving

from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Entry
from escrowctl.journal.opening import find_place, open_journal
from escrowctl.journal.postgres.place import PostgresPlace

MOST_TIMES, MOST_TIMES_LARGE = 2.0, 1.2
ROUNDS, ENTRIES, GROUP, GROUPS = 25, 100_000, 32, 60
_CREATE = ("-m", "escrowctl", "tx", "create", "--amount", "5", "--currency", "USD", "--reference")
_LIST_MODULES = """
import sys
from escrowctl.main import main
try:
    main()
finally:
    print(*sys.modules)
"""
_TIME_DRIVER = """
import contextlib, importlib, sys, time
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
started = time.perf_counter()
import psycopg
print((time.perf_counter() - started) * 1000)
"""
_numbers = count(10_000_000)


def run(environ: dict[str, str], *words: str) -> str:
    """Run Python with these words, and return what it prints. Raises CalledProcessError if it fails."""
    return subprocess.run([sys.executable, *words], env=environ, check=True, capture_output=True, text=True).stdout


def time_creates(server: Server, folder: Path) -> tuple[float, float, float]:
    """Return the milliseconds of a `tx create` with a file, with a database, and of importing the driver."""
    columns: tuple[list[float], ...] = ([], [], [])
    with serving(holding()) as service:
        common = {"PATH": os.environ["PATH"], "ESCROWCTL_BASE_URL": service.base_url, "ESCROWCTL_API_KEY": KEY}
        homes = [common | {name: str(folder / home) for name in ("HOME", "ESCROWCTL_HOME")} for home in ("one", "two")]
        homes[1]["ESCROWCTL_JOURNAL"] = f"{server.url}?journal=creates"
        server.create_journal("creates")
        # The modules that a create with a file imports too are no cost of the driver.
        modules = run(homes[0], "-c", _LIST_MODULES, *_CREATE[2:], "order").splitlines()[-1].split()
        for turn in range(ROUNDS):
            for home, column in zip(homes, columns[:2], strict=True):
                column.append(times(partial(run, home, *_CREATE, f"order-{turn}")))
            columns[2].append(float(run(common, "-c", _TIME_DRIVER, *modules)))
    in_file, in_database, driver = (statistics.median(column) for column in columns)
    return in_file, in_database, driver


def write_group(journal: Journal, settled: Sequence[Entry]) -> list[Entry]:
    """Settle these entries and begin as many as a group has, in one commit. Return the new ones."""
    settlements = [(entry, settlement_of(entry.number)) for entry in settled]
    begun, _ = journal.write_all([begin_of(next(_numbers)) for _ in range(GROUP)], settlements)
    return [one for one in begun if isinstance(one, Entry)]


def count_records_a_second(*journals: Journal) -> list[float]:
    """Return how many records a second each journal takes, an intent and an outcome of a group in each commit."""
    settled: list[list[Entry]] = [[] for _ in journals]
    taken: list[list[float]] = [[] for _ in journals]
    for _ in range(GROUPS):
        for which, journal in enumerate(journals):
            started = time.perf_counter()
            settled[which] = write_group(journal, settled[which])
            taken[which].append(time.perf_counter() - started)
    return [2 * GROUP / statistics.median(column[1:]) for column in taken]


def main() -> int:
    """Print the figures. Return 1 if one is beyond its bound."""
    with contextlib.closing(Server(find_programs())) as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        in_file, in_database, driver = time_creates(server, folder)
        shared = [PostgresPlace(server.create_journal(name), folder / "state") for name in ("small", "large")]
        places = [*shared, find_place(folder / "file")]
        with contextlib.ExitStack() as stack:
            opened = [open_journal(place, now=lambda: datetime.now(UTC)) for place in places]
            small, large, local = (stack.enter_context(contextlib.closing(journal)) for journal in opened)
            fill(large, ENTRIES)
            for journal in (small, large):
                create(journal)
            small_ms, large_ms = medians(create, small, large)
            shared_rate, local_rate = count_records_a_second(small, local)
    ratio, growth = (in_database - driver) / in_file, large_ms / small_ms
    print(f"tx create: {in_file:.0f} ms with a file, {in_database:.0f} ms with a database, of which {driver:.0f} ms "
          f"import the driver: {ratio:.2f} times without it (at most {MOST_TIMES})\n"
          f"create with caps: {small_ms:.2f} ms, with {ENTRIES:,} entries {large_ms:.2f} ms: {growth:.2f} times "
          f"(at most {MOST_TIMES_LARGE})\n"
          f"records a second, {2 * GROUP} a commit: {shared_rate:,.0f}, with a file {local_rate:,.0f}")  # fmt: skip
    return 0 if ratio <= MOST_TIMES and growth <= MOST_TIMES_LARGE else 1


if __name__ == "__main__":
    sys.exit(main())
