"""Who may open the store: any number of commands side by side, or one server alone.

An flock(2) on a file beside the store says so, and dies with its process: shared for a command,
exclusive for a server, which leaves word in `server.json` where it is to be found. A `server.json`
whose lock is free is what a killed server left, and means nothing.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending
from escrowctl.sandbox.private_files import private_file, private_folder, unusable, write_private

LOCK_NAME = "sandbox.lock"
SERVER_NAME = "server.json"
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ServedSandbox:
    """A sandbox that another process serves: where, with which key, and as which store."""

    base_url: str
    key: str
    identity: str
    pid: int


class Claim:
    """A hold on the store of one folder; it ends with `release` or with the process."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def release(self) -> None:
        """Give it up; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def claim_shared(folder: Path, *, patience: float = PATIENCE_SECONDS) -> "Claim | ServedSandbox":
    """Return a command's hold on the store, or the server that has it.

    A server that starts or ends is waited for. Raise BUSY (exit 7) after `patience` seconds.
    """
    handle = _open(folder)
    end = time.monotonic() + patience
    while not _lock(handle, fcntl.LOCK_SH):
        served = _read_server(folder)
        if served is not None:
            os.close(handle)
            return served
        _wait(end, handle, folder)
    return Claim(handle)


def claim_alone(folder: Path, *, patience: float = PATIENCE_SECONDS) -> Claim:
    """Return a hold that nobody shares; commands that are running are waited for.

    Raise BUSY (exit 7) where a server has the store, or after `patience` seconds.
    """
    handle = _open(folder)
    end = time.monotonic() + patience
    while not _lock(handle, fcntl.LOCK_EX):
        served = find_server(folder)
        if served is not None:
            os.close(handle)
            raise busy(f"the sandbox is being served at {served.base_url} (process {served.pid})")
        _wait(end, handle, folder)
    return Claim(handle)


def find_server(folder: Path) -> ServedSandbox | None:
    """Return the server that has the store now, or None; waits for nothing."""
    handle = _open(folder)
    try:
        return None if _lock(handle, fcntl.LOCK_SH) else _read_server(folder)
    finally:
        os.close(handle)


def announce(folder: Path, served: ServedSandbox) -> Callable[[], None]:
    """Say where the server is to be found, and return what takes that back; call while holding the claim."""
    path = folder / SERVER_NAME
    write_private(path, json.dumps(asdict(served)))

    def withdraw() -> None:
        with contextlib.suppress(OSError):
            path.unlink()

    return withdraw


def busy(what: str) -> EscrowctlError:
    """The refusal (7) of what needs the store while somebody else has it."""
    return EscrowctlError(
        ErrorCode.BUSY, f"{what}. {NOTHING_SENT}", hint="escrowctl sandbox status", sending=Sending.NOT_SENT
    )


def _open(folder: Path) -> int:
    private_folder(folder)
    path = folder / LOCK_NAME
    private_file(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be opened") from error


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait(end: float, handle: int, folder: Path) -> None:
    if time.monotonic() > end:
        os.close(handle)
        raise busy(f"other commands have been using the sandbox in {folder} all the while")
    time.sleep(_POLL_SECONDS)


def _read_server(folder: Path) -> ServedSandbox | None:
    """Return what the server left word of, or None where it has not yet."""
    try:
        found = json.loads((folder / SERVER_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    match found:
        case {"base_url": str(base_url), "key": str(key), "identity": str(identity), "pid": int(pid)}:
            return ServedSandbox(base_url, key, identity, pid)
        case _:
            return None
