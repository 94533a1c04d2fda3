"""Every broken variant has a test that must notice it within a minute."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from faults import reply_variants, variants

NO_VARIANTS = {"apply", "leave_mark"}


def timed_tests() -> Iterator[str]:
    """Yield the source of each test here that must be over in time, with what is decorated on it."""
    for path in Path(__file__).parent.glob("test_*.py"):
        text = path.read_text()
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                source = text.splitlines()[node.decorator_list[0].lineno - 1 : node.end_lineno]
                if '@pytest.mark.usefixtures("time_limit")' in source:
                    yield "\n".join(source)


def functions_of(module: ModuleType) -> set[str]:
    found = inspect.getmembers(module, inspect.isfunction)
    return {name for name, function in found if function.__module__ == module.__name__} - NO_VARIANTS


def test_each_variant_is_noticed_in_time_by_a_test() -> None:
    tests = "\n".join(timed_tests())
    names = functions_of(reply_variants) | functions_of(variants)

    assert {name for name in names if f".{name}" not in tests and f'"{name}"' not in tests} == set()
    assert not functions_of(reply_variants) & functions_of(variants)
    assert len(names) >= 20
