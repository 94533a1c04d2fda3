"""What README says is what the program does."""

import re
from pathlib import Path

from conftest import Run

from escrowctl.exits import ExitCode

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def test_the_table_of_exit_codes_is_the_enum() -> None:
    table = re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE)

    assert table == [(str(int(code)), code.meaning) for code in ExitCode]


def test_help_exit_codes_prints_the_same_codes(run: Run) -> None:
    printed = run("help", "exit-codes").out

    assert [line.split(None, 1)[0] for line in printed.splitlines()] == [str(int(code)) for code in ExitCode]


def test_there_are_exactly_two_set_up_commands_at_the_top() -> None:
    lines = README.splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]

    assert len(commands) == 2
    assert max(lines.index(command) for command in commands) < 20
    assert commands[0].endswith("escrowctl --sandbox tx create --amount 100 --currency USD")


def test_help_environment_names_every_variable_that_the_code_reads(run: Run) -> None:
    package = Path(__file__).parents[2] / "escrowctl"
    read = set()
    for path in package.rglob("*.py"):
        read |= set(re.findall(r'"(ESCROWCTL_[A-Z_]+)"', path.read_text("utf-8")))
    described = run("help", "environment").out

    assert read
    assert {name for name in read if name not in described} == set()
