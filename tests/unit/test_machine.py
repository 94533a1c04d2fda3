"""A run that changes a mode of the machine fails, whoever of its processes does it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AT_ONCE = "def test_one(): change()"
AT_THE_END = """
def test_one(): pass
def pytest_unconfigure(config):
    if hasattr(config, "workerinput"): change()
"""
NOTHING = "def test_one(): pass"


def run_suite(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a small suite under the plugin, with a HOME whose parent it may change."""
    home = folder / "users" / "me"
    home.mkdir(parents=True)
    (folder / "users").chmod(0o755)
    change = "import pathlib\ndef change(): pathlib.Path.home().parent.chmod(0o700)\n"
    (folder / "conftest.py").write_text(change + body)
    (folder / "test_one.py").write_text("from conftest import *")
    words = ("-p", "machine", "-p", "xdist", "-c", os.devnull, "--rootdir", str(folder), str(folder))
    environ = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(
        # It once hung at its end, for a reason that nobody knows: an abort shows where.
        ["timeout", "--signal=ABRT", "60", sys.executable, "-X", "faulthandler", "-m", "pytest", *words, *options],
        cwd=folder,
        env=environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "options", "by_fixture", "by_run"),
    [
        (AT_ONCE, (), True, True),
        (AT_ONCE, ("-n", "2"), True, True),
        # One worker: a second one without a test may end while the first still runs.
        (AT_THE_END, ("-n", "1"), False, True),
        (NOTHING, (), False, False),
    ],
    ids=["single", "worker", "end of a worker", "nothing"],
)
def test_a_run_that_changes_a_mode_fails(
    tmp_path: Path, body: str, options: tuple[str, ...], *, by_fixture: bool, by_run: bool
) -> None:
    ended = run_suite(tmp_path, body, *options)

    assert (ended.returncode, "ERROR at teardown" in ended.stdout) == (int(by_run), by_fixture), ended
    assert (f"{tmp_path}/users was 0755 uid={os.geteuid()}" in ended.stderr) == by_run
