"""Every message of escrowctl has a row in MESSAGES.md, and a case prints it as the row shows it.

`ESCROWCTL_WRITE_MESSAGES=1 pytest tests/messages` writes the rows from what the cases print. With `=all` it first
chooses the cases anew: the quickest tests of `SOURCES` that together print every template that any of them prints.
"""

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from escrowctl.app import NOUNS
from messages.snapshot import CASES, Printed, Record, Row, choose_cases, printed_by, read_rows, shortened, write_rows
from messages.templates import NO_MESSAGES, NOT_PRINTED, Template, list_templates

TESTS = Path(__file__).parents[1]
SOURCES = ("cli", "batch", "unit", "services", "contract", "completion", "messages/test_rare.py")
"""Folders whose tests run escrowctl in their own process, where the recorder sees what is printed."""
WRITE = os.environ.get("ESCROWCTL_WRITE_MESSAGES", "")


def record(folder: Path, *words: str, cases: Path | None = None) -> Record:
    """Run tests, or those of them that `cases` lists, in another process, and return what each printed."""
    path = folder / "record.json"
    environ = os.environ | {"MESSAGE_RECORD": str(path), "PYTHONPATH": str(TESTS)}
    if cases is not None:
        environ["MESSAGE_CASES"] = str(cases)
        words = tuple(sorted({case.partition("::")[0] for case in cases.read_text().splitlines()}))
    options = ("-q", "-p", "no:cacheprovider", "-p", "messages.recorder", "-m", "not long")
    command = [sys.executable, "-m", "pytest", *options, *words]
    # In memory, where there is such a folder: most of the time would go into syncing journals to disk.
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="messages-", dir=memory if memory.is_dir() else None) as base:
        command += ["--basetemp", f"{base}/t"]
        ended = subprocess.run(command, cwd=TESTS.parent, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    recorded: Record = json.loads(path.read_text())
    return recorded


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """What the cases print; where the snapshot is to be written, it is."""
    folder = tmp_path_factory.mktemp("record")
    if WRITE == "all":
        recorded = record(folder, *(f"tests/{source}" for source in SOURCES))
        CASES.write_text("\n".join(choose_cases(recorded)) + "\n")
    found = printed_by(record(folder, cases=CASES))
    if WRITE:
        write_rows(list_templates(), found)
    return found


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> tuple[Row, ...]:
    """The rows of the snapshot, written before where they are to be; the cases run for nothing else here."""
    if WRITE:
        request.getfixturevalue("printed")
    return read_rows()


def test_each_template_has_one_row_in_the_order_of_the_source(rows: tuple[Row, ...]) -> None:
    assert [row.template for row in rows] == list(list_templates())


def test_no_message_names_a_command_without_the_way_to_the_program() -> None:
    """`Hint` and `session.program` put the program before a command, as it was called."""
    commands = "|".join([*NOUNS, "api", "doctor", "version", "-p", "--"])
    literal = re.compile(rf"(?<!`)\bescrowctl ({commands})")

    assert [
        template
        for template in list_templates()
        if literal.search(template.text) and not template.module.startswith(("app.py", "options.py", "topics/"))
    ] == []


@pytest.mark.thorough  # runs the cases once more: 16 s of the two minutes
def test_each_row_is_printed_as_it_shows(printed: Printed, rows: tuple[Row, ...]) -> None:
    stale = [
        row
        for row in rows
        if row.line
        and (row.code, comparable(row.line))
        not in {(code, comparable(shortened(line))) for code, line in printed.get(row.template, ())}
    ]
    assert not stale


def test_templates_that_no_case_prints_are_listed_with_a_reason(rows: tuple[Row, ...]) -> None:
    absent = [row.template for row in rows if not row.line]

    assert [template for template in absent if not reason_of(template)] == []
    assert [start for start in NOT_PRINTED if not any(is_meant(template, start) for template in absent)] == []


def test_exceptions_of_the_search_are_texts_of_the_source() -> None:
    sources = {module: (TESTS.parent / "escrowctl" / module).read_text() for module, _ in NO_MESSAGES}

    assert [start for start in NO_MESSAGES if start[1].split("{")[0] not in sources[start[0]]] == []


def reason_of(template: Template) -> str:
    """Return why no case prints a template, "" where no reason is listed."""
    return next((reason for start, reason in NOT_PRINTED.items() if is_meant(template, start)), "")


def is_meant(template: Template, start: tuple[str, str]) -> bool:
    """Whether an entry of `NOT_PRINTED` names this template."""
    return fnmatchcase(template.module, start[0]) and template.text.startswith(start[1])


def comparable(line: str) -> str:
    """Return a line with its numbers alike."""
    return re.sub(r"\d+", "0", line)
