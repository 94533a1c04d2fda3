"""A run changes nothing of the machine: modes and owners of its folders are the same at the end as at the start.
A run without a failure leaves no temporary folder behind.

A pytest plugin. Each process that runs tests checks for itself; the controller of pytest-xdist checks
again after all of them.
"""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.tmpdir import get_user

SHARED = ("/", "/tmp", "/var/tmp", "/dev", "/etc")
CHECKOUT = Path(__file__).parents[1]


def _places() -> set[Path]:
    """Return the shared folders, and HOME, TMPDIR and the checkout with every folder above them."""
    own = [Path(place).absolute() for place in (os.environ.get("HOME", "/"), tempfile.gettempdir(), CHECKOUT)]
    return {Path(place) for place in SHARED}.union(own, *(place.parents for place in own))


def _look(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        return str(error.strerror)
    return f"{stat.S_IMODE(found.st_mode):04o} uid={found.st_uid} gid={found.st_gid}"


# At import: pytest loads this before it runs any test, in every process.
_BEFORE = {path: _look(path) for path in sorted(_places())}


def changes() -> list[str]:
    """Return a sentence for each folder that changed."""
    now = {path: _look(path) for path in _BEFORE}
    return [f"{path} was {_BEFORE[path]} and is {now[path]}" for path in _BEFORE if now[path] != _BEFORE[path]]


@pytest.fixture(scope="session", autouse=True)
def _unchanged_machine() -> Iterator[None]:
    yield
    assert changes() == [], "the tests changed the machine"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run in the process whose exit code counts; what workers left behind at their end is seen here."""
    changed = changes()
    if changed and not hasattr(session.config, "workerinput"):
        print("\nthe tests changed the machine:", *changed, sep="\n", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder of all runs of this user, if no run has a folder there."""
    root = Path(tempfile.gettempdir(), f"pytest-of-{get_user() or 'unknown'}")
    newest = root / "pytest-current"
    if hasattr(config, "workerinput") or newest.exists():
        return
    with contextlib.suppress(OSError):
        newest.unlink(missing_ok=True)
        root.rmdir()
