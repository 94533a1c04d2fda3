"""The topics of `escrowctl help`: complete, readable at 80 columns, and about commands that exist."""

import re
from pathlib import Path

import pytest
from conftest import Run

import escrowctl
from escrowctl.app import make_tree
from escrowctl.completion.tree import read_tree
from escrowctl.config.profiles import ALL_SETTINGS
from escrowctl.options import make_shared_options
from escrowctl.topics.topic import TOPICS

FOLDER = Path(escrowctl.__file__).parent / "topics"
NODES = {node.path: node for node in read_tree(make_tree())}
FLAGS = {name for node in NODES.values() for flag in node.flags for name in flag.names}


def test_help_lists_every_topic_with_its_summary_and_every_command(run: Run) -> None:
    listed = run("help").out

    assert re.findall(r"^  ([a-z-]+)  +(.+)$", listed.partition("\nCommands")[0], re.MULTILINE) == list(TOPICS.items())
    assert listed.partition("\nCommands, ")[2].split("\n\n")[1].split() == [name for name, _ in NODES[()].words]
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_topic_fits_80_columns_and_names_what_exists(topic: str, run: Run) -> None:
    result = run("help", topic)

    assert (result.code, result.err) == (0, "")
    assert [line for line in result.out.splitlines() if len(line) > 80 or line != line.rstrip()] == []
    assert "@" not in re.sub(r"@(FILE|-)", "", result.out)
    assert "\n\n\n" not in result.out
    for line in re.findall(r"(?:^  |: |\| )escrowctl (.+)", result.out, re.MULTILINE):
        words = re.sub(r"^(-p [\w-]+|--sandbox) ", "", line).split()
        assert (words[0] == "help" and words[1] in TOPICS) or find(words), line
    assert {name for name in re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", result.out) if name != "--expect"} <= FLAGS


def find(words: list[str]) -> bool:
    """Whether the line is that of a command, or asks for the help of a group."""
    if words[1:] == ["--help"]:
        return (words[0],) in NODES
    return any((path := tuple(words[:count])) in NODES and not has_verbs(path) for count in (1, 2))


def has_verbs(path: tuple[str, ...]) -> bool:
    return any(other[:-1] == path for other in NODES)


def test_tables_name_everything_that_the_program_knows(run: Run) -> None:
    options, settings = run("help", "options").out, run("help", "settings").out

    assert set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.MULTILINE)) == {
        name for one in make_shared_options() for name in one.opts if name.startswith("--")
    }
    table = settings.partition("  default_profile  ")
    assert re.findall(r"^  ([a-z_.]+)  ", table[1] + table[2], re.MULTILINE) == list(ALL_SETTINGS)
    assert all(field.description for field in ALL_SETTINGS.values())
