"""What a plan keeps between runs: rows that were changed or lost, another address, unknown rows, full disks."""

import json
import sqlite3
from pathlib import Path
from unittest.mock import Mock

import pytest
from conftest import KEY, Run

from batch.conftest import Start, WriteRows, counts_of, open_elsewhere
from batch.services import BatchService, as_usual
from escrowctl.batch.claimants import SharedRun
from escrowctl.batch.plan import find_batch, make_batch, make_plan_row
from escrowctl.contract.json import Number
from escrowctl.runtime import Runtime

RUN = ("--yes", "--json")


def change_plan(home: Path, statement: str, *values: object) -> None:
    """Change the stored plan as no command does."""
    database = sqlite3.connect(home / "state" / "journal.db")
    with database:
        assert database.execute(statement, values).rowcount > 0
    database.close()


@pytest.fixture
def unfinished(start: Start, rows: WriteRows) -> tuple[BatchService, Run]:
    """A batch of five rows of which one is done, one was refused for its key, and three were not sent."""
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "")
    run("create", str(rows(5)), *RUN, "--concurrency", "1")
    service.answer = as_usual
    service.received.clear()
    return service, run


DAMAGE: dict[str, tuple[str, ...]] = {
    "amount": ("UPDATE plans SET content = replace(content, '103', '9103') WHERE row = 5",),
    "no JSON": ("UPDATE plans SET content = 'x' WHERE row = 5",),
    "row gone": ("DELETE FROM plans WHERE row = 5",),
    "another line": ("UPDATE plans SET row = 9 WHERE row = 5",),
    "head gone": ("DELETE FROM plans WHERE row = 0",),
    "head": ("UPDATE plans SET content = replace(content, 'EUR', 'USD') WHERE row = 0",),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_plan_sends_nothing(
    unfinished: tuple[BatchService, Run], home: Path, rows: WriteRows, damage: tuple[str, ...]
) -> None:
    service, run = unfinished
    change_plan(home, *damage)

    resumed, again = run("resume", "b1", *RUN), run("create", str(rows(5)), *RUN)

    assert (resumed.code, again.code, service.received) == (17, 17, [])


@pytest.mark.parametrize("content", ["x", make_plan_row("b1", -1, "[1]").content], ids=["damaged", "another version"])
def test_state_that_cannot_be_read_is_an_error_of_its_batch(
    unfinished: tuple[BatchService, Run], home: Path, content: str
) -> None:
    service, run = unfinished
    change_plan(home, "UPDATE plans SET content = ? WHERE row = -1", content)

    refused = [run(verb, "b1", "--yes") for verb in ("resume", "drop", "work")]
    (listed,) = run("list", "--json").json

    assert [(one.code, "error: the plan in the journal is damaged: " in one.err) for one in refused] == [(17, True)] * 3
    assert (listed["state"], listed["not_sent"], service.received) == ("damaged", 4, [])


@pytest.mark.parametrize(
    ("caps", "line"), [({"EUR": Number("150")}, ""), ({}, "caps.EUR = 150")], ids=["of the run", "of its profile"]
)
def test_process_that_joins_keeps_to_the_run(
    unfinished: tuple[BatchService, Run], home: Path, caps: dict[str, Number], line: str
) -> None:
    service, run = unfinished
    elsewhere, config = open_elsewhere(home), home / "config.toml"
    first = SharedRun(elsewhere, find_batch(elsewhere, "b1"), Mock(caps=caps), Runtime())
    first.start(None)
    first.change(lambda state: state._replace(first_sender=None))
    first.note_idle()

    before = config.read_text()
    config.write_text(f"{before}\n{line}\n")
    capped = run("work", "b1", *RUN)
    config.write_text(f'{before}\nreference_field = "ref"\n')
    other_field = [run("work", "b1", *RUN)]
    elsewhere.close()
    other_field.append(run("resume", "b1", *RUN))

    assert (capped.code, "caps creates at 150 EUR" in capped.err) == (15, True)
    assert [(one.code, "config unset reference_field" in one.err) for one in other_field] == [(7, True)] * 2
    assert service.received == []


def test_rows_go_again_only_where_they_went_first(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "", 'service_id = "s"', 'account = "x"')
    run("create", str(rows(4)), *RUN)
    config, sent = home / "config.toml", len(service.received)
    config.write_text(config.read_text().replace("127.0.0.1", "localhost"))

    result = run("resume", "b1", *RUN)

    assert (result.code, "was sent to http://127.0.0.1:" in result.error["message"], len(service.received)) == (
        7,
        True,
        sent,
    )


def test_same_file_of_another_account_is_another_batch(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start(as_usual, 'account = "one"')
    first = run("create", str(rows(2)), *RUN)
    config = home / "config.toml"
    config.write_text(config.read_text().replace('account = "one"', 'account = "two"'))
    (home / "a.key").write_text("sk_test_another_0123456789")

    second = run("create", str(rows(2)), *RUN)

    assert (first.code, second.code, second.json["batch"], len(service.received)) == (0, 0, "b2", 4)


@pytest.mark.slow
def test_unknown_rows_are_named_before_they_go_again(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda number, _seen: None if number > 1 else "", deduplicates=True)
    run("create", str(rows(3)), *RUN, "--concurrency", "1")
    service.answer = as_usual

    rehearsed = run("resume", "b1", "--dry-run")

    assert (rehearsed.code, "under the same idempotency key: 2 rows" in rehearsed.err) == (0, True), rehearsed.err
    assert run("resume", "b1", *RUN).code == 0


def test_run_keys_that_look_alike_are_one(start: Start, rows: WriteRows) -> None:
    service, run = start()
    path = str(rows(2))
    run("create", path, *RUN, "--run-key", "a")

    again = run("create", path, *RUN, "--run-key", "a ")
    rehearsed, shown = run("create", path, "--run-key", "b", "--dry-run"), run("show", "b1")

    assert (again.code, len(service.received)) == (7, 2)
    assert ("created again: 2 rows" in rehearsed.err, "run key a; state: ended" in shown.err) == (True, True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,amount,currency\ntx_1,100,EUR\ntx_2,,EUR\n", "write both amount and currency, or neither"),
        ("id,amount,currency\ntx_1,100,\n", "write both amount and currency, or neither"),
        ('{"id":"tx_1","amount":{"value":5}}\n', '"amount" must be text or a number, not an object'),
        ('{"id":"tx_1","amount":true}\n', '"amount" must be text or a number, not true'),
        ('{"id":"tx_1","Amount":5}\n', 'has the column "Amount": write it as "amount"'),
        ('{"no":"tx_1"}\n', 'has no column "id": its columns are no'),
    ],
    ids=["no amount", "no currency", "object", "true", "capital", "no id"],
)
def test_expectation_that_would_be_lost_is_a_flaw(start: Start, rows: WriteRows, text: str, why: str) -> None:
    service, run = start()

    result = run("release", str(rows(text=text)), "--yes")

    assert (result.code, why in result.err, service.received) == (2, True, []), result.err


def test_rejects_of_json_go_out_under_the_corrected_reference(start: Start, rows: WriteRows) -> None:
    service, run = start(lambda _number, _seen: "422 No", 'reference_field = "ref"')
    lines = [{"reference": "A-1", "amount": 1, "currency": "EUR", "body.meta": {"a.b": 1, "c": {}}}]
    run("create", str(rows(text=json.dumps(lines[0]) + "\n", name="rows.jsonl")), *RUN)
    service.answer = as_usual

    rejects = run("rejects", "b1").out
    done = run("create", str(rows(text=rejects.replace('"A-1"', '"A-2"'), name="corrected.jsonl")), *RUN)

    assert {**json.loads(rejects), "result.detail": None} == {**lines[0], "result.detail": None}
    assert (done.code, service.applied) == (0, {"A-2": 1})


def test_reference_field_like_a_secret_is_refused(start: Start, rows: WriteRows) -> None:
    service, run = start(as_usual, 'reference_field = "api_key"')

    result = run("create", str(rows(2)), *RUN)

    assert (result.code, "named like a secret" in result.err, service.received) == (2, True, [])


def test_full_temporary_folder_is_named(start: Start, rows: WriteRows, monkeypatch: pytest.MonkeyPatch) -> None:
    service, run = start()
    path = str(rows(2))
    run("list")
    monkeypatch.setattr("escrowctl.batch.check.tempfile.TemporaryFile", open_full)

    result = run("create", path, *RUN)

    assert (result.code, "TMPDIR" in json.dumps(result.error), service.received) == (17, True, [])


def open_full(*_words: object, **_keywords: object) -> object:
    return Path("/dev/full").open("w+")


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


def test_batch_of_another_key_is_not_resumed(unfinished: tuple[BatchService, Run], home: Path) -> None:
    service, run = unfinished
    (home / "a.key").write_text("sk_test_another_0123456789")

    other = run("resume", "b1", *RUN)
    (home / "a.key").write_text(KEY)
    same = run("resume", "b1", *RUN)

    assert (other.code, same.code, len(service.received)) == (7, 0, 4)


def test_account_named_in_the_hint_resumes_with_another_key(start: Start, rows: WriteRows, home: Path) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > 1 else "", 'account = "acme"')
    run("create", str(rows(5)), *RUN)
    config = home / "config.toml"
    config.write_text(config.read_text().replace('account = "acme"', ""))
    (home / "a.key").write_text("sk_test_another_0123456789")
    service.answer = as_usual

    refused = run("resume", "b1", *RUN)
    assert run("config", "set", "account", "another").code == 0
    other = run("resume", "b1", *RUN)
    followed = [run("config", "set", "account", "acme").code, run("resume", "b1", *RUN).code]

    refusals = [(one.code, "config set account acme" in one.err) for one in (refused, other)]
    assert (refusals, followed) == ([(7, True)] * 2, [0, 0])


