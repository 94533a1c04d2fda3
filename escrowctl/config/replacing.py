"""Replacing the files of the config folder: completely or not at all, and one writer at a time."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from escrowctl import files
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.runtime import Runtime

_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.05


@contextlib.contextmanager
def locked(folder: Path, runtime: Runtime) -> Iterator[None]:
    """Lock the folder against other writers of its files (flock(2) on the folder: no file is left behind).

    Raises EscrowctlError: `ErrorCode.BUSY` after 10 s, `STATE_UNUSABLE` for a folder that does not exist.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        _wait_for(handle, folder, runtime)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked_together(*folders: Path, runtime: Runtime) -> Iterator[None]:
    """Hold several folders, each once, always in the same order; raises as `locked` does."""
    with contextlib.ExitStack() as holds:
        for folder in sorted({Path(os.path.realpath(folder)) for folder in folders}):
            holds.enter_context(locked(folder, runtime))
        yield


def _wait_for(handle: int, folder: Path, runtime: Runtime) -> None:
    end = runtime.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise _unwritable(folder, error) from error
        else:
            return
        if runtime.monotonic() >= end:
            raise not_sent(ErrorCode.BUSY, f"another process has been writing in {folder} for {_TIMEOUT_SECONDS:g} s.")
        runtime.sleep(_POLL_SECONDS)


def replace_file(path: Path, text: str, *, private: bool = False) -> None:
    """Replace what the file contains, durably; call inside `locked`; see `drafted`."""
    with drafted(path, text, private=private) as put:
        put()


@contextlib.contextmanager
def drafted(path: Path, text: str, *, private: bool = False) -> Iterator[Callable[[], None]]:
    """Do as `files.drafted`; call inside `locked`. A file that is not `private` keeps its mode and owner.

    Raises EscrowctlError `ErrorCode.STATE_UNUSABLE` in place of OSError; the file is then unchanged.
    """
    with contextlib.ExitStack() as stack:
        with _translated(path):
            put = stack.enter_context(files.drafted(path, text.encode(), private=private))

        def put_or_refuse() -> None:
            with _translated(path):
                put()

        yield put_or_refuse


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> EscrowctlError:
    return not_sent(ErrorCode.STATE_UNUSABLE, f"{path} cannot be written: {error.strerror or error}. It is unchanged.")
