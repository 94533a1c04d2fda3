"""Files and folders of one user: created private, checked before use, read within a limit, replaced in one step.

escrowctl changes no mode of a file that it did not create: it uses an existing file with the mode it
has, or refuses it. Functions raise OSError unless they say that they raise EscrowctlError.
"""

import contextlib
import errno
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS_ACCESS = stat.S_IRWXG | stat.S_IRWXO
_FOLDER_MODE, PRIVATE = 0o700, 0o600
OWN_FOLDER = "set ESCROWCTL_HOME to the absolute path of a folder that you own"

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileFlaw(NamedTuple):
    """Why a file or folder is refused. `reason` continues its path; `fix` is a command to paste, or empty."""

    reason: str
    fix: str = ""


class NotRegularError(OSError):
    """A link, folder, device, pipe or socket in the place of a regular file; `strerror` continues its path."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a regular file")


class TooLargeError(OSError):
    """A file over the size limit; `strerror` continues its path."""

    def __init__(self, limit: int) -> None:
        super().__init__(errno.EFBIG, f"is larger than {limit} bytes")


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, mode 0700 under any umask, durably; raises OSError.

    A folder that exists, or that another process creates first, is not changed.
    """
    for path in reversed((folder, *folder.parents)):
        if path.exists():
            continue
        # With this umask mkdir sets the right mode at once. A later chmod could hit another file in its place.
        before = os.umask(0o077)
        try:
            path.mkdir(mode=_FOLDER_MODE)
        except FileExistsError:
            continue
        finally:
            os.umask(before)
        sync_folder(path.parent)


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, mode 0700 under any umask, durably.

    Raises EscrowctlError (`ErrorCode.STATE_UNUSABLE`) if that fails, or if others own or can change a
    folder that exists. A link is followed, and its target is checked.
    """
    with _using(folder):
        make_folder(folder)
    refuse_shared_folder(folder)


def refuse_shared_folder(folder: Path, *, sticky: bool = False) -> None:
    """Raise EscrowctlError (`ErrorCode.STATE_UNUSABLE`) for the flaws that `find_folder_flaw` finds, if it exists."""
    flaw = None
    with _using(folder), contextlib.suppress(FileNotFoundError):
        flaw = find_folder_flaw(folder, sticky=sticky)
    if flaw is not None:
        raise not_sent(ErrorCode.STATE_UNUSABLE, f"the folder {folder} {flaw.reason}.", hint=flaw.fix or OWN_FOLDER)


@contextlib.contextmanager
def _using(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = f"the folder {folder} cannot be created or used: {error.strerror or error}."
        raise not_sent(ErrorCode.STATE_UNUSABLE, why, hint=OWN_FOLDER) from error


def create_file(path: Path, mode: int = PRIVATE) -> int:
    """Create a file with this mode under any umask. Return a descriptor for reading and writing.

    Raises FileExistsError if anything exists at `path`, even a dangling link; and OSError.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        os.fchmod(handle, mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def make_file(path: Path) -> bool:
    """Create an empty file, mode 0600 under any umask. Return False if `path` exists. Raises OSError."""
    try:
        os.close(create_file(path))
    except FileExistsError:
        return False
    return True


def replace_quickly(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Replace `path` atomically by a new file with this mode. Raises OSError.

    Several processes may do so at once: the last one wins. The file is not synced: a power failure may
    lose it. If `path` is a link, the link is replaced, not its target.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(create_file(draft, mode), "wb") as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def replace_durably(path: Path, text: str, *, private: bool = False) -> None:
    """Replace the content of the file, durably.

    The caller holds a lock: only one process may do so at a time. A draft that a killed process left is removed.
    The new file has mode 0600 under any umask; if it is not `private`, it gets mode and owner of the file that it
    replaces. `path` may not be a link. Raises EscrowctlError `ErrorCode.STATE_UNUSABLE`; `path` is then unchanged.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        write_durably(draft, text.encode(), like=path.lstat() if not private and path.exists() else None)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> EscrowctlError:
    """Return the error that a file cannot be written."""
    return not_sent(
        ErrorCode.STATE_UNUSABLE, f"{path} cannot be written: {error.strerror or error}. No file was changed."
    )


def write_durably(path: Path, content: bytes, *, like: os.stat_result | None = None) -> None:
    """Create a file with this content, durably: fsync(2). Its mode is 0600; with `like`, it gets that mode and owner.

    Raises FileExistsError if anything exists at `path`; and OSError.
    """
    handle = create_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            if like is not None:
                # Only root may change the owner. For any other user, the new file belongs to that user.
                with contextlib.suppress(PermissionError):
                    os.fchown(handle, like.st_uid, like.st_gid)
                os.fchmod(handle, stat.S_IMODE(like.st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Return a descriptor of the regular file at `path`; never blocks.

    Raises NotRegularError for any other kind of file, and for a link unless `follow`; and OSError.
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
    """Return the status of a regular file. Raises NotRegularError for any other kind, also a link; and OSError."""
    status = path.lstat()
    _check_kind(status)
    return status


def read_regular(path: Path, *, limit: int, follow: bool = True) -> tuple[bytes, os.stat_result]:
    """Return the content of a regular file, and its status.

    Raises TooLargeError for more than `limit` bytes, NotRegularError for any other kind of file, and OSError.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
        content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(limit)
        return content, os.fstat(file.fileno())


def find_flaw(status: os.stat_result, path: Path, *, refused: int = OTHERS_WRITE) -> FileFlaw | None:
    """Return the flaw if a file or folder has another owner than this user or root, or `refused` bits; else None.

    `refused`: the mode bits that others must not have.
    """
    if status.st_uid not in (os.geteuid(), 0):
        return FileFlaw(f"belongs to another user (uid {status.st_uid})")
    if not status.st_mode & refused:
        return None
    what, fix = ("is accessible to", "chmod 600") if refused == OTHERS_ACCESS else ("can be changed by", "chmod go-w")
    reason = f"{what} other users (mode {stat.S_IMODE(status.st_mode):04o})"
    return FileFlaw(reason, f"{fix} {shlex.quote(str(path))}")


def find_folder_flaw(folder: Path, *, sticky: bool = False) -> FileFlaw | None:
    """Return the flaw if it is no folder, or if others than this user and root own or can change it; else None.

    Follows links. `sticky`: accept a shared folder with S_ISVTX, such as /tmp. Raises OSError.
    """
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        return FileFlaw(f"is {_KINDS.get(stat.S_IFMT(status.st_mode), 'a file')}, not a folder")
    shared = sticky and bool(status.st_mode & stat.S_ISVTX)
    return find_flaw(status, folder, refused=0 if shared else OTHERS_WRITE)


def sync_folder(folder: Path) -> None:
    """Make new entries of a folder survive a power failure: fsync(2) of the folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_kind(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(status.st_mode)
