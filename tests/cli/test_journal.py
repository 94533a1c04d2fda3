"""`journal`: list, totals, verify, export, import."""

import hashlib
import json
import shutil
import socket
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from conftest import Run, ServiceAndRun
from wire_server import Seen, WireServer, hang_up

from cli.conftest import Profile
from cli.older_export import write_older_export
from cli.replies import CREATE, HELD, RELEASE, holding, in_turn, json_reply, writes_meet
from escrowctl.commands.filters import StateWord
from escrowctl.journal.model import UNCONFIRMED, State

Served = tuple[WireServer, Run]
OtherMachine = tuple[WireServer, Run, dict[str, str], Path]
DAY = datetime(2026, 11, 21, 12, tzinfo=UTC)


TOTALS = ("month", "profile", "operation", "currency", "state", "writes", "amount")


def create(amount: str, currency: str = "USD", *options: str) -> tuple[str, ...]:
    return ("tx", "create", "--amount", amount, "--currency", currency, *options)


@pytest.fixture
def journal_of_six(service_and_run: ServiceAndRun) -> Served:
    """A journal of six: two creates and a release done, a create refused, a create and an update unknown."""
    writes = in_turn(
        *[holding()] * 3, json_reply(b"", "400 No"), hang_up, hang_up, json_reply(b'{"id":"wh_1"}'), json_reply(HELD)
    )
    server, run = service_and_run(writes_meet(writes))
    lines = (
        create("100.50"),
        create("0.50", "USD", "--reference", "order-1"),
        (*RELEASE, "--expect-amount", "100"),
        create("7", "EUR"),
        create("8", "EUR"),
        ("tx", "update", "tx_1", "--data", '{"n":1}', "--yes"),
    )
    codes = [run(*line, now=lambda: DAY).code for line in lines]
    assert codes == [0, 0, 0, 8, 12, 12]
    return server, run


# Lists


@pytest.mark.representative(
    "-j6*", "--unknown-*", "--operation create --state done-*", "--reference *", "--id *", "--since 1h-*", "--limit *"
)
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
def test_list_shows_the_selected_entries(
    journal_of_six: Served, run: Run, options: tuple[str, ...], entries: list[str]
) -> None:
    result = run("journal", "list", *options, "--json", now=lambda: DAY + timedelta(minutes=30))

    assert (result.code, [entry["entry"] for entry in result.json]) == (0, entries)


@pytest.mark.parametrize(
    "options", ["--since yesterday", "--unknown --state done", "-p other", "--since 2026-11-23 --until 2026-11-20"]
)
def test_a_selection_that_cannot_be_meant_is_a_usage_error(run: Run, options: str) -> None:
    result = run("journal", "list", *options.split(), "--json")

    assert (result.code, result.out) == (2, "")


def test_each_state_of_an_entry_can_be_selected() -> None:
    assert get_args(StateWord) == (*State, UNCONFIRMED)


def test_reading_the_journal_creates_no_files(run: Run, home: Path) -> None:
    lines = (("list",), ("totals",), ("verify",), ("export",), ("export", "--head"), ("show", "j1"))

    results = [run("journal", *line, "--json") for line in lines]

    assert [result.code for result in results] == [0, 0, 6, 6, 6, 6]
    assert not home.exists()


@pytest.mark.parametrize(
    ("options", "entries"),
    [(("--state", "unknown"), ["j1"]), (("--unknown",), ["j1"]), (("--state", "in_flight"), []), ((), ["j1"])],
)
def test_an_unknown_that_a_crash_left_is_listed_as_unknown(
    service_and_run: ServiceAndRun, home: Path, tmp_path: Path, options: tuple[str, ...], entries: list[str]
) -> None:
    def keep_as_in_flight(seen: Seen, connection: socket.socket) -> None:
        shutil.copytree(home / "state", tmp_path / "crashed" / "state")
        hang_up(seen, connection)

    _, run = service_and_run(writes_meet(keep_as_in_flight))
    run(*create("9"))

    listed = run("journal", "list", *options, "--json", environ={"ESCROWCTL_HOME": str(tmp_path / "crashed")})

    assert [(entry["entry"], entry["state"]) for entry in listed.json] == [(name, "unknown") for name in entries]


