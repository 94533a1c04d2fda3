"""`journal init --from`: a new journal in the place of one that is refused, lost, or of an earlier format."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Result, Run, ServiceAndRun
from wire_server import hang_up

from cli.conftest import Profile, Served
from cli.events import rows_of
from cli.older_export import write_older_export
from cli.replies import CREATE, RELEASE, create, holding, in_turn, writes_meet

Spoil = Callable[[Path], object]
OTHER, UNKNOWN = create("101"), create("7", "EUR")


@pytest.fixture
def journal_of_two(service_and_run: ServiceAndRun) -> Served:
    """A journal of a release, done, and a create, unknown."""
    server, run = service_and_run(writes_meet(in_turn(holding(), hang_up, holding())))
    assert [run(*RELEASE).code, run(*UNKNOWN).code] == [0, 12]
    return server, run


def export(run: Run, path: Path, *, code: int = 0) -> Path:
    exported = run("journal", "export")
    assert exported.code == code
    path.write_text(exported.out)
    return path


def replaced(run: Run, exported: Path, **more: object) -> Result:
    return run("journal", "init", "--from", str(exported), "--yes", "--json", **more)


def cut_short(state: Path) -> None:
    rows_of(state / "journal.db", "DELETE FROM records WHERE sequence = 4")
    rows_of(state / "journal.db", "UPDATE entries SET records = 1 WHERE number = 2")


def change_record(state: Path) -> None:
    rows_of(state / "journal.db", "UPDATE records SET at = '2020-01-01T00:00:00.000Z' WHERE sequence = 4")


REFUSED: dict[str, tuple[Spoil, int]] = {
    "head missing": (lambda state: (state / "journal.head").unlink(), 0),
    "older copy": (cut_short, 1),
    "record changed": (change_record, 1),
}


@pytest.mark.parametrize(("spoil", "missing"), REFUSED.values(), ids=REFUSED)
def test_refused_journal_is_exported_closed_and_replaced(
    journal_of_two: Served, state: Path, tmp_path: Path, spoil: Spoil, missing: int
) -> None:
    server, run = journal_of_two
    old_id = run("config", "path", "--json").json["journal_id"]
    spoil(state)
    assert run(*OTHER).code == 17
    exported = export(run, tmp_path / "e.jsonl", code=17)

    new = replaced(run, exported)

    assert (new.code, new.json["from"], new.json["missing_records"], new.json["closed"]) == (0, old_id, missing, True)
    assert new.json["journal_id"] == run("config", "path", "--json").json["journal_id"] != old_id
    codes = [run(*line).code for line in (RELEASE, UNKNOWN, ("journal", "verify"), OTHER)]
    assert (codes, len(server.writes)) == ([7, 12, 0, 0], 3)
    assert {path.name for path in state.iterdir()} == {
        *("journal.db", "journal.db-journal", "journal.head", "journal.lock"),
        *("journal.old-1", "journal.old-1-journal"),
    }


def test_closed_journal_refuses_every_write_and_names_its_successor(
    journal_of_two: Served, state: Path, tmp_path: Path
) -> None:
    server, run = journal_of_two
    head = (state / "journal.head").read_text()
    new = replaced(run, export(run, tmp_path / "e.jsonl")).json
    Path(new["old_path"]).rename(state / "journal.db")
    (state / "journal.head").write_text(head)
    decision = ("journal", "resolve", "j2", "--applied", "--id", "tx_9", "--allow-unreadable", "--reason", "desk")
    older = write_older_export(tmp_path / "other.jsonl", base_url=server.base_url)

    lines = (OTHER, RELEASE, (*OTHER, "--dry-run"), decision, ("journal", "import", str(older)))
    results = [run(*line, "--json") for line in lines]

    assert [(result.code, new["journal_id"] in result.error["message"]) for result in results] == [(17, True)] * 5
    assert [run("journal", word).code for word in ("list", "verify", "export")] == [0, 0, 0]
    assert len(server.writes) == 2
    forged = f"UPDATE records SET facts = replace(facts, '{new['journal_id']}', 'another') WHERE kind = 'closing'"
    rows_of(state / "journal.db", forged)
    assert "another" not in run("journal", "verify", "--json").error["message"]


UNREADABLE: dict[str, tuple[Spoil, int]] = {
    "garbage": (lambda state: (state / "journal.db").write_bytes(b"no database " * 1000), 2),
    "earlier format": (lambda state: rows_of(state / "journal.db", "PRAGMA user_version = 13"), 0),
    "lost": (lambda state: (state / "journal.db").unlink(), 2),
}


@pytest.mark.parametrize(("spoil", "missing"), UNREADABLE.values(), ids=UNREADABLE)
def test_journal_that_cannot_be_read_is_replaced_by_its_export(
    journal_of_two: Served, state: Path, tmp_path: Path, spoil: Spoil, missing: int
) -> None:
    server, run = journal_of_two
    exported = export(run, tmp_path / "e.jsonl")
    if missing:
        assert run(*OTHER).code == 0
    spoil(state)
    assert [run(*line).code for line in (OTHER, ("journal", "list"), ("journal", "export"))] == [17, 17, 17]
    old = (state / "journal.db").read_bytes() if (state / "journal.db").exists() else None
    sent = len(server.writes)

    new = replaced(run, exported)

    assert (new.code, new.json["missing_records"], new.json["closed"]) == (0, missing, False)
    assert (Path(new.json["old_path"]).read_bytes() if new.json["old_path"] else None) == old
    assert [run(*line).code for line in (RELEASE, UNKNOWN)] == [7, 12]
    assert len(server.writes) == sent


def test_export_is_made_into_a_journal_on_another_machine(journal_of_two: Served, tmp_path: Path) -> None:
    server, run = journal_of_two
    exported, elsewhere = export(run, tmp_path / "e.jsonl"), {"ESCROWCTL_HOME": str(tmp_path / "elsewhere")}

    new = replaced(run, exported, environ=elsewhere)

    assert (new.code, new.json["missing_records"], new.json["old_path"]) == (0, None, None)
    assert [run(*line, environ=elsewhere).code for line in (RELEASE, UNKNOWN, ("journal", "verify"))] == [7, 12, 0]
    assert len(server.writes) == 2


def test_valid_journal_is_not_replaced_by_less(journal_of_two: Served, tmp_path: Path) -> None:
    server, run = journal_of_two
    exported = export(run, tmp_path / "e.jsonl")
    assert run(*OTHER).code == 0

    refused = replaced(run, exported)

    assert (refused.code, refused.error["code"]) == (7, "conflict")
    assert "6 records of this journal can be read, but the export has only 4" in refused.error["message"]
    assert (run(*OTHER).code, len(server.writes)) == (0, 4)


def test_export_of_another_journal_replaces_nothing(journal_of_two: Served, state: Path, tmp_path: Path) -> None:
    _, run = journal_of_two
    exported = export(run, tmp_path / "e.jsonl")
    other = {"ESCROWCTL_HOME": str(tmp_path / "other")}
    assert run(*OTHER, environ=other).code == 0
    before = {path.name: path.read_bytes() for path in state.iterdir()}

    refused = replaced(run, exported, environ=other)

    assert (refused.code, "journal import" in refused.error["hint"]) == (7, True)
    assert run(*OTHER, environ=other).code == 0
    assert {path.name: path.read_bytes() for path in state.iterdir()} == before


def test_replacing_needs_confirmation(journal_of_two: Served, tmp_path: Path) -> None:
    _, run = journal_of_two
    exported = export(run, tmp_path / "e.jsonl")

    refused = run("journal", "init", "--from", str(exported), "--json")

    assert (refused.code, refused.error["code"], run(*OTHER).code) == (3, "confirmation_needed", 0)


def test_pin_of_the_old_journal_refuses_the_new_one(profile: Profile, run: Run, tmp_path: Path) -> None:
    server = profile('mode = "live"')
    pinned = {"CI": "true", "ESCROWCTL_JOURNAL_ID": run("journal", "init", "-q").out.strip()}
    assert run(*RELEASE, "--expect-amount", "100", environ=pinned).code == 0
    exported = export(run, tmp_path / "e.jsonl")

    new = replaced(run, exported, environ=pinned)

    refused = run(*OTHER, "--json", environ=pinned)
    assert (new.code, refused.code, new.json["journal_id"] in refused.error["message"]) == (0, 17, True)
    allowed = pinned | {"ESCROWCTL_JOURNAL_ID": new.json["journal_id"]}
    opening = ("journal", "open", "--reason", "asked the service", "--yes")
    assert [run(*line, environ=allowed).code for line in (OTHER, opening, OTHER)] == [3, 0, 0]
    assert len(server.writes) == 2


def test_live_creates_wait_until_the_new_journal_is_opened(profile: Profile, run: Run, tmp_path: Path) -> None:
    server = profile('mode = "live"')
    keyed = (*CREATE, "--reference", "A-1", "--idempotency-key", "k-1")
    assert run(*keyed).code == 0
    replaced(run, export(run, tmp_path / "e.jsonl"))
    rows = "amount,currency,reference\n5,USD,B-1\n"
    verdicts = [{one["name"]: one["verdict"] for one in run("doctor", "--json").json["checks"]}["journal"]]

    asked = [
        run(*OTHER, "--reason", "every line of this job has one", "--json"),
        run(*OTHER, "--dry-run", "--json"),
        run("batch", "create", "-", "--yes", "--json", stdin=rows),
    ]
    opening = ("journal", "open", "--reason", "asked the service", "--json")
    asked.append(run(*opening))
    replayed, opened, answered = run(*keyed, "--json"), run(*opening, "--yes"), run(*OTHER)
    verdicts += [{one["name"]: one["verdict"] for one in run("doctor", "--json").json["checks"]}["journal"]]

    assert verdicts == ["warning", "ok"]
    assert [(result.code, result.error["code"]) for result in asked] == [(3, "confirmation_needed")] * 4
    assert (opened.json["opened"], run(*opening).code) == (True, 7)
    assert (replayed.code, replayed.json["id"], answered.code, len(server.writes)) == (0, "tx_1", 0, 2)
    assert (run(*UNKNOWN).code, run("batch", "create", "-", "--yes", stdin=rows).code) == (0, 0)
    assert run("journal", "verify").code == 0


def test_journal_written_to_while_it_is_replaced_stays(
    journal_of_two: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, run = journal_of_two
    exported = export(run, tmp_path / "e.jsonl")
    others = [OTHER]

    def write_meanwhile(*_words: object, **_named: object) -> None:
        if others:
            assert run(*others.pop()).code == 0

    monkeypatch.setattr("escrowctl.journal.sqlite.succession.shutil.rmtree", write_meanwhile)

    refused = replaced(run, exported)

    assert (refused.code, refused.error["code"], len(server.writes)) == (7, "busy", 3)
    assert (run(*RELEASE).code, run("journal", "verify").code) == (7, 0)


def test_broken_chain_is_exported_up_to_the_break(journal_of_two: Served, state: Path, tmp_path: Path) -> None:
    _, run = journal_of_two
    change = "UPDATE records SET facts = replace(facts, '\"method\"', '\"methods\"') WHERE sequence = 3"
    rows_of(state / "journal.db", change)

    exported = run("journal", "export", "--json")

    lines = [json.loads(line) for line in exported.out.splitlines()]
    assert (exported.code, "record 3 is missing or was changed" in exported.error["message"]) == (17, True)
    assert ([line.get("sequence") for line in lines[1:-1]], lines[-1]["head"]["sequence"]) == ([1, 2], 2)
    (tmp_path / "e.jsonl").write_text(exported.out)
    elsewhere = {"ESCROWCTL_HOME": str(tmp_path / "elsewhere")}
    assert run("journal", "import", str(tmp_path / "e.jsonl"), environ=elsewhere).code == 0
