"""The same rows again: by the same file, another file, or a single command."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run

from batch.conftest import Start, WriteRows, counts_of, open_elsewhere
from batch.services import BatchService, as_usual
from escrowctl.batch.overlaps import Overlaps, find_overlaps
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Selection

RUN = ("--yes", "--json")


def test_same_file_again_resumes(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 3 else "")
    path = str(rows(9))
    run("create", path, *RUN, "--concurrency", "1")
    service.answer = lambda _number, _seen: ""

    again = run("create", path, *RUN)

    assert (again.code, counts_of(again), len(run("list", "--json").json)) == (0, (9, 0, 0, 0), 1)
    assert set(service.applied.values()) == {1}


def test_another_order_is_another_file_whose_rows_are_done(start: Start, rows: WriteRows) -> None:
    service, run = start()
    run("create", str(rows(text="reference,amount,currency\nA-1,1,EUR\nA-2,2,EUR\n")), *RUN)
    other = str(rows(text="reference,amount,currency\nA-2,2,EUR\nA-1,1,EUR\nA-3,3,EUR\n", name="other.csv"))

    refused, skipped = run("create", other, *RUN), run("create", other, *RUN, "--skip-done")
    again = run("create", other, *RUN, "--skip-done")

    assert (refused.code, refused.error["lines"]) == (7, [2, 3])
    assert (skipped.code, counts_of(skipped), again.code) == (0, (1, 0, 0, 0), 0)
    assert service.applied == {"1": 1, "2": 1, "3": 1}


NOVEMBER = "reference,amount,currency\nA-1,10,EUR\nA-2,20,EUR\nA-3,30,EUR\n"
DECEMBER = ("--run-key", "december")
AGAIN = {
    "corrected row": "reference,amount,currency\nA-1,10,EUR\nA-2,21,EUR\nA-3,30,EUR\n",
    "another order": "reference,amount,currency\nA-3,30,EUR\nA-2,21,EUR\nA-1,10,EUR\n",
    "amounts with decimals": "reference,amount,currency\nA-1,10.00,EUR\nA-2,21.00,EUR\nA-3,30.0,EUR\n",
    "another column": "reference,amount,currency,comment\nA-1,10,EUR,x\nA-2,21,EUR,y\nA-3,30,EUR,z\n",
    "results": "reference,amount,currency,result.detail\nA-1,10,EUR,\nA-2,21,EUR,400\nA-3,30,EUR,\n",
}


@pytest.fixture
def december(start: Start, rows: WriteRows) -> tuple[BatchService, Run]:
    """November's rows are done; of December's run of the same rows, one was refused."""
    service, run = start(lambda number, _seen: "400 Bad" if number == 5 else "")
    path = str(rows(text=NOVEMBER))
    assert run("create", path, *RUN).code == 0
    assert run("create", path, *RUN, *DECEMBER, "--concurrency", "1").code == 15
    return service, run


@pytest.mark.parametrize("text", AGAIN.values(), ids=AGAIN)
def test_run_key_creates_only_what_its_run_lacks(
    december: tuple[BatchService, Run], rows: WriteRows, text: str
) -> None:
    service, run = december
    path = str(rows(text=text, name="again.csv"))

    refused = run("create", path, *RUN, *DECEMBER)
    rehearsed = run("create", path, "--dry-run", *DECEMBER, "--skip-done")
    sent = len(service.received)
    rest = run("create", path, *RUN, *DECEMBER, "--skip-done")
    again = [run("create", path, *RUN, *DECEMBER, *more).code for more in ((), ("--skip-done",))]

    assert (refused.code, refused.error["code"], rehearsed.code, sent) == (7, "already_done", 0, 6)
    assert (rest.code, counts_of(rest), again) == (0, (1, 0, 0, 0), [7, 0])
    skipping = ("create", path, *RUN, *DECEMBER, "--skip-done")
    nothing = [json.loads(run(*skipping, *more).out) for more in ((), ("--dry-run",))]
    assert [(one["rows"], one["batch"], "dry_run" in one) for one in nothing] == [(0, None, False), (0, None, True)]
    assert sorted(service.applied.values()) == [1, 1, 2, 2]


def test_run_key_creates_rows_of_other_runs_again(december: tuple[BatchService, Run], rows: WriteRows) -> None:
    service, run = december
    path = str(rows(text=AGAIN["corrected row"], name="january.csv"))

    assert counts_of(run("create", path, *RUN, "--run-key", "january")) == (3, 0, 0, 0)
    assert service.applied == {"10": 3, "30": 3, "20": 1, "21": 1}


@pytest.mark.parametrize("options", [(), DECEMBER], ids=["no run key", "run key"])
@pytest.mark.parametrize("row", ["A-1,10,EUR,EU", "A-1,11,EUR,", "A-1,10,USD,"], ids=["field", "amount", "currency"])
def test_done_row_with_another_body_is_not_left_out(
    start: Start, rows: WriteRows, row: str, options: tuple[str, ...]
) -> None:
    service, run = start()
    assert run("create", str(rows(text="reference,amount,currency\nA-1,10,EUR\n")), *RUN, *options).code == 0
    changed = str(rows(text=f"reference,amount,currency,body.region\n{row}\nA-2,5,EUR,\n", name="changed.csv"))

    result, shown = (run("create", changed, "--yes", "--skip-done", *options, *more) for more in (("--json",), ()))

    assert (result.code, result.error["flaws"][0]["line"], len(service.received)) == (7, 2, 1)
    assert (shown.code, "  line 2  j1 is done" in shown.err) == (7, True)
    # Without --skip-done too: it is not said to be done.
    assert run("create", changed, *RUN, *options).error["flaws"][0]["line"] == 2


def test_run_key_without_references_is_refused(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = str(rows(text="amount,currency,reference\n7,EUR,A-1\n8,EUR,\n"))

    assert (run("create", path, *RUN, *DECEMBER).code, service.received) == (2, [])


def test_dropped_batch_of_a_run_key_is_completed_by_its_file(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    path = str(rows(3))
    run("create", path, *RUN, *DECEMBER, "--concurrency", "1")
    run("drop", "b1", "--yes")
    service.answer = as_usual

    refused, rest = (run("create", path, *RUN, *DECEMBER, *more) for more in ((), ("--skip-done",)))

    assert (refused.code, rest.code, set(service.applied.values())) == (7, 0, {1})
    assert len(service.applied) == 3


def test_files_checked_at_once_pay_a_run_once(start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are checked before either is stored: only the commit of each intent sees the other's rows."""
    service, run = start()
    run("create", str(rows(text=NOVEMBER)), *RUN)
    others = [str(rows(text=AGAIN["another column"], name="other.csv"))]

    def find_before_the_other(*words: Any) -> Overlaps:
        found = find_overlaps(*words)
        if others:
            assert run("create", others.pop(), *RUN, *DECEMBER).code == 0
        return found

    monkeypatch.setattr("escrowctl.commands.batch.sending.find_overlaps", find_before_the_other)
    late = run("create", str(rows(text=AGAIN["another order"], name="late.csv")), *RUN, *DECEMBER)
    resumed = run("resume", "b3", *RUN)

    assert (counts_of(late), counts_of(resumed)) == ((0, 0, 0, 3), (0, 0, 0, 3))
    assert (service.applied["10"], service.applied["30"]) == (2, 2)


