"""Access to the store: for this user only, by any number of commands at once, or by one server alone.

Commands take a shared flock(2) on the file `sandbox.lock`, a server an exclusive one. A lock ends with its
process. A server writes its address into the same file. Commands use the address only while a server holds the
lock, and only if the address is on this machine. The next exclusive lock removes the address that a killed server
left. The folder and its files are private: no other user of the machine can read or change them.
"""

import contextlib
import fcntl
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
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


@contextmanager
def announce_server(claim: FileIO, served: ServedSandbox) -> Iterator[None]:
    """Store the server's address in the lock file during the block. `claim` is an exclusive lock on the store.

    Raises `ErrorCode.STATE_UNUSABLE` if the address cannot be written.
    """
    _write_lock_file(claim, json.dumps(served._asdict()))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            claim.truncate(0)


def claim_store(folder: Path, *, exclusive: bool = False, timeout: float = LOCK_TIMEOUT_SECONDS) -> FileIO:
    """Lock the store, shared or `exclusive`, and return the file that holds the lock: closing it unlocks the store.

    Wait up to `timeout` seconds for running commands, and for a server that starts or ends. Raises
    `ErrorCode.BUSY` at once if a server is running, or after the wait.
    """
    file = _open_lock(folder, LOCK_NAME)
    try:
        for _ in _poll(timeout):
            if _try_lock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH):
                if exclusive:
                    _write_lock_file(file, "")
                return file
            if served := find_server(folder):
                message = f"the sandbox is being served at {served.base_url} (process {served.pid})."
                break
        else:
            message = f"the sandbox in {folder} is busy: escrowctl waited {timeout:g} s for other commands."
        raise not_sent(ErrorCode.BUSY, message, hint=command("sandbox status", bare=True))
    except BaseException:
        file.close()
        raise


@contextmanager
def lock_deliveries(folder: Path, timeout: float) -> Iterator[bool]:
    """Lock the delivery of events during the block: one process delivers at a time.

    Yields True, or False if the lock is not free within `timeout` seconds.
    """
    with _open_lock(folder, DELIVERY_LOCK_NAME) as file:
        yield any(_try_lock(file, fcntl.LOCK_EX) for _ in _poll(timeout))


def find_server(folder: Path) -> ServedSandbox | None:
    """Return the running server of the store, or None if no server on this machine has the store. Never wait."""
    with _open_lock(folder, LOCK_NAME) as file, contextlib.suppress(ValueError, RecursionError):
        document = None if _try_lock(file, fcntl.LOCK_SH) else json.loads(file.read(_MAX_ADDRESS_BYTES))
        match document:
            case {"base_url": str(url), "key": str(key), "identity": str(identity), "pid": int(pid)}:
                return ServedSandbox(url, key, identity, pid) if _LOOPBACK_URL.fullmatch(url) else None
            case _:
                pass
    return None


def _open_lock(folder: Path, name: str) -> FileIO:
    path = folder / name
    require_private_file(path)
    try:
        return FileIO(path, "r+", opener=lambda _name, flags: files.open_regular(path, flags))
    except OSError as error:
        raise unusable_file(path, error.strerror or "it cannot be opened") from error


def _write_lock_file(file: FileIO, content: str) -> None:
    try:
        file.truncate(0)
        file.write(content.encode())
    except OSError as error:
        raise unusable_file(Path(str(file.name)), error.strerror or "it cannot be written") from error


def _try_lock(file: FileIO, kind: int) -> bool:
    with contextlib.suppress(OSError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def _poll(seconds: float) -> Iterator[None]:
    """Yield once at once, then after each pause of `_POLL_SECONDS` until `seconds` have passed."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        yield


def unusable_file(path: Path, reason: str, *, hint: Hints = files.OWN_FOLDER_HINT) -> EscrowctlError:
    """Return the error for a sandbox file that cannot be used. The message ends with `reason`."""
    return not_sent(ErrorCode.STATE_UNUSABLE, f"the sandbox cannot use {path}: {reason}.", hint=hint)


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
