"""Writing the files of the config folder: whole or not at all, and one writer at a time."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.files import sync_folder
from escrowctl.surroundings import Surroundings

_PATIENCE = 10.0
_POLL_SECONDS = 0.05
_OWNER_ONLY = 0o600


@contextlib.contextmanager
def locked(folder: Path, around: Surroundings) -> Iterator[None]:
    """Hold the folder against other writers of its files (flock(2) on the folder: no file is left behind).

    Raises EscrowctlError `busy` (exit 7) after 10 s, and `state_unusable` (17) for a folder that is not there.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        _wait_for(handle, folder, around)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked_together(*folders: Path, around: Surroundings) -> Iterator[None]:
    """Hold several folders, each once, in an order that is the same for everybody; raises as `locked` does."""
    with contextlib.ExitStack() as holds:
        for folder in sorted({Path(os.path.realpath(folder)) for folder in folders}):
            holds.enter_context(locked(folder, around))
        yield


def _wait_for(handle: int, folder: Path, around: Surroundings) -> None:
    end = around.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise _unwritable(folder, error) from error
        else:
            return
        if around.monotonic() >= end:
            raise not_sent(ErrorCode.BUSY, f"another process has been writing in {folder} for {_PATIENCE:g} s.")
        around.sleep(_POLL_SECONDS)


def replace_file(path: Path, text: str, *, private: bool = False) -> None:
    """Put `text` in the place of what the file holds, durably; call inside `locked`; see `drafted`."""
    with drafted(path, text, private=private) as put:
        put()


@contextlib.contextmanager
def drafted(path: Path, text: str, *, private: bool = False) -> Iterator[Callable[[], None]]:
    """Write `text` beside the file, durably, and yield what puts it in the file's place; call inside `locked`.

    Whatever can fail in writing has failed before the block begins. The file keeps its mode and
    owner; a new one is 0600 whatever the umask, and so is every `private` one. `path` is the file
    itself: symbolic links are the caller's to follow. Raises EscrowctlError `state_unusable` (17);
    then the file is as it was.
    """
    fresh = path.with_name(f".{path.name}.new")

    def put() -> None:
        try:
            fresh.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            raise _unwritable(path, error) from error

    try:
        try:
            # What a process left here that ended in the middle; the lock says that none is in it now.
            fresh.unlink(missing_ok=True)
            _write(fresh, text.encode(), like=None if private else _status(path))
        except OSError as error:
            raise _unwritable(path, error) from error
        yield put
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _write(path: Path, content: bytes, *, like: os.stat_result | None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _OWNER_ONLY)
    with os.fdopen(handle, "wb") as file:
        if like is not None:
            # Somebody with more rights edits another's file; where that is not allowed, it is not needed.
            with contextlib.suppress(PermissionError):
                os.fchown(handle, like.st_uid, like.st_gid)
        os.fchmod(handle, stat.S_IMODE(like.st_mode) if like is not None else _OWNER_ONLY)
        file.write(content)
        file.flush()
        os.fsync(handle)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _unwritable(path: Path, error: OSError) -> EscrowctlError:
    return not_sent(ErrorCode.STATE_UNUSABLE, f"{path} cannot be written: {error.strerror or error}. It is as it was.")