@pytest.mark.slow
def test_hints_for_rejects_of_a_run_name_its_key(december: tuple[BatchService, Run]) -> None:
    _, run = december

    shown = run("show", "b2")

    assert "batch create b2-rejects.csv --run-key december" in shown.err


@pytest.mark.parametrize("options", [(), ("--skip-done",), ("--run-key", "x")], ids=["again", "skip", "run key"])
def test_unknown_rows_stop_every_file_with_them(start: Start, rows: WriteRows, options: tuple[str, ...]) -> None:
    service, run = start(lambda number, _seen: None if number == 2 else "")
    run("create", str(rows(3)), *RUN, "--concurrency", "1")

    again = run("create", str(rows(3)), *RUN, *options)
    other = run("create", str(rows(1, first=2, name="other.csv")), *RUN, *options)

    assert (again.code, other.code, other.error["entry"]) == (12, 12, "j2")
    assert len(service.received) == 3


def test_reference_of_a_single_create_is_known(start: Start, rows: WriteRows) -> None:
    service, run = start()
    run("tx", "create", "--amount", "100", "--currency", "EUR", "--reference", "A-1")

    refused, rest = run("create", str(rows(2)), *RUN), run("create", str(rows(2)), *RUN, "--skip-done")
    single = run("tx", "create", "--amount", "101", "--currency", "EUR", "--reference", "A-2")

    assert (refused.code, rest.code, single.code) == (7, 0, 7)
    assert service.applied == {"100": 1, "101": 1}


