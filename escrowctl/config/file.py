"""Reading config.toml, with errors that name the file and the line or the key."""

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escrowctl.config.folders import Folders
from escrowctl.errors import NOTHING_SENT, EscrowctlError, bad_config

if TYPE_CHECKING:
    from escrowctl.config.profiles import ConfigFile

CONFIG_NAME = "config.toml"

_RENAMED = {"retry_refused": "retry_throttled"}
"""Settings of earlier versions, and what they are called now."""


def find_config_path(named: str | None, environ: Mapping[str, str], folders: Folders) -> tuple[Path, bool]:
    """Return where config.toml is, and whether somebody named it (`--config`, ESCROWCTL_CONFIG)."""
    chosen = named or environ.get("ESCROWCTL_CONFIG")
    return (Path(chosen).absolute(), True) if chosen else (folders.config / CONFIG_NAME, False)


def read_config(path: Path) -> "ConfigFile | None":
    """Return what config.toml says, or None where there is no such file.

    Raises EscrowctlError (exit 2) for a file that cannot be read, is not TOML, or has a wrong key
    or value.
    """
    text = read_text(path)
    return None if text is None else validate_config(path, parse_toml(path, text))


def read_text(path: Path) -> str | None:
    """Return the file's text, or None where there is none; raises EscrowctlError (exit 2).

    A pipe that nobody writes to would be waited for at the opening itself: O_NONBLOCK.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise bad_config(f"{path}: it is not a regular file.")
            return file.read().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise bad_config(f"{path}: not UTF-8 at byte {error.start}.") from error
    except OSError as error:
        raise bad_config(f"{path}: {error.strerror or error}.") from error


def read_profile_names(path: Path) -> tuple[str, ...]:
    """Return the names of the profiles, sorted, without checking what they say; light, for completion.

    Raises EscrowctlError (exit 2) for a file that cannot be read or is not TOML.
    """
    profiles = parse_toml(path, read_text(path) or "").get("profiles")
    return tuple(sorted(profiles)) if isinstance(profiles, dict) else ()


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return the text's tables; raises EscrowctlError (exit 2) naming the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise bad_config(f"{path}: not TOML: {_with_line(text, error)}.") from error


def validate_config(path: Path, tables: Mapping[str, Any]) -> "ConfigFile":
    """Return the tables as a config file; raises EscrowctlError (exit 2) for the first wrong key or value."""
    from pydantic import ValidationError  # noqa: PLC0415 - see config/profiles.py

    from escrowctl.config.profiles import ConfigFile  # noqa: PLC0415

    try:
        return ConfigFile.model_validate(tables)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _invalid(path, first) from error


def _invalid(path: Path, error: Any) -> EscrowctlError:
    """Say what is wrong at which key: what it should be, or which known key is nearest to an unknown one."""
    from escrowctl.config.names import describe_place  # noqa: PLC0415 - as above

    place = describe_place(error["loc"])
    where = f"{path}: {place.name}"
    match error["type"]:
        case "extra_forbidden":
            return _unknown(where, str(error["loc"][-1]), place.known)
        case "missing":
            return bad_config(f"{where}: it is missing; it should be {place.expected}.")
        case "value_error":
            return bad_config(f"{where}.{error['ctx']['error']}".removesuffix(f" {NOTHING_SENT}"))
        case _:
            return bad_config(f"{where}: it should be {place.expected}.")


def _unknown(where: str, name: str, known: Sequence[str]) -> EscrowctlError:
    from escrowctl.config.names import SECRET_NAMES, USE_LOGIN, nearest  # noqa: PLC0415 - as above

    if name.lower() in SECRET_NAMES:
        return bad_config(f"{where}: a key does not stand in config.toml.", hint=USE_LOGIN)
    if name in _RENAMED:
        return bad_config(f"{where}: it is called {_RENAMED[name]} now.")
    return bad_config(f"{where}: there is no such setting{nearest(name, known)}.")


def _with_line(text: str, error: tomllib.TOMLDecodeError) -> str:
    message = str(error)
    if message.endswith("(at end of document)"):
        return message.replace("(at end of document)", f"(at line {len(text.splitlines())}, the end of the file)")
    return message
