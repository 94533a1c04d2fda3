"""The scripts in completions/: fresh, and driven in the shells they are for."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest
from conftest import Run

from escrowctl.commands.completion import SHELLS
from escrowctl.commands.help import TOPICS
from escrowctl.completion import tree

FOLDER = Path(__file__).parents[2] / "completions"
FILES = {"bash": "escrowctl.bash", "zsh": "_escrowctl", "fish": "escrowctl.fish"}

REPLY = {"reply.id", "reply.status", "reply.amount", "reply.currency"}
CASES = (
    ("escrowctl j", {"journal"}),
    ("escrowctl tx ", {"create", "get", "release", "list", "update"}),
    ("escrowctl --sandbox -p acme tx create --am", {"--amount"}),
    ("escrowctl tx create --currency US", {"USD", "USN"}),
    ("escrowctl tx create --reference tx --curr", {"--currency"}),
    ("escrowctl --color ", {"auto", "always", "never"}),
    ("escrowctl tx create --json --dry", {"--dry-run"}),
    ("escrowctl completion ", {"bash", "zsh", "fish", "install"}),
    ("escrowctl completion install ", {"bash", "zsh", "fish"}),
    ("escrowctl auth login --mode ", {"test", "live"}),
    (
        "escrowctl help ",
        {"exit-codes", "environment", "tx", "user", "webhook", "auth", "config", "sandbox", "completion", "journal"}
        | {"api", "help"},
    ),
    ("escrowctl config get p", {"profile", "proxy"}),
    ("escrowctl config set re", {"read_only", "reference_field", "retry_throttled", "reply_limit"} | REPLY),
    ("escrowctl config unset de", {"default_profile"}),
)


def _needs(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


def _last(line: str) -> str:
    return line.rpartition(" ")[2]


@pytest.mark.parametrize("shell", FILES)
def test_the_kept_script_is_what_the_command_tree_gives(run: Run, shell: str) -> None:
    assert run("completion", shell).out == (FOLDER / FILES[shell]).read_text("utf-8")


def test_the_topics_and_shells_that_are_offered_are_those_that_there_are() -> None:
    assert [name for name, _ in tree._TOPICS] == list(TOPICS)
    assert [name for name, _ in tree._SHELLS] == list(SHELLS)


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_bash_completes(line: str, expected: set[str]) -> None:
    *words, last = line.split(" ")
    script = (
        f"source '{FOLDER}/escrowctl.bash'; COMP_WORDS=({' '.join(words)} '{last}'); "
        f"COMP_CWORD={len(words)}; _escrowctl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run([_needs("bash"), "--norc", "-c", script], capture_output=True, text=True, check=True)
    found = {word for word in done.stdout.split() if not word.startswith("-") or last.startswith("-")}

    assert found == expected


@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_fish_completes(line: str, expected: set[str]) -> None:
    script = f"source '{FOLDER}/escrowctl.fish'; complete -C '{line}'"
    done = subprocess.run([_needs("fish"), "--no-config", "-c", script], capture_output=True, text=True, check=True)
    words = {row.split("\t")[0] for row in done.stdout.splitlines()}

    assert {word for word in words if not word.startswith("-") or _last(line).startswith("-")} == expected


@pytest.mark.representative("escrowctl tx ", "escrowctl tx create --currency US")
@pytest.mark.parametrize(("line", "expected"), CASES, ids=[line for line, _ in CASES])
def test_zsh_completes(line: str, expected: set[str], tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "dumb"}
    shell = pexpect.spawn(
        _needs("zsh"), ["-f", "-i"], env=environ, encoding="utf-8", timeout=20, dimensions=(50, 160), echo=False
    )
    with contextlib.closing(shell):
        shell.sendline(f"unsetopt zle; autoload -U compinit; compinit -u -D; source '{FOLDER}/_escrowctl'")
        shell.sendline("PROMPT=; bindkey '^I' complete-word; setopt zle; echo rea''dy")
        shell.expect_exact("ready")
        # The first TAB inserts what is certain, the second lists what is not.
        shell.send(line + "\t\t")
        certain = _last(line) if len(expected) == 1 else ""
        waiting = {word.removeprefix(certain) for word in expected}
        while waiting:
            words = sorted(waiting)
            waiting.discard(words[shell.expect_exact(words)])
