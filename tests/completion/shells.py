"""What a shell offers for a line, asked of the shell itself."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pytest

FOLDER = Path(__file__).parents[2] / "completions"
SECONDS = 60


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def offer(shell: str, line: str, environ: Mapping[str, str]) -> set[str]:
    """Return what TAB offers at the end of a line, options left out unless one was begun."""
    found = offer_all(shell, line, environ)
    return {word for word in found if not word.startswith("-") or line.rpartition(" ")[2].startswith("-")}


def offer_all(shell: str, line: str, environ: Mapping[str, str]) -> set[str]:
    """Return what TAB offers at the end of a line."""
    return _ASK[shell](line, {"PATH": "/usr/bin:/bin", "TERM": "dumb", **environ})


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


_ZSHRC = """
autoload -U compinit; compinit -u -D
source "$SCRIPT"
PROMPT=
compadd() {
  # Calls that sort or filter candidates offer nothing; each of the others is one that zsh would list.
  if [[ " ${(j: :)@[1,(i)(-|--)]} " != *\\ -[a-zA-Z]#[OAD]\\ * ]]; then
    local -a candidates
    builtin compadd -A candidates "$@"
    print -rl -- $candidates >>"$ZDOTDIR/offered"
  fi
  builtin compadd "$@"
}
complete() { _main_complete 2>>"$ZDOTDIR/errors" }
zle -C complete list-choices complete
zle -N zle-line-init
zle-line-init() { BUFFER=$LINE_TO_COMPLETE CURSOR=$#LINE_TO_COMPLETE; zle complete; BUFFER=exit; zle accept-line }
"""


def _ask_zsh(line: str, environ: Mapping[str, str]) -> set[str]:
    """Let the line editor itself complete as soon as it starts: keys typed before it reads them can be lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shell = start_zsh(folder, _ZSHRC, {**environ, "LINE_TO_COMPLETE": line})
        with contextlib.closing(shell):
            shell.expect_exact(pexpect.EOF)
        assert (folder / "errors").read_text() == ""
        offered = folder / "offered"
        return set(offered.read_text().splitlines()) - {""} if offered.exists() else set()


def start_zsh(folder: Path, zshrc: str, environ: Mapping[str, str]) -> pexpect.spawn:
    """Start an interactive zsh with no other start-up file than this `.zshrc`, in a folder made for it."""
    (folder / ".zshrc").write_text(zshrc)
    return pexpect.spawn(
        needs("zsh"),
        ["-d", "-i"],
        env={**environ, "ZDOTDIR": str(folder), "SCRIPT": str(FOLDER / "_escrowctl")},
        encoding="utf-8",
        timeout=SECONDS,
        dimensions=(600, 40),
    )


_ASK = {"bash": _ask_bash, "fish": _ask_fish, "zsh": _ask_zsh}
