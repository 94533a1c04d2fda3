"""Help is short, own options first, nothing cut; a line that names no command leads to the one that was meant."""

import re
from statistics import median

import pytest
from conftest import Run

from escrowctl.app import make_tree
from escrowctl.completion.tree import Node, read_tree
from escrowctl.options import SharedOptions

NODES = read_tree(make_tree())
COMMANDS = [node for node in NODES if node.path and not any(other.path[:-1] == node.path for other in NODES)]
GROUPS = [node for node in NODES if node not in COMMANDS]
SHARED = {f"--{name.replace('_', '-')}" for name in vars(SharedOptions()) if name != "given"} | {"--help"}
MOST_LINES, MEDIAN_LINES, COLUMNS = 24, 16, 80
ORDER = "tx user webhook batch journal auth config sandbox api doctor completion help version"


@pytest.fixture
def ask_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Print the help of a command at 80 columns."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return lambda node: run(*node.path, "--help")


def test_help_fits_a_terminal_of_80_columns_and_24_lines(ask_help: Run) -> None:
    lines = {node.name: ask_help(node).out.splitlines() for node in NODES}

    assert {name: len(found) for name, found in lines.items() if len(found) > MOST_LINES} == {}
    assert median(len(lines[node.name]) for node in COMMANDS) <= MEDIAN_LINES
    assert [line for found in lines.values() for line in found if len(line) > COLUMNS] == []


@pytest.mark.representative("*")
@pytest.mark.parametrize("node", COMMANDS, ids=lambda node: node.name)
def test_help_of_a_command_shows_examples_and_own_options_first(node: Node, ask_help: Run) -> None:
    text = ask_help(node).out
    before, _, shared = text.rstrip().rpartition("\n")
    examples, _, listed = before.partition("\n  Examples:\n")[2].partition("\nOptions:\n")

    assert len(re.findall(rf"^    .*\bescrowctl .*\b{node.path[-1]}\b", examples, re.MULTILINE)) >= 2
    assert shared == "  Shared options (--json, -p NAME, --sandbox, ...): escrowctl help options"
    own = {name for flag in node.flags for name in flag.names if name.startswith("--")} - SHARED
    assert set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", listed, re.MULTILINE)) == own


@pytest.mark.parametrize("node", GROUPS, ids=lambda node: node.name or "escrowctl")
def test_group_lists_each_summary_complete(node: Node, ask_help: Run) -> None:
    width = max(len(name) for name, _ in node.words)

    listed = ask_help(node).out.partition("\nCommands:\n")[2].partition("\n\n")[0]

    summaries = [(name, re.split(r"\. |\.$", summary)[0]) for name, summary in node.words]
    assert listed.splitlines() == [f"  {name:<{width}}  {summary}." for name, summary in summaries]


def test_commands_are_listed_in_the_order_of_use() -> None:
    assert " ".join(name for name, _ in NODES[0].words) == ORDER


@pytest.mark.parametrize(
    ("typed", "meant", "help_of"),
    [
        ("tx creat", "'create'", "escrowctl tx"),
        ("hlep", "'help'", "escrowctl"),
        ("tx frobnicate", "'frobnicate'", "escrowctl tx"),
    ],
)
def test_unknown_command_is_named_with_what_was_meant_and_where_to_look(
    typed: str, meant: str, help_of: str, run: Run
) -> None:
    result = run(*typed.split())

    assert (result.code, result.out) == (2, "")
    assert meant in result.err
    assert result.err.endswith(f"hint: {help_of} --help\n")
