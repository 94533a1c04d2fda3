"""Plays a scenario: each step is a separate process, in a sandbox and a journal that are removed afterwards.

It starts the program that it is given and reads what it prints; it knows nothing else of the client.
"""

import json
import os
import resource
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from escrowctl.sandbox.scenario import Scenario, Step, fill
from escrowctl.sandbox.service import empty_sandbox, open_sandbox

_SECONDS = 120
"""For one step. A step that takes longer is ended, and has failed."""
_TIMED_OUT = -1
_MISSING = object()


class Played(NamedTuple):
    """One step that ran: its line, how it ended, what differs from what was expected, and its last error."""

    number: int
    line: str
    exit_code: int
    expected_exit: int
    differences: tuple[str, ...]
    error: str

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.differences


def play(
    scenario: Scenario, program: Sequence[str], environ: Mapping[str, str], *, now: Callable[[], datetime]
) -> Iterator[Played]:
    """Run the steps in order, and yield what came of each; the first that differs is the last.

    `program` are the words that start escrowctl; of `environ` its own variables are left out.
    """
    with tempfile.TemporaryDirectory(prefix="escrowctl-play-") as folder:
        stage = _Stage(Path(folder), program, environ, now)
        stage.set_up(scenario.files)
        for number, step in enumerate(scenario.steps, 1):
            played = stage.run(number, step)
            yield played
            if not played.passed:
                return


class _Stage:
    """The folder in which the steps of one scenario run, and what they saved."""

    def __init__(
        self, folder: Path, program: Sequence[str], environ: Mapping[str, str], now: Callable[[], datetime]
    ) -> None:
        self._folder = folder / "steps"
        self._folder.mkdir()
        home = folder / "home"
        self._store = home / "state" / "sandbox"
        # The steps run in another folder, where a relative path leads elsewhere.
        path, *rest = program
        self._program = (str(Path.cwd() / path) if os.sep in path else path, *rest)
        own = {name: value for name, value in environ.items() if not name.startswith("ESCROWCTL_")}
        self._environ = {**own, "ESCROWCTL_HOME": str(home)}
        self._now = now
        self._saved: dict[str, str] = {}

    def set_up(self, files: Mapping[str, str]) -> None:
        # With a seed, ids and chances are the same each time.
        empty_sandbox(self._store, now=self._now, seed=1)
        for name, text in files.items():
            (self._folder / name).write_text(text)

    def run(self, number: int, step: Step) -> Played:
        if step.settings:
            with closing(open_sandbox(self._store, now=self._now)) as sandbox:
                sandbox.rehearsal.change(step.settings)
        words = step.filled(self._saved)
        code, document, error = self._call(words, step.file_limit)
        differences = [] if code == step.exit_code else [f"exit {_name(code)}, but {step.exit_code} was expected"]
        for place, wanted in step.expected.items():
            filled = fill(wanted, self._saved) if isinstance(wanted, str) else wanted
            found = _find(document, place)
            if found != filled or isinstance(found, bool) is not isinstance(filled, bool):
                differences.append(f"{place} is {_write(found)}, but {_write(filled)} was expected")
        for name, place in step.saved.items():
            found = _find(document, place)
            if not isinstance(found, str):
                differences.append(f"{place} is {_write(found)}, and cannot be saved as {{{name}}}")
            else:
                self._saved[name] = found
        return Played(number, shlex.join(words), code, step.exit_code, tuple(differences), error)

    def _call(self, words: Sequence[str], file_limit: int | None) -> tuple[int, dict[str, Any], str]:
        def limit() -> None:
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        try:
            ended = subprocess.run(  # noqa: S603 - the program that runs, with the words of the scenario
                [*self._program, "--sandbox", "--json", *words],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                preexec_fn=limit,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _TIMED_OUT, {}, ""
        printed, reported = _documents(ended.stdout), _documents(ended.stderr)
        errors = [one["error"] for one in reported if isinstance(one, dict) and "error" in one]
        document = {"out": printed[0] if len(printed) == 1 else printed, "error": errors[-1] if errors else None}
        # What could not start is not escrowctl, and prints no JSON.
        last = errors[-1].get("message", "") if errors else reported[-1] if reported else ""
        return ended.returncode, document, last if isinstance(last, str) else ""


def _documents(output: bytes) -> list[Any]:
    found = []
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            found.append(json.loads(line, parse_float=Decimal))
        except ValueError:
            found.append(line)
    return found


def _find(document: Any, pointer: str) -> Any:
    """Return what a JSON Pointer points to (RFC 6901); `_MISSING` where there is nothing."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return _MISSING
    return document


def _write(value: Any) -> str:
    return "missing" if value is _MISSING else json.dumps(value, default=str)


def _name(code: int) -> str:
    return f"not before {_SECONDS} s" if code == _TIMED_OUT else str(code)
