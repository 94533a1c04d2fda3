"""What a shell offers for a line, asked of the shell itself."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pytest

FOLDER = Path(__file__).parents[2] / "completions"
SECONDS = 20
_CONTROL = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|[\x00-\x1f]")


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def offer(shell: str, line: str, environ: Mapping[str, str]) -> set[str]:
    """Return what TAB offers at the end of a line, options left out unless one was begun."""
    found = _ASK[shell](line, {"PATH": "/usr/bin:/bin", "TERM": "dumb", **environ})
    return {word for word in found if not word.startswith("-") or line.rpartition(" ")[2].startswith("-")}


def bash_script(line: str) -> str:
    """Return a script that completes a line as readline would call it, and prints the candidates."""
    *words, last = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in (*words, last))
    return (
        f"source '{FOLDER}/escrowctl.bash'; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _escrowctl; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )


def _ask_bash(line: str, environ: Mapping[str, str]) -> set[str]:
    command = [needs("bash"), "--norc", "-c", bash_script(line)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert done.stderr == ""
    return set(done.stdout.splitlines()) - {""}


def _ask_fish(line: str, environ: Mapping[str, str]) -> set[str]:
    command = [needs("fish"), "--no-config", "-c", f"source '{FOLDER}/escrowctl.fish'; complete -C '{line}'"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert done.stderr == ""
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


def _ask_zsh(line: str, environ: Mapping[str, str]) -> set[str]:
    """Ask until something is listed: zsh lists nothing where the next keys are there before it begins to."""
    for _ in range(_ZSH_TRIES):
        # Keys that come while zsh takes the terminal over are lost with it: then it never gets ready.
        with contextlib.suppress(pexpect.TIMEOUT):
            if words := _ask_zsh_once(line, environ):
                return words
    return set()


def _ask_zsh_once(line: str, environ: Mapping[str, str]) -> set[str]:
    """List, insert nothing: what is certain is then listed too."""
    shell = pexpect.spawn(
        needs("zsh"),
        ["-f", "-i"],
        env=dict(environ),
        encoding="utf-8",
        timeout=SECONDS,
        dimensions=(600, 40),
        echo=False,
    )
    with contextlib.closing(shell):
        shell.sendline("unsetopt zle; echo pla''in")
        shell.expect_exact("plain")
        shell.sendline(f"autoload -U compinit; compinit -u -D; source '{FOLDER}/_escrowctl'")
        shell.sendline("PROMPT=; LISTMAX=10000; zstyle ':completion:*' verbose no; bindkey '^I' list-choices")
        shell.sendline("setopt zle list_rows_first; zstyle ':completion:*' list-packed no; echo rea''dy")
        shell.expect_exact("ready")
        shell.send(line + "\t")
        shell.send("\x15echo en''ded\r")
        shell.expect_exact("ended")
        shown = str(shell.before)
    words = set(_CONTROL.sub(" ", shown).split())
    # The line itself, the command that ends the list, and zsh's mark for a line without an end.
    return words - set(line.split()) - {"echo", "en''ded", "#", "%"}


_ZSH_TRIES = 3

_ASK = {"bash": _ask_bash, "fish": _ask_fish, "zsh": _ask_zsh}
