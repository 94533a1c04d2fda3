"""Every message of escrowctl is a line of MESSAGES.md, in the order of modules and lines, and is reviewed there.

`ESCROWCTL_WRITE_MESSAGES=1 pytest tests/messages` writes the file.
"""

import os
import re
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

import pytest

from escrowctl.app import NOUNS
from messages.templates import NO_MESSAGES, NO_MODULES, PRODUCT, list_templates

REVIEWED = Path(__file__).parent / "MESSAGES.md"
TITLE = """# Every message of escrowctl

Each line is one text of the source; words in brackets `{...}` are values. Review it as prose. Written by
`ESCROWCTL_WRITE_MESSAGES=1 pytest tests/messages`; do not edit it.
"""
COMMANDS = "|".join([*NOUNS, "api", "doctor", "version", "-p", "--"])
NEVER = {
    "a command without its program: Hint and session.program print it": rf"(?<!`)\bescrowctl ({COMMANDS})",
    "two spaces": r"[.,;:]  +\S|[a-z]  [a-z]",
    "a space before a point": r" [.,;:](\s|$)",
    "one of many": r"\b1 (rows|bytes|entries|escrows|records|events|ids)\b",
    "a plural in brackets": r"\(s\)",
}
"""What no message has, each with the pattern that finds it."""


def render() -> str:
    """Return the text of MESSAGES.md."""
    lines = [TITLE]
    for module, group in groupby(list_templates(), key=lambda template: template.module):
        shown = (template.text.replace("\\", "\\\\").replace("\n", "\\n") for template in group)
        lines += [f"## {module}", "", *(f"- {text}" for text in shown), ""]
    return "\n".join(lines)


def test_each_message_is_reviewed() -> None:
    if os.environ.get("ESCROWCTL_WRITE_MESSAGES"):
        REVIEWED.write_text(render())

    assert render() == REVIEWED.read_text()


def test_journal_and_writes_name_no_option_and_give_no_hint() -> None:
    """`commands.advice` does, from their reasons and facts."""
    domain = ("journal/", "writes/")
    texts = {path.relative_to(PRODUCT).as_posix(): path.read_text() for path in PRODUCT.rglob("*.py")}
    imported = re.compile(r"from escrowctl\.errors import[^)\n]*(\n[^)]*)?\b(Hint|Hints|command)\b")

    assert [one for one in list_templates() if one.module.startswith(domain) and re.search(r"--[a-z]", one.text)] == []
    assert [name for name, text in texts.items() if name.startswith(domain) and imported.search(text)] == []


@pytest.mark.parametrize("pattern", NEVER.values(), ids=NEVER)
def test_no_message_has(pattern: str) -> None:
    assert [template for template in list_templates() if re.search(pattern, template.text)] == []


def test_exceptions_of_the_search_are_texts_of_the_source() -> None:
    modules = {path.relative_to(PRODUCT).as_posix(): path.read_text() for path in PRODUCT.rglob("*.py")}

    assert [each for each in NO_MESSAGES if each[1].split("{")[0] not in modules.get(each[0], "")] == []
    assert [each for each in NO_MODULES if not any(fnmatchcase(module, each) for module in modules)] == []
