"""Measure what a long journal costs: a create with caps, and the first page of `journal list`.

pytest does not run this. Both are measured on a journal of N entries and on an empty one, alternating in one run, and
compared by their medians. In memory the journal is filled in a minute or two, and no disk hides what grows:

    TMPDIR=/dev/shm python3 tests/bench/journal_growth.py --entries 50000

A create is the journal's part of it alone: the intent made durable, and its outcome, in a journal that is open, all
entries on one day, under a cap that counts them. The list is a separate process, start-up included. It prints a
table and exits 1 where a bound is missed, 2 where the list fails.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.journal.entries import Intent, State, Verdict
from escrowctl.journal.journal import Journal

CREATE_BOUND, LIST_BOUND = 1.2, 1.5
BASE_URL = "https://escrow.example.com"


def open_journal(folder: Path) -> Journal:
    """Open the journal in a state folder; one is made where there is none."""
    return Journal(folder, now=lambda: datetime.now(UTC))


def write_create(journal: Journal, number: int, caps: dict[str, Decimal]) -> None:
    """Begin and settle one create, as `tx create` does around its request."""
    amount = str(number % 1000 + 1)
    intent = Intent(
        operation="create_transaction",
        service=BASE_URL,
        profile="bench",
        method="POST",
        url=f"{BASE_URL}/api/v1/transactions",
        body=f'{{"amount":{amount},"currency":"USD"}}',
        money=Money(Number(amount), "USD"),
        idempotency_key=f"key-{number:0>12}",
        likeness=f"likeness-{number:0>12}",
    )
    entry = journal.begin(intent, request_id=f"request-{number}", caps=caps).entry
    reply = f'{{"id":"tx_{number}","status":"held","amount":{amount},"currency":"USD"}}'
    journal.settle(entry, Verdict(State.DONE, "200", 200, f"tx_{number}", reply))


# The product's names end here.

NO_CAPS: dict[str, Decimal] = {}
CAPS = {"USD": Decimal("1e15")}


def main() -> int:
    """Measure, print the table, and return 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=50_000, help="entries of the long journal (default: 50000)")
    parser.add_argument("--runs", type=int, default=25, help="runs of each (default: 25)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        long, empty = Path(folder) / "long", Path(folder) / "empty"
        fill(long, given.entries)
        fill(empty, 0)
        creates = alternate(
            given.runs, lambda run: time_create(long, given.entries + run), lambda _run: time_create(empty, 0)
        )
        lists = alternate(given.runs, lambda _run: time_list(long), lambda _run: time_list(empty))
    missed = report("create with caps", creates, CREATE_BOUND) | report("journal list", lists, LIST_BOUND)
    sys.stdout.write(f"{given.entries} entries and none; medians of {given.runs} runs of each, alternating\n")
    return int(missed)


def fill(home: Path, entries: int) -> None:
    """Write so many creates to the journal of a home."""
    (home / "state").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    journal = open_journal(home / "state")
    for number in range(entries):
        write_create(journal, number, NO_CAPS)
    journal.close()


def alternate(
    runs: int, measure_long: Callable[[int], float], measure_empty: Callable[[int], float]
) -> tuple[float, float]:
    """Return the medians of both in seconds; a first run of each does not count."""
    taken = [(measure_long(run), measure_empty(run)) for run in range(runs + 1)][1:]
    return statistics.median(long for long, _ in taken), statistics.median(empty for _, empty in taken)


def time_create(home: Path, number: int) -> float:
    """Return the seconds of one create; number 0 is written to a copy, so that the journal stays empty."""
    if number == 0:
        copy = home.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        home = Path(shutil.copytree(home, copy))
    journal = open_journal(home / "state")
    start = time.perf_counter()
    write_create(journal, number, CAPS)
    seconds = time.perf_counter() - start
    journal.close()
    return seconds


def time_list(home: Path) -> float:
    """Return the seconds of `journal list` as a process."""
    environ = {"PATH": os.defpath, "HOME": str(home), "ESCROWCTL_HOME": str(home), "ESCROWCTL_BASE_URL": BASE_URL}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "escrowctl", "journal", "list"], env=environ, capture_output=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.stderr.write(done.stderr.decode())
        raise SystemExit(2)
    return seconds


def report(name: str, medians: tuple[float, float], bound: float) -> bool:
    """Print a line, and return whether its bound is missed."""
    long, empty = medians
    ratio = long / empty
    verdict = "MISSED" if ratio > bound else "ok"
    sys.stdout.write(
        f"{name:<18}{long * 1e3:9.2f} ms {empty * 1e3:9.2f} ms   ratio {ratio:.2f}   bound {bound} {verdict}\n"
    )
    return ratio > bound


if __name__ == "__main__":
    sys.exit(main())
