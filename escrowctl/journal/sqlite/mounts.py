"""Mounts whose file locks may not be shared: a lock held by one path, or on one machine, may not be seen by another.

Recognised by the type of the file system: proc_pid_mountinfo(5) on Linux, mount(8) on macOS.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "9p", "ceph", "afs"),
        # Folders that a desktop's hypervisor or container program shares.
        *("virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs", "fakeowner", "drvfs"),
    }
)
_MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})", re.ASCII)
_MACOS_LINE = re.compile(r".* on (/.*) \(([^,()]+).*\)")
_SECONDS = 5

Mount = tuple[str, str]
"""A mount point, and the type of its file system."""


def find_unshared_locks(folder: Path) -> str | None:
    """Return why locks in a folder may not be shared, with advice. None: they are shared, or it is not known."""
    kind = type_of(os.path.realpath(folder), _mounts())
    if kind is None or not (kind in _TYPES or "fuse" in kind):
        return None
    where = f"{folder} is on a mount of type {kind}, where locks may fail between paths or machines"
    return f"{where}: use it by one path and from one machine"


def type_of(path: str, mounts: Iterator[Mount]) -> str | None:
    """Return the type of the file system at an absolute path: the longest mount point counts, the last of several."""
    best, kind = -1, None
    for point, found in mounts:
        parent = point.rstrip("/")
        if len(parent) >= best and (path == parent or path.startswith(f"{parent}/")):
            best, kind = len(parent), found
    return kind


def parse_mountinfo(text: str) -> Iterator[Mount]:
    r"""Yield the mounts of /proc/self/mountinfo; in a mount point a space is `\040`."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) > 4 and rest[0]:
            yield _ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4]), rest[0]


def parse_mount(text: str) -> Iterator[Mount]:
    """Yield the mounts that macOS's mount(8) prints: `SOURCE on POINT (TYPE, OPTIONS)`."""
    for found in filter(None, map(_MACOS_LINE.fullmatch, text.splitlines())):
        yield found[1], found[2]


def _mounts() -> Iterator[Mount]:
    try:
        if sys.platform == "darwin":
            return parse_mount(_run_mount())
        return parse_mountinfo(_MOUNTINFO.read_text("utf-8", errors="surrogateescape"))
    except OSError:
        return iter(())


def _run_mount() -> str:
    import subprocess  # noqa: PLC0415 - for live writes on macOS

    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return os.fsdecode(done.stdout)
