"""`journal import` between machines: writes that may have happened there block duplicates here."""

import csv
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import KEY, Result, Run, Serve
from wire_server import Behave, WireServer, hang_up

from cli.replies import CREATE, HELD, RELEASE, holding, in_turn, json_reply, writes_meet
from cli.unknown_writes import APPLIED, NOT_APPLIED, RESEND, WHY

Machine = Callable[..., Result]
StartMachine = Callable[[WireServer, str], Machine]
Machines = Callable[[Behave], tuple[WireServer, Machine, Machine]]
ImportOf = Callable[[Machine, Machine], Result]
JournalTransfer = Callable[[Machine, Machine], tuple[int, int, int]]
LATER = json_reply(b"", "429 Later", "Retry-After: 999")


@pytest.fixture
def start_machine(run: Run, tmp_path: Path) -> StartMachine:
    """Return a machine, by its name, that writes to a service with its own journal."""

    def start(server: WireServer, home: str) -> Machine:
        (tmp_path / home).mkdir(mode=0o700, exist_ok=True)
        config = f'[profiles.p]\nbase_url = "{server.base_url}"\nretry_throttled = true\n'
        (tmp_path / home / "config.toml").write_text(config)
        environ = {"ESCROWCTL_PROFILE": "p", "ESCROWCTL_HOME": str(tmp_path / home)}
        environ |= {"ESCROWCTL_BASE_URL": server.base_url, "ESCROWCTL_API_KEY": KEY}
        return lambda *line: run(*line, environ=environ)

    return start


@pytest.fixture
def machines(serve: Serve, start_machine: StartMachine) -> Machines:
    """Start a service that two machines write to."""

    def start(write: Behave) -> tuple[WireServer, Machine, Machine]:
        server = serve(writes_meet(write))
        return server, start_machine(server, "one"), start_machine(server, "other")

    return start


@pytest.fixture
def import_of(tmp_path: Path) -> ImportOf:
    """Import one machine's journal on the other."""

    def move(source: Machine, target: Machine) -> Result:
        exported = tmp_path / "export.jsonl"
        exported.write_text(source("journal", "export").out)
        return target("journal", "import", str(exported), "--json")

    return move


@pytest.fixture
def journal_transfer(import_of: ImportOf) -> JournalTransfer:
    """Import one machine's journal on the other; returns how many were added, updated and known."""

    def move(source: Machine, target: Machine) -> tuple[int, int, int]:
        result = import_of(source, target)
        assert result.code == 0, result.err
        return result.json["added"], result.json["updated"], result.json["known"]

    return move


def test_same_key_on_two_machines_is_two_writes(machines: Machines, import_of: ImportOf) -> None:
    server, one, other = machines(json_reply(HELD))
    assert one(*RELEASE, "--idempotency-key", "nightly").code == 0
    assert other(*CREATE, "--idempotency-key", "nightly").code == 0

    imported = import_of(one, other)

    assert (imported.code, imported.json["added"]) == (16, 1)
    assert (other(*RELEASE).code, len(server.writes)) == (7, 2)
    assert other("journal", "verify").code == 0


def test_write_done_on_another_machine_is_not_resent(machines: Machines, journal_transfer: JournalTransfer) -> None:
    keyed = (*CREATE, "--idempotency-key", "invoice-551")
    server, one, other = machines(in_turn(LATER, json_reply(HELD)))
    assert (other(*keyed).code, one(*keyed).code) == (9, 0)

    journal_transfer(one, other)

    again = other(*keyed, "--json")
    assert (again.code, again.json["id"], len(server.writes)) == (0, "tx_1", 2)


@pytest.mark.parametrize("then", [json_reply(HELD), hang_up], ids=["done", "unknown"])
def test_import_updates_entries_that_changed_since_the_last_one(
    machines: Machines, journal_transfer: JournalTransfer, then: Behave
) -> None:
    keyed = (*RELEASE, "--idempotency-key", "k1")
    server, one, other = machines(in_turn(LATER, then))
    one(*keyed)
    assert journal_transfer(one, other) == (1, 0, 0)
    one(*keyed)

    assert journal_transfer(one, other) == (0, 1, 0)

    assert (other(*RELEASE).code in (7, 12), len(server.writes)) == (True, 2)