def test_resume_needs_the_same_service(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(3)), *RUN)
    sent = len(service.received)
    environ = {"ESCROWCTL_API_KEY": KEY, "ESCROWCTL_BASE_URL": "http://127.0.0.1:1"}

    elsewhere = run("resume", "b1", *RUN, environ=environ)

    assert (elsewhere.code, "was created for" in elsewhere.error["message"], len(service.received)) == (7, True, sent)


def test_resolved_rows_count_and_go_on(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: None if number == 2 else "")
    result = run("create", str(rows(3)), *RUN, "--concurrency", "1")
    settle = ("--yes", "--allow-unreadable", "--reason", "support")
    run("journal", "resolve", "j2", "--not-applied", *settle)
    service.applied.pop("101")

    shown, resumed = run("show", "b1", "--json"), run("resume", "b1", *RUN)

    assert (result.code, counts_of(result), counts_of(shown)) == (12, (2, 0, 1, 0), (2, 0, 0, 1))
    assert (resumed.code, counts_of(resumed), service.applied["101"]) == (0, (3, 0, 0, 0), 1)

    found = run("journal", "show", "j2", "--json").json["id"]
    again, other = (run("journal", "resolve", "j2", "--applied", "--id", one, *settle) for one in (found, "tx_other"))
    assert (again.code, other.code, found in other.err, "tx_other" in other.err) == (7, 16, True, True)


def test_row_that_another_process_sends_now_is_named_so(start: Start, rows: WriteRows, home: Path) -> None:
    _, run = start()
    run("tx", "create", "--amount", "1", "--currency", "EUR", "--reference", "A-1", "--dry-run")
    run("journal", "list")
    run("tx", "create", "--amount", "1", "--currency", "EUR", "--reference", "X")
    elsewhere = open_elsewhere(home)
    (first,) = elsewhere.select_all(Selection(9))
    elsewhere.begin(AttemptRequest(first.intent._replace(reference="A-1", idempotency_key="k"), "r"))

    busy = run("create", str(rows(2)), *RUN)
    elsewhere.close()
    unknown = run("create", str(rows(2)), *RUN)

    assert (busy.code, unknown.code) == (7, 12)


def test_file_that_another_process_sends_while_one_confirms_is_sent_once(
    start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, run = start()
    path, next_batch = str(rows(3)), Journal.next_batch

    def send_meanwhile(journal: Journal) -> str:
        monkeypatch.setattr(Journal, "next_batch", next_batch)
        assert run("create", path, *RUN).code == 0
        return next_batch(journal)

    monkeypatch.setattr(Journal, "next_batch", send_meanwhile)
    late = run("create", path, *RUN)

    assert (late.code, late.error["code"], len(service.received)) == (7, "busy", 3)


@pytest.mark.slow
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
