"""Find the folders for config, state and cache."""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from escrowctl.errors import ErrorCode, not_sent
from escrowctl.files import OWN_FOLDER_HINT, refuse_shared_folder

HOME_VARIABLE = "ESCROWCTL_HOME"
FOLDER_VARIABLES = {"config": "XDG_CONFIG_HOME", "state": "XDG_STATE_HOME", "cache": "XDG_CACHE_HOME"}
"""Kind of folder -> the variable for its base folder on this platform. Not used if ESCROWCTL_HOME is set."""


class Folders:
    """Config, state and cache folders: all inside ESCROWCTL_HOME if it is set, else where the platform has them.

    The folders need not exist. Each property raises EscrowctlError `ErrorCode.STATE_UNUSABLE` if there is no home
    folder, or if the path is relative: the journal would then depend on the working directory.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @cached_property
    def config(self) -> Path:
        """The folder of config.toml and the stored keys."""
        return self._find_folder("config")

    @cached_property
    def state(self) -> Path:
        """The folder of the journal, the sandbox and crash reports."""
        return self._find_folder("state")

    @cached_property
    def cache(self) -> Path:
        """The folder of the names that shell completion offers."""
        return self._find_folder("cache")

    def require_safe_home(self) -> None:
        """Raise EscrowctlError (`ErrorCode.STATE_UNUSABLE`) if other users can replace files in ESCROWCTL_HOME."""
        if self._environ.get(HOME_VARIABLE):
            refuse_shared_folder(self.config, allow_sticky=True)

    def _find_folder(self, kind: str) -> Path:
        if home := self._environ.get(HOME_VARIABLE):
            root = _require_absolute(home, HOME_VARIABLE)
            return root if kind == "config" else root / kind
        # Called for its check: depending on the version, platformdirs uses a relative folder, ignores it or fails.
        find_base_folder(self._environ, FOLDER_VARIABLES[kind], "")
        # platformdirs costs a tenth of a command's start-up, and is needed only without ESCROWCTL_HOME.
        import platformdirs  # noqa: PLC0415

        return Path(getattr(platformdirs, f"user_{kind}_path")("escrowctl"))


def find_base_folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """Return the folder in a variable, else `default` in the home folder (HOME, else the user's passwd entry).

    Raises EscrowctlError `ErrorCode.STATE_UNUSABLE` if the path is relative, or there is no home folder.
    """
    if named := environ.get(variable):
        return _require_absolute(named, variable)
    if (home := environ.get("HOME")) is not None:
        return _require_absolute(home, "HOME") / default
    import pwd  # noqa: PLC0415 - only needed without HOME

    user = os.getuid()
    try:
        return _require_absolute(pwd.getpwuid(user).pw_dir, "the home folder in the passwd entry") / default
    except KeyError:
        message = f"HOME is not set, and user {user} has no passwd entry."
        raise not_sent(ErrorCode.STATE_UNUSABLE, message, hint=OWN_FOLDER_HINT) from None


def _require_absolute(text: str, source: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        message = f'{source} is "{text}", which is not an absolute path.'
        raise not_sent(ErrorCode.STATE_UNUSABLE, message, hint=f"set {source} to an absolute path")
    return path
