"""A folder and files that no other user of the machine can read or change."""

import os
import shlex
from pathlib import Path

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.files import make_file, make_folder

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_ELSEWHERE = "set ESCROWCTL_HOME to a folder that can be written"


def unusable(path: Path, reason: str, *, hint: str | tuple[str, ...] = _ELSEWHERE) -> EscrowctlError:
    """The error for a sandbox folder or store that cannot be used; `reason` ends the sentence."""
    message = f"the sandbox cannot use {path}: {reason}."
    return not_sent(ErrorCode.STATE_UNUSABLE, message, hint=hint)


def private_folder(folder: Path) -> None:
    """Create the folder and its missing parents, all 0700 under any umask.

    The mode of an existing folder is checked, never changed: another process may create one
    between the look and the mkdir(2).

    Raises `ErrorCode.STATE_UNUSABLE` if the folder cannot be created, or is not private to this user.
    """
    try:
        make_folder(folder)
        if not folder.is_dir():
            raise unusable(folder, "it is not a folder")
        _require_private(folder, mode=FOLDER_MODE)
    except OSError as error:
        raise unusable(folder, error.strerror or "it cannot be opened") from error


def private_file(path: Path) -> None:
    """Create the file if it is missing: empty, and 0600 from its first moment.

    Raises `ErrorCode.STATE_UNUSABLE` if that fails, or if the path is not a regular file private to this user.
    """
    try:
        # An existing file is never opened here: closing any descriptor of it would drop the locks
        # that SQLite holds on it in this process (POSIX advisory locks).
        make_file(path)
        if not path.is_file():
            raise unusable(path, "it is not a regular file")
        _require_private(path, mode=FILE_MODE)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be opened") from error


def write_private(path: Path, text: str) -> None:
    """Write a file, 0600, and put it in the place of an older one in one step.

    Raises `ErrorCode.STATE_UNUSABLE` if that fails.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)
        # In a folder that others can write (/tmp), O_EXCL keeps a planted file or link from being written to.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, FILE_MODE)
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be written", hint=()) from error


def _require_private(path: Path, *, mode: int) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise unusable(path, f"it belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        raise unusable(path, "other users may reach it", hint=f"chmod {mode:o} {shlex.quote(str(path))}")
    if not os.access(path, os.R_OK | os.W_OK):
        raise unusable(path, "it is read-only")
