"""Scenario files: those that ship pass, each notices a broken client, and a bad file is refused with its line."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from conftest import Result, Run

from escrowctl.sandbox.scenario import list_shipped
from sandbox.broken_client import CLIENTS

BROKEN = Path(__file__).with_name("broken_client.py")
HEALTHY = (sys.executable, "-m", "escrowctl")


def play(run: Run, *words: str, program: tuple[str, ...] = HEALTHY) -> Result:
    return run("sandbox", "play", *words, called=program)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_shipped())
def test_shipped_scenario_passes(name: str, run: Run, home: Path) -> None:
    played = play(run, name, "--json")

    assert played.code == 0, played.err
    assert '"differs"' not in played.out
    assert not (home / "state" / "sandbox" / "journal.db").exists()


@pytest.mark.representative("time-out")
@pytest.mark.parametrize("name", list_shipped())
def test_shipped_scenario_notices_a_broken_client(name: str, run: Run) -> None:
    played = play(run, name, "--json", program=(sys.executable, str(BROKEN), name))

    assert (played.code, played.error["code"]) == (16, "check_failed")
    assert not any(text.startswith("exit 1,") for text in played.error["differences"]), "it could not even start"


def test_every_shipped_scenario_has_a_broken_client(run: Run) -> None:
    assert set(list_shipped()) == set(CLIENTS)
    assert [line.split("\t")[0] for line in run("sandbox", "play").out.splitlines()] == sorted(CLIENTS)


SAVING = """
about = "What a step saves is there for the next."

[[step]]
run = "tx create --amount 7.50 --currency USD"
expect = {"/out/amount" = 7.50, "/out/status" = "held"}
save = {id = "/out/id"}

[[step]]
run = "tx get {id}"
expect = {"/out/id" = "{id}", "/out/status" = "released"}

[[step]]
run = "tx list"
"""


def test_step_that_differs_ends_the_scenario(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "saving.toml"
    file.write_text(SAVING)

    played = play(run, str(file))

    assert played.code == 16
    assert [line.split("\t")[:3] for line in played.out.splitlines()] == [["1", "ok", "0"], ["2", "differs", "0"]]
    assert '/out/status is "held", but "released" was expected. The step after it did not run.' in played.err


def test_scenario_leaves_the_users_sandbox_alone(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text('about = "a"\n[[step]]\nrun = "sandbox ledger --check"\nset = ["fault.create=500"]\n')
    run("sandbox", "status")

    assert play(run, str(file)).code == 0
    assert run("sandbox", "status", "--json").json["settings"] == {}


def test_scenario_is_played_by_a_program_with_a_relative_path(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "not on PATH"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m escrowctl "$@"\n')
    program.chmod(0o755)
    file = tmp_path / "one.toml"
    file.write_text(f'about = "a"\n{STEP}')

    assert play(run, str(file), program=(os.path.relpath(program),)).code == 0


def test_step_that_cannot_start_shows_what_it_printed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(f'about = "a"\n{STEP}')

    played = play(run, str(file), program=(sys.executable, "-m", "no_such_module"))

    assert (played.code, "No module named no_such_module" in played.err) == (16, True)


STEP = '[[step]]\nrun = "tx list"\n'


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ('about = "a"\n\n[[step]\n', 3, "not TOML"),
        (f'about = "a"\n{STEP}runs = "x"\n', 4, '"runs"'),
        (f'about = "a"\nstep_ = 1\n{STEP}', 2, '"step_"'),
        (f'about = "a"\n{STEP}\n[[step]]\nrun = "tx get {{id}}"\n', 5, "{id}"),
        (f'about = "a"\n{STEP}set = ["fault.create=dropped"]\n', 2, "dropped"),
        (f'about = "a"\n{STEP}exit = "12"\n', 2, '"exit"'),
        (f'about = "a"\n{STEP}expect = {{status = "held"}}\n', 2, '"status"'),
        ('about = "a"\n[[step]]\nrun = "tx list \'"\n', 2, '"run"'),
        ('about = "a"\n', 1, "[[step]]"),
        (STEP, 1, '"about"'),
        (f'about = "a"\n[files]\n"../x" = "a"\n{STEP}', 1, '"files"'),
        (f'about = "a"\n{STEP}save = {{ID = "/out/id"}}\n', 2, '"save"'),
        (f'about = "a"\n{STEP}exit = 256\n', 2, '"exit"'),
        ('about = "a"\n[[step]]\nrun = ""\n', 2, '"run"'),
    ],
    ids=(
        *("no TOML", "key of a step", "key", "not saved before", "setting", "type", "place", "quotes", "no step"),
        *("no about", "path", "name", "exit code", "no run"),
    ),
)
def test_bad_file_is_refused_with_its_line(text: str, line: int, named: str, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)

    played = play(run, str(file))

    assert (played.code, played.out) == (2, "")
    assert f"line {line}" in played.err
    assert named in played.err


@pytest.mark.parametrize("named", ["nowhere", "nowhere.toml", "."])
def test_scenario_that_cannot_be_read_names_those_that_ship(named: str, run: Run) -> None:
    played = play(run, named)

    assert played.code == 2
    assert "double-release" in played.err


def test_file_that_is_no_text_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")

    assert play(run, str(tmp_path / "bad.toml")).code == 2
