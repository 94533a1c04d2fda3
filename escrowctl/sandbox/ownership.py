"""Access to the store: for this user only, by any number of commands at once, or by one server alone.

Commands take a shared flock(2) on the file `sandbox.lock`, a server an exclusive one. A lock ends with its
process. A server writes its address into the same file. Commands use the address only while a server holds the
lock, and only if the address is on this machine. The next exclusive lock removes the address that a killed server
left. The folder and its files are private: no other user of the machine can read or change them.
"""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from escrowctl import files
from escrowctl.errors import ErrorCode, EscrowctlError, Hints, command, not_sent

LOCK_NAME = "sandbox.lock"
DELIVERY_LOCK_NAME = "deliveries.lock"
LOCK_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOOPBACK_URL = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}", re.ASCII)
_MAX_ADDRESS_BYTES = 4096


class ServedSandbox(NamedTuple):
    """A sandbox that a process serves: its address, its API key, the identity of its store, and the process id."""

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
    def announce_server(self, served: ServedSandbox) -> Iterator[None]:
        """Store the server's address in the lock file during the block. Only for an exclusive claim.

        Raises `ErrorCode.STATE_UNUSABLE` if the address cannot be written.
        """
        assert self._handle is not None, "announced while the claim is held"
        _write_lock_file(self._handle, self._path, json.dumps(served._asdict()))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)

    def release(self) -> None:
        """Unlock the store. A second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def claim_store(folder: Path, *, exclusive: bool = False, timeout: float = LOCK_TIMEOUT_SECONDS) -> Claim:
    """Lock the store, and return the lock: shared, or exclusive if `exclusive`.

    Wait up to `timeout` seconds for running commands, and for a server that starts or ends. Raises
    `ErrorCode.BUSY` at once if a server is running, or after the wait.
    """
    handle = _open_lock(folder, LOCK_NAME)
    try:
        for _ in _poll(timeout):
            if _try_lock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH):
                if exclusive:
                    _write_lock_file(handle, folder / LOCK_NAME, "")
                return Claim(handle, folder / LOCK_NAME)
            if served := find_server(folder):
                message = f"the sandbox is being served at {served.base_url} (process {served.pid})."
                break
        else:
            message = f"the sandbox in {folder} is busy: escrowctl waited {timeout:g} s for other commands."
        raise not_sent(ErrorCode.BUSY, message, hint=command("sandbox status", bare=True))
    except BaseException:
        os.close(handle)
        raise


@contextmanager
def lock_deliveries(folder: Path, timeout: float) -> Iterator[bool]:
    """Lock the delivery of events during the block: one process delivers at a time.

    Yields True, or False if the lock is not free within `timeout` seconds.
    """
    handle = _open_lock(folder, DELIVERY_LOCK_NAME)
    try:
        yield any(_try_lock(handle, fcntl.LOCK_EX) for _ in _poll(timeout))
    finally:
        os.close(handle)


def find_server(folder: Path) -> ServedSandbox | None:
    """Return the running server of the store, or None if no server on this machine has the store. Never wait."""
    handle = _open_lock(folder, LOCK_NAME)
    try:
        if _try_lock(handle, fcntl.LOCK_SH):
            return None
        document = json.loads(os.pread(handle, _MAX_ADDRESS_BYTES, 0))
    except (ValueError, RecursionError):
        return None
    finally:
        os.close(handle)
    match document:
        case {"base_url": str(url), "key": str(key), "identity": str(identity), "pid": int(pid)}:
            return ServedSandbox(url, key, identity, pid) if _LOOPBACK_URL.fullmatch(url) else None
        case _:
            return None


def _open_lock(folder: Path, name: str) -> int:
    path = folder / name
    require_private_file(path)
    try:
        return files.open_regular(path, os.O_RDWR)
    except OSError as error:
        raise unusable_file(path, error.strerror or "it cannot be opened") from error


def _write_lock_file(handle: int, path: Path, content: str) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, content.encode(), 0)
    except OSError as error:
        raise unusable_file(path, error.strerror or "it cannot be written") from error


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _poll(seconds: float) -> Iterator[None]:
    """Yield once at once, then after each pause of `_POLL_SECONDS` until `seconds` have passed."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        yield


def unusable_file(path: Path, reason: str, *, hint: Hints = files.OWN_FOLDER_HINT) -> EscrowctlError:
    """Return the error for a sandbox file that cannot be used. The message ends with `reason`."""
    message = f"the sandbox cannot use {path}: {reason}."
    return not_sent(ErrorCode.STATE_UNUSABLE, message, hint=hint)


def require_private_file(path: Path) -> None:
    """Create a file (0600) and its folder (0700) if they are missing, and check that they are private.

    Raises `ErrorCode.STATE_UNUSABLE` if one cannot be created, is not private, or is of the wrong type.
    """
    files.make_private_folder(path.parent)
    # An existing file is never opened here: closing any descriptor of it would drop the locks
    # that SQLite holds on it in this process (POSIX advisory locks).
    try:
        files.create_empty_file(path)
        flaw = files.find_flaw(files.check_regular(path), path, forbidden_bits=files.OTHERS_ACCESS)
    except files.NotRegularError as error:
        raise unusable_file(path, f"it {error.strerror}") from error
    except OSError as error:
        raise unusable_file(path, error.strerror or "it cannot be opened") from error
    if flaw is not None:
        raise unusable_file(path, f"it {flaw.reason}", hint=flaw.fix or files.OWN_FOLDER_HINT)
