"""Who may open the store: any number of commands side by side, or one server alone.

An flock(2) on a file beside the store says so, and dies with its process: shared for a command,
exclusive for a server, which leaves word in `server.json` where it is to be found. A command hands
its requests to no other server: the word is believed only while

- the lock is held, and so is the very file `server.json`, both by the process that wrote it: what a
  killed server left, or what was copied from elsewhere, is held by nobody;
- it reads as its writer noted it in the lock's own file: nobody has changed it since;
- it leads to this machine, where `sandbox serve` listens.
"""

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.sandbox.private_files import private_file, private_folder, unusable, write_private

LOCK_NAME = "sandbox.lock"
SERVER_NAME = "server.json"
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.02
_HERE = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}", re.ASCII)
_MAX_WORD_BYTES = 4096


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
    try:
        # What a killed server left: nobody may take it for the word of this one.
        (folder / SERVER_NAME).unlink(missing_ok=True)
        os.ftruncate(handle, 0)
    except OSError as error:
        os.close(handle)
        raise unusable(folder / SERVER_NAME, error.strerror or "it cannot be removed") from error
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
    text = json.dumps(asdict(served))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write_private(draft, text)
    # Held from before it stands in its place until the server ends: so it is told from what was left or copied.
    handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    _lock(handle, fcntl.LOCK_EX)
    try:
        (folder / LOCK_NAME).write_text(_digest(text.encode()), "ascii")
        draft.replace(path)
    except OSError as error:
        os.close(handle)
        raise unusable(path, error.strerror or "it cannot be written") from error

    def withdraw() -> None:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)

    return withdraw


def busy(what: str) -> EscrowctlError:
    """The refusal (7) of what needs the store while somebody else has it."""
    return not_sent(ErrorCode.BUSY, f"{what}.", hint="escrowctl sandbox status")


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
    """Return what the server that has the lock left word of; None where it has not yet, or another left it."""
    try:
        handle = os.open(folder / SERVER_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not _is_ours(handle) or _lock(handle, fcntl.LOCK_SH):
            return None
        word = os.read(handle, _MAX_WORD_BYTES)
        noted = (folder / LOCK_NAME).read_bytes()
        return _parse(word) if noted == _digest(word).encode() else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)


def _is_ours(handle: int) -> bool:
    found = os.fstat(handle)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _parse(word: bytes) -> ServedSandbox | None:
    match json.loads(word):
        case {"base_url": str(url), "key": str(key), "identity": str(identity), "pid": int(pid)} if _HERE.fullmatch(
            url
        ):
            return ServedSandbox(url, key, identity, pid)
        case _:
            return None


def _digest(word: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - for those who find a server, or are one

    return sha256(word).hexdigest()
