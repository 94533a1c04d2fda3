"""What rarely happens to a batch: lost processes, lost journals, second signals, other processes, many flaws."""

import errno
import os
import signal
import sqlite3
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import KEY
from wire_server import Seen

from batch.conftest import Clock, Start, WriteRows, counts_of
from batch.services import as_usual
from escrowctl.batch.plan import find_batch, make_batch
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.journal import Journal
from escrowctl.journal.opening import open_journal
from escrowctl.journal.sqlite.storage import SqliteStorage

RUN = ("--yes", "--json")


def open_elsewhere(home: Path) -> Journal:
    """Return the journal as another process would have it."""
    return open_journal(home / "state", now=lambda: datetime.now(UTC))


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


def find_children() -> list[int]:
    """Return this process's children, oldest first."""
    return [int(child) for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


def kill_children() -> None:
    for child in find_children():
        os.kill(child, signal.SIGKILL)
    time.sleep(0.2)


def test_first_row_of_a_process_that_ended_is_unknown(start: Start, rows: WriteRows) -> None:
    def answer(_number: int, _seen: Seen) -> str:
        kill_children()
        return ""

    _, run = start(answer)

    result = run("create", str(rows(3)), "--yes")

    assert (result.code, "line 2 (j1): the process ended without recording an outcome" in result.err) == (12, True)


def test_rows_of_a_process_that_ended_are_unknown(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        if number == 4:
            kill_children()
        return ""

    service, run = start(answer)

    result = run("create", str(rows(40)), *RUN, "--concurrency", "2")
    service.answer = as_usual
    resumed = run("resume", "b1", *RUN)

    _, failed, unknown, left = counts_of(result)
    assert (result.code, failed, unknown > 0, left > 20) == (12, 0, True, True)
    assert "the process that sends was ended by signal 9" in result.err
    assert counts_of(resumed) == (40 - unknown, 0, unknown, 0)
    assert set(service.applied.values()) == {1}


def test_journal_that_fails_ends_the_run(start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch) -> None:
    service, run = start()
    path, commits = str(rows(40)), [0]
    commit = SqliteStorage._commit  # noqa: SLF001 - a disk that fails

    def failing(self: SqliteStorage, *arguments: object) -> None:
        commits[0] += 1
        if commits[0] > 8:
            raise sqlite3.OperationalError("disk I/O error")
        commit(self, *arguments)  # type: ignore[arg-type] # as it came

    run("list")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStorage, "_commit", failing)
        result = run("create", path, *RUN, "--concurrency", "2")
    sent = len(service.received)
    shown = run("show", "b1", "--json")

    done, _, unknown, _ = counts_of(shown)
    assert (result.code, result.error["code"]) == (12, "some_unknown")
    assert (done + unknown >= sent, unknown > 0, sent < 40) == (True, True, True)


def test_commit_that_fails_once_loses_no_answer(start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch) -> None:
    _, run = start()
    path, commits = str(rows(40)), [0]
    commit = SqliteStorage._commit  # noqa: SLF001 - a disk that fails

    def failing(self: SqliteStorage, *arguments: object) -> None:
        commits[0] += 1
        if commits[0] == 12:
            raise sqlite3.OperationalError("database is locked")
        commit(self, *arguments)  # type: ignore[arg-type] # as it came

    run("list")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStorage, "_commit", failing)
        # At a rate, no row is begun before the last one has ended.
        result = run("create", path, *RUN, "--concurrency", "1", "--rps", "1000")
    done, failed, unknown, _ = counts_of(run("show", "b1", "--json"))

    # What was answered is on record all the same.
    assert (result.code, result.error["code"], done > 3, failed, unknown) == (15, "some_failed", True, 0, 0)


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


def test_service_that_throttles_for_ever_stops_the_run(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "429 Too Many Requests" if number > 2 else "", "retry_throttled = true")

    result = run("create", str(rows(9)), *RUN, "--concurrency", "1", **Clock().injected)

    assert (result.code, counts_of(result)[0], "refuses every row for now" in result.err) == (15, 2, True)


@pytest.mark.parametrize("place", ["_inspect", "_write"])
def test_defect_of_a_row_is_an_outcome(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    from escrowctl.batch.worker import Worker

    def fail(*_: object) -> None:
        raise RuntimeError(place)

    service, run = start()
    monkeypatch.setattr(Worker, place, fail)

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)

    expected = (0, 0, 0, 2) if place == "_inspect" else (0, 0, 1, 1)
    assert (result.code, counts_of(result), service.received) == (15 if place == "_inspect" else 12, expected, [])
    assert "internal error" in result.err


def test_release_without_a_status_that_proves_it_is_done(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start()
    config = home / "config.toml"
    config.write_text(config.read_text().replace('status.released = ["released"]', ""))

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)

    assert (result.code, counts_of(result), "not_confirmed" in result.err) == (0, (2, 0, 0, 0), True)
    assert ["config set status.released" in result.err, "journal resolve ENTRY" in result.err] == [True, True]


