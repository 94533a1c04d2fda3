"""`journal export`, and what an import of it makes of a fresh or older journal."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run, ServiceAndRun
from wire_server import WireServer

from cli.conftest import Served
from cli.older_export import write_older_export
from cli.replies import RELEASE, create, holding, writes_meet

OtherMachine = tuple[WireServer, Run, dict[str, str], Path]


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
    own = run("journal", "import", str(exported), "--json")

    assert (taken.code, taken.json["added"], taken.json["updated"], taken.json["known"]) == (0, 6, 0, 0)
    assert (own.code, own.json["added"], own.json["known"]) == (0, 0, 6)
    codes = [
        run(*line, environ=other_home).code
        for line in (RELEASE, create("8", "EUR"), create("1", "USD", "--reference", "order-1"))
    ]
    assert (codes, len(server.writes)) == ([7, 12, 7], sent)
    assert run("journal", "verify", environ=other_home).code == 0
    assert run("journal", "show", "j3", "--json", environ=other_home).json["origin"] == f"{taken.json['from']} j3"


INCOMPLETE: dict[str, Callable[[str], str]] = {
    "cut": lambda text: text[: text.index('{"head"')],
    "cut in a line": lambda text: text[:-40],
    "line missing": lambda text: "".join(
        line for line in text.splitlines(keepends=True) if '"sequence": 3' not in line
    ),
    "amount": lambda text: text.replace('"100.50"', '"900.50"'),
    "not one": lambda text: "hello\n" + text,
    "a later format": lambda text: text.replace('"escrowctl_journal": 1', '"escrowctl_journal": 9'),
    "empty": lambda _text: "",
}


@pytest.mark.representative("cut", "amount")
@pytest.mark.parametrize("change", INCOMPLETE.values(), ids=INCOMPLETE)
def test_incomplete_export_is_refused(other_machine: OtherMachine, change: Callable[[str], str]) -> None:
    _, run, other_home, exported = other_machine
    text = exported.read_text()
    exported.write_text(change(text))
    assert exported.read_text() != text

    for line in (("import", str(exported)), ("init", "--yes", "--from", str(exported))):
        result = run("journal", *line, "--json", environ=other_home)
        assert (result.code, result.out) == (2, "")
        assert "Nothing was imported." in result.error["message"]
    assert not Path(other_home["ESCROWCTL_HOME"]).exists()


def test_export_of_an_earlier_version_blocks_duplicates(service_and_run: ServiceAndRun, tmp_path: Path) -> None:
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
