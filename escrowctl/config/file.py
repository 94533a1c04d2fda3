"""Read and check config.toml; lock the config folder, so that one process at a time writes its files.

Errors name the file, and the line in the file or the setting.
"""

import contextlib
import fcntl
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escrowctl.errors import ErrorCode, bad_config, not_sent
from escrowctl.files import find_flaw, find_folder_flaw, make_private_folder, make_unwritable_error, read_regular
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from escrowctl.config.profiles import ConfigFile

CONFIG_NAME = "config.toml"
MAX_CONFIG_BYTES = 1024 * 1024
_LOCK_SECONDS = 10.0
_POLL_SECONDS = 0.05


def read_text(path: Path) -> str | None:
    """Return the file's text; None if there is no file. Raises `ErrorCode.BAD_CONFIG` if it cannot be read."""
    try:
        return read_regular(path, limit=MAX_CONFIG_BYTES)[0].decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise bad_config(f"{path}: not UTF-8 at byte {error.start}.") from error
    except OSError as error:
        raise bad_config(f"{path}: {error.strerror or error}.") from error


def require_trusted(path: Path) -> None:
    """Raise `ErrorCode.BAD_CONFIG` if other users can change config.toml, because they could get the API key.

    Checks the file and its folder. If the file is a link, checks the target and the target's folder, too.
    """
    target = Path(os.path.realpath(path))
    for checked in dict.fromkeys((path.parent, target.parent, target)):
        try:
            is_folder = checked.is_dir()
            flaw = find_folder_flaw(checked, allow_sticky=True) if is_folder else find_flaw(checked.stat(), checked)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise bad_config(f"{checked}: {error.strerror or error}.") from error
        if flaw is not None:
            message = f"{checked} {flaw.reason}: API keys are not used with a config file that other users can change."
            raise bad_config(message, hint=flaw.fix or "use a file that you own: --config FILE")


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return the tables of the text of `path`. Raises `ErrorCode.BAD_CONFIG` if the text is not valid TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_config(f"{path}: cannot be read as TOML: {error}.") from error


def validate_config(path: Path, tables: Mapping[str, Any]) -> "ConfigFile":
    """Return the tables as a ConfigFile. Raises `ErrorCode.BAD_CONFIG`, which names the first wrong setting."""
    from pydantic import ValidationError  # noqa: PLC0415 - see config/profiles.py

    from escrowctl.config import profiles  # noqa: PLC0415

    try:
        return profiles.ConfigFile.model_validate(tables)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        names = [str(part) for part in first["loc"]]
        if first["type"] == "extra_forbidden":
            setting = f"{path}: {'.'.join(names)}"
            if names[-1].lower() in profiles.SECRET_NAMES:
                message = f"{setting}: an API key does not belong in config.toml."
                raise bad_config(message, hint=profiles.LOGIN_HINT) from error
            nearest = profiles.suggest_setting(".".join(names[2:] or names))
            raise bad_config(f"{setting}: there is no such setting{nearest}.", hint=profiles.SETTINGS_HINT) from error
        name, expected = profiles.describe_setting(names)
        setting = f"{path}: {name}"
        if first["type"] == "value_error":
            raise bad_config(f"{setting}.{first['ctx']['error']}") from error
        missing = "it is missing; " if first["type"] == "missing" else ""
        raise bad_config(f"{setting}: {missing}it should be {expected}.") from error


@contextlib.contextmanager
def locked(folder: Path, runtime: Runtime) -> Iterator[None]:
    """Hold the lock of a folder, so that no other process writes its files. Creates the folder if it is missing.

    flock(2) locks the folder itself: there is no lock file. Raises EscrowctlError: `ErrorCode.BUSY` if another
    process holds the lock for 10 s, `STATE_UNUSABLE` if the folder cannot be used.
    """
    if not folder.exists():
        make_private_folder(folder)
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise make_unwritable_error(folder, error) from error
    end = runtime.monotonic() + _LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError) as error:
                if runtime.monotonic() >= end:
                    message = f"another process has been writing in {folder} for {_LOCK_SECONDS:g} s."
                    raise not_sent(ErrorCode.BUSY, message) from error
            except OSError as error:
                raise make_unwritable_error(folder, error) from error
            runtime.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)