def test_imported_outcome_settles_no_local_attempt(machines: Machines, journal_transfer: JournalTransfer) -> None:
    server, one, other = machines(hang_up)
    assert one(*RELEASE).code == 12
    journal_transfer(one, other)
    assert other(*RESEND).code == 12
    assert one(*NOT_APPLIED).code == 0

    assert journal_transfer(one, other) == (0, 0, 1)

    assert (other(*RELEASE).code, len(server.writes)) == (12, 2)


def test_import_names_a_create_that_was_sent_from_both_machines(machines: Machines, import_of: ImportOf) -> None:
    made = holding()
    _, one, other = machines(in_turn(hang_up, made, made, made, made, made, made, made))
    assert one(*CREATE).code == 12
    import_of(one, other)
    assert [machine(*RESEND).code for machine in (other, one)] == [0, 0]

    imported, again = import_of(one, other), import_of(one, other)

    assert (imported.code, again.code) == (16, 0)
    (pair,) = imported.json["duplicates"]
    assert [(entry["entry"], entry["id"]) for entry in pair["entries"]] == [("j1", "tx_1"), ("j2", "tx_2")]


DONE_TWICE: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
    "reference": ((*CREATE, "--reference", "A-1"), {"id": None, "reference": "A-1", "idempotency_key": None}),
    "id": (RELEASE, {"id": "tx_1", "reference": None, "idempotency_key": None}),
    "key": ((*CREATE, "--idempotency-key", "k"), {"id": None, "reference": None, "idempotency_key": "k"}),
}


@pytest.mark.parametrize(("line", "shared"), DONE_TWICE.values(), ids=DONE_TWICE)
def test_import_names_what_both_machines_did(
    machines: Machines, import_of: ImportOf, line: tuple[str, ...], shared: dict[str, str | None]
) -> None:
    _, one, other = machines(holding())
    assert [one(*line).code, other(*CREATE, "--reference", "B").code, other(*line).code] == [0, 0, 0]

    imported, again = import_of(one, other), import_of(one, other)
    listed, verified = other("journal", "list", "--duplicates", "--json"), other("journal", "verify")

    assert (imported.code, imported.json["added"], again.code) == (16, 1, 0)
    (pair,) = imported.json["duplicates"]
    assert ({name: pair[name] for name in shared}, imported.json["sums"]) == (shared, {"USD": 200})
    assert [(entry["entry"], entry["amount"]) for entry in pair["entries"]] == [("j2", 100), ("j3", 100)]
    assert ("together 200 USD" in imported.error["message"], again.json["duplicates"]) == (True, [])
    assert ([entry["entry"] for entry in listed.json], verified.code) == (["j3", "j2"], 0)


def test_escrow_that_the_service_made_once_is_no_duplicate(machines: Machines, import_of: ImportOf) -> None:
    keyed = (*CREATE, "--idempotency-key", "order-1", "--reference", "order-1")
    _, one, other = machines(json_reply(HELD))
    assert [one(*keyed).code, other(*keyed).code] == [0, 0]

    assert (import_of(one, other).code, other("journal", "list", "--duplicates", "--json").json) == (0, [])


def test_import_names_a_duplicate_once_its_outcome_is_known(machines: Machines, import_of: ImportOf) -> None:
    referenced = (*CREATE, "--reference", "A-1")
    _, one, other = machines(in_turn(hang_up, json_reply(HELD)))
    assert [one(*referenced).code, other(*referenced).code, import_of(one, other).code] == [12, 0, 0]
    assert one(*APPLIED, "--id", "tx_9", "--allow-unreadable").code == 0

    imported = import_of(one, other)

    assert (imported.code, imported.json["updated"], len(imported.json["duplicates"])) == (16, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "code"), [("a", "b", 0), ("a", "a", 16), ("a", None, 0), (None, None, 16)])
