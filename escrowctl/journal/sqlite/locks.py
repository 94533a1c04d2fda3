"""Locks between processes, each on one byte of a file. A lock ends with its process.

Linux has open file description locks (fcntl(2)): they belong to the descriptor, so they stay when this process
opens and closes the file again. Other systems use POSIX record locks. The kernel frees both when the
process ends, however it ends. The lock of a name is the byte at a hash of the name.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

from escrowctl.files import create_empty_file, open_regular
from escrowctl.journal.sqlite.errors import translating_lock_errors

_HASH_BITS = 60
_HAS_OFD_LOCKS = hasattr(fcntl, "F_OFD_SETLK")
_NO_FILE = -1
_LOCK_REFUSED_ERRNOS = (errno.EACCES, errno.EAGAIN)


class LockFile:
    """The locks of one journal; see `storage.Locks`. `hold` never waits.

    The constructor, `hold` and `is_held` raise EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the system
    cannot open or lock the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with translating_lock_errors(path):
            self._handle = self._open()
        self._own_offsets: set[int] = set()
        self._thread_lock = threading.Lock()

    def hold(self, *names: str) -> bool:
        """See `storage.Locks`."""
        taken = list[int]()
        with self._thread_lock, translating_lock_errors(self.path), contextlib.ExitStack() as undo:
            undo.callback(self._free, taken)
            # In the same order everywhere: of two processes that want the same locks, one gets all of them.
            for offset in sorted({offset_of(name) for name in names}):
                if offset in self._own_offsets or not self._try_to_set_lock(offset, fcntl.F_WRLCK):
                    return False
                taken.append(offset)
            undo.pop_all()
            self._own_offsets.update(taken)
            return True

    def free(self, *names: str) -> None:
        """See `storage.Locks`. An error is ignored: the lock ends with the process."""
        with self._thread_lock:
            self._free({offset_of(name) for name in names})

    def is_held(self, name: str) -> bool:
        """Whether a running process holds the lock of this name."""
        offset = offset_of(name)
        with self._thread_lock, translating_lock_errors(self.path):
            return offset in self._own_offsets or self._is_held_by_others(offset)

    def seconds_to_wait(self, name: str) -> float:
        """See `storage.Locks`: the kernel ends a process's connections before its locks."""
        return float("inf") if self.is_held(name) else 0

    def may_send(self) -> bool:
        """See `storage.Locks`: the kernel keeps the locks of a running process."""
        return True

    def close(self) -> None:
        """Free all locks, and close the file."""
        if self._handle != _NO_FILE:
            with contextlib.suppress(OSError):
                os.close(self._handle)

    def _open(self) -> int:
        create_empty_file(self.path)
        return open_regular(self.path, os.O_RDWR)

    def _free(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self._own_offsets.discard(offset)
            with contextlib.suppress(OSError):
                self._try_to_set_lock(offset, fcntl.F_UNLCK)

    def _is_held_by_others(self, offset: int) -> bool:
        if _HAS_OFD_LOCKS:
            # This query takes no lock: two processes that query at the same time do not disturb each other.
            answer = fcntl.fcntl(self._handle, fcntl.F_OFD_GETLK, _pack_flock(fcntl.F_WRLCK, offset))
            return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)
        if not self._try_to_set_lock(offset, fcntl.F_WRLCK):
            return True
        self._try_to_set_lock(offset, fcntl.F_UNLCK)
        return False

    def _try_to_set_lock(self, offset: int, kind: int) -> bool:
        try:
            if _HAS_OFD_LOCKS:
                fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, _pack_flock(kind, offset))
            else:
                command = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._handle, command, 1, offset)
        except OSError as error:
            if error.errno in _LOCK_REFUSED_ERRNOS:
                return False
            raise
        return True


class ReadLockFile(LockFile):
    """The locks of one journal, for readers. If the file is missing, it is not created, and no lock is held."""

    def _open(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            try:
                return open_regular(self.path, os.O_RDWR)
            except OSError:
                return open_regular(self.path, os.O_RDONLY)
        return _NO_FILE

    def _is_held_by_others(self, offset: int) -> bool:
        return self._handle != _NO_FILE and super()._is_held_by_others(offset)


def _pack_flock(kind: int, offset: int) -> bytes:
    """Return a struct flock: l_type, l_whence, l_start, l_len, l_pid (0, as OFD locks require)."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, offset, 1, 0)


@functools.lru_cache(maxsize=256)
def offset_of(name: str) -> int:
    """Return the offset of a lock's byte: a hash of its name.

    If two names have the same offset, they share one lock. This does no harm: one only waits for the other.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> (64 - _HASH_BITS)