def test_release_that_the_record_does_not_show_is_reported(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.released_as = "held"

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)

    assert (result.code, counts_of(result)) == (16, (2, 0, 0, 0))
    assert "lines 2 (j1), 3 (j2): not confirmed: the status is held" in result.err


def test_drop_is_confirmed_by_the_number_of_rows(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(5)), *RUN)

    codes = [
        run("drop", "b1").code,
        run("drop", "b1", stdin="yes\n", terminal=True).code,
        run("drop", "b1", stdin="4\n", terminal=True).code,
    ]

    assert (codes, run("drop", "b9", "--yes").code) == ([3, 3, 0], 6)


def test_batch_without_rows_to_send_is_not_dropped(start: Start, rows: WriteRows) -> None:
    _, run = start()
    run("create", str(rows(2)), *RUN)

    result = run("drop", "b1", "--yes")

    assert (result.code, run("list").out.split("\t")[-1].strip()) == (7, "ended")


def test_rows_of_two_batches_are_named_so(start: Start, rows: WriteRows) -> None:
    _, run = start()
    run("create", str(rows(2)), *RUN)
    run("create", str(rows(8, first=3)), *RUN)

    refused = run("create", str(rows(10)), *RUN)

    assert (refused.code, "2 batches" in refused.error["message"]) == (7, True)


