"""A live write whose journal is on a mount that may not share its locks says so, and is sent; a test write does not."""

import sys
from pathlib import Path

import internals
import pytest
from conftest import Run

from cli.conftest import Profile
from cli.replies import CREATE


@pytest.mark.skipif(sys.platform == "darwin", reason="reads mountinfo")
def test_live_write_and_doctor_warn_of_a_mount_without_shared_locks(
    profile: Profile, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - nfs4 nas:/ rw\n")
    monkeypatch.setattr(internals.MOUNTINFO, tmp_path / "mountinfo")
    server = profile('mode = "live"')
    lines = (CREATE, (*CREATE, "-q", "--yes"), ("tx", "get", "tx_1"), ("--sandbox", *CREATE))

    results = [run(*line) for line in lines]
    locks = next(one for one in run("doctor", "--json").json["checks"] if one["name"] == "locks")
    profile('mode = "test"')
    results.append(run(*CREATE))

    shown = [True, True, False, False, False]
    assert [(result.code, "nfs4" in result.err) for result in results] == [(0, one) for one in shown]
    assert (locks["verdict"], len(server.writes)) == ("warning", 2)
