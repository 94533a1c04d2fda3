"""`batch release`: each escrow is read, released once, and read again."""

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.seeds import draw_seed
from wire_server import Seen

from batch.conftest import Start, WriteRows, counts_of

RUN = ("--yes", "--json")
IDS = "id,amount,currency\n" + "".join(f"tx_{number},100,EUR\n" for number in range(1, 13))


def test_each_escrow_is_released_once(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("release", str(rows(text=IDS)), *RUN)
    entry = run("journal", "show", "j1", "--json").json

    assert (result.code, counts_of(result)) == (0, (12, 0, 0, 0)), result.err
    assert (len(service.applied), set(service.applied.values())) == (12, {1})
    assert (entry["operation"], entry["detail"], entry["batch"]) == (
        "release_transaction",
        "200; the service then reported released",
        "b1",
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [("tx_1,99,EUR", "99 was expected"), ("tx_1,100,USD", "USD was expected")],
    ids=["amount", "currency"],
)
def test_escrow_that_is_not_as_expected_is_not_released(start: Start, rows: WriteRows, row: str, expected: str) -> None:
    service, run = start()

    result = run("release", str(rows(text=f"id,amount,currency\n{row}\n")), *RUN)

    assert (result.code, counts_of(result), service.received, expected in result.err) == (15, (0, 0, 0, 1), [], True)


def test_why_a_row_was_not_sent_is_kept(start: Start, rows: WriteRows, tmp_path: Path) -> None:
    service, run = start()
    path = rows(text="id,amount,currency\ntx_1,100,EUR\ntx_2,99,EUR\n")
    assert run("release", str(path), *RUN).code == 15

    run("show", "b1", "--results", str(tmp_path / "b1.jsonl"))
    run("drop", "b1", "--yes")
    rejected = run("rejects", "b1").out.splitlines()

    result = json.loads((tmp_path / "b1.jsonl").read_text().splitlines()[1])
    assert (result["outcome"], result["entry"]) == ("not_sent", None)
    assert "99 was expected" in result["detail"]
    assert (len(rejected), "99 was expected" in rejected[1], service.applied) == (2, True, {"tx_1": 1})


def test_escrow_read_after_the_run_has_ended_is_not_released(start: Start, rows: WriteRows) -> None:
    refused = threading.Event()

    def refuse_the_second(number: int, _seen: Seen) -> str:
        return "403 Forbidden" if number == 2 else ""

    def read_late(resource_id: str) -> None:
        if resource_id in {f"tx_{number}" for number in range(6, 13)}:
            # The refusal has left; it is taken in before these readings are.
            refused.wait(10)
            time.sleep(0.1)

    service, run = start(refuse_the_second)
    service.before_read, service.after_refusal = read_late, refused.set

    result = run("release", str(rows(text=IDS)), *RUN)

    done, failed, unknown, not_sent = counts_of(result)
    assert (result.code, failed, unknown, done + not_sent) == (15, 0, 0, 12), result.err
    assert set(service.applied) <= {"tx_1", "tx_2", "tx_3", "tx_4", "tx_5"}


def test_released_ids_are_refused_or_left_out(start: Start, rows: WriteRows) -> None:
    service, run = start()
    run("tx", "release", "tx_2", "--yes")
    path = str(rows(text="id\ntx_1\ntx_2\ntx_3\n"))

    refused, rest, again = (
        run("release", path, *RUN),
        run("release", path, *RUN, "--skip-done"),
        run("release", path, *RUN),
    )
    single = run("tx", "release", "tx_3", "--yes")

    assert (refused.code, rest.code, again.code, single.code) == (7, 0, 7, 7)
    assert service.applied == {"tx_1": 1, "tx_2": 1, "tx_3": 1}


def test_ids_that_look_alike_are_refused(start: Start, rows: WriteRows) -> None:
    service, run = start()
    same = run("release", str(rows(text="id\ntx_a\ntx_A\n")), *RUN)
    run("tx", "release", "tx_b", "--yes")

    other = run("release", str(rows(text="id\ntx_B\n")), *RUN)

    assert (same.code, other.code, service.applied) == (2, 7, {"tx_b": 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "counts", "code"),
    [
        (lambda number, _seen: "422 No" if number == 3 else "", (11, 1, 0, 0), 15),
        (lambda number, _seen: "429 Too Many Requests" if number == 3 else "", (11, 0, 0, 1), 15),
        # The reading shows what the reply did not say.
        (lambda number, _seen: "500 Internal Server Error" if number == 3 else "", (12, 0, 0, 0), 0),
        (lambda number, _seen: None if number == 3 else "", (11, 0, 1, 0), 12),
    ],
    ids=["refused", "throttled", "failed", "hung up"],
)
def test_outcomes_are_counted(
    start: Start, rows: WriteRows, answer: Callable[..., str | None], counts: tuple[int, ...], code: int
) -> None:
    service, run = start(answer)

    result = run("release", str(rows(text=IDS)), *RUN, "--concurrency", "1")

    assert (result.code, counts_of(result)) == (code, counts), result.err
    assert set(service.applied.values()) == {1}


@pytest.mark.slow
def test_service_that_deduplicates_ends_every_row(start: Start, rows: WriteRows) -> None:
    chance = random.Random(draw_seed())
    service, run = start(lambda _number, _seen: chance.choice((None, "500 Oops", "")), deduplicates=True)

    result = run("release", str(rows(text=IDS)), *RUN, "--concurrency", "3")
    for _ in range(20):
        if result.code == 0:
            break
        result = run("resume", "b1", *RUN)

    assert (result.code, counts_of(result)) == (0, (12, 0, 0, 0))
    assert (len(service.applied), set(service.applied.values())) == (12, {1})
