"""Kill -9 while a new journal takes the place of an old one: never are both usable, and never none for good."""

import random
from pathlib import Path

import pytest

from faults.seeds import draw_seed
from faults.strace import needs_strace
from faults.successor_kills import SuccessorKills

pytestmark = [pytest.mark.slow, needs_strace]


@pytest.mark.parametrize("share", [pytest.param(2, id="2"), pytest.param(None, id="all", marks=pytest.mark.long)])
def test_replacing_that_is_killed_at_a_call_leaves_one_journal(tmp_path: Path, share: int | None) -> None:
    kills = SuccessorKills(tmp_path)
    points = kills.points(tmp_path / "calls")
    assert {"rename", "pwrite64", "fdatasync", "fsync", "openat"} <= {point.call for point in points}

    for point in points if share is None else random.Random(draw_seed()).sample(points, share):
        kills.kill_at(point)

    kills.server.close()
    print(f"{len(points)} points")
