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
@pytest.mark.parametrize("command", ALL)
def test_output_of_every_command_is_json(
    command: str, run: Run, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals.RUN_SANDBOX, lambda _session, server, _sandbox: server.run(None, lambda: True))
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
    *("auth logout", "auth switch", "config set", "config unset", "batch drop", "batch resume", "tx update"),
    *("webhook listen", "webhook verify", "webhook replay"),
}
"""The commands that print nothing, or fail here: what they did is in a note or an error."""

FAILING: dict[str, str] = {
    **dict.fromkeys(["tx create", "tx list", "webhook create", "webhook list", "api"], ""),
    **dict.fromkeys(["tx get", "tx release", "tx update", "user get", "journal verify", "journal export"], ""),
    **dict.fromkeys(["batch show", "batch rejects", "batch resume", "batch drop"], "b404"),
    **dict.fromkeys(["batch create", "batch release"], "/no/such/file --yes"),
    **dict.fromkeys(["journal show", "journal resolve"], "j404"),
    **dict.fromkeys(["webhook verify", "journal import"], "/no/such/file"),
    **dict.fromkeys(["config get", "config unset", "auth switch", "completion install", "help"], "nonsense"),
    **dict.fromkeys(["auth logout", "auth status"], "-p nonsense"),
    **dict.fromkeys(["sandbox serve", "webhook listen"], "--port 70000"),
    **dict.fromkeys(["webhook replay", "sandbox deliveries"], "msg_404"),
    "tx wait": "tx_404 --for held --deadline 1s",
    "journal list": "--state nonsense",
    "journal totals": "--since nonsense",
    "config set": "nonsense 5",
    "auth login": "--base-url nonsense",
    "sandbox reset": "-p a",
    "sandbox clock": "back",
    "sandbox trigger": "nonsense --id tx_404",
}
"""What makes the command fail; empty: the service's refusal alone."""


@pytest.mark.parametrize("command", ALL)
def test_stdout_is_empty_where_a_single_result_fails(command: str, run: Run, profile: Profile) -> None:
    profile(behave=json_reply(b'{"detail":"no"}', "503 Busy"))
    words = FAILING.get(command, "--nonsense") or ALL[command].replace("ID", "tx_404")

    result = run(*command.split(), *words.split(), "--json", "--timeout", "1")

    last = documents_in(result.err)[-1]
    assert (result.code != 0, result.out, list(last)) == (True, "", ["error"])
