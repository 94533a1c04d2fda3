"""The scripts in completions/: up to date, and run in their shells."""

from pathlib import Path

import pexpect
import pytest
from conftest import Run

from completion.shells import needs, offer, offer_all

FOLDER = Path(__file__).parents[2] / "completions"
FILES = {"bash": "escrowctl.bash", "zsh": "_escrowctl", "fish": "escrowctl.fish"}

REPLY = {"reply.id", "reply.status", "reply.amount", "reply.currency"}
CASES: tuple[tuple[str, set[str]], ...] = (
    ("escrowctl j", {"journal"}),
    ("escrowctl tx ", {"create", "get", "release", "list", "update", "wait", "watch"}),
    ("escrowctl --sandbox -p acme tx create --am", {"--amount"}),
    ("escrowctl tx create --currency US", {"USD", "USN"}),
    ("escrowctl auth login --mode ", {"test", "live"}),
    ("escrowctl journal list --state in", {"in_flight"}),
    ("escrowctl webhook create --event transaction.r", {"transaction.released"}),
    ("escrowctl config set re", {"read_only", "reference_field", "retry_throttled"} | REPLY),
)


@pytest.mark.parametrize("shell", FILES)
def test_stored_script_matches_the_command_tree(run: Run, shell: str) -> None:
    assert run("completion", shell).out == (FOLDER / FILES[shell]).read_text("utf-8")


@pytest.mark.parametrize("line", ["escrowctl ", "escrowctl tx create "])
def test_bash_offers_options_only_after_a_dash(line: str, tmp_path: Path) -> None:
    offered = offer_all("bash", line, {"HOME": str(tmp_path)})

    assert [word for word in offered if word.startswith("-")] == []
    assert "--json" in offer_all("bash", f"{line}-", {"HOME": str(tmp_path)})


@pytest.mark.parametrize("shell", FILES)
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_shell_offers_matching_words(shell: str, line: str, expected: set[str], tmp_path: Path) -> None:
    assert offer(shell, line, {"HOME": str(tmp_path)}) == expected


@pytest.mark.slow
def test_bash_completes_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "payouts.csv").touch()
    shell = pexpect.spawn(
        needs("bash"),
        ["--norc", "--noprofile"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "%"},
    )
    shell.sendline(f"source '{FOLDER}/escrowctl.bash'; escrowctl() {{ echo \"<$*>\"; }}")
    shell.expect_exact("%")

    shell.send("escrowctl batch create pay\t\n")

    shell.expect_exact("<batch create payouts.csv>", timeout=20)
    shell.close(force=True)


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shell_completes_names_of_files(shell: str, tmp_path: Path) -> None:
    (tmp_path / "payouts.csv").touch()

    found = offer(shell, f"escrowctl batch create {tmp_path}/pay", {"HOME": str(tmp_path)})

    assert [Path(name).name for name in found] == ["payouts.csv"]
