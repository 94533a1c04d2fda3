"""`journal list`, `totals` and `verify`."""

import json
import shutil
import socket
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Behave, Seen, hang_up

from cli.conftest import DAY, Served
from cli.replies import HELD, RELEASE, create, json_reply, writes_meet


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ((), ["j6", "j5", "j4", "j3", "j2", "j1"]),
        (("--unknown",), ["j6", "j5"]),
        (("--state", "done"), ["j2", "j1"]),
        (("--operation", "create", "--state", "done"), ["j2", "j1"]),
        (("--reference", "order-1"), ["j2"]),
        (("--id", "tx_1"), ["j6", "j3", "j1"]),
        (("--until", "2026-11-21T12:00:00Z"), []),
        (("--since", "1h"), ["j6", "j5", "j4", "j3", "j2", "j1"]),
        (("-p", "127.0.0.1"), ["j6", "j5", "j4", "j3", "j2", "j1"]),
        (("--limit", "2"), ["j6", "j5"]),
    ],
    ids=" ".join,
)
def test_list_shows_the_selected_entries(journal_of_six: Served, options: tuple[str, ...], entries: list[str]) -> None:
    _, run = journal_of_six

    result = run("journal", "list", *options, "--json", now=lambda: DAY + timedelta(minutes=30))

    assert (result.code, [entry["entry"] for entry in result.json]) == (0, entries)


@pytest.mark.parametrize(
    "options", ["--since yesterday", "--unknown --state done", "-p other", "--since 2026-11-23 --until 2026-11-20"]
)
def test_a_selection_that_cannot_be_meant_is_a_usage_error(run: Run, options: str) -> None:
    result = run("journal", "list", *options.split(), "--json")

    assert (result.code, result.out) == (2, "")


def test_reading_the_journal_creates_no_files(run: Run, home: Path) -> None:
    lines = (("list",), ("totals",), ("verify",), ("export",), ("export", "--head"), ("show", "j1"))

    results = [run("journal", *line, "--json") for line in lines]

    assert [result.code for result in results] == [0, 0, 6, 6, 6, 6]
    assert not home.exists()


def crash(home: Path, folder: Path) -> Behave:
    """Copy the journal with the write in flight, as a crash leaves it, and give no reply."""

    def behave(seen: Seen, connection: socket.socket) -> None:
        shutil.copytree(home / "state", folder / "state")
        hang_up(seen, connection)

    return behave


@pytest.mark.parametrize(
    ("options", "entries"),
    [(("--state", "unknown"), ["j1"]), (("--unknown",), ["j1"]), (("--state", "in_flight"), []), ((), ["j1"])],
)
def test_an_unknown_that_a_crash_left_is_listed_as_unknown(
    service_and_run: ServiceAndRun, home: Path, tmp_path: Path, options: tuple[str, ...], entries: list[str]
) -> None:
    _, run = service_and_run(writes_meet(crash(home, tmp_path / "crashed")))
    run(*create("9"))

    listed = run("journal", "list", *options, "--json", environ={"ESCROWCTL_HOME": str(tmp_path / "crashed")})

    assert [(entry["entry"], entry["state"]) for entry in listed.json] == [(name, "unknown") for name in entries]


def test_write_lost_in_a_crash_is_not_called_sent(service_and_run: ServiceAndRun, home: Path) -> None:
    crashed = home.parent / "crashed"
    server, run = service_and_run(writes_meet(crash(home, crashed)))
    line = (*create("9"), "--idempotency-key", "k")
    run(*line)
    shutil.rmtree(home / "state")
    shutil.move(crashed / "state", home / "state")

    again = run(*line, "--json")

    assert (again.code, again.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert "may have been sent" in again.error["message"]


def test_totals_are_exact_and_keep_states_apart(journal_of_six: Served) -> None:
    _, run = journal_of_six

    result = run("journal", "totals", "--json", now=lambda: DAY)

    same = {"month": "2026-11", "profile": "127.0.0.1"}
    assert [tuple(row.values()) for row in result.json] == [
        (*same.values(), *row)
        for row in (
            ("create", "EUR", "unknown", 1, 8),
            ("create", "USD", "done", 2, 101),
            ("release", "USD", "unconfirmed", 1, 100),
            ("update", "", "unknown", 1, None),
        )
    ]
    assert tuple(result.json[0]) == ("month", "profile", "operation", "currency", "state", "writes", "amount")
    assert '"amount": 101.00}' in result.out
    note = json.loads(result.err)["note"]
    assert (note["code"], note["message"].split()[0]) == ("coverage", "5")


def test_sums_beyond_the_digits_of_a_decimal_context_are_exact(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD))
    run(*create("98765432109876543210987654321098.01"))
    run(*create("0.01"))

    assert '"amount": 98765432109876543210987654321098.02' in run("journal", "totals", "--json").out


@pytest.mark.parametrize("amount", ["1e2000000", "1e-2000000", "0e2000000"])
def test_amount_that_no_sum_can_hold_is_none(service_and_run: ServiceAndRun, amount: str) -> None:
    record = f'{{"id":"tx_1","status":"held","amount":{amount},"currency":"USD"}}'.encode()
    _, run = service_and_run(writes_meet(json_reply(b"", "204 No Content"), reads=json_reply(record)))
    assert run(*RELEASE).code == 0

    totals = run("journal", "totals", "--json")

    assert (totals.code, [(one["writes"], one["amount"]) for one in totals.json]) == (0, [(1, None)])


