"""What a journal costs as it grows: time and bytes of a create with caps, SQL statements, the first page of a list.

Run it with `python tests/bench/journal_growth.py [ENTRIES]`. It fails where a create on the large journal (50,000
entries) takes more than 1.2 times one on an empty journal, the first page more than 1.5 times, or a create with a
reply of 200 bytes more than 1,500 bytes. The two journals are measured in turns, so that load counts for both.
"""

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.errors import Outcome
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Entry, Intent, Selection, Settlement
from escrowctl.journal.opening import find_place, open_journal

MOST_TIMES, MOST_TIMES_LISTED, MOST_BYTES = 1.2, 1.5, 1500
CAPS = {"USD": Decimal(10**15)}
GROUP, ROUNDS, PAGE, MEASURED = 250, 400, 50, 2000
REPLY = '{"id":"tx_%08d","status":"held","amount":100,"currency":"USD","payer":"usr_PAYER001","payee":"usr_PAYEE001"'
_numbers = count(1)


def begin_of(number: int) -> AttemptRequest:
    """Return a distinct create."""
    body, url = f'{{"amount":{number},"currency":"USD"}}', "https://escrow.example.com"
    intent = Intent(
        "create_transaction",
        url,
        "acme-live",
        "POST",
        f"{url}/api/v1/transactions",
        body,
        f"key-{number}",
        body,
        money=Money(Number(str(number)), "USD"),
        operator="ops",
        site=url,
    )
    return AttemptRequest(intent, f"request-{number}")


def settlement_of(number: int) -> Settlement:
    reply = (REPLY % number).ljust(191) + ',"n":1}'
    return Settlement(Outcome.DONE, "200", 200, f"tx_{number:08d}", reply.ljust(200))


def create(journal: Journal) -> None:
    """Begin and settle one create with caps."""
    number = next(_numbers)
    begin = begin_of(number)
    begun = journal.begin(begin._replace(caps=CAPS))
    journal.settle(begun, settlement_of(number))


def fill(journal: Journal, entries: int) -> None:
    """Write that many creates, many in one commit."""
    for _ in range(entries // GROUP):
        numbers = [next(_numbers) for _ in range(GROUP)]
        begun = journal.write_all([begin_of(number) for number in numbers], ())[0]
        done = [one for one in begun if isinstance(one, Entry)]
        journal.write_all((), [(entry, settlement_of(number)) for entry, number in zip(done, numbers, strict=True)])


def times(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def medians(work: Callable[[Journal], object], *journals: Journal, rounds: int = ROUNDS) -> list[float]:
    """Return the median milliseconds of `work` on each journal, measured in turns."""
    taken = [[times(partial(work, journal)) for journal in journals] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def count_statements(journal: Journal) -> int:
    """Return how many SQL statements one create with caps makes."""
    statements: list[str] = []
    database: Any = journal.storage._db  # type: ignore[attr-defined] # noqa: SLF001 - SQLite's
    database.set_trace_callback(statements.append)
    create(journal)
    database.set_trace_callback(None)
    return len(statements)


def list_page(journal: Journal) -> list[Entry]:
    return list(islice(journal.select_all(Selection(PAGE)), PAGE))


def main() -> int:
    """Print the figures; 1 where one is beyond its bound."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder, contextlib.ExitStack() as stack:
        places = [find_place(Path(folder) / name) for name in ("small", "large")]
        opened = [open_journal(place, now=lambda: datetime.now(UTC)) for place in places]
        small, large = (stack.enter_context(contextlib.closing(journal)) for journal in opened)
        fill(large, entries)
        for _ in range(2 * PAGE):
            create(small)
        empty_ms, large_ms = medians(create, small, large)
        list_small, list_large = medians(list_page, small, large, rounds=50)
        path = Path(folder) / "small" / "journal.db"
        before = path.stat().st_size
        for _ in range(MEASURED):
            create(small)
        size = (path.stat().st_size - before) / MEASURED
        statements = count_statements(small)
    print(f"create with caps: {empty_ms:.2f} ms, with {entries:,} entries {large_ms:.2f} ms: "
          f"{large_ms / empty_ms:.2f} times (at most {MOST_TIMES})\n"
          f"first page of a list: {list_small:.2f} ms and {list_large:.2f} ms: {list_large / list_small:.2f} times "
          f"(at most {MOST_TIMES_LISTED})\n"
          f"bytes per create: {size:,.0f} (at most {MOST_BYTES:,}); SQL statements: {statements}")  # fmt: skip
    is_within = large_ms <= MOST_TIMES * empty_ms and list_large <= MOST_TIMES_LISTED * list_small
    return 0 if is_within and size <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