def test_write_lost_in_a_crash_is_not_called_sent(service_and_run: ServiceAndRun, home: Path) -> None:
    crashed = home.parent / "crashed"

    def keep_as_in_flight(seen: Seen, connection: socket.socket) -> None:
        shutil.copytree(home / "state", crashed / "state")
        hang_up(seen, connection)

    server, run = service_and_run(writes_meet(keep_as_in_flight))
    line = (*create("9"), "--idempotency-key", "k")
    run(*line)
    shutil.rmtree(home / "state")
    shutil.move(crashed / "state", home / "state")

    again = run(*line, "--json")

    assert (again.code, again.error["code"], len(server.writes)) == (12, "outcome_unknown", 1)
    assert "may have been sent" in again.error["message"]


# Sums


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
    assert tuple(result.json[0]) == TOTALS
    assert '"amount": 101.00}' in result.out
    note = json.loads(result.err)["note"]
    assert (note["code"], note["message"].split()[0]) == ("coverage", "5")


def test_sums_beyond_the_digits_of_a_decimal_context_are_exact(service_and_run: ServiceAndRun) -> None:
    _, run = service_and_run(json_reply(HELD))
    run(*create("98765432109876543210987654321098.01"))
    run(*create("0.01"))

    assert '"amount": 98765432109876543210987654321098.02' in run("journal", "totals", "--json").out


# The chain


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
    path = home / "state" / "journal.db"
    with sqlite3.connect(path) as database:
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
    assert run("journal", "verify", "--head", "-", stdin="{}").code == 2


# Elsewhere and back


def test_export_has_the_complete_chain_and_can_be_checked(journal_of_six: Served) -> None:
    _, run = journal_of_six

    lines = [json.loads(line) for line in run("journal", "export").out.splitlines()]

    previous = "0" * 64
    for line in lines[1:-1]:
        facts = json.dumps(line["facts"], sort_keys=True, separators=(",", ":"))
        covered = json.dumps([previous, line["sequence"], line["entry"], line["kind"], line["at"], facts])
        previous = hashlib.sha256(covered.encode()).hexdigest()
        assert line["digest"] == previous
    assert (len(lines), lines[0]["escrowctl_journal"]) == (14, 1)
    assert lines[-1] == {"head": {"sequence": 12, "digest": previous}}


@pytest.fixture
def other_machine(journal_of_six: Served, tmp_path: Path) -> OtherMachine:
    """The same service from another machine: a fresh home, and the first one's export."""
    server, run = journal_of_six
    exported = tmp_path / "export.jsonl"
    exported.write_text(run("journal", "export").out)
    return server, run, {"ESCROWCTL_HOME": str(tmp_path / "elsewhere")}, exported


def test_imported_entries_block_duplicate_writes(other_machine: OtherMachine) -> None:
    server, run, other_home, exported = other_machine
    sent = len(server.writes)

    taken = run("journal", "import", str(exported), "--json", environ=other_home)

    assert (taken.code, taken.json["added"], taken.json["updated"], taken.json["known"]) == (0, 6, 0, 0)
    codes = [
        run(*line, environ=other_home).code
        for line in (RELEASE, create("8", "EUR"), create("1", "USD", "--reference", "order-1"))
    ]
    assert (codes, len(server.writes)) == ([7, 12, 7], sent)
    assert run("journal", "verify", environ=other_home).code == 0
    shown = run("journal", "show", "j3", "--json", environ=other_home).json
    assert shown["origin"] == f"{taken.json['journal_id']} j3"


def test_a_journals_own_export_is_known_to_it(other_machine: OtherMachine) -> None:
    _, run, _, exported = other_machine

    result = run("journal", "import", str(exported), "--json")

    assert (result.code, result.json["added"], result.json["known"]) == (0, 0, 6)


def _changed(lines: list[str], change: str) -> list[str]:
    match change:
        case "cut":
            return lines[:-1]
        case "cut in a line":
            return [*lines[:-1], lines[-1][:20]]
        case "line missing":
            return [*lines[:3], *lines[4:]]
        case "amount":
            return [line.replace('"100.50"', '"900.50"') for line in lines]
        case "not one":
            return ["hello", *lines]
        case "a later format":
            return [lines[0].replace('"escrowctl_journal": 1', '"escrowctl_journal": 9'), *lines[1:]]
        case _:
            return []


@pytest.mark.representative("cut", "amount")
@pytest.mark.parametrize(
    "change", ["cut", "cut in a line", "line missing", "amount", "not one", "a later format", "empty"]
)
def test_incomplete_export_is_refused(other_machine: OtherMachine, change: str) -> None:
    _, run, other_home, exported = other_machine
    exported.write_text("".join(f"{line}\n" for line in _changed(exported.read_text().splitlines(), change)))

    for line in (("import", str(exported)), ("init", "--yes", "--from", str(exported))):
        result = run("journal", *line, "--json", environ=other_home)
        assert (result.code, result.out) == (2, "")
        assert "Nothing was imported." in result.error["message"]
    assert not Path(other_home["ESCROWCTL_HOME"]).exists()


