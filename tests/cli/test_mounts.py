"""A live write whose journal is on a mount that may not share its locks says so, and is sent."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import internals
import pytest
from conftest import Run

from cli.conftest import Profile
from cli.replies import CREATE

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="reads mountinfo")

GET = ("tx", "get", "tx_1")
WARNING = "warning: the journal's folder {folder} is on a mount of type {kind},"


@pytest.fixture
def on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - nfs4 nas:/ rw\n")
    monkeypatch.setattr(internals.MOUNTINFO, tmp_path / "mountinfo")


@pytest.mark.usefixtures("on_nfs")
def test_live_write_warns_of_a_mount_without_shared_locks(profile: Profile, run: Run, home: Path) -> None:
    server = profile('mode = "live"')

    results = [run(*line) for line in (CREATE, (*CREATE, "-q", "--yes"), GET)]

    warning = WARNING.format(folder=home / "state", kind="nfs4")
    assert [(result.code, result.err.count(warning)) for result in results] == [(0, 1), (0, 1), (0, 0)]
    assert len(server.writes) == 2


@pytest.mark.usefixtures("on_nfs")
def test_test_write_does_not_warn_of_its_mount(profile: Profile, run: Run) -> None:
    profile('mode = "test"')

    assert [("mount" in run(*line).err) for line in (CREATE, ("--sandbox", *CREATE))] == [False, False]


@pytest.fixture
def bindfs(home: Path, tmp_path: Path) -> Iterator[Path]:
    """Mount a folder by a second path; skips the test where this machine cannot."""
    if shutil.which("bindfs") is None:
        pytest.skip("needs bindfs (apt-get install bindfs)")
    home.mkdir(parents=True, mode=0o700)
    mounted = tmp_path / "second path"
    mounted.mkdir()
    done = subprocess.run(["bindfs", str(home), str(mounted)], capture_output=True, check=False, text=True)
    if done.returncode:
        pytest.skip(f"bindfs cannot mount here: {done.stderr.strip()}")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.thorough
def test_second_path_to_the_journal_through_bindfs_warns(profile: Profile, run: Run, home: Path, bindfs: Path) -> None:
    profile('mode = "live"')

    first, second = run(*CREATE), run(*CREATE, "--yes", environ={"ESCROWCTL_HOME": str(bindfs)})

    assert (first.code, "warning:" in first.err, second.code) == (0, False, 0)
    assert f"warning: the journal's folder {bindfs / 'state'} is on a mount of type fuse" in second.err
