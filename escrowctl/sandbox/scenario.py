"""Scenario files: a rehearsal as TOML, read completely before its first step runs.

    about = "What is rehearsed."
    [files]                              texts for the folder in which the steps run
    "rows.csv" = "..."
    [[step]]
    set = ["fault.create=drop-reply,1x"]  set before the step, as `sandbox set` does
    run = "tx create --amount 5 --currency USD"      what follows `escrowctl --sandbox --json`
    exit = 12                             0 if it is left out
    expect = {"/error/code" = "outcome_unknown"}
    save = {entry = "/error/entry"}       a later `run` and `expect` have it as {entry}
    file_limit = 4096                     most bytes of a file that the step may write: as if the disk were full

`expect` and `save` name places by JSON Pointer (RFC 6901) in `{"out": ..., "error": ...}`: the document that the
step prints (a list of them, if there are several), and its error.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.sandbox.settings import read_texts

_SHIPPED = Path(__file__).with_name("scenarios")
_MAX_BYTES = 1024 * 1024
_MAX_EXIT = 255
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SAVED = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_KEYS: Mapping[str, tuple[type, str]] = MappingProxyType(
    {
        "run": (str, "a command line without the program"),
        "set": (list, "a list of NAME=VALUE"),
        "exit": (int, "an exit code"),
        "expect": (dict, "a table of JSON Pointers and values"),
        "save": (dict, "a table of names and JSON Pointers"),
        "file_limit": (int, "a number of bytes"),
    }
)


class Step(NamedTuple):
    """One command line, what is set before it, and what is expected of it."""

    words: tuple[str, ...]
    settings: Mapping[str, str]
    exit_code: int
    expected: Mapping[str, Any]
    saved: Mapping[str, str]
    file_limit: int | None

    def filled(self, saved: Mapping[str, str]) -> tuple[str, ...]:
        """Return the words of the line, with what earlier steps saved."""
        return tuple(fill(word, saved) for word in self.words)


class Scenario(NamedTuple):
    """A rehearsal: what it shows, the files of its folder by name, its steps."""

    about: str
    files: Mapping[str, str]
    steps: tuple[Step, ...]


def fill(text: str, saved: Mapping[str, str]) -> str:
    """Return a text with each `{name}` replaced by what was saved under it."""
    return _SAVED.sub(lambda found: saved.get(found[1], found[0]), text)


def list_shipped() -> dict[str, str]:
    """Return the scenarios that come with escrowctl: name -> what it shows."""
    return {path.stem: read_scenario(str(path)).about for path in sorted(_SHIPPED.glob("*.toml"))}


def read_scenario(named: str) -> Scenario:
    """Read the file, or the shipped scenario of that name.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`, with the line, where it cannot be played.
    """
    shipped = _SHIPPED / f"{named}.toml"
    path = shipped if _is_name(named) and shipped.is_file() else Path(named)
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode()
        return _Reading(named, text).scenario(tomllib.loads(text, parse_float=Decimal))
    except OSError as error:
        shown = ", ".join(one.stem for one in sorted(_SHIPPED.glob("*.toml")))
        raise bad_value(f'"{named}" cannot be read ({error.strerror}): name a file, or one of {shown}.') from error
    except UnicodeDecodeError as error:
        raise bad_value(f"{named} is not text in UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise bad_value(f"{named} is not TOML: {str(error)[:1].lower()}{str(error)[1:]}.") from error


def _is_name(named: str) -> bool:
    return re.fullmatch(r"[a-z-]+", named) is not None


def _is_file(name: str, text: object) -> bool:
    return isinstance(text, str) and Path(name).name == name


class _Reading:
    """A file that is being read; errors name its line."""

    def __init__(self, named: str, text: str) -> None:
        self._named = named
        self._lines = text.splitlines()
        self._heads = [number for number, line in enumerate(self._lines, 1) if re.match(r"\s*\[\[step\]\]", line)]
        self._line = 1
        self._saved: set[str] = set()

    def scenario(self, document: dict[str, Any]) -> Scenario:
        self._require_keys(document, {"about", "files", "step"})
        about, files, steps = document.get("about"), document.get("files", {}), document.get("step")
        if not isinstance(about, str) or not about:
            raise self._bad('"about" must say what is rehearsed')
        if not isinstance(files, dict) or not all(map(_is_file, files, files.values())):
            raise self._bad('"files" must be a table of file names and texts')
        if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
            raise self._bad("it has no [[step]]")
        return Scenario(about, files, tuple(self._step(number, step) for number, step in enumerate(steps)))

    def _step(self, number: int, step: dict[str, Any]) -> Step:
        self._line = self._heads[number] if number < len(self._heads) else self._line
        self._require_keys(step, _KEYS)
        for name, value in step.items():
            kind, meaning = _KEYS[name]
            if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
                raise self._bad(f'"{name}" must be {meaning}')
        words = self._words(step.get("run", ""))
        exit_code, expected, saved = step.get("exit", 0), step.get("expect", {}), step.get("save", {})
        if exit_code > _MAX_EXIT:
            raise self._bad(f'"exit" must be at most {_MAX_EXIT}')
        self._require_places(expected, saved)
        made = Step(words, self._settings(step.get("set", [])), exit_code, expected, saved, step.get("file_limit"))
        self._saved |= saved.keys()
        return made

    def _require_places(self, expected: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
        if not all(_NAME.fullmatch(name) and isinstance(place, str) for name, place in saved.items()):
            raise self._bad('"save" must be a table of names and JSON Pointers')
        for place in (*expected, *saved.values()):
            if not place.startswith(("/out", "/error")):
                raise self._bad(f'"{place}" is not a place: write a JSON Pointer below /out or /error')

    def _words(self, line: str) -> tuple[str, ...]:
        try:
            words = tuple(shlex.split(line))
        except ValueError as error:
            raise self._bad(f'"run" cannot be split into words ({error})') from error
        if not words:
            raise self._bad('"run" must be a command line without the program')
        if missing := [name for name in _SAVED.findall(line) if name not in self._saved]:
            raise self._bad(f"no step before saves {{{missing[0]}}}")
        return words

    def _settings(self, texts: list[Any]) -> Mapping[str, str]:
        try:
            return read_texts(map(str, texts))
        except EscrowctlError as error:
            raise self._bad(error.message.removesuffix(".")) from error

    def _require_keys(self, table: Mapping[str, Any], known: Any) -> None:
        if unknown := [name for name in table if name not in known]:
            below = enumerate(self._lines[self._line - 1 :], self._line)
            self._line = next((number for number, line in below if line.lstrip().startswith(unknown[0])), self._line)
            raise self._bad(f'there is no key "{unknown[0]}"; choose one of {", ".join(sorted(known))}')

    def _bad(self, why: str) -> EscrowctlError:
        return bad_value(f"{self._named}, line {self._line}: {why}.")
