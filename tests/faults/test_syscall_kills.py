"""Kill -9 at every system call that a create and a release make on the journal."""

from pathlib import Path

import pytest

from faults.strace import needs_strace
from faults.syscall_faults import faulted_command

pytestmark = [pytest.mark.slow, needs_strace]


@pytest.mark.parametrize("verb", ["create", "release"])
@pytest.mark.parametrize("share", [2, 6, pytest.param(None, id="all", marks=pytest.mark.long)])
def test_kill_at_journal_calls_violates_no_promise(tmp_path: Path, verb: str, share: int | None) -> None:
    """Kill before each call, or before `share` of them drawn from the seed."""
    with faulted_command(tmp_path, verb) as command:
        points = command.points()
        # Fewer would say that the trace misses the journal.
        assert {"fdatasync", "pwrite64", "openat", "close", "fcntl"} <= {point.call for point in points}
        chosen = points if share is None else command.harness.chance.sample(points, share)
        for point in chosen:
            assert command.run_with_fault(point, "signal=KILL").killed, point
        print(f"{verb}: {len(chosen)} of {len(points)} points")
