"""Find mounts that may not share file locks: a lock may be invisible through another path, or on another machine.

The type of the file system shows such mounts: proc_pid_mountinfo(5) on Linux, mount(8) on macOS.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_UNSHARED_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "9p", "ceph", "afs"),
        # Folders that a desktop's hypervisor or container program shares.
        *("virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs", "fakeowner", "drvfs"),
    }
)
_MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})", re.ASCII)
_MACOS_LINE = re.compile(r".* on (/.*) \(([^,()]+).*\)")
_TIMEOUT_SECONDS = 5

Mount = tuple[str, str]
"""A mount point, and the type of its file system."""


def warn_of_unshared_locks(folder: Path) -> str | None:
    """Return a warning if file locks in a folder may not be shared. None: they are shared, or it is not known."""
    kind = find_filesystem_type(os.path.realpath(folder), _list_mounts())
    if kind is None or not (kind in _UNSHARED_TYPES or "fuse" in kind):
        return None
    return (
        f"{folder} is on a mount of type {kind}, where locks may fail between paths or machines: use this folder "
        "by one path and from one machine only"
    )


def find_filesystem_type(path: str, mounts: Iterator[Mount]) -> str | None:
    """Return the type of an absolute path's file system, or None. The last of the longest mount points counts."""
    best, kind = -1, None
    for point, found in mounts:
        parent = point.rstrip("/")
        if len(parent) >= best and (path == parent or path.startswith(f"{parent}/")):
            best, kind = len(parent), found
    return kind


def parse_mountinfo(text: str) -> Iterator[Mount]:
    r"""Yield the mounts in the text of /proc/self/mountinfo. In a mount point, a space is written as `\040`."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) > 4 and rest[0]:
            yield _ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4]), rest[0]


def parse_mount(text: str) -> Iterator[Mount]:
    """Yield the mounts that macOS's mount(8) prints: `SOURCE on POINT (TYPE, OPTIONS)`."""
    for found in filter(None, map(_MACOS_LINE.fullmatch, text.splitlines())):
        yield found[1], found[2]


def _list_mounts() -> Iterator[Mount]:
    try:
        if sys.platform == "darwin":
            return parse_mount(_run_mount())
        return parse_mountinfo(_MOUNTINFO.read_text("utf-8", errors="surrogateescape"))
    except OSError:
        return iter(())


def _run_mount() -> str:
    import subprocess  # noqa: PLC0415 - for live writes on macOS

    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return os.fsdecode(done.stdout)
