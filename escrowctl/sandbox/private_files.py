"""A folder and a file that nobody else on the machine may look into."""

import os
import shlex
import tempfile
from pathlib import Path

from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending

FOLDER_MODE = 0o700
FILE_MODE = 0o600


_ELSEWHERE = "set ESCROWCTL_HOME to a folder that can be written"


def unusable(path: Path, reason: str, *, hint: str | tuple[str, ...] = _ELSEWHERE) -> EscrowctlError:
    """The error for a sandbox folder or store that cannot be used; `reason` ends the sentence."""
    message = f"the sandbox cannot use {path}: {reason}. {NOTHING_SENT}"
    return EscrowctlError(ErrorCode.STATE_UNUSABLE, message, hint=hint, sending=Sending.NOT_SENT)


def private_folder(folder: Path) -> None:
    """Make the folder if it is missing, its missing parents too, all 0700 whatever the umask.

    The mode of an existing folder is checked, never changed: another process may create one
    between the look and the mkdir(2).

    Raises `ErrorCode.STATE_UNUSABLE` if the folder cannot be created, or is not private to this user.
    """
    try:
        for place in reversed((folder, *folder.parents)):
            if not place.exists():
                _make_folder(place)
        if not folder.is_dir():
            raise unusable(folder, "it is not a folder")
        _require_private(folder, mode=FOLDER_MODE)
    except OSError as error:
        raise unusable(folder, error.strerror or "it cannot be opened") from error


def private_file(path: Path) -> None:
    """Make the file if it is missing, empty and 0600 from its first moment.

    Raise STATE_UNUSABLE if that fails, or if what stands there is not a file of ours alone.
    """
    try:
        # An existing file is never opened here: closing any descriptor of it would drop the locks
        # that SQLite holds on it in this process (POSIX advisory locks).
        if not path.exists():
            _create(path)
        if not path.is_file():
            raise unusable(path, "it is not a regular file")
        _require_private(path, mode=FILE_MODE)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be opened") from error


def write_private(path: Path, text: str) -> None:
    """Put a whole file, 0600, in the place of what is there, in one step.

    Raise STATE_UNUSABLE if that fails.
    """
    try:
        # O_EXCL and a random name: what already exists, or is a link, is never opened.
        handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, FILE_MODE)
            file.write(text)
        Path(draft).replace(path)
    except OSError as error:
        raise unusable(path, error.strerror or "it cannot be written", hint=()) from error


def _make_folder(place: Path) -> None:
    try:
        place.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        return  # another process was first: its mode is that process's to choose
    place.chmod(FOLDER_MODE)


def _create(path: Path) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return  # another process was first, which is as good
    try:
        os.fchmod(handle, FILE_MODE)
    finally:
        os.close(handle)


def _require_private(path: Path, *, mode: int) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise unusable(path, f"it belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        mend = f"chmod {mode:o} {shlex.quote(str(path))}"
        raise unusable(path, "other users may reach it", hint=mend)
    if not os.access(path, os.R_OK | os.W_OK):
        raise unusable(path, "it is read-only")
