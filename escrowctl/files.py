"""Files and folders of one user: created private, checked before use, read within a limit.

escrowctl changes the mode of nothing that it did not create. What exists already is used as it is,
or refused.
"""

import errno
import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS_ACCESS = stat.S_IRWXG | stat.S_IRWXO
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a file or folder is not used: `reason` goes on from its path; `fix` is a command to paste, or empty."""

    reason: str
    fix: str = ""


class NotRegularError(OSError):
    """A link, folder, device, pipe or socket in the place of a regular file; `strerror` goes on from its path."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a regular file")


class TooLargeError(OSError):
    """A file with more bytes than are read; `strerror` goes on from its path."""

    def __init__(self, limit: int) -> None:
        super().__init__(errno.EFBIG, f"is larger than {limit} bytes")


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, mode 0700 whatever the umask, durably; raises OSError.

    A folder that exists, or that another process creates first, stays as it is.
    """
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            _make_one(path)


def make_file(path: Path) -> bool:
    """Create an empty file, mode 0600 whatever the umask; False where something exists there; raises OSError."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
    except FileExistsError:
        return False
    try:
        os.fchmod(handle, _FILE_MODE)
    finally:
        os.close(handle)
    return True


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Return a descriptor of the regular file at `path`; waits for nothing.

    Raises NotRegularError for anything else (a link too, unless `follow`), and OSError.
    """
    # O_NONBLOCK: opening a pipe would wait for its other end. It changes nothing for a regular file.
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except OSError:
        _check_kind(path.stat(follow_symlinks=follow))
        raise
    try:
        _check_kind(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(path: Path) -> os.stat_result:
    """Return the status of a regular file; raises NotRegularError for anything else, a link too, and OSError."""
    status = path.lstat()
    _check_kind(status)
    return status


def read_regular(path: Path, *, limit: int, follow: bool = True) -> tuple[bytes, os.stat_result]:
    """Return what a regular file holds, and its status.

    Raises TooLargeError where it holds more than `limit` bytes, and as `open_regular`.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
        content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(limit)
        return content, os.fstat(file.fileno())


def find_flaw(status: os.stat_result, path: Path, *, refused: int = OTHERS_WRITE) -> Flaw | None:
    """Return who else than this user and root owns or changes a file or folder; None: nobody.

    `refused` are the mode bits that others must not have.
    """
    if status.st_uid not in (os.geteuid(), 0):
        return Flaw(f"belongs to another user (uid {status.st_uid})")
    if not status.st_mode & refused:
        return None
    what, fix = ("read or changed", "chmod 600") if refused == OTHERS_ACCESS else ("changed", "chmod go-w")
    reason = f"can be {what} by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return Flaw(reason, f"{fix} {shlex.quote(str(path))}")


def find_folder_flaw(folder: Path, *, sticky: bool = False) -> Flaw | None:
    """Return who else owns or changes a folder (of a link: what it leads to); None: nobody. Raises OSError.

    `sticky`: one where each entry is its owner's alone to remove (S_ISVTX, as /tmp) is nobody else's to change.
    """
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        return Flaw(f"is {_KINDS.get(stat.S_IFMT(status.st_mode), 'a file')}, not a folder")
    shared = sticky and bool(status.st_mode & stat.S_ISVTX)
    return find_flaw(status, folder, refused=0 if shared else OTHERS_WRITE)


def sync_folder(folder: Path) -> None:
    """Make a new entry survive a power failure: the entry is stored in its parent, fsync(2)."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_one(path: Path) -> None:
    # With this umask mkdir gives the right mode at once: no chmod, which could meet what replaced the folder.
    before = os.umask(0o077)
    try:
        path.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        return
    finally:
        os.umask(before)
    sync_folder(path.parent)


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(status.st_mode)