def test_verify_reports_a_valid_journal(journal_of_six: Served, home: Path) -> None:
    _, run = journal_of_six

    result = run("journal", "verify", "--json")

    with sqlite3.connect(home / "state" / "journal.db") as database:
        digest, journal_id = database.execute(
            "SELECT (SELECT lower(hex(digest)) FROM records ORDER BY sequence DESC LIMIT 1), id FROM journal"
        ).fetchone()
    assert result.code == 0
    assert result.json == {"journal_id": journal_id, "valid": True, "records": 12, "entries": 6, "head": digest}


@pytest.mark.representative("UPDATE records*", "UPDATE entries SET ref*", "UPDATE totals*", "INSERT INTO keys*")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE records SET facts = replace(facts, '100.50', '900.50') WHERE sequence = 1", "record 1"),
        ("DELETE FROM records WHERE sequence = 5", "record 5"),
        ("UPDATE entries SET reference = '1' WHERE number = 1", "j1"),
        ("UPDATE entries SET counted_on = '2020-01-01' WHERE number = 3", "j3"),
        ("INSERT INTO keys VALUES (1, 3)", "duplicate index"),
        ("DELETE FROM keys WHERE entry = 3", "j3"),
        ("UPDATE totals SET amount = '1'", "totals"),
        ("DELETE FROM totals", "totals"),
        ("DELETE FROM records WHERE entry = 6; DELETE FROM entries WHERE number = 6", "older copy"),
    ],
)
def test_verify_names_what_was_changed(journal_of_six: Served, home: Path, change: str, named: str) -> None:
    _, run = journal_of_six
    with sqlite3.connect(home / "state" / "journal.db") as database:
        database.executescript(change)

    result = run("journal", "verify", "--json")

    assert (result.code, result.out, result.error["code"]) == (16, "", "check_failed")
    assert named in result.error["message"]


@pytest.mark.representative("UPDATE entries SET state*", "DELETE FROM entries*")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET state = 'not_sent' WHERE number = 3",
        "UPDATE entries SET resource_id = 'tx_2' WHERE number = 3",
        "DELETE FROM entries WHERE number = 3",
        "DELETE FROM entries WHERE number = 6",
        "UPDATE keys SET entry = 1 WHERE entry = 3",
        "UPDATE records SET digest = x'00' WHERE sequence = 12",
        "DELETE FROM records WHERE entry = 6; DELETE FROM entries WHERE number = 6",
    ],
)
def test_write_on_a_changed_journal_is_not_sent(journal_of_six: Served, home: Path, change: str) -> None:
    server, run = journal_of_six
    sent = len(server.writes)
    with sqlite3.connect(home / "state" / "journal.db") as database:
        database.executescript(change)

    result = run(*RELEASE, "--json")

    assert (result.code, result.out, len(server.writes)) == (17, "", sent)


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            "UPDATE records SET facts = replace(facts, '100.50', '900.50') WHERE sequence = 1",
            (("show", "j1"), ("list",), ("totals",)),
        ),
        ("DELETE FROM entries WHERE number = 6", (("list",), ("totals",))),
    ],
)
def test_changed_record_is_never_shown(
    journal_of_six: Served, home: Path, change: str, lines: tuple[tuple[str, ...], ...]
) -> None:
    _, run = journal_of_six
    with sqlite3.connect(home / "state" / "journal.db") as database:
        database.execute(change)

    results = [run("journal", *line, "--json") for line in lines]

    assert [(result.code, result.out) for result in results] == [(17, "")] * len(lines)


def test_older_copy_is_refused_and_exported_as_incomplete(journal_of_six: Served, home: Path) -> None:
    """Its chain is intact; only the head next to it shows the difference."""
    server, run = journal_of_six
    path = home / "state" / "journal.db"
    older = path.read_bytes()
    assert run(*create("55")).code == 0
    path.write_bytes(older)
    read = (("list",), ("totals",), ("show", "j7"), ("verify",))

    shown = [run("journal", *line, "--json") for line in read]
    exported = [run("journal", "export", *line) for line in ((), ("--head",), ("--csv",))]

    assert [(result.code, result.out) for result in shown] == [(17, ""), (17, ""), (17, ""), (16, "")]
    assert [(result.code, bool(result.out)) for result in exported] == [(17, True)] * 3
    assert (run(*create("56")).code, len(server.writes)) == (17, 7)


def test_verify_compares_the_journal_with_a_saved_head(journal_of_six: Served, home: Path, tmp_path: Path) -> None:
    _, run = journal_of_six
    path, head = home / "state" / "journal.db", tmp_path / "head.json"
    head.write_text(run("journal", "export", "--head").out)
    assert run("journal", "verify", "--head", str(head)).code == 0
    shutil.copy(path, tmp_path / "older.db")
    run(*create("55"))
    assert run("journal", "verify", "--head", str(head)).code == 0
    head.write_text(run("journal", "export", "--head").out)
    shutil.copy(tmp_path / "older.db", path)

    result = run("journal", "verify", "--head", str(head), "--json")

    assert (result.code, result.error["code"]) == (16, "check_failed")
    heads = ("{}", '{"journal_id": "x", "sequence": 1, "digest": "y"}')
    assert [run("journal", "verify", "--head", "-", stdin=text).code for text in heads] == [2, 2]
