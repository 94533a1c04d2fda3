"""The installed console script, run as a separate process in a clean environment."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pexpect
from conftest import KEY, Result
from wire_server import WireServer

SECONDS = 30
"""How long any one process of these tests may take before the test fails."""

_BASH = ("bash", "--norc", "--noprofile", "-c")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def find_script() -> Path:
    """Return the console script next to this interpreter; fails where the package is not installed."""
    path = Path(sys.executable).parent / "escrowctl"
    assert path.is_file(), f"{path} is not there: these tests run the installed script, so install the package first"
    return path


def plain(text: str) -> str:
    """Return what a terminal received without its colours, in lines that end as text does."""
    return _STYLE.sub("", text).replace("\r\n", "\n")


@dataclass(frozen=True)
class Program:
    """The script with the whole environment that it runs in; nothing of ours is inherited."""

    environ: Mapping[str, str]

    def at(self, server: WireServer) -> "Program":
        return self.with_environ(ESCROWCTL_BASE_URL=server.base_url, ESCROWCTL_API_KEY=KEY)

    def with_environ(self, **variables: str) -> "Program":
        return replace(self, environ={**self.environ, **variables})

    @property
    def config(self) -> Path:
        """The folder of config.toml and of stored keys."""
        return Path(self.environ["HOME"], ".config", "escrowctl")

    @property
    def state(self) -> Path:
        """The folder of the journal and the sandbox."""
        return Path(self.environ["HOME"], ".local", "state", "escrowctl")

    def run(self, *words: str, stdin: str = "") -> Result:
        """Run a command line with pipes on all three streams."""
        return _result(self.start(*words, stdin=subprocess.PIPE), stdin)

    def start(self, *words: str, **streams: Any) -> "subprocess.Popen[str]":
        """Start a command line; stdin is empty unless given."""
        return self._open([str(find_script()), *words], **streams)

    def bash(self, line: str, **streams: Any) -> Result:
        """Run a line of bash with the script on its PATH."""
        return _result(self._open([*_BASH, line], **streams), "")

    def python(self, code: str, *words: str) -> Result:
        """Run Python code with the script's interpreter, `words` being its command line."""
        return _result(self._open([sys.executable, "-c", code, *words]), "")

    def terminal(self, *words: str, columns: int = 100) -> "Terminal":
        """Start a command line at a new terminal, that many columns wide."""
        return self._open_terminal([str(find_script()), *words], columns)

    def bash_terminal(self, line: str, columns: int) -> "Terminal":
        """Start a line of bash, with the script on its PATH, at a new terminal and in HOME."""
        return self._open_terminal([*_BASH, line], columns, cwd=self.environ["HOME"])

    def _open(self, command: list[str], **streams: Any) -> "subprocess.Popen[str]":
        piped = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=self.environ, text=True, encoding="utf-8", **(piped | streams))

    def _open_terminal(self, command: list[str], columns: int, **place: str) -> "Terminal":
        program, *words = command
        how = {"env": dict(self.environ), "dimensions": (45, columns), "encoding": "utf-8", "timeout": SECONDS}
        return Terminal(pexpect.spawn(program, words, **how, **place))

    def journal(self, *options: str) -> list[tuple[str, str]]:
        """Return (operation, state) of every journal entry, oldest first."""
        result = self.run(*options, "journal", "list", "--json")
        assert result.code == 0, result.err
        return [(entry["operation"], entry["state"]) for entry in reversed(result.json)]

    def entry(self, name: str) -> dict[str, Any]:
        """Return one journal entry as `journal show --json` prints it."""
        return cast("dict[str, Any]", json.loads(self.run("journal", "show", name, "--json").out))


@dataclass
class Terminal:
    """A process at a pseudo-terminal: what it shows is stdout and stderr together, as a person sees it."""

    process: Any
    _shown: str = ""

    def wait_for(self, text: str) -> None:
        """Wait until a text is shown."""
        self.process.expect_exact(text)
        self._shown += self.process.before + text

    def answer(self, prompt: str, text: str) -> None:
        """Wait for the prompt, then type."""
        self.wait_for(prompt)
        self.process.send(text)

    def finish(self) -> tuple[int, str]:
        """Wait for the end and return the exit code and everything shown, colours included."""
        self.process.expect(pexpect.EOF)
        self.process.wait()
        # It has ended: close() would only sleep.
        self.process.delayafterclose = 0
        self.process.close()
        code = self.process.exitstatus
        return (-self.process.signalstatus if code is None else code), self._shown + self.process.before


def finish(process: "subprocess.Popen[str]") -> Result:
    """Wait for the end of a process that was started."""
    return _result(process, None)


def _result(process: "subprocess.Popen[str]", stdin: str | None) -> Result:
    try:
        out, err = process.communicate(stdin if process.stdin else None, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {SECONDS} s; stdout {out!r}, stderr {err!r}") from None
    return Result(process.returncode, out or "", err or "")


def clean_environment(folder: Path) -> dict[str, str]:
    """Return the complete environment of a process: a fresh home, and nothing of this one's environment."""
    return {
        "PATH": f"{find_script().parent}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
