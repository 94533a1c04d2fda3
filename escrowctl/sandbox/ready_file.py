"""The file in which `sandbox serve` says that it can be called; it replaces and deletes only such files."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from escrowctl.errors import bad_value
from escrowctl.sandbox.private_files import write_private

KEYS = frozenset({"base_url", "api_prefix", "key", "openapi", "pid"})
_MAX_BYTES = 4096


def refuse_other_file(path: Path) -> None:
    """Raise `ErrorCode.BAD_VALUE` if the path is anything but free or an older ready file."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # nothing is there, or writing it says why that is not possible
    if not stat.S_ISREG(mode) or not _is_ready_file(_read(path)):
        raise bad_value(f"--ready-file {path} exists and is not a ready file of escrowctl: name another file.")


@contextlib.contextmanager
def ready_file(path: Path, text: str) -> Iterator[None]:
    """Write the file for the length of the block; delete it only if it is still this one.

    Raises `ErrorCode.STATE_UNUSABLE` if it cannot be written.
    """
    write_private(path, text)
    try:
        yield
    finally:
        if _read(path) == text.encode():
            with contextlib.suppress(OSError):
                path.unlink()


def _read(path: Path) -> bytes:
    """Return the start of a file; nothing if it cannot be read, or is a link."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""


def _is_ready_file(content: bytes) -> bool:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() == KEYS
