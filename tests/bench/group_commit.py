"""Group commit against single commits: 8 threads begin and settle on one journal, and each write is durable.

Single: one thread, a commit for each intent and for each outcome.
Run it with `python tests/bench/group_commit.py [WRITES_PER_THREAD]`. It fails where the group's rate is below
4 times the single one, or `verify` finds a problem. The disk decides the figures: both are of one run.
"""

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.errors import Outcome
from escrowctl.journal.group_commit import GroupCommit
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Begin, Begun, Entry, Intent, Settlement
from escrowctl.journal.opening import open_journal
from escrowctl.journal.verification import verify

Write = tuple[Begin, Settlement]

THREADS, TURNS, LEAST_RATIO = 8, 8, 4.0
REPLY = '{"id":"%s","status":"held","amount":%d,"currency":"USD","payer":"usr_1","payee":"usr_2"}'
BASE_URL = "https://escrow.example.com"


def begin_of(name: str, amount: int) -> Begin:
    """Return a distinct create."""
    body = f'{{"amount":{amount},"currency":"USD"}}'
    intent = Intent(
        "create_transaction",
        BASE_URL,
        "acme-live",
        "POST",
        f"{BASE_URL}/api/v1/transactions",
        body,
        f"key-{name}",
        body,
        money=Money(Number(str(amount)), "USD"),
        operator="ops",
        site=BASE_URL,
    )
    return Begin(intent, f"request-{name}")


def settlement_of(name: str, amount: int) -> Settlement:
    return Settlement(Outcome.DONE, "200", 200, f"tx_{name}", REPLY % (f"tx_{name}", amount))


def writes_of(thread: int, count: int) -> list[Write]:
    """Return different creates and their outcomes."""
    named = [(f"{thread}-{number}", thread * count + number + 1) for number in range(count)]
    return [(begin_of(*one), settlement_of(*one)) for one in named]


def write_single(journal: Journal, writes: list[Write]) -> None:
    """Begin and settle writes one by one, each in a separate commit."""
    for begin, settlement in writes:
        journal.settle(journal.begin(begin.intent, request_id=begin.request_id).entry, settlement)


def write_in_groups(group: GroupCommit, writes: list[list[Write]]) -> list[BaseException]:
    """Begin and settle from all threads at once, as a batch does: a worker settles one write and begins its next.

    Returns what they raised.
    """
    failures: list[BaseException] = []

    def work(own: list[Write]) -> None:
        try:
            begun = group.begin(own[0][0])
            for (_, settlement), (following, _) in pairwise(own):
                settled, next_begun = group.settle_and_begin(begun.entry, settlement, following)
                assert isinstance(settled, Entry), settled
                assert isinstance(next_begun, Begun), next_begun
                begun = next_begun
            group.settle(begun.entry, own[-1][1])
        except BaseException as error:  # noqa: BLE001 - any failure fails the bench
            failures.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in writes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(folder: Path, count: int) -> tuple[float, float]:
    """Return writes a second, single and in groups; raises AssertionError where the journal is not valid.

    The two take turns on one journal, so that a disk that slows down counts for both.
    """
    opened = partial(open_journal, folder, now=lambda: datetime.now(UTC))
    *in_threads, alone = [writes_of(thread, count) for thread in range(THREADS + 1)]
    single, grouped, failures = 0.0, 0.0, list[BaseException]()
    for turn in range(TURNS):
        part = slice(turn * count // TURNS, (turn + 1) * count // TURNS)
        with contextlib.closing(opened()) as journal:
            single += seconds(partial(write_single, journal, alone[part]))
        with contextlib.closing(GroupCommit(opened)) as group:
            parts = [writes[part] for writes in in_threads]
            grouped += seconds(lambda: failures.extend(write_in_groups(group, parts)))  # noqa: B023 - called at once
    with contextlib.closing(opened(reading=True)) as journal:
        found = verify(journal.storage)
    assert not failures, failures[0]
    assert found.problem is None, found.problem
    assert found.records == 2 * count * (THREADS + 1)
    return count / single, THREADS * count / grouped


def main() -> int:
    """Print both rates and their ratio; 1 where it is too low."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        single, grouped = measure(Path(folder) / "state", count)
    print(f"{THREADS} threads x {count}: single {single:,.0f} writes/s, group commit {grouped:,.0f} writes/s, "
          f"ratio {grouped / single:.2f} (at least {LEAST_RATIO:g})")  # fmt: skip
    return 0 if grouped / single >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
