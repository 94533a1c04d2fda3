"""Access to the store: for this user only, by any number of commands at once, or by one server alone.

An flock(2) on the file `sandbox.lock` decides, and ends with its process. It is shared for a command and
exclusive for a server, which writes its address into the same file. The address counts only while the
lock is held exclusively, and only if it is on this machine: a command sends its requests to no other
server. The next owner removes the address that a killed server left.
Folder and files are private: no other user of the machine can read or change them.
"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, EscrowctlError, Hints, command, not_sent
from escrowctl.files import PRIVATE, NotRegularError, make_file, make_folder, open_regular

LOCK_NAME = "sandbox.lock"
DELIVERY_LOCK_NAME = "deliveries.lock"
TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOOPBACK_URL = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}", re.ASCII)
_MAX_BYTES = 4096
_ELSEWHERE = "set ESCROWCTL_HOME to a folder that can be written"


class ServedSandbox(NamedTuple):
    """A sandbox that another process serves: its address, its key, its store's identity, the process."""

    base_url: str
    key: str
    identity: str
    pid: int


class Claim:
    """A lock on the store of one folder; it ends with `release` or with the process."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle: int | None = handle
        self._path = path

    @contextmanager
    def announced(self, served: ServedSandbox) -> Iterator[None]:
        """Let other processes find the server during the block; only for an exclusive claim.

        Raises `ErrorCode.STATE_UNUSABLE` if the address cannot be written.
        """
        assert self._handle is not None, "announced while the claim is held"
        _write(self._handle, self._path, json.dumps(served._asdict()))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)

    @contextmanager
    def delivering(self, timeout: float) -> Iterator[bool]:
        """Take the turn to deliver events; one process has it at a time. Yields False if it is not free in time."""
        handle = _open_lock(self._path.parent, DELIVERY_LOCK_NAME)
        try:
            yield _wait_for_lock(handle, timeout)
        finally:
            os.close(handle)

    def release(self) -> None:
        """Unlock the store; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def claim_store(folder: Path, *, alone: bool = False, timeout: float = TIMEOUT_SECONDS) -> Claim:
    """Lock the store for a command, or for the caller `alone`.

    It waits for running commands, and for a server that starts or ends. Raises `ErrorCode.BUSY` if a server
    has the store, or after `timeout` seconds.
    """
    handle = _open_lock(folder, LOCK_NAME)
    end = time.monotonic() + timeout
    try:
        while not _lock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            if served := find_server(folder):
                raise _busy(f"the sandbox is being served at {served.base_url} (process {served.pid})")
            if time.monotonic() > end:
                raise _busy(f"the sandbox in {folder} is busy: escrowctl waited {timeout:g} s for other commands")
            time.sleep(_POLL_SECONDS)
        if alone:
            _write(handle, folder / LOCK_NAME, "")
    except BaseException:
        os.close(handle)
        raise
    return Claim(handle, folder / LOCK_NAME)


def find_server(folder: Path) -> ServedSandbox | None:
    """Return the server that has the store now, or None; it does not wait."""
    handle = _open_lock(folder, LOCK_NAME)
    try:
        return None if _lock(handle, fcntl.LOCK_SH) else _parse(os.pread(handle, _MAX_BYTES, 0))
    finally:
        os.close(handle)


def _busy(reason: str) -> EscrowctlError:
    return not_sent(ErrorCode.BUSY, f"{reason}.", hint=command("sandbox status", bare=True))


def _open_lock(folder: Path, name: str) -> int:
    private_folder(folder)
    path = folder / name
    private_file(path)
    try:
        return open_regular(path, os.O_RDWR)
    except NotRegularError as error:
        raise unusable(path, f"it {error.strerror}") from error
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be opened") from error


def _write(handle: int, path: Path, content: str) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, content.encode(), 0)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be written") from error


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait_for_lock(handle: int, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while not _lock(handle, fcntl.LOCK_EX):
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _parse(content: bytes) -> ServedSandbox | None:
    """Read the address of a server; None if there is none, or if it is not on this machine."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    match document:
        case {"base_url": str(url), "key": str(key), "identity": str(identity), "pid": int(pid)}:
            return ServedSandbox(url, key, identity, pid) if _LOOPBACK_URL.fullmatch(url) else None
        case _:
            return None


def unusable(path: Path, reason: str, *, hint: Hints = _ELSEWHERE) -> EscrowctlError:
    """The error for a sandbox folder or store that cannot be used; `reason` ends the sentence."""
    message = f"the sandbox cannot use {path}: {reason}."
    return not_sent(ErrorCode.STATE_UNUSABLE, message, hint=hint)


def private_folder(folder: Path) -> None:
    """Create the folder and its missing parents, all 0700 under any umask; the mode of an existing one is checked.

    Raises `ErrorCode.STATE_UNUSABLE` if the folder cannot be created, or is not private to this user.
    """
    _make_private(folder, make_folder, stat.S_ISDIR, "a folder", mode=0o700)


def private_file(path: Path) -> None:
    """Create the file if it is missing: empty, and 0600 from its first moment.

    Raises `ErrorCode.STATE_UNUSABLE` if that fails, or if the path is not a regular file private to this user.
    """
    # An existing file is never opened here: closing any descriptor of it would drop the locks
    # that SQLite holds on it in this process (POSIX advisory locks).
    _make_private(path, make_file, stat.S_ISREG, "a regular file", mode=PRIVATE)


def _make_private(
    path: Path, make: Callable[[Path], object], is_kind: Callable[[int], bool], kind: str, *, mode: int
) -> None:
    try:
        make(path)
        found = path.stat()
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be opened") from error
    if not is_kind(found.st_mode):
        raise unusable(path, f"it is not {kind}")
    if found.st_uid != os.geteuid():
        raise unusable(path, f"it belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        raise unusable(path, "other users have access to it", hint=f"chmod {mode:o} {shlex.quote(str(path))}")
    if not os.access(path, os.R_OK | os.W_OK):
        raise unusable(path, "it is read-only")
