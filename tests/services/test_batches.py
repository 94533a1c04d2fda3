"""Batches against every variant: each row is done once, also where a run is stopped or a reply is lost."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batch.conftest import Clock, counts_of
from conftest import Result

from services.variants import Client

pytestmark = [pytest.mark.filterwarnings("ignore:send_bytes:DeprecationWarning"), pytest.mark.slow]

Batch = Callable[..., Result]


@pytest.fixture
def batch(client: Client, tmp_path: Path) -> Batch:
    """Run a batch of rows, one request at a time; an empty list resumes the first batch."""

    def run(verb: str, rows: list[str], *words: str, **injected: Any) -> Result:
        file = tmp_path / f"{verb}.csv"
        header = "reference,amount,currency" if verb == "create" else "id"
        file.write_text("\n".join((header, *rows, "")))
        source = str(file) if rows else "b1"
        return client.run("batch", verb, source, "--yes", "--json", "--concurrency", "1", *words, **injected)

    return run


def test_each_row_is_created_and_released_once(client: Client, batch: Batch) -> None:
    rows = ["a,5,USD", "b,6,USD", "c,7,EUR"]
    created, again = batch("create", rows), batch("create", rows)
    escrows = client.read_ledger().created

    released, twice = batch("release", escrows), batch("release", escrows)

    assert [one.code for one in (created, again, released, twice)] == [0, 7, 0, 7]
    assert [counts_of(one) for one in (created, released)] == [(3, 0, 0, 0)] * 2
    assert client.count_moves() == (3, 3)


def test_row_without_a_reply_is_settled_and_not_sent_again(client: Client, batch: Batch) -> None:
    # The sandbox creates 5.04, and closes the connection without a reply.
    rows = ["a,5,USD", "b,5.04,USD", "c,7,USD"]

    ended = batch("create", rows)

    if not client.deduplicates:
        assert (ended.code, counts_of(ended)) == (12, (2, 0, 1, 0))
        assert batch("create", rows).code == 12
        lost = client.read_ledger().created[1]
        assert client.resolve("j2", "--applied", "--id", lost, "--reason", "seen").code == 0
    assert batch("create", rows).code == 7
    assert client.count_moves() == (3, 0)


def test_run_that_stops_after_five_refusals_is_resumed(client: Client, batch: Batch) -> None:
    refused = [f"bad{number},4.02,USD" for number in range(5)]

    stopped = batch("create", ["a,5,USD", *refused, *(f"b{number},6,USD" for number in range(9))])
    resumed = batch("resume", [])

    assert (stopped.code, counts_of(stopped)[1:3], counts_of(stopped)[3] > 5) == (15, (5, 0), True)
    assert (resumed.code, counts_of(resumed)) == (15, (10, 5, 0, 0))
    assert client.count_moves() == (10, 0)


def test_interrupted_run_is_resumed(client: Client, batch: Batch) -> None:
    clock = Clock()
    pause = clock.injected["sleep"]

    def sleep(seconds: float) -> None:
        pause(seconds)
        if clock.now > 2:
            signal.raise_signal(signal.SIGINT)

    rows = [f"r{number},5,USD" for number in range(9)]

    stopped = batch("create", rows, "--rps", "1", sleep=sleep, monotonic=clock.injected["monotonic"])
    resumed = batch("create", rows)

    _, failed, unknown, left = counts_of(stopped)
    assert (stopped.code, failed, unknown, left > 0) == (130, 0, 0, True)
    assert (resumed.code, counts_of(resumed), client.count_moves()) == (0, (9, 0, 0, 0), (9, 0))


def test_throttled_rows_are_sent_again(client: Client, batch: Batch) -> None:
    assert client.run("sandbox", "set", "fault.create=429,2x").code == 0

    throttled = batch("create", ["a,5,USD", "b,6,USD", "c,7,USD"], **Clock().injected)

    assert (throttled.code, counts_of(throttled), client.count_moves()) == (0, (3, 0, 0, 0), (3, 0))


def test_lost_release_is_settled_by_reading_and_the_rest_resumed(client: Client, batch: Batch) -> None:
    escrows = [client.create_id(amount=amount) for amount in ("1", "2", "3")]
    client.set_fault("release=drop-reply")

    ended = batch("release", escrows)

    # The first row goes alone: where it is unknown, the others wait.
    if not client.deduplicates:
        assert (ended.code, counts_of(ended)) == (12, (0, 0, 1, 2))
        assert client.resolve("j4").code == 0
        assert batch("release", escrows).code == 0
    assert client.count_moves() == (3, 3)
