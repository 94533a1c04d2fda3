"""The ready file: a server of escrowctl writes its address there for other programs, once requests are accepted."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from escrowctl.errors import ErrorCode, bad_value, not_sent
from escrowctl.files import read_regular, replace_quickly

_MAX_READY_FILE_BYTES = 4096


def refuse_unrelated_file(path: Path) -> None:
    """Raise `ErrorCode.BAD_VALUE` if `path` exists, unless its content is a JSON object with the field `pid`."""
    if not os.path.lexists(path):
        return
    document = None
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(_read_ready_file(path))
    if not isinstance(document, dict) or "pid" not in document:
        raise bad_value(f"--ready-file {path} exists and is not a ready file of escrowctl: name another file.")


@contextlib.contextmanager
def ready_file_written(path: Path, text: str) -> Iterator[None]:
    """Write `text` into the ready file, mode 0600. After the block, delete the file if it is unchanged.

    Raises `ErrorCode.STATE_UNUSABLE` if the file cannot be written.
    """
    try:
        replace_quickly(path, text.encode())
    except OSError as error:
        message = f"the ready file {path} cannot be written: {error.strerror or error}."
        raise not_sent(ErrorCode.STATE_UNUSABLE, message) from error
    try:
        yield
    finally:
        if _read_ready_file(path) == text.encode():
            with contextlib.suppress(OSError):
                path.unlink()


def _read_ready_file(path: Path) -> bytes:
    """Return the content of a file; b"" if the file is a link, unreadable or too large."""
    try:
        return read_regular(path, limit=_MAX_READY_FILE_BYTES, follow=False)[0]
    except OSError:
        return b""