@pytest.mark.parametrize(("taken", "code"), [(0, 0), (1, 7)])
def test_batch_begun_with_a_wrong_key_goes_on_with_the_right_one(
    start: Start, rows: WriteRows, home: Path, taken: int, code: int
) -> None:
    service, run = start(lambda number, _seen: "401 No" if number > taken else "")
    path = str(rows(5))
    assert run("create", path, *RUN).code == 15
    sent = len(service.received)
    (home / "a.key").write_text("sk_test_another_0123456789")
    service.answer = as_usual

    rehearsed = run("resume", "b1", *RUN, "--dry-run")
    resumed = run("create", path, *RUN)

    assert (rehearsed.code, resumed.code, len(service.received) - sent) == (code, code, 0 if code else 5)
    assert set(service.applied.values()) == {1}


def test_unfinished_file_is_rehearsed_and_confirmed(unfinished: tuple[BatchService, Run], rows: WriteRows) -> None:
    service, run = unfinished
    path = str(rows(5))

    codes = [
        run("create", path, "--dry-run").code,
        run("resume", "b1").code,
        run("resume", "b1", "--yes", "--expect-count", "9").code,
        # The file is expected, or what is left of it.
        run("create", path, "--dry-run", "--expect-count", "5", "--expect-total", "EUR=510").code,
        run("resume", "b1", "--dry-run", "--expect-count", "5").code,
    ]

    assert (codes, service.received) == ([0, 3, 3, 0, 3], [])


def test_rows_without_amounts_have_no_total(start: Start, rows: WriteRows) -> None:
    service, run = start()

    result = run("release", str(rows(text="id\ntx_1\n")), "--yes", "--expect-total", "EUR=100")

    assert (result.code, service.received) == (3, [])