def test_rows_of_two_run_keys_are_no_duplicates(
    machines: Machines, import_of: ImportOf, tmp_path: Path, first: str | None, second: str | None, code: int
) -> None:
    _, one, other = machines(holding())
    rows = tmp_path / "rows.csv"
    rows.write_text("amount,currency,reference\n7,EUR,A-1\n8,EUR,A-2\n")
    for machine, run_key in ((one, first), (other, second)):
        more = ("--run-key", run_key) if run_key else ()
        assert machine("batch", "create", str(rows), "--yes", *more).code == 0

    assert import_of(one, other).code == code


def test_local_decision_yields_only_to_a_later_done(machines: Machines, journal_transfer: JournalTransfer) -> None:
    _, one, other = machines(hang_up)
    one(*RELEASE)
    journal_transfer(one, other)
    assert other(*NOT_APPLIED).code == 0
    assert journal_transfer(one, other) == (0, 0, 1)
    assert one(*APPLIED).code == 0

    assert journal_transfer(one, other) == (0, 1, 0)

    assert other("journal", "show", "j1", "--json").json["state"] == "done"


def test_row_that_was_resolved_elsewhere_stays_in_its_batch(
    machines: Machines, journal_transfer: JournalTransfer, tmp_path: Path
) -> None:
    first = json_reply(b'{"id":"tx_9","status":"held","amount":7,"currency":"EUR"}')
    server, one, other = machines(in_turn(first, hang_up))
    rows = tmp_path / "rows.csv"
    rows.write_text("amount,currency\n7,EUR\n100,USD\n")
    assert one("batch", "create", str(rows), "--yes").code == 12
    journal_transfer(one, other)
    assert other("journal", "resolve", "j2", "--applied", "--id", "tx_1", *WHY).code == 0

    assert journal_transfer(other, one) == (0, 1, 1)

    shown, resumed = one("batch", "show", "b1", "--json"), one("batch", "resume", "b1", "--yes")
    assert (shown.json["done"], shown.json["unknown"], shown.json["not_sent"]) == (2, 0, 0)
    assert (resumed.code, one("journal", "verify").code) == (7, 0)
    assert len([seen for seen in server.seen if seen.method == "POST"]) == 2


def test_imported_rows_without_references_block_their_file_alone(
    machines: Machines, journal_transfer: JournalTransfer, start_machine: StartMachine, tmp_path: Path
) -> None:
    server, one, other = machines(holding())
    third = start_machine(server, "third")
    same, new = tmp_path / "same.csv", tmp_path / "new.csv"
    same.write_text("amount,currency\n100,USD\n100,USD\n")
    new.write_text("amount,currency,note\n100,USD,x\n100,USD,y\n100,USD,z\n")
    assert one("batch", "create", str(same), "--yes").code == 0
    journal_transfer(one, other)

    refused = other("batch", "create", str(same), "--yes", "--json")
    sent = other("batch", "create", str(new), "--yes", "--json")
    journal_transfer(other, third)

    assert (refused.code, refused.error["code"], sent.code, sent.json["done"]) == (7, "already_done", 0, 3)
    shown = [third("journal", "show", f"j{number}", "--json").json for number in range(1, 6)]
    # No batch gets the name of an imported one.
    places = [("b1", 2), ("b1", 3), ("b2", 2), ("b2", 3), ("b2", 4)]
    assert sorted((entry["batch"], entry["line"]) for entry in shown) == places
    sheet = csv.DictReader(io.StringIO(third("journal", "export", "--csv").out))
    assert sorted((row["batch"], int(row["line"])) for row in sheet) == places
    assert len(server.writes) == 5


def test_write_imported_through_two_journals_is_one_entry(
    machines: Machines, journal_transfer: JournalTransfer, start_machine: StartMachine
) -> None:
    server, one, other = machines(hang_up)
    third = start_machine(server, "third")
    one(*RELEASE)
    other(*CREATE)
    journal_transfer(one, other)

    assert journal_transfer(other, third) == (2, 0, 0)
    assert journal_transfer(one, third) == (0, 0, 1)
    assert journal_transfer(third, one) == (1, 0, 1)
    assert journal_transfer(third, other) == (0, 0, 2)
    shown = third("journal", "show", "j2", "--json").json
    assert shown["origin"] == f"{one('journal', 'verify', '--json').json['journal_id']} j1"


