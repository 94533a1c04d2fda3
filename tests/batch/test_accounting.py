"""Whatever fails in the middle of a batch: no row goes out twice or too early, and none is left out of the account."""

import json
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from wire_server import Seen

from batch.conftest import FAILS, Clock, Start, WriteRows, counts_of, fail_after, open_elsewhere
from batch.services import as_usual
from escrowctl.batch.claimants import Claimant, RunState, SharedRun
from escrowctl.batch.plan import find_batch
from escrowctl.batch.rows import RowContent
from escrowctl.batch.run import RowResult, Run
from escrowctl.errors import ErrorCode, Outcome, not_sent
from escrowctl.journal.commit import Commit
from escrowctl.journal.model import AttemptRequest, Entry, Selection
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.tables import storage as table_storage
from escrowctl.runtime import Runtime
from escrowctl.signals import Signals

RUN = ("--yes", "--json")
WITHOUT_REFERENCES = "amount,currency\n7,EUR\n8,EUR\n9,EUR\n"


# What is said after the sending


def test_results_that_cannot_be_read_after_all_is_done(
    start: Start, rows: WriteRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start()

    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(table_storage, "read_where", fail)
    result = run("create", str(rows(3)), "--yes", "--results", str(tmp_path / "results.csv"))

    assert (result.code, len(service.applied), "Nothing was sent" in result.err) == (12, 3, False)
    assert "b1: all 3 rows are done, but" in result.err


def test_reasons_that_cannot_be_read_hide_no_outcome(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start(lambda number, _seen: None if number == 2 else "")
    select = SqliteStorage.select

    def fail(self: SqliteStorage, selection: Selection, *, before: int | None = None) -> list[Entry]:
        if selection.batch is not None and service.received:
            raise FAILS
        return select(self, selection, before=before)

    monkeypatch.setattr(SqliteStorage, "select", fail)
    result = run("create", str(rows(3)), "--yes")

    assert (result.code, len(service.applied)) == (12, 3)
    assert ": 2 done, 1 unknown." in result.err


def test_row_to_be_sent_again_is_counted_when_the_journal_fails(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start(lambda _number, _seen: "503 Busy", deduplicates=True)
    begin_all, failed = Commit.begin_all, list[int]()

    def fail(self: Commit, attempts: Sequence[AttemptRequest]) -> object:
        if any(one.again is not None for one in attempts):
            failed.append(len(attempts))
            raise FAILS
        return begin_all(self, attempts)

    monkeypatch.setattr(Commit, "begin_all", fail)
    result = run("create", str(rows(1)), "--yes", **Clock().injected)

    assert failed
    assert (result.code, sum(service.applied.values())) == (12, 1)
    assert "b1 has 1 row: 1 unknown." in result.err


@pytest.mark.slow
def test_unknown_row_that_is_not_sent_again_stays_what_it_is(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        # The second attempt of one is begun while eight are on the wire, and never goes out.
        if number == 3:
            time.sleep(0.8)
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.4 if number == 3 else 1.2 if number > 3 else 0)
        return "503 Busy" if number == 2 else ""

    service, run = start(answer, deduplicates=True)

    given: dict[str, Any] = {"sleep": time.sleep, "random_fraction": lambda: 0.0}
    result = run("create", str(rows(40)), "--yes", "--concurrency", "8", **given)

    assert (result.code, "nothing was sent" in result.err) == (12, False), result.err
    assert "an earlier attempt may have succeeded; the last one was not sent" in result.err
    assert set(service.applied.values()) == {1}


def test_answered_row_is_not_said_to_be_unsent_where_the_sums_cannot_be_read(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start(lambda _number, _seen: "401 No")
    fail_after(monkeypatch, "sum_batch", 0)

    result = run("create", str(rows(3)), "--yes")

    assert (result.code, len(service.received), "Nothing was sent" in result.err) == (15, 1, False), result.err


def test_release_that_is_unknown_is_never_said_to_be_unsent(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: None if number > 1 else "", deduplicates=True)
    service.released_as = "held"
    service.answer_read = lambda number: "404 Not Found" if number >= 5 else ""

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), "--yes", "--concurrency", "1", **Clock().injected)

    assert (result.code, "line 3 was not sent" in result.err) == (12, False)
    assert "unknown: line 3 (j2)" in result.err


# What goes out, and when


def test_first_row_stays_alone_until_one_is_done(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda _number, _seen: "503 Busy", deduplicates=True)

    result = run("create", str(rows(9)), *RUN, **Clock().injected)

    assert (result.code, len(service.applied), len(service.received)) == (12, 1, 3)


@pytest.mark.slow
def test_refusals_that_are_not_in_a_row_do_not_stop_the_run(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        # The replies to many rows come together.
        time.sleep(0.03)
        return "" if number % 8 else "422 Unprocessable"

    _, run = start(answer)

    result = run("create", str(rows(320)), *RUN, "--concurrency", "64")

    assert (result.code, counts_of(result)) == (15, (280, 40, 0, 0)), result.err


def test_created_otherwise_than_sent_stops_the_run(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, different = list[int](), set[int]()
    is_written, settle_all = threading.Event(), Commit.settle_all

    def answer(number: int, seen: Seen) -> str:
        if number == 5:
            different.add(json.loads(seen.body)["amount"])
        elif number > 5:
            is_written.wait(5)
        return ""

    def settle_noted(commit: Commit, settled: Any) -> Any:
        if any(one.remark for _, one in settled):
            arrived = -1
            while arrived != len(service.received):  # some are on their way
                arrived = len(service.received)
                time.sleep(0.1)
            sent.append(arrived)
            is_written.set()
            time.sleep(0.3)
            sent.append(len(service.received))
        return settle_all(commit, settled)

    monkeypatch.setattr(Commit, "settle_all", settle_noted)
    service, run = start(answer)
    service.reports = lambda amount: 1 if amount in different else amount

    result = run("create", str(rows(60)), *RUN, "--concurrency", "8")

    # No row leaves while the one that differs is recorded.
    _, failed, unknown, left = counts_of(result)
    assert (result.code, failed, unknown, left > 40, sent[0] == sent[1]) == (15, 0, 0, True, True), sent
    assert "its amount is 1" in result.err


def test_done_release_is_not_sent_again_after_a_429(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        service.released_as = "released" if number in (1, 4) else "held"
        return "" if number == 1 else "429 Too Many Requests" if number == 4 else "503 Busy"

    service, run = start(answer, deduplicates=True)
    path = str(rows(text="id\ntx_1\ntx_2\n"))

    result = run("release", path, *RUN, "--concurrency", "1", **Clock().injected)

    assert (result.code, counts_of(result), len(service.received)) == (0, (2, 0, 0, 0), 4), result.err
    assert "was not sent" not in result.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["create", "release"])
def test_nothing_goes_out_while_the_service_asks_to_wait(verb: str, start: Start, rows: WriteRows) -> None:
    moments: list[float] = []

    def answer(number: int, _seen: Seen) -> str:
        moments.append(time.monotonic())
        if number == 13:
            # The last of four that went out at once.
            return "429 Too Many Requests\r\nRetry-After: 1"
        # Long enough for rows to be begun ahead of it.
        time.sleep(0.05)
        return ""

    service, run = start(answer, "retry_throttled = true")
    path = str(rows(40) if verb == "create" else rows(text="id\n" + "".join(f"tx_{n}\n" for n in range(1, 41))))

    result = run(verb, path, *RUN, "--concurrency", "4", sleep=time.sleep)

    assert (result.code, counts_of(result)) == (0, (40, 0, 0, 0)), result.err
    # Those on their way arrive, and the free connection may send one more before the others hear of it; otherwise
    # each of four would send every 50 ms.
    assert len([moment for moment in moments if 0 < moment - moments[12] < 0.9]) <= 4
    assert set(service.applied.values()) == {1}


@pytest.mark.slow
def test_rows_begun_ahead_are_not_sent_after_the_run_has_ended(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        time.sleep(0 if number == 1 else 0.4 if number == 2 else 0.8)
        return "403 Forbidden" if number == 2 else ""

    service, run = start(answer)

    result = run("create", str(rows(60)), *RUN, "--concurrency", "8")
    held_back = run("journal", "list", "--state", "not_sent", "--json")

    # The first, and twice eight. Eight were on the wire, and the one that was refused made room for one more at most.
    assert (result.code, len(service.received) <= 10) == (15, True), result.err
    assert len(json.loads(held_back.out)) == 17 - len(service.received)
    service.answer = as_usual
    assert (counts_of(run("resume", "b1", *RUN)), set(service.applied.values())) == ((60, 0, 0, 0), {1})


def test_release_to_be_sent_again_must_be_what_it_was(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        if number == 2:
            service.amounts["tx_2"] = 900
        return "429 Too Many Requests" if number == 2 else ""

    service, run = start(answer, "retry_throttled = true", "caps.EUR = 250")

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN, "--concurrency", "1", **Clock().injected)

    assert (result.code, counts_of(result), service.applied) == (15, (1, 0, 0, 1), {"tx_1": 1}), result.err


def test_rows_that_cannot_be_sent_do_not_stop_those_behind_them(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.applied.update({f"tx_{number}": 1 for number in range(1, 8)})
    path = str(rows(text="id\n" + "".join(f"tx_{number}\n" for number in range(1, 10))))

    result = run("release", path, *RUN)

    assert (result.code, counts_of(result)) == (15, (2, 0, 0, 7)), result.err


def refuse(_row: RowContent) -> RowResult:
    return RowResult(None, not_sent(ErrorCode.EXPECTATION_FAILED, "not as expected."))


def test_rows_that_end_without_the_journal_are_all_counted(home: Path) -> None:
    def change_state(change: Callable[[RunState], RunState]) -> RunState:
        states.append(change(states[-1]))
        return states[-1]

    journal, progress = open_elsewhere(home), Mock()
    rows = iter([RowContent("tx", line=line) for line in range(1000)])
    claimants = (Claimant("one", "", "", 1, ""), Claimant("another", "", "", 2, ""))
    states = [RunState(claimants, ended=Counter({Outcome.DONE: 7}))]
    shared = Mock(journal=journal, runtime=Runtime(), now=Runtime().now, read=lambda: states[-1], change=change_state)
    shared.claim = lambda limit: list(islice(rows, limit)) or None
    shared.has_working_others.return_value = False

    run = Run(shared, 8, Signals().take_pending, progress)
    run.send_rows([Mock(send=refuse)] * 16)

    journal.close()
    # Each claimant knows how many rows the others have ended.
    assert run.counts == progress.show_progress.call_args.args[0] == {Outcome.NOT_SENT: 1000, Outcome.DONE: 7}
    assert states[-1].ended[Outcome.NOT_SENT] > 0


# Files whose rows have no references


@pytest.mark.parametrize("settings", [(), ('reference_field = "ref"',)], ids=["kept here", "sent"])
def test_row_equal_to_an_unknown_create_is_refused(settings: tuple[str, ...], start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: None if number == 1 else "", *settings)
    run("tx", "create", "--amount", "7", "--currency", "EUR")

    result = run("create", str(rows(text=WITHOUT_REFERENCES)), *RUN)

    assert (result.code, len(service.received), "journal resolve j1" in result.err) == (12, 1, True)


# Counts and values


def test_amounts_of_rows_without_one_are_not_taken_from_the_others(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 2 else "")
    lines = [*(f"tx_{number},," for number in range(1, 6)), *(f"tx_{number},100,EUR" for number in range(6, 11))]

    result = run(
        "release", str(rows(text="\n".join(["id,amount,currency", *lines, ""]))), "--yes", "--concurrency", "1"
    )
    begun = len(run("journal", "list", "--json").json)

    # Of those that were not begun, some have no amount that is known: none is shown for them.
    assert f"not sent\t8\t{100 * (begun - len(service.applied))}\n" in result.out


def test_claimant_whose_run_has_ended_keeps_no_other_waiting(start: Start, rows: WriteRows, home: Path) -> None:
    """It has found no more rows while its last one was in progress."""

    def refuse_late(row: RowContent) -> RowResult:
        while run_of_first._has_more_rows:  # noqa: SLF001 - what it waits for
            time.sleep(0.01)
        return refuse(row)

    _, run = start(lambda _number, _seen: "401 No")
    run("create", str(rows(1)), *RUN)
    journals = [open_elsewhere(home), open_elsewhere(home)]
    service = Mock(may_repeat_throttled=False, deduplicates=False, caps={})
    first, second = (SharedRun(one, find_batch(one, "b1"), service, Runtime()) for one in journals)
    first.start(None)
    first.change(lambda state: state._replace(first_sender=None))
    second.join()
    before = second.has_working_others(is_idle=True)

    run_of_first = Run(first, 8, Signals().take_pending, Mock())
    run_of_first.send_rows([Mock(send=refuse_late)])

    # The process of the first may now wait for that of the second.
    assert (before, second.has_working_others(is_idle=True)) == (True, False)
    for one in journals:
        one.close()


def test_rate_is_shared_by_hosts_whose_clocks_differ(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start(lambda _number, _seen: "401 No")
    run("create", str(rows(1)), *RUN)
    journals = [open_elsewhere(home), open_elsewhere(home)]
    ahead = Runtime(now=lambda: datetime.now(UTC) + timedelta(hours=1))
    batch, service = find_batch(journals[0], "b1"), Mock(deduplicates=False, caps={})
    shared = [SharedRun(one, batch, service, on) for one, on in zip(journals, (Runtime(), ahead), strict=True)]
    shared[0].start(None)
    shared[1].join()

    waits = [shared[host].reserve(0.1, 1) for host in (0, 1, 0)]

    assert [round(wait, -1) for wait in waits] == [0, 10, 20]
    for one in journals:
        one.close()
