"""The folders that escrowctl keeps its config, state and cache in."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending

APP_NAME = "escrowctl"


@dataclass(frozen=True, slots=True)
class Folders:
    """Config, state and cache folders; they need not exist yet."""

    config: Path
    state: Path
    cache: Path


def find_folders(environ: Mapping[str, str]) -> Folders:
    """Return the folders: all inside ESCROWCTL_HOME where it is set, else the platform's own."""
    home = environ.get("ESCROWCTL_HOME")
    if home:
        root = Path(home).absolute()
        return Folders(config=root, state=root / "state", cache=root / "cache")
    # platformdirs costs a tenth of a command's start-up, and is needed only without ESCROWCTL_HOME.
    from platformdirs import user_cache_path, user_config_path, user_state_path  # noqa: PLC0415

    return Folders(user_config_path(APP_NAME), user_state_path(APP_NAME), user_cache_path(APP_NAME))


def make_private_folder(folder: Path) -> None:
    """Make `folder` and its missing parents, 0700 whatever the umask, and make the entries durable.

    Raises EscrowctlError (exit 17) where that cannot be done.
    """
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
            path.chmod(0o700)
            sync_folder(path.parent)
        if stat.S_IMODE(folder.stat().st_mode) & 0o077 and not missing:
            folder.chmod(0o700)
    except OSError as error:
        raise EscrowctlError(
            ErrorCode.STATE_UNUSABLE,
            f"the folder {folder} cannot be made or used: {error.strerror or error}. {NOTHING_SENT}",
            hint="set ESCROWCTL_HOME to a folder that can be written",
            sending=Sending.NOT_SENT,
        ) from error


def sync_folder(folder: Path) -> None:
    """Make a new entry survive a power failure: the entry lives in its parent, fsync(2)."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
