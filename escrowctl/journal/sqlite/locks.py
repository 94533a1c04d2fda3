"""Locks between processes, as byte ranges of one file. A lock ends with its process.

Open file description locks (fcntl(2), Linux) belong to the descriptor, so that another open and close
of the file in this process does not drop them. Other systems use POSIX record locks. The kernel frees
both when the process ends, however it ends. Each lock is one byte: an entry in flight by its number,
anything else by a hash of its name.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import threading
from pathlib import Path

from escrowctl.files import make_file, open_regular
from escrowctl.journal.sqlite.errors import unlockable
from escrowctl.journal.storage import LockKey

_FIRST_HASHED = 1 << 48
_HASH_BITS = 60
_HAS_OFD = hasattr(fcntl, "F_OFD_SETLK")
_NO_FILE = -1
_HELD_ELSEWHERE = (errno.EACCES, errno.EAGAIN)


class LockFile:
    """The locks of one journal; see `storage.Locks`. `hold` never blocks: the caller waits, with its own clock.

    The constructor, `hold` and `is_held` raise EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the system
    cannot open or lock the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with unlockable(path):
            self._handle = self._open()
        self._own: set[int] = set()
        self._guard = threading.Lock()

    def hold(self, key: LockKey) -> bool:
        """Lock one byte. Return False if another process, or another thread of this one, has it."""
        place = place_of(key)
        with self._guard, unlockable(self.path):
            if place in self._own or not self._set(place, fcntl.F_WRLCK):
                return False
            self._own.add(place)
            return True

    def free(self, key: LockKey) -> None:
        """Free one byte. An error is ignored: the end of the process frees it too."""
        place = place_of(key)
        with self._guard, contextlib.suppress(OSError):
            self._own.discard(place)
            self._set(place, fcntl.F_UNLCK)

    def is_held(self, key: LockKey) -> bool:
        """Whether a running process holds the lock of this key."""
        place = place_of(key)
        with self._guard, unlockable(self.path):
            return place in self._own or self._is_held_elsewhere(place)

    def close(self) -> None:
        """Free everything."""
        if self._handle != _NO_FILE:
            with contextlib.suppress(OSError):
                os.close(self._handle)

    def _open(self) -> int:
        make_file(self.path)
        return open_regular(self.path, os.O_RDWR)

    def _is_held_elsewhere(self, place: int) -> bool:
        if _HAS_OFD:
            # This query does not take the lock, so that two queries at once do not see each other.
            answer = fcntl.fcntl(self._handle, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK, place))
            return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)
        if not self._set(place, fcntl.F_WRLCK):
            return True
        self._set(place, fcntl.F_UNLCK)
        return False

    def _set(self, place: int, kind: int) -> bool:
        try:
            if _HAS_OFD:
                fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, _flock(kind, place))
            else:
                command = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._handle, command, 1, place)
        except OSError as error:
            if error.errno in _HELD_ELSEWHERE:
                return False
            raise
        return True


class ReadLockFile(LockFile):
    """The same locks for readers. A missing file is not created, and holds no lock."""

    def _open(self) -> int:
        for access in (os.O_RDWR, os.O_RDONLY):
            try:
                return open_regular(self.path, access)
            except FileNotFoundError:
                return _NO_FILE
            except OSError:
                if access == os.O_RDONLY:
                    raise
        return _NO_FILE

    def _is_held_elsewhere(self, place: int) -> bool:
        return self._handle != _NO_FILE and super()._is_held_elsewhere(place)


def _flock(kind: int, place: int) -> bytes:
    """Return a struct flock: l_type, l_whence, l_start, l_len, l_pid (0 is required of OFD locks)."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0)


def place_of(key: LockKey) -> int:
    """Return the byte of a lock: an entry's number, or a higher hash of a name. Names with the same byte only wait."""
    if isinstance(key, int):
        return key
    digest = hashlib.sha256(key.encode()).digest()
    return _FIRST_HASHED + (int.from_bytes(digest[:8], "big") >> (64 - _HASH_BITS))
