"""The head next to the journal: created before the first record, and required from then on."""

import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from conftest import Result, Run, ServiceAndRun
from wire_server import WireServer

from cli.replies import CREATE, RELEASE, holding, writes_meet
from escrowctl import files
from escrowctl.journal.sqlite.errors import require_not_lost
from escrowctl.journal.sqlite.head import HeadFile, SavedHead

OTHER = ("tx", "create", "--amount", "101", "--currency", "USD")
VERIFY, ACCEPT = ("journal", "verify"), ("journal", "verify", "--accept-head")


@pytest.fixture
def state(home: Path) -> Path:
    return home / "state"


@pytest.fixture
def journal_of_one(service_and_run: ServiceAndRun) -> tuple[WireServer, Run]:
    """A journal of one release, done."""
    server, run = service_and_run(writes_meet(holding()))
    assert run(*RELEASE).code == 0
    return server, run


def records(state: Path) -> int:
    with sqlite3.connect(state / "journal.db") as database:
        return int(database.execute("SELECT count(*) FROM records").fetchone()[0])


def sequence(state: Path) -> int:
    return int((state / "journal.head").read_text().split()[2])


LOST = {
    "missing": "journal.head is missing",
    "empty": "journal.head is damaged, or escrowctl did not write it",
    "garbage": "journal.head is damaged, or escrowctl did not write it",
    "too long": "journal.head is damaged, or escrowctl did not write it",
    "another journal's": "journal.head belongs to journal 00000000-",
    "ahead": "the journal has 2 records but had 5: an older copy was restored or the file was truncated",
}


def spoil(head: Path, how: str) -> None:
    text = head.read_text()
    match how:
        case "missing":
            head.unlink()
        case "empty":
            head.write_text("")
        case "garbage":
            head.write_text("x" * len(text))
        case "too long":
            head.write_text(text + "\n")
        case "another journal's":
            head.write_text(re.sub(r" [0-9a-f]{8}-", " 00000000-", text))
        case _:
            head.write_text(text.replace(f"{2:020d}", f"{5:020d}"))


@pytest.mark.parametrize("how", LOST)
def test_write_with_a_wrong_or_missing_head_is_refused(
    journal_of_one: tuple[WireServer, Run], state: Path, how: str
) -> None:
    server, run = journal_of_one
    spoil(state / "journal.head", how)

    write, listed, verified = (run(*words, "--json") for words in (OTHER, ("journal", "list"), VERIFY))

    assert (write.code, listed.code, verified.code, len(server.writes)) == (17, 17, 16, 1)
    for result in (write, listed, verified):
        assert LOST[how] in result.error["message"]
        hints = result.error["hint"].splitlines()
        accept, move = (
            [part in hint for hint in hints].index(True) for part in ("--accept-head", "journal.db.damaged")
        )
        assert ("file is damaged" in result.error["message"], accept < move) == (False, True)


def test_head_of_another_journal_is_not_accepted(journal_of_one: tuple[WireServer, Run], state: Path) -> None:
    server, run = journal_of_one
    spoil(state / "journal.head", "another journal's")

    accepted = run(*ACCEPT, "--json")

    assert (accepted.code, run(*OTHER).code, len(server.writes)) == (17, 17, 1)
    assert f"remove {state / 'journal.head'}" in accepted.error["hint"]
    (state / "journal.head").unlink()
    assert (run(*ACCEPT).code, run(*OTHER).code) == (0, 0)


@pytest.mark.parametrize("how", [how for how in LOST if how != "another journal's"])
def test_writes_continue_after_the_head_is_accepted(
    journal_of_one: tuple[WireServer, Run], state: Path, how: str
) -> None:
    server, run = journal_of_one
    spoil(state / "journal.head", how)

    accepted = run(*ACCEPT)

    assert accepted.code == 0
    assert f"accepted: record 2 is now accepted as the last record; the problem was: {LOST[how]}" in accepted.err
    assert sequence(state) == 2
    assert (run(*VERIFY).code, run(*RELEASE).code, run(*OTHER).code, len(server.writes)) == (0, 7, 0, 2)


