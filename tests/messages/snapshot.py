"""MESSAGES.md: one row per template, in the order of modules and lines; and cases.txt: the tests that print them."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from messages.templates import Template

SNAPSHOT = Path(__file__).parent / "MESSAGES.md"
CASES = Path(__file__).parent / "cases.txt"

_TITLE = """# Every message of escrowctl

Each row is one template of the source: where it is printed, its error or note code (or `data`, `question`, `trace`,
`progress`), the template with its placeholders, and a line with it as printed. Review it as prose: words in
brackets `{...}` are values. Written by `ESCROWCTL_WRITE_MESSAGES=1 pytest tests/messages`; do not edit it.
"""
_NOT_PRINTED = "-"
_MAX_LINE = 240

Printed = dict[Template, set[tuple[str, str]]]
"""The codes and lines with which each template was printed."""


Record = dict[str, Any]
"""What the recorder wrote: for each test its seconds, and codes and lines by module and text."""


class Row(NamedTuple):
    """One template of the snapshot; `code` is "-" and `line` empty where no case prints it."""

    template: Template
    code: str
    line: str


def read_rows() -> tuple[Row, ...]:
    """Return the rows of MESSAGES.md."""
    return tuple(_parse(SNAPSHOT.read_text()))


def _parse(text: str) -> Iterator[Row]:
    module = ""
    for line in text.splitlines():
        if line.startswith("## "):
            module = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith("| Code "):
            code, template, printed = (_unescaped(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            yield Row(Template(module, template), code, printed)


def write_rows(templates: tuple[Template, ...], printed: Printed) -> None:
    """Write MESSAGES.md: of the lines with a template, the shortest one of an error, else the shortest."""
    lines = [_TITLE]
    for module, group in groupby(templates, key=lambda template: template.module):
        lines += [f"## {module}", "", "| Code | Template | As printed |", "|---|---|---|"]
        for template in group:
            shown = printed.get(template) or {(_NOT_PRINTED, "")}
            code, line = min(
                shown, key=lambda pair: (pair[0] == "data", not pair[1].startswith("error"), len(pair[1]), pair)
            )
            lines.append(f"| {code} | {_escaped(template.text)} | {_escaped(shortened(line))} |")
        lines.append("")
    SNAPSHOT.write_text("\n".join(lines))


def shortened(line: str) -> str:
    """Return the start of a printed line."""
    return line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "..."


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("|", "\\|")


def _unescaped(cell: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], cell[1:-1])


def printed_by(record: Record) -> Printed:
    """Return what the recorded tests printed, together."""
    printed: Printed = defaultdict(set)
    for test in record.values():
        for module, texts in test["found"].items():
            for text, pairs in texts.items():
                printed[Template(module, text)].update((code, line) for code, line in pairs)
    return printed


def choose_cases(record: Record) -> list[str]:
    """Return tests that print everything that was recorded, the quickest for what they add first."""
    found = {
        test: {(module, text) for module, texts in seen["found"].items() for text in texts}
        for test, seen in record.items()
    }
    missing = set().union(*found.values())
    chosen = []
    while missing:
        best = max(sorted(found), key=lambda test: len(found[test] & missing) / (0.02 + record[test]["seconds"]))
        chosen.append(best)
        missing -= found[best]
    return sorted(chosen)