def test_row_that_another_process_sends_now_is_named_so(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start()
    run("tx", "create", "--amount", "1", "--currency", "EUR", "--reference", "A-1", "--dry-run")
    run("journal", "list")
    run("tx", "create", "--amount", "1", "--currency", "EUR", "--reference", "X")
    elsewhere = open_elsewhere(home)
    first = elsewhere.find(1)
    assert first is not None
    elsewhere.begin(first.intent._replace(reference="A-1", idempotency_key="k"), request_id="r")

    busy = run("create", str(rows(2)), *RUN)
    elsewhere.close()
    unknown = run("create", str(rows(2)), *RUN)

    assert (busy.code, unknown.code) == (7, 12)


def test_file_that_another_process_starts_now_is_busy(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start()
    path = str(rows(3))
    run("create", path, *RUN)
    elsewhere = open_elsewhere(home)
    lock = find_batch(elsewhere, "b1").lock
    assert elsewhere.hold(f"{lock}march")

    busy = run("create", path, *RUN, "--run-key", "march")

    elsewhere.close()
    assert (busy.code, busy.error["code"], len(service.received)) == (7, "busy", 3)


def test_name_that_another_process_took_meanwhile_is_not_taken_again(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = start()
    run("create", str(rows(2)), *RUN)
    # What the command shows before it asks is stale by the time it stores.
    with monkeypatch.context() as patch:
        patch.setattr(
            "escrowctl.commands.batch.sending.make_batch",
            lambda *words, **named: make_batch(*words, **named)._replace(name="b1"),
        )
        result = run("create", str(rows(2, first=3, name="other.csv")), *RUN)

    assert (result.code, result.json["batch"], "this batch is b2" in result.err) == (0, "b2", True)
    assert [one["done"] for one in run("list", "--json").json] == [2, 2]


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_progress_is_reported(start: Start, rows: WriteRows, *, terminal: bool) -> None:
    _, run = start()

    words = ("create", str(rows(60)), "--yes", "--rps", "1")
    result = run(*words, terminal=terminal, environ={"TERM": "xterm"}, **Clock(speed=3).injected)

    assert result.code == 0
    shown = "[####" if terminal else "note: b1: "
    assert (shown in result.err, "failed 0   unknown 0" in result.err, " left" in result.err) == (True, True, True)


def test_many_rows_that_are_not_sent_are_counted(start: Start, rows: WriteRows) -> None:
    _, run = start()
    lines = [f"tx_{number},{99 + number % 2},EUR" for number in range(1, 41)]
    path = str(rows(text="\n".join(["id,amount,currency", *lines, ""])))

    result = run("release", path, "--yes", "--concurrency", "1")

    assert (result.code, "more notes on rows are not shown" in result.err) == (15, True)
    assert "20 not sent" in result.err


def test_many_flaws_are_counted(start: Start, rows: WriteRows) -> None:
    _, run = start()

    result = run("create", str(rows(text="amount,currency\n" + "x,EUR\n" * 1200)), "--yes")

    assert (result.code, result.err.count("  line "), "1,200 of 1,200 rows" in result.err) == (2, 1000, True)


def test_file_without_references_is_completed_in_a_new_journal(
    start: Start, rows: WriteRows, home: Path, tmp_path: Path
) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 2 else "")
    path = str(rows(text="amount,currency\n100,EUR\n101,EUR\n102,EUR\n"))
    run("create", path, *RUN, "--concurrency", "1")
    export = tmp_path / "export.jsonl"
    export.write_text(run("journal", "export").out)
    (home / "state" / "journal.db").rename(tmp_path / "lost.db")
    run("journal", "init", "--from", str(export), "--yes")
    service.answer, sent = as_usual, len(service.received)

    again, skipping = run("create", path, *RUN), run("create", path, "--skip-done", *RUN)
    other = str(rows(text="amount,currency\n102,EUR\n"))

    assert (again.code, skipping.code, counts_of(skipping)) == (7, 0, (1, 0, 0, 0))
    assert (run("create", other, *RUN).code, len(service.received)) == (0, sent + 2)


def test_batch_is_shown_where_nothing_is_configured(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start(lambda number, _seen: "401 No" if number > 3 else "")
    run("create", str(rows(9)), *RUN, "--concurrency", "1")
    (home / "config.toml").unlink()

    shown = run("show", "b1")

    assert (shown.code, "batch resume b1" in shown.err) == (0, True)


def test_reasons_that_cannot_be_stored_hide_no_outcome(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = start()

    def fail(_journal: Journal, _rows: object) -> None:
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, "the journal cannot be written: no space left.")

    monkeypatch.setattr(Journal, "replan", fail)
    result = run("release", str(rows(text="id,amount,currency\ntx_1,100,EUR\ntx_2,99,EUR\n")), *RUN)

    assert (result.code, counts_of(result), "no space left" in result.err) == (15, (1, 0, 0, 1), True)


@pytest.mark.parametrize("reference", [(), ("--reference", "A-1")], ids=["without", "with"])
def test_row_whose_api_key_was_refused_stays_in_its_batch(
    reference: tuple[str, ...], start: Start, rows: WriteRows
) -> None:
    service, run = start(lambda number, _seen: "401 No" if number == 1 else "")
    run("create", str(rows(text="amount,currency,reference\n100,EUR,A-1\n200,EUR,A-2\n")), *RUN)
    key = run("journal", "show", "j1", "--json").json["idempotency_key"]

    by_hand = run("tx", "create", "--amount", "100", "--currency", "EUR", "--idempotency-key", key, *reference)
    resumed = run("resume", "b1", *RUN)

    assert (by_hand.code, "batch resume b1" in by_hand.err) == (7, True)
    assert (resumed.code, counts_of(resumed), len(service.received)) == (0, (2, 0, 0, 0), 3)


def test_batch_of_another_key_is_not_resumed(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(5)), *RUN)
    (home / "a.key").write_text("sk_test_another_0123456789")
    service.answer, sent = as_usual, len(service.received)

    other = run("resume", "b1", *RUN)
    (home / "a.key").write_text(KEY)
    same = run("resume", "b1", *RUN)

    assert (other.code, same.code, len(service.received) - sent) == (7, 0, 4)


def test_account_named_in_the_hint_resumes_with_another_key(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "", 'account = "acme"')
    run("create", str(rows(5)), *RUN)
    config = home / "config.toml"
    config.write_text(config.read_text().replace('account = "acme"', ""))
    (home / "a.key").write_text("sk_test_another_0123456789")
    service.answer = as_usual

    refused = run("resume", "b1", *RUN)
    followed = [run("config", "set", "account", "acme").code, run("resume", "b1", *RUN).code]

    assert (refused.code, "config set account acme" in refused.err, followed) == (7, True, [0, 0])


def test_unfinished_file_is_rehearsed_and_confirmed(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    path = str(rows(5))
    run("create", path, *RUN)
    sent = len(service.received)

    codes = [
        run("create", path, "--dry-run").code,
        run("resume", "b1").code,
        run("resume", "b1", "--yes", "--expect-count", "9").code,
        # The file is expected, or what is left of it.
        run("create", path, "--dry-run", "--expect-count", "5", "--expect-total", "EUR=510").code,
        run("resume", "b1", "--dry-run", "--expect-count", "5").code,
    ]

    assert (codes, len(service.received)) == ([0, 3, 3, 0, 3], sent)


def test_rows_without_amounts_have_no_total(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("release", str(rows(text="id\ntx_1\n")), "--yes", "--expect-total", "EUR=100")

    assert (result.code, service.received) == (3, [])


def test_results_that_cannot_be_written_are_reported(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("create", str(rows(3)), "--yes", "--results", "/proc/x.csv")

    assert (result.code, "could not be written" in result.err, len(service.received)) == (12, True, 3)
    assert run("show", "b1", "--results", "/proc/x.csv").code == 17


def test_failed_rows_of_a_file_sent_before_are_named(start: Start, rows: WriteRows) -> None:
    _, run = start(lambda number, _seen: "400 Bad" if number == 2 else "")
    path = str(rows(3))
    run("create", path, *RUN, "--concurrency", "1")

    again = run("create", path, "--yes")

    assert (again.code, "batch rejects b1" in again.err) == (7, True)


def test_last_row_created_otherwise_than_sent_is_a_failed_check(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.reports = lambda amount: 1 if amount == 102 else amount

    result = run("create", str(rows(3)), *RUN, "--concurrency", "1")
    again = run("create", str(rows(3)), *RUN, "--skip-done")
    shown = run("show", "b1")

    assert (result.code, counts_of(result)) == (16, (3, 0, 0, 0))
    assert ("line 4 (j3): its amount is 1" in result.err, "line 4 (j3): its amount is 1" in shown.err) == (True, True)
    assert again.code == 7
