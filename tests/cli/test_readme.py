"""README matches the program."""

import json
import re
from pathlib import Path

import internals
import pytest
from conftest import Run

from escrowctl.app import COMMANDS
from escrowctl.config.profiles import SETTINGS
from escrowctl.errors import ExitCode
from escrowctl.topics.topic import VARIABLES

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_the_tables_of_exit_codes_are_the_enum(run: Run) -> None:
    table = re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE)
    printed = re.findall(r"^ +(\d+)  ", run("help", "exit-codes").out, re.MULTILINE)

    assert table == [(str(int(code)), code.meaning) for code in ExitCode]
    assert printed == [number for number, _ in table]


def test_there_are_exactly_two_set_up_commands_at_the_top() -> None:
    lines = README.splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]

    assert len(commands) == 2
    assert max(lines.index(command) for command in commands) < 20
    assert commands[0].endswith("escrowctl --sandbox tx create --amount 100 --currency USD")


def test_readme_is_short_and_its_pictures_exist() -> None:
    pictures = re.findall(r"!\[.+\]\((.+\.svg)\)", README)

    assert len(README.split()) <= 1800
    assert len(pictures) == 4
    assert [path for path in pictures if not (Path(__file__).parents[2] / path).is_file()] == []


def test_help_environment_names_every_variable_that_the_code_reads(run: Run) -> None:
    package = Path(__file__).parents[2] / "escrowctl"
    read = set()
    for path in package.rglob("*.py"):
        read |= set(re.findall(r'"(ESCROWCTL_[A-Z_]+)"', path.read_text("utf-8")))
    described = run("help", "environment").out

    assert read
    assert {name for name in read if name not in described} == set()


def test_each_setting_and_variable_has_its_reason_in_contributing() -> None:
    page = (Path(__file__).parents[2] / ".github" / "CONTRIBUTING.md").read_text("utf-8")
    section = page.split("## Settings and variables")[1].split("\n## ")[0]
    named = re.findall(r"^\| (`.+?`) \| .+ \|$", section, re.MULTILINE)

    assert [row.replace("`", "") for row in named] == ["default_profile", *SETTINGS, *(names for names, _ in VARIABLES)]


SPEEDS = {
    "`batch create --concurrency 8`, journal durable": "batch, 8",
    "the same with TLS": "batch, 8, TLS",
    "`--concurrency 32`": "batch, 32",
    "`--concurrency 100`": "batch, 100",
    "`xargs -P8 curl`, no journal": "xargs -P8 curl",
    "`xargs -P4 http` (HTTPie), no journal": "xargs -P4 http",
    "8 threads with an httpx client each, no journal": "httpx, 8 threads",
}


def test_speeds_are_those_that_were_measured() -> None:
    measured = json.loads((Path(__file__).parents[1] / "bench" / "batch_speed.json").read_text())
    table = README.split("## Files of rows")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| (.+) \| ([0-9,]+) \|$", table, re.MULTILINE))

    assert rows == {name: f"{measured['figures'][f'{key}: rows/s']:,.0f}" for name, key in SPEEDS.items()}
    assert f"Measured on {measured['date']} ({measured['machine']})" in table


