"""Which mounts may not share their file locks, as Linux and macOS list them."""

import sys
from pathlib import Path

import internals
import pytest

from escrowctl.journal.sqlite import mounts

MOUNTINFO = r"""22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw
26 22 0:5 / /proc rw,nosuid - proc proc rw
40 22 0:40 / /srv rw shared:20 master:1 - nfs4 nas:/export rw,vers=4.2,local_lock=none
41 40 254:2 / /srv/local rw - xfs /dev/sdb1 rw
42 22 0:39 / /mnt/two\040words\011and\134more rw,nosuid - fuse.bindfs /real rw,user_id=0
43 22 0:41 / /over rw - ext4 /dev/sdc1 rw
44 22 0:42 / /over rw - cifs //nas/share rw
45 22 0:43 / /wsl rw - 9p drvfs rw,aname=drvfs;path=C:\
broken line
46 22 0:44 / /half rw -
"""
MACOS = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//op@nas._smb._tcp.local/team on share on /Volumes/team on share (smbfs, nodev, nosuid, mounted by op)
nas:/export on /Volumes/nfs (nfs)
op@host:/ on /Users/op/remote (macfuse, nodev, nosuid, synchronous, mounted by op)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/op", "ext4"),
        ("/", "ext4"),
        ("/proc/1", "proc"),
        ("/srv", "nfs4"),
        ("/srv/state", "nfs4"),
        ("/srvx", "ext4"),
        ("/srv/local/state", "xfs"),
        ("/mnt/two words\tand\\more/state", "fuse.bindfs"),
        ("/over/state", "cifs"),
        ("/wsl/Users/op", "9p"),
        ("/half", "ext4"),
    ],
)
def test_the_longest_mount_point_above_a_path_counts(path: str, kind: str) -> None:
    assert mounts.find_filesystem_type(path, mounts.parse_mountinfo(MOUNTINFO)) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/Users/op/state", "apfs"),
        ("/Volumes/team on share/state", "smbfs"),
        ("/Volumes/nfs", "nfs"),
        ("/Users/op/remote/state", "macfuse"),
    ],
)
def test_mounts_of_macos_are_parsed(path: str, kind: str) -> None:
    assert mounts.find_filesystem_type(path, mounts.parse_mount(MACOS)) == kind


@pytest.mark.skipif(sys.platform == "darwin", reason="reads mountinfo")
@pytest.mark.parametrize(
    ("kind", "named"),
    [
        *((kind, kind) for kind in ("fuse", "fuse.sshfs", "fuse.grpcfuse", "nfs", "nfs4", "cifs", "smb3", "9p")),
        *((kind, kind) for kind in ("virtiofs", "vboxsf", "fuse.vmhgfs-fuse", "prl_fs", "fakeowner")),
        *((kind, None) for kind in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs")),
    ],
)
def test_only_mounts_that_may_not_share_locks_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, named: str | None
) -> None:
    (tmp_path / "mountinfo").write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - {kind} x rw\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.setattr(internals.MOUNTINFO, tmp_path / "mountinfo")

    found = [mounts.warn_of_unshared_locks(path) for path in (tmp_path / "link" / "state", Path("/"))]

    assert [one and f"on a mount of type {kind}" in one for one in found] == [named and True, None]


def test_unreadable_list_of_mounts_does_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals.MOUNTINFO, Path("/nowhere"))
    monkeypatch.setattr(sys, "platform", "linux")

    assert mounts.warn_of_unshared_locks(Path("/")) is None
