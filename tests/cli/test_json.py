"""`--json` of every command: what a job's log parser gets, at any width and with colour forced."""

import json
from pathlib import Path
from typing import Any

import internals
import pytest
from conftest import KEY, Run

from cli.conftest import Profile
from cli.replies import CREATE, json_reply
from cli.test_readme import CODES, LINES, commands_refusing_sandbox, prepare_batch

LINES_OF_JSON = {"journal export", "batch rejects"}
"""The commands that print a line for each of several."""

ALL = LINES | {"help": "exit-codes"}


@pytest.fixture(autouse=True)
def narrow_job_log(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "20", "FORCE_COLOR": "1", "GITHUB_ACTIONS": "true"}.items():
        monkeypatch.setenv(name, value)


def documents_in(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options
@pytest.mark.representative("*")
@pytest.mark.parametrize("command", ALL)
def test_output_of_every_command_is_json(
    command: str, run: Run, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals.RUN_SERVER, lambda *_arguments, **_options: None)
    server = profile("timeout = 5", behave=json_reply(b"[]"))
    words, where = ALL[command], () if command in commands_refusing_sandbox() else ("--sandbox",)
    made = run("--sandbox", *CREATE, "-q").out.strip()
    export = tmp_path / "export.jsonl"
    export.write_text(run("--sandbox", "journal", "export").out)
    words = (
        words.replace("FILE", str(export)).replace("acme", "a").replace("https://escrow.example.com", server.base_url)
    )
    words = words.replace("ID", made) if "batch" not in command else prepare_batch(command, words, run, tmp_path)

    result = run(*where, *command.split(), *words.split(), "--json", stdin=KEY)

    found = documents_in(result.out)
    assert result.code == CODES.get(command, 0), result.err
    assert all("note" in one or "error" in one for one in documents_in(result.err))
    assert len(found) == 1 or command in LINES_OF_JSON or (not found and command in SILENT)


SILENT = {
    *("auth logout", "auth switch", "config set", "config unset", "batch drop", "batch resume", "batch work"),
    *("tx update", "webhook listen", "webhook verify", "webhook replay", "journal open"),
}
"""The commands that print nothing, or fail here: what they did is in a note or an error."""
