"""A pytest plugin (`-p messages.recorder`) that records which test prints which message template.

It loads escrowctl with its templates wrapped (`templates.instrument`). A template counts as printed by a test where
a text that it rendered is in what the console wrote. Two variables name files: MESSAGE_CASES the ids of the tests to
run (else all), MESSAGE_RECORD the result: for each test its seconds and, for each template, codes and printed lines.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from messages.templates import PRODUCT, Template, instrument, module_of, templates_of

_FUNCTION = "__message__"
_MAX_RENDERED = 5000

_rendered: dict[Template, set[str]] = defaultdict(set)
"""What each template was rendered to during this test."""
_constants: dict[Template, set[str]] = defaultdict(set)
"""The same while modules were imported: constants, which every test may print."""
_printed: list[tuple[str, str]] = []
"""Code and text of what this test printed."""
_record: dict[str, Any] = {}
_is_importing = 0


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, _name: str) -> CodeType:
        module = module_of(Path(self.path))
        return compile(instrument(module, _FUNCTION), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        global _is_importing  # noqa: PLW0603 - one count for nested imports
        templates = templates_of(module_of(Path(self.path)))

        def report(number: int, text: str) -> str:
            target = _constants if _is_importing else _rendered
            if len(target[templates[number]]) < _MAX_RENDERED:
                target[templates[number]].add(str(text))
            return text

        vars(module)[_FUNCTION] = report
        _is_importing += 1
        try:
            super().exec_module(module)
        finally:
            _is_importing -= 1


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "escrowctl":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec and spec.origin and Path(spec.origin).is_relative_to(PRODUCT):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder())


def pytest_configure() -> None:
    """Let the console report what it prints, and under which code."""
    from escrowctl.output.console import Console

    # Constants come from the import: whichever test runs first, each may print them.
    for path in sorted(PRODUCT.rglob("*.py")):
        if path.stem != "__main__":
            importlib.import_module(f"escrowctl.{module_of(path)[:-3].replace('/', '.')}".removesuffix(".__init__"))
    _listen(Console, "error", lambda arguments: arguments[0].code.value)
    _listen(Console, "note", lambda arguments: arguments[0])
    _listen(Console, "ask", lambda _: "question")
    _listen(Console, "trace", lambda _: "trace")
    _listen(Console, "data", lambda _: "data")
    _listen(Console, "_write_error", lambda _: None)
    _hide_home(importlib.import_module("escrowctl.invocation"))


def _hide_home(invocation: ModuleType) -> None:
    """Leave the variables of a test out of the commands to paste: an operator's profile needs none."""
    assign = vars(invocation)["_assign"]
    vars(invocation)["_assign"] = lambda runtime, *names: assign(
        runtime, *(name for name in names if name == "ESCROWCTL_CONFIG")
    )


_codes: list[str] = []
"""The codes of what is being printed, the innermost last."""


def _listen(owner: type, name: str, code_of: Callable[[tuple[Any, ...]], str | None]) -> None:
    """Record what this method of the console prints; a code of None is that of the method around it."""
    original = getattr(owner, name)

    def spy(self: Any, *arguments: Any, **keywords: Any) -> Any:
        code = code_of(arguments)
        if code in (None, "data"):
            _printed.append((code or (_codes[-1] if _codes else "progress"), _readable(arguments[0])))
        _codes.append(code or "progress")
        try:
            return original(self, *arguments, **keywords)
        finally:
            _codes.pop()

    setattr(owner, name, spy)


def _readable(text: str) -> str:
    """Return what was printed as a person reads it, from its JSON form too."""
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        for word, body in json.loads(text).items():
            hints = (body.get("hint") or "").split("\n")
            return "\n".join([f"{word}: {body['message']}", *(f"hint: {hint}" for hint in hints if hint)])
    return text


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that MESSAGE_CASES names, where it names a file; an id that is gone is not an error here."""
    if path := os.environ.get("MESSAGE_CASES"):
        cases = frozenset(Path(path).read_text().splitlines())
        items[:] = [item for item in items if item.nodeid in cases]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record what this test prints."""
    _rendered.clear()
    _printed.clear()
    started = time.perf_counter()
    result = yield
    seconds = time.perf_counter() - started
    found: dict[str, dict[str, list[list[str]]]] = defaultdict(dict)
    for template, values in [*_rendered.items(), *_constants.items()]:
        lines = sorted({line for value in values for line in _lines_with(value)}, key=lambda pair: (len(pair[1]), pair))
        if lines:
            found[template.module][template.text] = [list(pair) for pair in lines[:20]]
    _record[item.nodeid] = {"seconds": seconds, "found": found}
    return result


def _lines_with(value: str) -> Iterator[tuple[str, str]]:
    value = value.strip()
    for code, text in _printed:
        if value and value in text:
            around = [line for line in text.splitlines() if value in line] or [text]
            yield code, normalised(around[0])


def normalised(line: str) -> str:
    """Return a printed line without what differs between runs: folders, ports, times, random ids.

    Different ports and ids stay different: the second one of a line ends in 2, and so on.
    """
    for pattern, replacement in _VOLATILE:
        line = re.sub(pattern, replacement, line)
    for pattern, shown in _DISTINCT:
        line = re.sub(pattern, partial(_name, shown, {}), line)
    return line


def _name(shown: str, names: dict[str, str], match: re.Match[str]) -> str:
    return names.setdefault(match[0], f"{shown[:-1]}{len(names) + 1}" if names else shown)


_VOLATILE = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"(/tmp/pytest-of-\w+/pytest-\d+|/[\w/.-]*/messages-\w+/t)/[^/\s'\"]+", "/home/op"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", "2026-11-21T03:12:44"),
    (r"(?<=at )\d\d:\d\d:\d\dZ", "03:12:44Z"),
    (r"\b\d+ (s|min|h|d) ago", "40 s ago"),
    (r"\b\d+ ms\b", "2 ms"),
    (r"20\d\d-\d\d-\d\dT\d{6}\.\d{3}Z-\d+", "2026-11-21T031244.100Z-4242"),
    (r"(?<=process )\d+", "4242"),
)
_DISTINCT = (
    (r"(?<=127\.0\.0\.1:)\d{4,5}|(?<=localhost:)\d{4,5}", "4600"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "5e0c2f4e-0d5b-4c57-9a39-6f1c8a7f2b10"),
    (r"(?<![0-9a-f])[0-9a-f]{32,64}(?![0-9a-f])", "5e0c2f4e0d5b4c57"),
    (r"\btx_[0-9A-Z]{8}\b", "tx_7K2M9QHD"),
    (r"\busr_[0-9A-Z]{8}\b", "usr_7K2M9QHD"),
    (r"\bwh_[0-9A-Z]{8}\b", "wh_7K2M9QHD"),
    (r"\bmsg_[0-9A-Z]{8}\b", "msg_7K2M9QHD"),
)


def pytest_sessionfinish() -> None:
    """Write what was recorded."""
    Path(os.environ["MESSAGE_RECORD"]).write_text(json.dumps(_record))
