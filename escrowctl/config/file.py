"""Reading config.toml, with errors that name the file and the line or the key."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.errors import bad_config

if TYPE_CHECKING:
    from escrowctl.config.profiles import ConfigFile


def read_config(path: Path, *, must_exist: bool = False) -> "ConfigFile | None":
    """Return what config.toml says, or None where there is no such file.

    Raises EscrowctlError (exit 2) for a file that cannot be read, is not TOML, or has a wrong key
    or value.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise bad_config(f"{path}: there is no such file.") from None
        return None
    except UnicodeDecodeError as error:
        raise bad_config(f"{path}: not UTF-8 at byte {error.start}.") from error
    except OSError as error:
        raise bad_config(f"{path}: {error.strerror or error}.") from error
    return _validate(path, text)


def _validate(path: Path, text: str) -> "ConfigFile":
    from pydantic import ValidationError  # noqa: PLC0415 - see config/profiles.py

    from escrowctl.config.profiles import ConfigFile  # noqa: PLC0415

    try:
        return ConfigFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise bad_config(f"{path}: not TOML: {_with_line(text, error)}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise bad_config(f"{path}: {where}: {first['msg']}.") from error


def _with_line(text: str, error: tomllib.TOMLDecodeError) -> str:
    message = str(error)
    if message.endswith("(at end of document)"):
        return message.replace("(at end of document)", f"(at line {len(text.splitlines())}, the end of the file)")
    return message
