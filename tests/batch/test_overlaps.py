"""The same rows again: by the same file, another file, or a single command."""

import pytest
from conftest import KEY

from batch.conftest import Start, WriteRows, counts_of

RUN = ("--yes", "--json")


def test_same_file_again_is_done(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = str(rows(5))
    run("create", path, *RUN)

    again = run("create", path, *RUN)
    dry = run("create", path, "--dry-run")

    assert (again.code, again.error["code"], dry.code, len(service.received)) == (7, "already_done", 7, 5)


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


def test_all_rows_done_is_success_where_they_may_be_left_out(start: Start, rows: WriteRows) -> None:
    service, run = start()
    run("create", str(rows(2)), *RUN)

    result = run("create", str(rows(1, name="part.csv")), "--yes", "--skip-done")

    assert (result.code, len(service.received)) == (0, 2)


def test_new_run_key_sends_done_rows_again_once(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = str(rows(4))
    run("create", path, *RUN)

    march = run("create", path, *RUN, "--run-key", "march")
    again = run("create", path, *RUN, "--run-key", "march")
    april = run("create", path, *RUN, "--run-key", "april")

    assert (march.code, counts_of(march), again.code, april.code) == (0, (4, 0, 0, 0), 7, 0)
    assert set(service.applied.values()) == {3}


@pytest.mark.parametrize("options", [(), ("--skip-done",), ("--run-key", "x")], ids=["again", "skip", "run key"])
def test_unknown_rows_stop_every_file_with_them(start: Start, rows: WriteRows, options: tuple[str, ...]) -> None:
    service, run = start(lambda number, _seen: None if number == 2 else "")
    run("create", str(rows(3)), *RUN, "--concurrency", "1")

    again = run("create", str(rows(3)), *RUN, *options)
    other = run("create", str(rows(1, first=2, name="other.csv")), *RUN, *options)

    assert (again.code, other.code, other.error["entry"]) == (12, 12, "j2")
    assert len(service.received) == 3


def test_refused_rows_do_not_overlap(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: "400 Bad" if number == 2 else "")
    run("create", str(rows(3)), *RUN, "--concurrency", "1")

    other = run("create", str(rows(1, first=2, name="other.csv")), *RUN)

    assert (other.code, service.applied) == (0, {"100": 1, "101": 1, "102": 1})


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
