"""The default selection: every pattern of `representative` names a case."""

import json
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


@pytest.mark.thorough
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