def test_allow_duplicate_of_another_machine_does_not_apply_here(
    machines: Machines, journal_transfer: JournalTransfer
) -> None:
    server, one, other = machines(hang_up)
    assert (one(*CREATE).code, one(*CREATE, "--allow-duplicate", "j1").code, other(*CREATE).code) == (12, 12, 12)
    assert journal_transfer(one, other) == (2, 0, 0)
    assert other("journal", "resolve", "j2", "--not-applied", "--allow-unreadable", *WHY).code == 0

    result = other("journal", "resolve", "j3", "--resend", "--yes", *WHY, "--json")

    assert (result.code, result.error["code"], len(server.writes)) == (12, "earlier_unknown", 3)
    assert "--allow-duplicate" not in str(result.error["hint"])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["imported", "made from it"])
def test_rows_of_a_run_elsewhere_are_done_in_that_run(
    machines: Machines, import_of: ImportOf, tmp_path: Path, how: str
) -> None:
    server, one, other = machines(holding())
    rows, again = tmp_path / "rows.csv", tmp_path / "again.csv"
    rows.write_text("amount,currency,reference\n7,EUR,A-1\n8,EUR,A-2\n")
    again.write_text("amount,currency,reference,note\n8.00,EUR,A-2,x\n7.00,EUR,A-1,y\n9,EUR,A-3,z\n")
    assert one("batch", "create", str(rows), "--yes", "--run-key", "december").code == 0
    if how == "imported":
        assert import_of(one, other).code == 0
    else:
        (tmp_path / "k.jsonl").write_text(one("journal", "export").out)
        assert other("journal", "init", "--from", str(tmp_path / "k.jsonl"), "--yes").code == 0
    december = ("batch", "create", str(again), "--yes", "--run-key", "december")

    codes = [other(*december).code, other(*december, "--skip-done").code]
    codes.append(other("batch", "create", str(again), "--yes", "--run-key", "january").code)

    assert (codes, len(server.writes)) == ([7, 0, 0], 2 + 1 + 3)
    assert other("journal", "list", "--duplicates", "--json").json == []


def test_reused_entry_number_of_an_older_copy_is_another_write(
    machines: Machines, journal_transfer: JournalTransfer, tmp_path: Path
) -> None:
    server, one, other = machines(json_reply(HELD))
    one(*CREATE)
    shutil.copytree(tmp_path / "one" / "state", tmp_path / "older")
    one(*RELEASE)
    assert journal_transfer(one, other) == (2, 0, 0)
    (tmp_path / "one" / "state").rename(tmp_path / "lost")
    (tmp_path / "older").rename(tmp_path / "one" / "state")
    one("tx", "create", "--amount", "7", "--currency", "EUR")

    assert journal_transfer(other, one) == (1, 0, 1)
    assert journal_transfer(one, other) == (1, 0, 2)

    assert (one(*RELEASE).code, other(*RELEASE).code, len(server.writes)) == (7, 7, 3)
    assert [one("journal", "verify").code, other("journal", "verify").code] == [0, 0]


def test_writes_of_two_machines_after_a_copy_are_separate(
    machines: Machines, journal_transfer: JournalTransfer
) -> None:
    keyed = (*RELEASE, "--idempotency-key", "k")
    server, one, other = machines(in_turn(LATER, json_reply(HELD), hang_up))
    assert one(*keyed).code == 9
    journal_transfer(one, other)
    assert (other(*keyed).code, one(*keyed).code) == (0, 12)

    assert journal_transfer(other, one) == (1, 0, 0)
    assert journal_transfer(other, one) == (0, 0, 1)

    assert one(*NOT_APPLIED).code == 0
    assert (one(*RELEASE).code, len(server.writes)) == (7, 3)
