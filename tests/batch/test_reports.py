"""What a batch says of rows that are done otherwise than asked, or not at all: it never claims more than is known."""

import json
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from wire_server import Seen

from batch.conftest import Clock, Start, WriteRows, counts_of, fail_after
from batch.services import as_usual
from escrowctl.journal.journal import Journal

RUN = ("--yes", "--json")
IDS = "id\n" + "".join(f"tx_{number}\n" for number in range(1, 31))


def test_release_that_is_not_confirmed_is_not_left_out_until_it_is(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.released_as = "held"
    path = str(rows(text="id\ntx_1\ntx_2\n"))
    first = run("release", path, *RUN)
    part = str(rows(text="id\ntx_1\n", name="part.csv"))

    assert "but not confirmed" in run("release", part, "--yes", "--skip-done").err
    left_out = run("release", part, *RUN, "--skip-done")
    service.released_as = "released"
    resolved = run("journal", "resolve", "j1")
    then = run("release", part, "--yes", "--skip-done")

    assert (first.code, left_out.code, resolved.code, then.code) == (16, 7, 0, 0)
    assert left_out.error["flaws"] == [{"line": 2, "why": "j1 is done, but not confirmed: the status is held"}]
    assert set(service.applied.values()) == {1}


def test_releases_that_are_only_pending_are_counted_in_a_note(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.released_as = "processing"

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)
    service.released_as = "released"
    resolved = run("journal", "resolve", "j1")
    shown = run("show", "b1", "--json")

    assert (result.code, counts_of(result), resolved.code) == (0, (2, 0, 0, 0), 0)
    notes = [[json.loads(line)["note"] for line in one.err.splitlines() if '"note"' in line] for one in (result, shown)]
    counted = [
        note["message"].rpartition(": ")[2] for one in notes for note in one if note.get("code") == "not_confirmed"
    ]
    assert counted == ["2 rows", "1 row"]


def test_difference_is_not_forgotten_when_the_rest_is_sent(start: Start, rows: WriteRows, tmp_path: Path) -> None:
    service, run = start()
    service.reports = lambda amount: 1 if amount == 100 else amount
    results = tmp_path / "results.jsonl"

    first = run("create", str(rows(4)), *RUN)
    resumed = run("resume", "b1", *RUN, "--results", str(results))

    assert (first.code, counts_of(first)) == (15, (1, 0, 0, 3))
    assert (resumed.code, counts_of(resumed)) == (16, (4, 0, 0, 0))
    assert json.loads(results.read_text().splitlines()[0])["detail"] == "200; but its amount is 1 (100 was sent)"


def test_accepted_create_is_compared_with_its_record(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda _number, _seen: "202 Accepted")
    service.reports = lambda amount: amount * 10

    result = run("create", str(rows(1)), *RUN)

    assert (result.code, "its amount is 1000" in result.err) == (16, True)


@pytest.mark.parametrize(("status", "code", "unknown"), [("", 16, 0), ("202 Accepted", 12, 1)], ids=["200", "202"])
def test_id_of_another_create_is_noticed(start: Start, rows: WriteRows, status: str, code: int, unknown: int) -> None:
    service, run = start(lambda _number, _seen: status)
    service.name_next = lambda _number: "tx_same"

    result = run("create", str(rows(2, text="reference,amount,currency\nA-1,7,EUR\nA-2,7,EUR\n")), *RUN)

    assert (result.code, counts_of(result)) == (code, (2 - unknown, 0, unknown, 0))
    assert unknown or "j1 has the same id" in result.err


@pytest.mark.slow
def test_throttled_reads_slow_down_and_end_well(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.answer_read = lambda number: "429 Too Many Requests" if 3 < number < 9 else ""

    result = run("release", str(rows(text=IDS)), *RUN, **Clock().injected)

    assert (result.code, counts_of(result)) == (0, (30, 0, 0, 0)), result.err


def test_success_with_retry_after_does_not_slow_down(start: Start, rows: WriteRows) -> None:
    clock = Clock()
    _, run = start(lambda _number, _seen: "201 Created\r\nRetry-After: 30")

    result = run("create", str(rows(9)), *RUN, **clock.injected)

    assert (result.code, clock.now < 1) == (0, True), clock.now


def test_first_row_that_cannot_be_sent_does_not_stop_the_others(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.answer_read = lambda number: "404 Not Found" if number == 1 else ""

    result = run("release", str(rows(text="id\ntx_1\ntx_2\ntx_3\n")), *RUN)

    assert (result.code, counts_of(result)) == (15, (2, 0, 0, 1))
    assert service.applied == {"tx_2": 1, "tx_3": 1}


def test_five_rows_that_cannot_be_sent_stop_the_run(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.answer_read = lambda _number: "404 Not Found"

    result = run("release", str(rows(text=IDS)), *RUN, "--concurrency", "1")

    assert (result.code, counts_of(result), "had the same failure" in result.err) == (15, (0, 0, 0, 30), True)


@pytest.mark.parametrize(
    ("status", "code", "said"), [(None, 12, "3 rows: 2 done"), ("422 No", 15, "3 rows: 2 done"), ("", 12, "all 3 rows")]
)
def test_closed_output_does_not_hide_the_code(
    start: Start, rows: WriteRows, status: str | None, code: int, said: str
) -> None:
    _, run = start(lambda number, _seen: status if number == 2 else "")

    with Path("/dev/full").open("w") as full:
        result = run("create", str(rows(3)), "--yes", "--concurrency", "1", stdout=full)

    assert (result.code, said in result.err, "Nothing was sent" in result.err) == (code, True, False)


@pytest.mark.slow
def test_journal_that_fails_while_rows_are_fetched_accounts_for_all(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is unknown, but not of the run that fails."""
    service, run = start(lambda number, _seen: ("", None, "401 No")[number - 1])
    run("create", str(rows(600)), *RUN, "--concurrency", "1")
    service.answer, before = as_usual, len(service.received)
    with monkeypatch.context() as patch:
        fail_after(patch, "claim", 3, owner=Journal)
        result = run("resume", "b1", *RUN)
    done, _, unknown, _ = counts_of(run("show", "b1", "--json"))

    assert (result.code, "Nothing was sent" in result.err, len(service.received) > before) == (12, False, True)
    assert (done + unknown >= len(service.applied), unknown > 0) == (True, True)
    assert "b1 (600 rows) until then: " in result.error["message"]


@pytest.mark.slow
def test_second_signal_takes_in_what_was_answered(start: Start, rows: WriteRows) -> None:
    arrived, ended = threading.Event(), threading.Event()

    def answer(number: int, _seen: Seen) -> str:
        if number == 20:
            # All others were answered by now: only this one is on its way.
            time.sleep(0.3)
            arrived.set()
            ended.wait(10)
        return ""

    _, run = start(answer)

    def stop() -> None:
        arrived.wait(10)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.3)
        signal.raise_signal(signal.SIGINT)

    stopper = threading.Thread(target=stop)
    stopper.start()
    result = run("create", str(rows(20)), *RUN, "--concurrency", "4")
    ended.set()
    stopper.join()

    assert (result.code, counts_of(result)) == (12, (19, 0, 1, 0))


def test_signal_in_the_last_row_leaves_nothing_to_resume(start: Start, rows: WriteRows) -> None:
    def answer(number: int, _seen: Seen) -> str:
        if number == 3:
            signal.raise_signal(signal.SIGINT)
        return ""

    _, run = start(answer)

    result = run("create", str(rows(3)), *RUN, "--concurrency", "1")

    assert (result.code, counts_of(result), "resume" in result.err) == (130, (3, 0, 0, 0), False)


@pytest.mark.slow
def test_results_of_a_running_batch_name_each_row_once(
    start: Start, rows: WriteRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows move from the plan to entries while the results are written."""
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(1200)), *RUN, "--concurrency", "1")
    service.answer = as_usual
    in_batch, moved = Journal.read_batch, [False]
    path = tmp_path / "results.jsonl"

    def moving(self: Journal, *words: object, **keywords: object) -> object:
        if not moved[0]:
            moved[0] = True
            assert run("resume", "b1", *RUN, "--rps", "2000").code == 0
        return in_batch(self, *words, **keywords)  # type: ignore[arg-type] # as it came

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "read_batch", moving)
        run("show", "b1", "--results", str(path))

    assert [json.loads(line)["line"] for line in path.read_text().splitlines()] == list(range(2, 1202))


def test_results_of_a_dropped_batch_have_every_row(start: Start, rows: WriteRows, tmp_path: Path) -> None:
    _, run = start(lambda number, _seen: "401 No" if number > 2 else "")
    run("create", str(rows(6)), *RUN, "--concurrency", "1")
    run("drop", "b1", "--yes")
    path = tmp_path / "results.csv"

    shown = run("show", "b1", "--json", "--results", str(path))
    again = run("drop", "b1", "--yes")

    assert (len(path.read_text().splitlines()), counts_of(shown), again.code) == (7, (2, 0, 0, 4), 7)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_results_replace_only_results_of_the_same_batch(
    start: Start, rows: WriteRows, tmp_path: Path, ending: str
) -> None:
    service, run = start(lambda number, _seen: "401 No" if number == 2 else "")
    mine, others, old = (tmp_path / f"{name}.{ending}" for name in ("mine", "others", "old"))
    old.write_text("amount,currency\n1,EUR\n" if ending == "csv" else '{"batch":"b1","amount":1}\n')
    before = old.read_text()
    run("create", str(rows(2)), *RUN, "--results", str(mine))
    run("create", str(rows(2, first=11)), *RUN, "--results", str(others))
    sent, texts = len(service.received), (mine.read_text(), others.read_text())
    # After a failover, another journal can have a batch of the same name.
    lost = tmp_path / f"lost.{ending}"
    lost.write_text(re.sub("[0-9a-f-]{36}", "the journal that was lost", texts[0]))

    shown = [run("show", "b1", "--results", str(path)).code for path in (old, others, lost, mine)]
    resumed = [run("resume", "b1", *RUN, "--results", str(path)) for path in (old, others)]
    started = [run("create", str(rows(1, first=21)), *RUN, "--results", str(path)) for path in (old, mine)]

    assert shown == [2, 2, 2, 0]
    assert [(one.code, one.error["code"]) for one in (*resumed, *started)] == [(2, "bad_value")] * 4
    assert (len(service.received), run("list", "-q").out) == (sent, "b2\nb1\n")
    assert (old.read_text(), (mine.read_text(), others.read_text())) == (before, texts)
    assert run("resume", "b1", *RUN, "--results", str(mine)).code == 0
    assert ("not_sent" in texts[0], "not_sent" in mine.read_text()) == (True, False)


def test_thread_that_cannot_be_started_is_said_before_a_row_is_begun(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start()

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    path = str(rows(3))
    run("create", path, "--dry-run")
    with monkeypatch.context() as patch:
        patch.setattr("escrowctl.batch.run.threading.Thread", Refused)
        result = run("create", path, *RUN)
    shown = run("show", "b1", "--json")

    assert (result.code, "Use a lower number" in result.error["message"], service.received) == (2, True, [])
    assert counts_of(shown) == (0, 0, 0, 3)


def test_release_without_a_status_that_proves_it_is_done(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start()
    config = home / "config.toml"
    config.write_text(config.read_text().replace('status.released = ["released"]', ""))

    result = run("release", str(rows(text="id\ntx_1\ntx_2\n")), *RUN)

    assert (result.code, counts_of(result), "not_confirmed" in result.err) == (0, (2, 0, 0, 0), True)
    assert ["config set status.released" in result.err, "journal resolve ENTRY" in result.err] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_progress_is_reported(start: Start, rows: WriteRows, *, terminal: bool) -> None:
    _, run = start()

    words = ("create", str(rows(60)), "--yes", "--rps", "1")
    result = run(*words, terminal=terminal, environ={"TERM": "xterm"}, **Clock(speed=3).injected)

    assert result.code == 0
    shown = "[####" if terminal else "note: b1: "
    assert (shown in result.err, "refused 0   unknown 0" in result.err, " left" in result.err) == (True, True, True)
    # A reply does not erase the bar.
    assert result.err.count("\r\x1b[K") < 5


def test_results_that_cannot_be_written_are_reported(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("create", str(rows(3)), "--yes", "--results", "/proc/x.csv")

    assert (result.code, "could not be written" in result.err, len(service.received)) == (12, True, 3)
    assert run("show", "b1", "--results", "/proc/x.csv").code == 17


def test_last_row_created_otherwise_than_sent_is_a_failed_check(start: Start, rows: WriteRows) -> None:
    service, run = start()
    service.reports = lambda amount: 1 if amount == 102 else amount

    result = run("create", str(rows(3)), *RUN, "--concurrency", "1")
    again = run("create", str(rows(3)), *RUN, "--skip-done")
    shown = run("show", "b1")

    assert (result.code, counts_of(result)) == (16, (3, 0, 0, 0))
    assert ("line 4 (j3): its amount is 1" in result.err, "line 4 (j3): its amount is 1" in shown.err) == (True, True)
    assert again.code == 7
