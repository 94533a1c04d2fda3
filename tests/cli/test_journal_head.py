"""The head next to the journal: created before the first record, and required from then on."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Result, Run, ServiceAndRun

from cli.conftest import Served
from cli.events import rows_of
from cli.replies import CREATE, RELEASE, create, holding, writes_meet
from escrowctl import files
from escrowctl.journal.witness import SavedHead, Witness

OTHER = create("101")
VERIFY = ("journal", "verify")


@pytest.fixture
def journal_of_one(service_and_run: ServiceAndRun) -> Served:
    """A journal of one release, done."""
    server, run = service_and_run(writes_meet(holding()))
    assert run(*RELEASE).code == 0
    return server, run


def records(state: Path) -> int:
    return len(rows_of(state / "journal.db", "SELECT 1 FROM records"))


def sequence(state: Path) -> int:
    return int((state / "journal.head").read_text().split()[2])


LOST: dict[str, Callable[[str], str] | None] = {
    "missing": None,
    "empty": lambda _text: "",
    "garbage": lambda text: "x" * len(text),
    "too long": lambda text: text + "\n",
    "another journal's": lambda text: re.sub(r" [0-9a-f]{8}-", " 00000000-", text),
    "ahead": lambda text: text.replace(f"{2:020d}", f"{5:020d}"),
}


@pytest.mark.parametrize("change", LOST.values(), ids=LOST)
def test_write_with_a_wrong_or_missing_head_is_refused(
    journal_of_one: Served, state: Path, change: Callable[[str], str] | None
) -> None:
    server, run = journal_of_one
    head = state / "journal.head"
    head.write_text(change(head.read_text())) if change else head.unlink()

    write, listed, verified = (run(*words, "--json") for words in (OTHER, ("journal", "list"), VERIFY))

    assert (write.code, listed.code, verified.code, len(server.writes)) == (17, 17, 16, 1)
    for result in (write, listed, verified):
        assert "journal init --from" in result.error["hint"]


def fail_on_a_full_disk(*_words: object, **_more: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["unlink", "write_durably", "replace"])
def test_first_write_without_a_head_file_is_not_sent(
    service_and_run: ServiceAndRun, state: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    server, run = service_and_run(holding())

    with monkeypatch.context() as full:
        full.setattr(files if step == "write_durably" else Path, step, fail_on_a_full_disk)
        result = run(*CREATE, "--json")

    assert (result.code, server.writes, records(state)) == (17, [], 0)
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
    journal_of_one: Served, state: Path, emptied: tuple[str, ...]
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
    read, others = Witness.read, [OTHER]

    def read_while_another_writes(file: Witness) -> SavedHead | None:
        saved = read(file) if moment == "after" else None
        while others:
            assert run(*others.pop()).code == 0
        return saved or read(file)

    monkeypatch.setattr(Witness, "read", read_while_another_writes)
    listed = run("--json", "journal", "list")
    assert (listed.code, others) == (0, []), listed.err


def test_head_that_is_read_while_it_is_updated_is_read_again(
    journal_of_one: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = journal_of_one
    read, torn = files.read_regular, ["once"]

    def read_torn(path: Path, **options: Any) -> tuple[bytes, object]:
        content, status = read(path, **options)
        return (content[:100] + b"f" * 37, status) if torn and torn.pop() else (content, status)

    monkeypatch.setattr("escrowctl.journal.witness.read_regular", read_torn)

    assert (run("journal", "list").code, torn) == (0, [])


def test_head_that_cannot_be_updated_only_lags(
    journal_of_one: Served, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = journal_of_one
    before = sequence(state)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", fail_on_a_full_disk)
        assert run(*OTHER).code == 0

    assert (sequence(state), records(state)) == (before, before + 2)
    assert (run(*VERIFY).code, run(*CREATE).code) == (0, 0)


BY_REFERENCE = ("tx", "list", "--reference", "r-1")


@pytest.mark.parametrize(
    "line", [("journal", "init"), OTHER, ("journal", "list"), ("journal", "import", "-"), BY_REFERENCE]
)
def test_lost_journal_is_not_created_anew(line: tuple[str, ...], journal_of_one: Served, state: Path) -> None:
    server, run = journal_of_one
    exported = run("journal", "export").out
    (state / "journal.db").unlink()

    refused = run(*line, "--json", stdin=exported)

    assert (refused.code, refused.out, (state / "journal.db").exists(), len(server.writes)) == (17, "", False, 1)
    assert "journal init --from" in refused.error["hint"]
