"""Create, check, read and replace the user's files and folders.

New files and folders are private. escrowctl never changes the mode of an existing file: it uses the file
as it is, or refuses it. Functions raise OSError, unless their docstring names EscrowctlError.
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
OWN_FOLDER_HINT = "set ESCROWCTL_HOME to the absolute path of a folder that you own"

_KIND_NAMES = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileFlaw(NamedTuple):
    """Why a file or folder is refused. In messages `reason` follows the path. `fix` is a shell command, if any."""

    reason: str
    fix: str = ""


class NotRegularError(OSError):
    """A file is not regular: a link, folder, device, pipe or socket. In messages `strerror` follows the path."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, f"is {_KIND_NAMES.get(stat.S_IFMT(mode), 'something else')}, not a regular file")


class TooLargeError(OSError):
    """A file is larger than allowed. In messages `strerror` follows the path."""

    def __init__(self, limit: int) -> None:
        super().__init__(errno.EFBIG, f"is larger than {limit} bytes")


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its missing parents durably, with mode 0700 under any umask.

    A folder that exists, or that another process creates first, is not changed. `folder` may be a link.
    Raises `STATE_UNUSABLE` if this fails, or if `find_folder_flaw` finds a flaw.
    """
    with _reporting_unusable_folder(folder):
        for path in reversed((folder, *folder.parents)):
            if path.exists():
                continue
            # With this umask mkdir sets the right mode at once. A later chmod could change a file in its place.
            old_umask = os.umask(0o077)
            try:
                path.mkdir(mode=_FOLDER_MODE)
            except FileExistsError:
                continue
            finally:
                os.umask(old_umask)
            sync_folder(path.parent)
    refuse_shared_folder(folder)


def refuse_shared_folder(folder: Path, *, allow_sticky: bool = False) -> None:
    """Raise EscrowctlError `STATE_UNUSABLE` if `find_folder_flaw` finds a flaw. A missing folder is accepted."""
    flaw = None
    with _reporting_unusable_folder(folder), contextlib.suppress(FileNotFoundError):
        flaw = find_folder_flaw(folder, allow_sticky=allow_sticky)
    if flaw is not None:
        message = f"the folder {folder} {flaw.reason}."
        raise not_sent(ErrorCode.STATE_UNUSABLE, message, hint=flaw.fix or OWN_FOLDER_HINT)


@contextlib.contextmanager
def _reporting_unusable_folder(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"the folder {folder} cannot be created or used: {error.strerror or error}."
        raise not_sent(ErrorCode.STATE_UNUSABLE, message, hint=OWN_FOLDER_HINT) from error


def create_file(path: Path, mode: int = PRIVATE) -> int:
    """Create a file with this mode under any umask. Return a descriptor for reading and writing.

    Raises OSError: FileExistsError if anything exists at `path`, even a dangling link.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        os.fchmod(handle, mode)
    except BaseException:
        os.close(handle)
        raise
    return handle


def create_empty_file(path: Path) -> None:
    """Create an empty file, mode 0600 under any umask, unless `path` exists. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        os.close(create_file(path))


def replace_quickly(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Create the file at `path`, or replace it atomically by a new file with this mode. Raises OSError.

    Several processes may replace a file at once: the last one wins. The file is not synced: a power failure may
    lose the content. If `path` is a link, the link is replaced, not its target.
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
    """Create the file at `path`, or replace it atomically and durably by a new file.

    The caller holds a lock: only one process may replace a file at a time. The new file has mode 0600, or unless
    `private` the mode and owner of the replaced file. `path` may not be a link. Raises EscrowctlError
    `ErrorCode.STATE_UNUSABLE` if the new file cannot be written.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        write_durably(draft, text.encode(), attributes=path.lstat() if not private and path.exists() else None)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise make_unwritable_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def make_unwritable_error(path: Path, error: OSError) -> EscrowctlError:
    """Return a `STATE_UNUSABLE` error for a file that cannot be written."""
    message = f"{path} cannot be written: {error.strerror or error}. No file was changed."
    return not_sent(ErrorCode.STATE_UNUSABLE, message)


def write_durably(path: Path, content: bytes, *, attributes: os.stat_result | None = None) -> None:
    """Create a file with mode 0600, or with the mode and owner in `attributes`, and sync the file to the disk.

    Raises OSError: FileExistsError if anything exists at `path`.
    """
    handle = create_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            if attributes is not None:
                # Only root may change the owner. For any other user, the new file belongs to that user.
                with contextlib.suppress(PermissionError):
                    os.fchown(handle, attributes.st_uid, attributes.st_gid)
                os.fchmod(handle, stat.S_IMODE(attributes.st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Open the regular file at `path` with the `flags` of open(2), and return its descriptor. Never waits.

    Raises OSError: NotRegularError if the file is not regular, or is a link and `follow` is false.
    """
    # O_NONBLOCK: opening a pipe would wait for its other end. It changes nothing for a regular file.
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except OSError:
        _require_regular(path.stat(follow_symlinks=follow))
        raise
    try:
        _require_regular(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(path: Path) -> os.stat_result:
    """Return the status of a regular file. Raises OSError: NotRegularError if the file is a link or not regular."""
    status = path.lstat()
    _require_regular(status)
    return status


def read_regular(path: Path, *, limit: int, follow: bool = True) -> tuple[bytes, os.stat_result]:
    """Return the content of a regular file, and its status.

    Raises OSError: TooLargeError for more than `limit` bytes; NotRegularError if the file is not regular, or is a
    link and `follow` is false.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
        content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(limit)
        return content, os.fstat(file.fileno())


def find_flaw(status: os.stat_result, path: Path, *, forbidden_bits: int = OTHERS_WRITE) -> FileFlaw | None:
    """Return a flaw if anyone but this user and root owns the file or folder, or has access to it; else None.

    `forbidden_bits` has the mode bits that count as access. `path` is used only in the command that fixes the flaw.
    """
    if status.st_uid not in (os.geteuid(), 0):
        return FileFlaw(f"belongs to another user (uid {status.st_uid})")
    if not status.st_mode & forbidden_bits:
        return None
    for_owner_only = forbidden_bits == OTHERS_ACCESS
    reason = "is accessible to other users" if for_owner_only else "can be changed by other users"
    fix = f"chmod {'600' if for_owner_only else 'go-w'} {shlex.quote(str(path))}"
    return FileFlaw(f"{reason} (mode {stat.S_IMODE(status.st_mode):04o})", fix)


def find_folder_flaw(folder: Path, *, allow_sticky: bool = False) -> FileFlaw | None:
    """Return a flaw if `folder` is no folder, or if anyone but this user and root owns or can change it; else None.

    Follows links. `allow_sticky`: others may change a folder with the sticky bit, such as /tmp. Raises OSError.
    """
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        return FileFlaw(f"is {_KIND_NAMES.get(stat.S_IFMT(status.st_mode), 'a file')}, not a folder")
    shared = allow_sticky and bool(status.st_mode & stat.S_ISVTX)
    return find_flaw(status, folder, forbidden_bits=0 if shared else OTHERS_WRITE)


def sync_folder(folder: Path) -> None:
    """Sync a folder to the disk, so that files just created there survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularError(status.st_mode)
