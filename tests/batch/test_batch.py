"""`batch create`: what is sent, what is counted, and how a run ends."""

import contextlib
import csv
import json
import signal
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from wire_server import Seen

from batch.conftest import Clock, Start, WriteRows, counts_of, open_elsewhere
from batch.services import Answer
from escrowctl.batch.claimants import SharedRun, change_batch
from escrowctl.batch.plan import find_batch
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.runtime import Runtime, timestamp

RUN = ("--yes", "--json")


def after(count: int, status: str | None, *, until: int = 10**6) -> Answer:
    """Answer usually, and from the write after `count` on with this status."""
    return lambda number, _seen: status if count < number <= until else ""


def test_each_row_is_created_once_and_is_an_entry(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("create", str(rows(20)), *RUN)

    first = run("journal", "show", "j1", "--json").json
    assert (result.code, counts_of(result)) == (0, (20, 0, 0, 0)), result.err
    assert (sorted(service.applied), set(service.applied.values())) == ([str(100 + n) for n in range(20)], {1})
    assert (first["reference"], first["batch"], first["line"], first["amount"]) == ("A-1", "b1", 2, 100)
    assert run("journal", "verify").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1", "8"])
def test_batch_stops_at_a_reply_to_another_row(start: Start, rows: WriteRows, size: str) -> None:
    sent: list[str] = []

    def answer(number: int, seen: Seen) -> str:
        sent.append(seen.header("X-Request-Id") or "")
        return f"201 Created\r\nX-Request-Id: {sent[0]}" if number == 3 else ""

    service, run = start(answer)

    result = run("create", str(rows(40)), *RUN, "--concurrency", size)
    again = run("resume", "b1", *RUN)

    states = Counter(one["state"] for one in run("journal", "list", "--limit", "100", "--json").json)
    assert (result.code, again.code, states["unknown"]) == (12, 12, 1)
    assert (len(service.received), max(service.applied.values())) == (40, 1)


def test_as_many_requests_as_concurrency_are_on_the_wire(start: Start, rows: WriteRows) -> None:
    three = threading.Barrier(3)

    def answer(number: int, _seen: Seen) -> str:
        if number > 1:
            # Broken where fewer come: then the others pass at once, and the counts below tell.
            with contextlib.suppress(threading.BrokenBarrierError):
                three.wait(5)
            # A fourth, if there is one, comes meanwhile.
            time.sleep(0.05)
        return ""

    service, run = start(answer)

    result = run("create", str(rows(13)), *RUN, "--concurrency", "3")

    assert (result.code, service.most_at_once, len(service.peers)) == (0, 3, 13)


def test_first_row_goes_alone(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "400 Bad Request" if number == 1 else "")

    result = run("create", str(rows(9)), *RUN)

    assert (result.code, counts_of(result), len(service.received)) == (15, (0, 1, 0, 8), 1)


@pytest.mark.parametrize(
    ("status", "counts", "code"),
    [
        ("400 Bad Request", (5, 5, 0, 20), 15),
        ("500 Internal Server Error", (5, 0, 5, 20), 12),
        (None, (5, 0, 5, 20), 12),
    ],
    ids=["refused", "failed", "hung up"],
)
def test_five_rows_that_end_alike_stop_the_run(
    start: Start, rows: WriteRows, status: str | None, counts: tuple[int, int, int, int], code: int
) -> None:
    service, run = start(after(5, status))

    result = run("create", str(rows(30)), *RUN, "--concurrency", "1", **Clock().injected)

    # Two more may have been begun by then.
    done, failed, unknown, left = counts_of(result)
    assert (result.code, done) == (code, counts[0])
    assert 0 <= (failed + unknown) - (counts[1] + counts[2]) <= 2
    assert len(service.received) == 30 - left


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
def test_refused_key_stops_the_run_and_resume_sends_under_the_first_keys(
    start: Start, rows: WriteRows, status: str
) -> None:
    service, run = start(after(3, status, until=3))
    service.answer = after(3, status)
    stopped = run("create", str(rows(10)), *RUN, "--concurrency", "1")
    refused = service.received[3:]
    service.answer = after(0, "")

    resumed = run("resume", "b1", *RUN)

    done, failed, unknown, _ = counts_of(stopped)
    assert (stopped.code, done, failed, unknown) == (15, 3, 0, 0)
    assert (resumed.code, counts_of(resumed)) == (0, (10, 0, 0, 0))
    assert set(refused) <= set(service.received[3 + len(refused) :])
    assert set(service.applied.values()) == {1}


def test_throttled_rows_are_not_sent_without_the_setting(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "429 Too Many Requests" if 2 < number < 8 else "")

    result = run("create", str(rows(12)), *RUN, "--concurrency", "1", **Clock().injected)
    again = run("resume", "b1", *RUN)

    # So many that end alike would stop the run if they counted.
    assert (result.code, counts_of(result)) == (15, (7, 0, 0, 5))
    assert "retry_throttled true" in result.error["hint"]
    assert "batch resume b1" in result.error["hint"]
    assert (again.code, len(service.received)) == (7, 12)


def test_throttled_rows_go_again_with_the_setting(start: Start, rows: WriteRows) -> None:
    service, run = start(
        lambda number, _seen: "429 Too Many Requests" if number % 5 == 3 else "", "retry_throttled = true"
    )

    result = run("create", str(rows(20)), *RUN, "--concurrency", "2", **Clock().injected)

    assert (result.code, counts_of(result), set(service.applied.values())) == (0, (20, 0, 0, 0), {1})


def test_service_that_asks_to_wait_for_long_stops_the_run(start: Start, rows: WriteRows) -> None:
    long = "429 Too Many Requests\r\nRetry-After: 3600"
    service, run = start(after(2, long), "retry_throttled = true")

    result = run("create", str(rows(9)), *RUN, "--concurrency", "1")

    assert (result.code, counts_of(result)[0]) == (15, 2)
    assert len(service.received) <= 6
    assert "3600 s" in result.err


def test_refused_rows_are_failed_and_come_back_as_rejects(start: Start, rows: WriteRows, tmp_path: Path) -> None:
    text = 'reference,amount,currency,payee\nA-1,100,EUR,"Müller, Co"\nA-2,101,EUR,=x\nA-3,102,EUR,\n'
    service, run = start(lambda number, _seen: "422 Unprocessable" if number == 2 else "")
    result = run("create", str(rows(text=text)), *RUN, "--concurrency", "1")

    rejects = run("rejects", "b1").out
    read = list(csv.DictReader(rejects.splitlines()))
    service.answer = after(0, "422 Unprocessable")
    run("create", str(rows(text=rejects, name="rejects.csv")), *RUN)
    again = run("rejects", "b2").out
    service.answer = after(0, "")
    done = run("create", str(rows(text=again.replace("101", "103"), name="again.csv")), *RUN)

    assert (result.code, counts_of(result)) == (15, (2, 1, 0, 0))
    assert [(row["reference"], row["amount"], row["payee"]) for row in read] == [("A-2", "101", "=x")]
    assert (again, done.code, counts_of(done)) == (rejects, 0, (1, 0, 0, 0))
    assert service.applied == {"100": 1, "103": 1, "102": 1}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_results_hold_every_row(start: Start, rows: WriteRows, tmp_path: Path, ending: str) -> None:
    text = "reference,amount,currency,payee,body.note.to\n" + "".join(
        f"A-{n},{99 + n},EUR,P{n},N{n}\n" for n in range(1, 9)
    )
    _, run = start(lambda number, _seen: "400 Bad Request" if number == 3 else "401 No" if number > 5 else "")
    path = tmp_path / f"results.{ending}"

    run("create", str(rows(text=text)), *RUN, "--concurrency", "1", "--results", str(path))

    found = read_results(path)
    assert [row[:2] for row in found] == [(n + 1, f"A-{n}") for n in range(1, 9)]
    assert [row[2] for row in found][:5] == ["done", "done", "refused", "done", "done"]
    assert {row[2] for row in found[5:]} == {"not_sent"}
    assert [row[3:] for row in found] == [(f"P{n}", f"N{n}") for n in range(1, 9)]
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def read_results(path: Path) -> list[tuple[object, ...]]:
    """Return line, reference, outcome, payee and note of each row of a results file."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [
                (int(row["result.line"]), row["reference"], row["result.outcome"], row["payee"], row["body.note.to"])
                for row in csv.DictReader(file)
            ]
    documents = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        (one["line"], one["row"]["reference"], one["outcome"], one["row"]["payee"], one["row"]["body.note.to"])
        for one in documents
    ]


@pytest.mark.slow
def test_first_signal_finishes_what_is_on_its_way(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        if number == 5:
            signal.raise_signal(signal.SIGINT)
        return ""

    service, run = start(answer)

    stopped = run("create", str(rows(400)), *RUN, "--concurrency", "2")
    resumed = run("resume", "b1", *RUN)

    _, failed, unknown, left = counts_of(stopped)
    assert (stopped.code, failed, unknown, left > 0) == (130, 0, 0, True)
    assert (resumed.code, counts_of(resumed)) == (0, (400, 0, 0, 0))
    assert (len(service.applied), set(service.applied.values())) == (400, {1})


def test_rows_without_references_are_known_by_their_batch(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = rows(text="amount,currency\n" + "7,EUR\n" * 6)

    result, again = run("create", str(path), *RUN), run("create", str(path), *RUN)

    assert (result.code, counts_of(result), again.code) == (0, (6, 0, 0, 0), 7)
    assert service.applied == {"7": 6}


@pytest.mark.slow
def test_rate_is_kept(start: Start, rows: WriteRows, home: Path) -> None:
    def answer(number: int, _seen: Seen) -> str:
        if number == 15:
            # What was stored by a clock that is an hour ahead delays nothing: it was set back.
            elsewhere, later = open_elsewhere(home), timestamp(datetime.now(UTC) + timedelta(hours=1))
            shared = SharedRun(elsewhere, find_batch(elsewhere, "b1"), Mock(), Runtime())
            shared.change(lambda state: state._replace(paused_until=later, next_slot=later))
            elsewhere.close()
        return ""

    clock, (_, run) = Clock(), start(answer)

    result = run("create", str(rows(30)), *RUN, "--rps", "10", **clock.injected)

    assert (result.code, 2.8 <= clock.now <= 3.2) == (0, True), clock.now


def test_batch_is_shown_and_listed(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "400 Bad Request" if number == 2 else "")
    made = run("create", str(rows(3)), *RUN, "--concurrency", "1").json

    assert run("show", "b1", "--json").json == made
    (listed,) = run("list", "--json").json
    assert (made.items() <= listed.items(), listed["state"], listed["profile"]) == (True, "ended", "a")
    assert run("show", "b2").code == 6
    assert run("list").out.split("\t")[0] == "b1"
    # It has no rows to drop.
    assert (run("drop", "b1", "--yes").code, run("list", "--json").json[0]["state"]) == (7, "ended")


def test_other_process_that_runs_it_is_named_at_once(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    path = str(rows(5))
    run("create", path, *RUN)
    elsewhere = open_elsewhere(home)
    SharedRun(elsewhere, find_batch(elsewhere, "b1"), Mock(caps={}), Runtime()).start(None)

    codes = [run("resume", "b1", *RUN).code, run("create", path, *RUN).code, run("drop", "b1", "--yes").code]

    elsewhere.close()
    assert (codes, run("resume", "b1", *RUN).code) == ([7, 7, 7], 15)


@pytest.mark.parametrize("happened", ["dropped", "sent by another account"])
def test_batch_that_changed_while_a_command_asked_is_not_sent(
    start: Start, rows: WriteRows, home: Path, happened: str
) -> None:
    service, run = start(lambda _number, _seen: "401 No")
    run("create", str(rows(3)), *RUN)
    elsewhere = open_elsewhere(home)
    before = find_batch(elsewhere, "b1")
    if happened == "dropped":
        run("drop", "b1", "--yes")
    else:
        service.answer = lambda number, _seen: "401 No" if number > 2 else ""
        run("resume", "b1", *RUN)
    after = before._replace(account=("another", None))
    shared = SharedRun(elsewhere, before, Mock(caps={}), Runtime())

    with pytest.raises(EscrowctlError) as not_changed:
        change_batch(elsewhere, before, after)
    with pytest.raises(EscrowctlError) if happened == "dropped" else contextlib.nullcontext():
        shared.start(None)
    assert not_changed.value.code is ErrorCode.CONFLICT
    assert find_batch(elsewhere, "b1") == before._replace(dropped=happened == "dropped")
    elsewhere.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_of_a_dropped_batch_come_back_as_rejects(kind: str, start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: ("", "422 Unprocessable", "401 No", "401 No")[number - 1])
    csv_text = "reference,amount,currency,payee.name\n" + "".join(f"A-{n},10{n},EUR,Müller {n}\n" for n in range(5))
    row = '{"reference":"A-%d","amount":10%d,"currency":"EUR","body.payee":{"name":"Müller %d"}}\n'
    text = csv_text if kind == "csv" else "".join(row % (n, n, n) for n in range(5))
    run("create", str(rows(text=text, name=f"rows.{kind}")), *RUN, "--concurrency", "1")
    before = run("rejects", "b1").out

    dropped = run("drop", "b1", "--yes")
    rejects = run("rejects", "b1").out
    service.answer = after(0, "")
    done = run("create", str(rows(text=rejects, name=f"rejects.{kind}")), *RUN)

    head = kind == "csv"
    assert (dropped.code, len(before.splitlines()) - head, len(rejects.splitlines()) - head) == (0, 1, 4)
    assert f"batch rejects b1 > b1-rejects.{kind}" in dropped.err
    assert (done.code, service.applied) == (0, {f"10{n}": 1 for n in range(5)})


def test_dropped_batch_is_not_resumed_and_frees_its_rows(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 2 else "")
    run("create", str(rows(10)), *RUN, "--concurrency", "1")
    service.answer = after(0, "")

    blocked = run("create", str(rows(7, first=4, name="other.csv")), "--yes")
    codes = [run("drop", "b1", "--yes").code, run("resume", "b1", *RUN).code]
    other = run("create", str(rows(7, first=4, name="other.csv")), *RUN)

    assert (blocked.code, "lines 2, 3, 4, 5, 6 and 2 more" in blocked.err) == (7, True)
    assert (codes, other.code, len(service.applied)) == ([0, 7], 0, 9)
    assert set(service.applied.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("blank", ["", "\n"], ids=["same lines", "other lines"])
def test_file_without_references_whose_batch_was_dropped_is_completed(
    start: Start, rows: WriteRows, blank: str
) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 2 else "")
    path = str(rows(text="amount,currency\n1,EUR\n2,EUR\n3,EUR\n"))
    run("create", path, *RUN, "--concurrency", "1")
    run("drop", "b1", "--yes")
    service.answer = after(0, "")
    path = str(rows(text=f"amount,currency\n{blank}1,EUR\n2,EUR\n3,EUR\n", name="again.csv"))

    again, rest = (run("create", path, *RUN, *more) for more in ((), ("--skip-done",)))

    assert (again.code, again.error["code"]) == (7, "already_done")
    assert (rest.code, counts_of(rest), service.applied) == (0, (1, 0, 0, 0), {"1": 1, "2": 1, "3": 1})


def test_unknown_row_without_a_reference_stops_its_dropped_file(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: (None, "401 No")[number - 2] if number > 1 else "")
    path = str(rows(text="amount,currency\n1,EUR\n2,EUR\n3,EUR\n"))
    run("create", path, *RUN, "--concurrency", "1")
    run("drop", "b1", "--yes")
    sent = len(service.received)

    stopped = run("create", path, *RUN, "--skip-done")

    assert (stopped.code, stopped.error["entry"], len(service.received)) == (12, "j2", sent)


def test_drop_is_confirmed_by_the_number_of_rows(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(5)), *RUN)

    codes = [
        run("drop", "b1").code,
        run("drop", "b1", stdin="yes\n", terminal=True).code,
        run("drop", "b1", stdin="4\n", terminal=True).code,
    ]

    assert (codes, run("drop", "b9", "--yes").code) == ([3, 3, 0], 6)


def test_service_that_throttles_for_ever_stops_the_run(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "429 Too Many Requests" if number > 2 else "", "retry_throttled = true")

    result = run("create", str(rows(9)), *RUN, "--concurrency", "1", **Clock().injected)

    assert (result.code, counts_of(result)[0], "refuses every row for now" in result.err) == (15, 2, True)