def test_accept_head_changes_nothing_when_the_head_matches(journal_of_one: tuple[WireServer, Run], state: Path) -> None:
    _, run = journal_of_one
    before = (state / "journal.head").stat().st_mtime_ns

    result = run(*ACCEPT)

    assert (result.code, result.err, (state / "journal.head").stat().st_mtime_ns) == (0, "", before)


def test_accept_head_refuses_a_damaged_journal(journal_of_one: tuple[WireServer, Run], state: Path) -> None:
    _, run = journal_of_one
    (state / "journal.head").unlink()
    with sqlite3.connect(state / "journal.db") as database:
        database.execute("UPDATE records SET at = '2020-01-01T00:00:00.000Z' WHERE sequence = 2")

    result = run(*ACCEPT, "--json")

    assert (result.code, (state / "journal.head").exists()) == (16, False)
    assert "record 2 is missing or was changed" in result.error["message"]


def test_older_copy_without_its_head_is_refused(
    journal_of_one: tuple[WireServer, Run], state: Path, tmp_path: Path
) -> None:
    """It would have forgotten the release that was sent since."""
    server, run = journal_of_one
    shutil.copy(state / "journal.db", tmp_path / "older.db")
    release = ("tx", "release", "tx_1", "--yes")
    assert run("tx", "create", "--amount", "1", "--currency", "USD").code == 0
    shutil.copy(tmp_path / "older.db", state / "journal.db")
    (state / "journal.head").unlink()

    assert (run(*release).code, run(*OTHER).code, len(server.writes)) == (17, 17, 2)


# The beginning


def test_head_exists_before_the_first_record(service_and_run: ServiceAndRun, state: Path, tmp_path: Path) -> None:
    assert _import_nothing(service_and_run(holding())[1], tmp_path).code == 0

    assert (records(state), sequence(state)) == (0, 0)


