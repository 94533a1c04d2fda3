"""Check the size of this checkout against its budget: lines of Python, the longest file, the longest function.

pytest does not run this; `.ci/run` does. Prints each figure with its limit, and with `--folders` the lines of each
package and folder of tests. Exits with 1 if a figure is over its limit.

    python3 tests/bench/budget.py --folders
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LINES = {"escrowctl": 30_100, "tests": 38_000}
FILE_LINES, BODY_LINES = 400, 50
"""Limits of a file, and of a function of the product; its body is counted without its signature and docstring."""


def main() -> int:
    """Print the figures; return 1 if one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", action="store_true", help="print the lines of each folder too")
    is_detailed = parser.parse_args().folders
    is_over = False
    for top, limit in LINES.items():
        texts = {path.relative_to(ROOT): path.read_text("utf-8") for path in sorted((ROOT / top).rglob("*.py"))}
        files = {path: len(text.splitlines()) for path, text in texts.items()}
        bodies = {
            f"{path}:{node.lineno} {node.name}": count_body(node)
            for path, text in texts.items()
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        if is_detailed:
            folders: Counter[str] = Counter()
            for path, count in files.items():
                folders["/".join(path.parts[:-1][:2])] += count
            for folder, count in folders.most_common():
                sys.stdout.write(f"{count:>7,}  {folder}\n")
        figures: list[tuple[Any, int, int]] = [(top, sum(files.values()), limit), *most(files, FILE_LINES)]
        if top == "escrowctl":
            figures += most(bodies, BODY_LINES)
        for name, count, most_allowed in figures:
            is_over |= count > most_allowed
            sys.stdout.write(f"{count:>7,}  of {most_allowed:,}  {name}{'  OVER' * (count > most_allowed)}\n")
    return int(is_over)


def most(counts: Mapping[Any, int], limit: int) -> list[tuple[Any, int, int]]:
    """Return what is over a limit, and if nothing is, the largest."""
    over = [(name, count, limit) for name, count in counts.items() if count > limit]
    return over or [(name, count, limit) for name, count in Counter(counts).most_common(1)]


def count_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function's body without its docstring."""
    first = node.body[ast.get_docstring(node) is not None :][:1]
    return (node.end_lineno or 0) - first[0].lineno + 1 if first else 0


if __name__ == "__main__":
    sys.exit(main())