LINES = {
    "tx create": "--amount 5 --currency USD",
    "tx get": "ID",
    "tx release": "ID --yes",
    "tx list": "",
    "tx update": "ID --data {} --yes",
    "tx wait": "ID --for held",
    "tx watch": "ID --deadline 1s",
    "user get": "usr_PAYER001",
    "webhook create": "--url https://hooks.example.net/x",
    "webhook list": "",
    "webhook listen": "--port 0",
    "webhook verify": "--event msg_404",
    "webhook replay": "--since 1h --forward-to http://127.0.0.1:1/",
    "batch create": "ROWS --yes",
    "batch release": "RELEASES --yes",
    "batch resume": "b1 --yes",
    "batch work": "b1 --yes",
    "batch list": "",
    "batch show": "b1",
    "batch rejects": "b1",
    "batch drop": "b1 --yes",
    "auth login": "--base-url https://escrow.example.com --mode test",
    "auth logout": "-p acme",
    "auth status": "",
    "auth switch": "acme",
    "config path": "",
    "config list": "",
    "config get": "timeout",
    "config set": "timeout 5",
    "config unset": "timeout",
    "sandbox serve": "--port 0",
    "sandbox status": "",
    "sandbox reset": "--yes",
    "sandbox set": "fault.release=drop-reply",
    "sandbox magic": "",
    "sandbox move": "ID disputed",
    "sandbox ledger": "--check",
    "sandbox clock": "",
    "sandbox trigger": "transaction.released --id ID",
    "sandbox deliveries": "",
    "completion bash": "",
    "completion zsh": "",
    "completion fish": "",
    "completion install": "bash",
    "journal list": "",
    "journal show": "j1",
    "journal resolve": "j1",
    "journal totals": "",
    "journal verify": "",
    "journal init": "",
    "journal open": "--reason TEXT",
    "journal export": "",
    "journal import": "FILE",
    "api": "GET /transactions",
    "doctor": "",
}


CODES = {
    "tx update": 8,
    "tx watch": 13,
    "journal open": 7,
    "batch resume": 7,
    "batch work": 7,
    "batch drop": 7,
    "webhook listen": 130,
    "webhook verify": 6,
}
"""What the lines end with that do not end with 0: the sandbox refuses an update, nothing changes, no row is left, a
listener ends by a signal, there is no such event."""


def commands_refusing_sandbox() -> set[str]:
    """Return the commands that README excludes from rehearsal; a noun without a verb means all of its verbs."""
    (sentence,) = re.findall(
        r"every command can be rehearsed with `--sandbox`, except(.*?)which refuse it", README, re.DOTALL
    )
    names = re.findall(r"`([a-z ]+)`", sentence)
    return {line for line in LINES for name in names if line == name or line.startswith(f"{name} ")}


@pytest.mark.filterwarnings("ignore:send_bytes will be removed")  # waitress warns of one of its options
@pytest.mark.parametrize("command", LINES)
def test_command_runs_with_sandbox_unless_the_readme_excludes_it(
    command: str, run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals.RUN_SERVER, lambda *_arguments, **_options: None)
    words = LINES[command]
    if "ID" in words or command.startswith("journal "):
        made = run("--sandbox", "tx", "create", "--amount", "100", "--currency", "USD", "-q").out.strip()
        export = tmp_path / "export.jsonl"
        export.write_text(run("--sandbox", "journal", "export").out)
        words = words.replace("ID", made).replace("FILE", str(export))
    if command.startswith("batch "):
        words = prepare_batch(command, words, run, tmp_path)
    before = files_outside_sandbox(home)

    result = run("--sandbox", *command.split(), *words.split())

    refuses = command in commands_refusing_sandbox()
    code = 2 if refuses else CODES.get(command, 0)
    assert (result.code, "leave --sandbox out" in result.err) == (code, refuses), result.err
    assert files_outside_sandbox(home) == before


def prepare_batch(command: str, words: str, run: Run, folder: Path) -> str:
    """Return the words of a batch's line, with its file; all but a create need a batch, or an escrow, first."""
    rows, releases = folder / "rows.csv", folder / "releases.csv"
    rows.write_text("amount,currency\n5,USD\n")
    if command != "batch create":
        run("--sandbox", "batch", "create", str(rows), "--yes")
    if command == "batch release":
        made = run("--sandbox", "tx", "list", "-q").out.split()[0]
        releases.write_text(f"id\n{made}\n")
    return words.replace("ROWS", str(rows)).replace("RELEASES", str(releases))


def files_outside_sandbox(home: Path) -> set[Path]:
    """Return every file below HOME but those of the sandbox and the cache of names for TAB."""
    own = (home / "state" / "sandbox", home / "cache")
    files = {path for path in home.parent.rglob("*") if path.is_file()}
    return {path for path in files if not any(path.is_relative_to(folder) for folder in own)}


def test_every_command_is_tried_with_sandbox() -> None:
    assert set(LINES) == COMMANDS.keys() - {"help", "version"}