@pytest.mark.parametrize("step", ["unlink", "write_durably", "replace"])
def test_first_write_without_a_head_file_is_not_sent(
    service_and_run: ServiceAndRun, state: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    server, run = service_and_run(holding())

    def fail(*_words: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(files if step == "write_durably" else Path, step, fail)
        result = run(*CREATE, "--json")

    assert (result.code, server.writes, records(state)) == (17, [], 0)
    assert "journal.head cannot be written: No space left on device." in result.error["message"]
    assert (run(*CREATE).code, sequence(state)) == (0, 2)


@pytest.mark.parametrize("left", ["nothing", "an empty file", "tables alone", "a draft of the head"])
def test_journal_whose_creation_was_killed_is_used_again(
    service_and_run: ServiceAndRun, state: Path, left: str, tmp_path: Path
) -> None:
    server, run = service_and_run(holding())
    if left == "an empty file":
        state.mkdir(parents=True, mode=0o700)
        (state / "journal.db").touch(mode=0o600)
    elif left != "nothing":
        _import_nothing(run, tmp_path)
        (state / "journal.head").unlink()
    if left == "a draft of the head":
        (state / ".journal.head.new").write_text("escrowctl-he")

    assert (run(*CREATE).code, len(server.writes), sequence(state)) == (0, 1, 2)
    assert run(*VERIFY).code == 0
    assert sorted(path.name for path in state.iterdir()) == [
        "journal.db", "journal.db-journal", "journal.head", "journal.lock",
    ]  # fmt: skip


def _import_nothing(run: Run, folder: Path) -> Result:
    """Make a journal, and write nothing into it."""
    path = folder / "empty.jsonl"
    path.write_text(
        '{"escrowctl_journal": 1, "journal_id": "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"}\n'
        f'{{"head": {{"sequence": 0, "digest": "{"0" * 64}"}}}}\n'
    )
    return run("journal", "import", str(path))


@pytest.mark.parametrize("emptied", [("journal.db",), ("journal.db", "journal.head")])
def test_emptied_journal_is_not_taken_for_a_new_one(
    journal_of_one: tuple[WireServer, Run], state: Path, emptied: tuple[str, ...]
) -> None:
    server, run = journal_of_one
    for name in emptied:
        os.truncate(state / name, 0)

    codes = [run(*words).code for words in (RELEASE, OTHER, RELEASE)]

    assert (codes, len(server.writes)) == ([17, 17, 17], 1)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_write_while_a_reader_compares_the_head_is_no_loss(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    _, run = service_and_run(writes_meet(holding()))
    assert run(*RELEASE).code == 0
    read, others = HeadFile.read, [OTHER]

    def read_while_another_writes(file: HeadFile) -> SavedHead | None:
        saved = read(file) if moment == "after" else None
        while others:
            assert run(*others.pop()).code == 0
        return saved or read(file)

    monkeypatch.setattr(HeadFile, "read", read_while_another_writes)
    listed = run("--json", "journal", "list")
    assert (listed.code, others) == (0, []), listed.err


def test_head_that_cannot_be_updated_only_lags(
    journal_of_one: tuple[WireServer, Run], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = journal_of_one
    before = sequence(state)

    def fail(*_words: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", fail)
        assert run(*OTHER).code == 0

    assert (sequence(state), records(state)) == (before, before + 2)
    assert (run(*VERIFY).code, run(*CREATE).code) == (0, 0)


# What a lost journal is restored from


@pytest.fixture
def export_file(journal_of_one: tuple[WireServer, Run], tmp_path: Path) -> Path:
    path = tmp_path / "export.jsonl"
    path.write_text(journal_of_one[1]("journal", "export").out)
    return path


def restored(run: Run, export_file: Path) -> Result:
    return run("journal", "import", str(export_file), "--restore", "--json")


@pytest.mark.parametrize("head", ["another journal's", "empty", "garbage"])
def test_restore_of_another_journal_next_to_a_head_is_refused(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path, head: str
) -> None:
    server, run = journal_of_one
    (state / "journal.db").unlink()
    spoil(state / "journal.head", head)
    kept = (state / "journal.head").read_text()

    result = restored(run, export_file)

    assert result.code == 7, result.out
    assert f"remove {state / 'journal.head'}" in result.error["hint"]
    assert (state / "journal.head").read_text() == kept
    assert (run(*OTHER).code, len(server.writes)) == (17, 1)
    (state / "journal.head").unlink()
    assert restored(run, export_file).code == 0
    assert (run(*RELEASE).code, run(*OTHER).code) == (7, 0)


BY_REFERENCE = ("tx", "list", "--reference", "r-1")


@pytest.mark.parametrize(
    "line", [("journal", "init"), OTHER, ("journal", "list"), ("journal", "import", "-"), BY_REFERENCE]
)
def test_lost_journal_is_not_created_anew(
    line: tuple[str, ...], journal_of_one: tuple[WireServer, Run], state: Path
) -> None:
    server, run = journal_of_one
    exported = run("journal", "export").out
    (state / "journal.db").unlink()

    refused = run(*line, "--json", stdin=exported)

    assert (refused.code, refused.out, (state / "journal.db").exists(), len(server.writes)) == (17, "", False, 1)
    assert "--restore" in refused.error["hint"]


def test_journal_that_another_process_creates_meanwhile_is_not_lost(
    journal_of_one: tuple[WireServer, Run], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def exists(self: Path, **keywords: bool) -> bool:
        looked.append(self)
        return len(looked) > 1

    monkeypatch.setattr(Path, "exists", exists)

    require_not_lost(state / "journal.db")

    assert looked == [state / "journal.db"] * 2


def paste(run: Run, line: tuple[str, ...], label: str) -> None:
    """Run the command that a refused line's hint has under this label."""
    hint = run(*line, "--json").error["hint"]
    (command,) = re.findall(rf"^.*{label}: +(.*)$", hint, re.MULTILINE)
    subprocess.run(["/bin/sh", "-c", command], check=True)


def test_moved_journal_is_not_begun_anew_unless_that_is_meant(
    journal_of_one: tuple[WireServer, Run], state: Path
) -> None:
    server, run = journal_of_one
    (state / "journal.head").unlink()
    paste(run, RELEASE, "to restore the journal where writes are missing")

    refused = run(*RELEASE)
    moved = [file.name for file in state.glob("journal.db.*")]
    there = (state / "journal.db").exists()
    paste(run, RELEASE, "or, to begin one that knows no earlier write")

    assert (refused.code, there, moved, len(server.writes)) == (17, False, ["journal.db.damaged"], 1)
    assert (state / "old" / "journal.db.damaged").exists()
    assert (run(*RELEASE).code, len(server.writes)) == (0, 2)


def test_journal_is_begun_anew_by_one_command_whatever_is_left_of_the_old_one(
    journal_of_one: tuple[WireServer, Run], state: Path
) -> None:
    _, run = journal_of_one
    (state / "journal.db").rename(state / "journal.db.damaged")

    paste(run, RELEASE, "or, to begin one that knows no earlier write")

    assert run(*RELEASE).code == 0


def test_hint_moves_a_journal_to_a_name_that_is_not_in_use(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path
) -> None:
    _, run = journal_of_one
    for _ in range(2):
        (state / "journal.head").unlink()
        paste(run, RELEASE, "to restore the journal where writes are missing")
        assert restored(run, export_file).code == 0

    assert {file.name for file in state.glob("journal.db.*")} == {"journal.db.damaged", "journal.db.damaged-2"}


def test_restore_into_a_journal_with_entries_leaves_its_head_alone(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path
) -> None:
    _, run = journal_of_one
    assert run(*OTHER).code == 0

    refused = restored(run, export_file)

    assert (refused.code, "has entries" in refused.error["message"]) == (7, True)
    assert ("leave --restore out" in refused.error["hint"], "journal.head" in refused.error["hint"]) == (True, False)
    assert run("journal", "import", str(export_file)).code == 0


def test_restore_over_an_older_copy_says_how_it_is_moved_away(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path
) -> None:
    _, run = journal_of_one
    older = (state / "journal.db").read_bytes()
    assert run(*OTHER).code == 0
    (state / "journal.db").write_bytes(older)

    refused = restored(run, export_file)

    assert (refused.code, "leave --restore out" in refused.error["hint"]) == (17, False)
    assert "mv " in refused.error["hint"]


def test_refused_restore_creates_no_journal(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path
) -> None:
    _, run = journal_of_one
    assert run(*OTHER).code == 0
    (state / "journal.db").unlink()

    assert restored(run, export_file).code == 7

    assert not (state / "journal.db").exists()
    assert run(*VERIFY).code == 17


def test_verify_moves_no_journal_over_another(journal_of_one: tuple[WireServer, Run], state: Path) -> None:
    _, run = journal_of_one
    older = (state / "journal.db").read_bytes()
    assert run(*OTHER).code == 0
    (state / "journal.db").write_bytes(older)
    (state / "journal.db.damaged").write_bytes(b"put aside before")

    hint = run(*VERIFY, "--json").error["hint"]

    assert hint.count("journal.db.damaged-2") == 1


def test_journal_is_restored_next_to_its_own_head(
    journal_of_one: tuple[WireServer, Run], export_file: Path, state: Path
) -> None:
    _, run = journal_of_one
    (state / "journal.db").unlink()

    assert restored(run, export_file).code == 0

    assert (run(*RELEASE).code, run(*OTHER).code, run(*VERIFY).code) == (7, 0, 0)


def test_restore_that_failed_at_its_commit_can_be_repeated(
    journal_of_one: tuple[WireServer, Run],
    export_file: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server, run = journal_of_one
    for name in ("journal.db", "journal.head"):
        (state / name).unlink()
    _import_nothing(run, tmp_path)

    def fail(*_words: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as failing:
        failing.setattr("escrowctl.journal.sqlite.storage.SqliteStorage._commit", fail)
        assert restored(run, export_file).code == 17

    assert (run(*OTHER).code, restored(run, export_file).code) == (17, 0)
    assert (run(*RELEASE).code, run(*OTHER).code, len(server.writes)) == (7, 0, 2)


def test_hint_to_accept_the_sandbox_head_stays_in_the_sandbox(run: Run, home: Path) -> None:
    create = ("--sandbox", *CREATE)
    assert run(*create).code == 0
    (home / "state" / "sandbox" / "journal.head").unlink()

    hints = [run(*line, "--json").error["hint"] for line in (create, ("--sandbox", "journal", "verify"))]

    assert all("escrowctl --sandbox journal verify --accept-head" in hint for hint in hints)
