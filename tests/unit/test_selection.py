"""The default selection: every pattern of `representative` names a case."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import fnmatch, json, pytest
class Look:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        for item in items:
            for name in (name for mark in item.iter_markers("representative") for name in mark.args):
                found.append((item.originalname, name, fnmatch.fnmatchcase(item.callspec.id, name)))
found = []
pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "tests"], plugins=[Look()])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_every_representative_name_is_the_name_of_a_case() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    looked = json.loads(done.stdout.splitlines()[-1])
    named = {(test, pattern) for test, pattern, _ in looked}
    matched = {(test, pattern) for test, pattern, matches in looked if matches}

    assert len(named) > 100
    assert named - matched == set()


def test_promises_name_tests_that_exist() -> None:
    tests = Path(__file__).parents[1]
    table = (tests / "README.md").read_text().split("## Which tests guard a promise")[1].split("\n## ")[0]
    missing = []
    for cell in (cell for line in table.splitlines() if line.startswith("| ") for cell in line.split("|")[2:4]):
        folder = ""
        for name in re.findall(r"`([\w/]+)`", cell):
            folder = name.rpartition("/")[0] or folder
            path = tests / folder / name.rpartition("/")[2]
            missing += [] if path.is_dir() or path.with_suffix(".py").is_file() else [name]

    assert (missing, table.count("`")) == ([], 2 * len(re.findall(r"`[\w/]+`", table)))