# Journals of other versions


def test_export_of_an_earlier_version_is_imported_and_blocks_duplicates(
    service_and_run: ServiceAndRun, tmp_path: Path
) -> None:
    server, run = service_and_run(writes_meet(holding()))
    export = write_older_export(tmp_path / "older.jsonl", base_url=server.base_url)

    imported = run("journal", "import", str(export), "--json")

    lines = (
        *(("tx", "release", name, "--yes") for name in ("tx_1", "tx_new", "tx_gone")),
        *(create("2500", "EUR"), create("32", "EUR"), create("9", "EUR", "--reference", " order-7")),
        create("5", "EUR", "--reference", "A-2"),
    )
    assert (imported.code, imported.json["added"], run("journal", "verify").code) == (0, 11, 0)
    assert ([run(*line).code for line in lines], server.writes) == ([7, 7, 12, 12, 12, 7, 7], [])


def test_a_journal_of_an_earlier_format_is_refused(run: Run, service_and_run: ServiceAndRun, home: Path) -> None:
    server, there = service_and_run(json_reply(HELD))
    there(*CREATE)
    with sqlite3.connect(home / "state" / "journal.db") as database:
        database.execute("PRAGMA user_version = 13")

    results = [there(*line, "--json") for line in (CREATE, ("journal", "list"), ("journal", "export"))]

    assert [result.code for result in results] == [17, 17, 17]
    assert len(server.writes) == 1
    assert "export it with the version that wrote it" in results[0].error["message"]


def test_journal_is_created_once_and_its_id_printed(run: Run, home: Path) -> None:
    first, again = run("journal", "init", "--json"), run("journal", "init", "--json")

    assert (first.json["created"], again.json["created"]) == (True, False)
    assert first.json["journal_id"] == again.json["journal_id"] == run("journal", "init", "-q").out.strip()
    assert str(home / "state") in first.json["path"]


def test_live_write_in_ci_needs_a_journal_that_knows_an_earlier_one(profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')
    rows = "amount,currency,reference\n5,USD,A-1\n"
    lines = [
        (CREATE, ""),
        (RELEASE, ""),
        ((*CREATE, "--dry-run"), ""),
        (("batch", "create", "-", "--yes"), rows),
        (("journal", "resolve", "j1"), ""),
    ]

    refused = [run(*line, "--json", stdin=stdin, environ={"CI": "true"}) for line, stdin in lines]

    assert [result.code for result in refused] == [17, 17, 17, 17, 6]
    assert {result.error["code"] for result in refused[:4]} == {"journal_unusable"}
    assert server.seen == []
    assert (run(*CREATE).code, run(*CREATE, "--yes", environ={"CI": "true"}).code) == (0, 0)


def test_refusal_in_ci_creates_nothing(profile: Profile, run: Run, home: Path) -> None:
    profile('mode = "live"')

    for environ in ({"CI": "true"}, {"CI": "true", "ESCROWCTL_JOURNAL_ID": "another"}):
        assert run(*CREATE, environ=environ).code == 17
    assert not (home / "state").exists()


@pytest.mark.parametrize("line", [CREATE, (*CREATE, "--dry-run")], ids=["create", "dry run"])
def test_empty_journal_id_allows_no_live_write(line: tuple[str, ...], profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')
    assert run(*CREATE).code == 0

    refused = run(*line, "--yes", environ={"ESCROWCTL_JOURNAL_ID": ""})

    assert (refused.code, "ESCROWCTL_JOURNAL_ID is empty" in refused.err, len(server.writes)) == (17, True, 1)


def test_live_write_in_ci_passes_with_the_id_of_an_empty_journal(profile: Profile, run: Run) -> None:
    profile('mode = "live"')
    journal_id = run("journal", "init", "-q").out.strip()

    result = run(*CREATE, environ={"CI": "true", "ESCROWCTL_JOURNAL_ID": journal_id})

    assert result.code == 0


def test_test_service_needs_no_history_in_ci(profile: Profile, run: Run) -> None:
    profile()

    assert run(*CREATE, environ={"CI": "true"}).code == 0


def test_head_of_another_journal_is_a_bad_value(journal_of_six: Served, tmp_path: Path) -> None:
    _, run = journal_of_six
    path = tmp_path / "head.json"
    path.write_text('{"journal_id": "x", "sequence": 1, "digest": "y"}')

    assert run("journal", "verify", "--head", str(path)).code == 2
