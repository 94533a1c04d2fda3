"""A live write whose journal is on a mount that may not share its locks says so, and is sent."""

import sys
from pathlib import Path

import internals
import pytest
from conftest import Run

from cli.conftest import Profile
from cli.replies import CREATE

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="reads mountinfo")

GET = ("tx", "get", "tx_1")


@pytest.fixture
def on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - nfs4 nas:/ rw\n")
    monkeypatch.setattr(internals.MOUNTINFO, tmp_path / "mountinfo")


@pytest.mark.usefixtures("on_nfs")
def test_live_write_and_doctor_warn_of_a_mount_without_shared_locks(profile: Profile, run: Run) -> None:
    server = profile('mode = "live"')

    results = [run(*line) for line in (CREATE, (*CREATE, "-q", "--yes"), GET)]
    locks = next(one for one in run("doctor", "--json").json["checks"] if one["name"] == "locks")

    assert [(result.code, "nfs4" in result.err) for result in results] == [(0, True), (0, True), (0, False)]
    assert (locks["verdict"], len(server.writes)) == ("warning", 2)


@pytest.mark.usefixtures("on_nfs")
def test_test_write_does_not_warn_of_its_mount(profile: Profile, run: Run) -> None:
    profile('mode = "test"')

    assert [("mount" in run(*line).err) for line in (CREATE, ("--sandbox", *CREATE))] == [False, False]
