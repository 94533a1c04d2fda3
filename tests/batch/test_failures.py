"""What fails under a batch: its processes, its journal, the disk; each row is accounted for all the same."""

import errno
import signal
import sqlite3
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from wire_server import Seen

from batch.conftest import Clock, Start, WriteRows, counts_of, fail_after
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.journal import Journal

RUN = ("--yes", "--json")


@pytest.mark.slow
def test_second_signal_leaves_what_is_on_its_way_unknown(start: Start, rows: WriteRows) -> None:
    ended = threading.Event()

    def answer(number: int, _seen: Seen) -> str:
        if number == 5:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.8)
            signal.raise_signal(signal.SIGINT)
        if number >= 5:
            ended.wait(10)
        return ""

    service, run = start(answer)

    result = run("create", str(rows(40)), *RUN, "--concurrency", "2", **Clock().injected)
    ended.set()

    done, failed, unknown, left = counts_of(result)
    assert (result.code, done, failed, 1 <= unknown <= 3, left) == (12, 4, 0, True, 36 - unknown)
    assert len(service.received) <= 6


@pytest.mark.parametrize("number", [8, 9, 10, 11])
def test_journal_that_fails_ends_the_run(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    service, run = start()
    path = str(rows(40))
    run("list")
    with monkeypatch.context() as patch:
        fail_after(patch, "_commit", number, sqlite3.OperationalError("disk I/O error"))
        result = run("create", path, *RUN, "--concurrency", "2")
    sent = len(service.received)
    shown = run("show", "b1", "--json")

    done, _, unknown, _ = counts_of(shown)
    # It holds outcomes and intents, or the rows that are taken next.
    assert (result.code, result.error["code"]) == ((12, "some_unknown") if unknown else (15, "some_failed"))
    assert (done + unknown >= sent, sent < 40) == (True, True)


def test_process_that_cannot_be_started_is_a_warning(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start()
    further = "escrowctl.commands.batch.further"
    monkeypatch.setattr(f"{further}.os.sched_getaffinity", lambda _process: {1, 2})
    monkeypatch.setattr(f"{further}.Popen", Mock(side_effect=BlockingIOError(errno.EAGAIN, "no more processes")))

    result = run("create", str(rows(40)), "--yes", "--concurrency", "32")

    assert (result.code, len(service.applied)) == (0, 40)
    assert "warning: only 1 of 2 processes send rows, because no other can be started: no more processes" in result.err


@pytest.mark.parametrize("number", [10, 11, 12, 13])
def test_commit_that_fails_once_loses_no_answer(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _, run = start()
    path = str(rows(40))
    run("list")
    with monkeypatch.context() as patch:
        fail_after(patch, "_commit", number, sqlite3.OperationalError("database is locked"), times=1)
        result = run("create", path, *RUN, "--concurrency", "1")
    done, failed, unknown, _ = counts_of(run("show", "b1", "--json"))

    # It holds an outcome, which is recorded all the same, or an intent, which is not sent.
    assert (result.code, failed, unknown) == (0 if done == 40 else 15, 0, 0)
    assert done > 0


@pytest.mark.slow
def test_results_that_do_not_fit_leave_the_file_as_it_was(
    start: Start, rows: WriteRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _, run = start()
    path = tmp_path / "results.csv"
    run("create", str(rows(3)), *RUN, "--results", str(path))
    before = path.read_text()
    with monkeypatch.context() as patch:
        patch.setattr("escrowctl.batch.results.os.fsync", fail)

        result = run("show", "b1", "--results", str(path))

    assert (result.code, path.read_text()) == (17, before)
    assert [one.name for one in tmp_path.iterdir() if "results" in one.name] == ["results.csv"]


@pytest.mark.parametrize("place", ["pipeline.Pipeline._inspect_target", "writer.make_headers"])
def test_defect_of_a_row_is_an_outcome(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(place)

    service, run = start()
    monkeypatch.setattr(f"escrowctl.writes.{place}", fail)

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)

    assert (result.code, counts_of(result), service.received) == (15, (0, 0, 0, 2), [])
    assert "internal error" in result.err


def test_reasons_that_cannot_be_stored_hide_no_outcome(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = start()

    def fail(_journal: Journal, _rows: object) -> None:
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, "the journal cannot be written: no space left.")

    monkeypatch.setattr(Journal, "store_plan_rows", fail)
    result = run("release", str(rows(text="id,amount,currency\ntx_1,100,EUR\ntx_2,99,EUR\n")), *RUN)

    assert (result.code, counts_of(result), "no space left" in result.err) == (15, (1, 0, 0, 1), True)
