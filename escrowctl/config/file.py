"""Read config.toml, with errors that name the file and the line or the key. Replace files of the config folder,
completely or not at all, by one writer at a time.
"""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escrowctl.config.folders import Folders
from escrowctl.config.toml import load_toml
from escrowctl.errors import ErrorCode, EscrowctlError, bad_config, not_sent
from escrowctl.files import NotRegularError, TooLargeError, find_flaw, find_folder_flaw, read_regular, unwritable
from escrowctl.runtime import Runtime

if TYPE_CHECKING:
    from escrowctl.config.profiles import ConfigFile

CONFIG_NAME = "config.toml"
MAX_BYTES = 1024 * 1024
_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.05


def find_config_path(named: str | None, environ: Mapping[str, str], folders: Folders) -> tuple[Path, bool]:
    """Return the path of config.toml, and whether `--config` or ESCROWCTL_CONFIG names it."""
    chosen = named or environ.get("ESCROWCTL_CONFIG")
    return (Path(chosen).absolute(), True) if chosen else (folders.config / CONFIG_NAME, False)


def read_config(path: Path) -> "ConfigFile | None":
    """Return the checked content of config.toml; None if there is no file.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` if it cannot be read, is not TOML, or has an unknown name
    or a wrong value.
    """
    text = read_text(path)
    return None if text is None else validate_config(path, parse_toml(path, text))


def read_text(path: Path) -> str | None:
    """Return the file's text; None if there is no file. Raises EscrowctlError `ErrorCode.BAD_CONFIG`."""
    try:
        return read_regular(path, limit=MAX_BYTES)[0].decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise bad_config(f"{path}: not UTF-8 at byte {error.start}.") from error
    except (NotRegularError, TooLargeError) as error:
        raise bad_config(f"{path} {error.strerror}.") from error
    except OSError as error:
        raise bad_config(f"{path}: {error.strerror or error}.") from error


def require_trusted(path: Path) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_CONFIG` if others can change config.toml: they could get the key.

    Checks the file and its folder; for a link, also the target and the target's folder.
    """
    target = Path(os.path.realpath(path))
    for place in dict.fromkeys((path.parent, target.parent, target)):
        try:
            folder = place.is_dir()
            flaw = find_folder_flaw(place, sticky=True) if folder else find_flaw(place.stat(), place)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise bad_config(f"{place}: {error.strerror or error}.") from error
        if flaw is not None:
            raise bad_config(
                f"{place} {flaw.reason}: API keys are not used with a config file that others can change.",
                hint=flaw.fix or "use a file that you own: --config FILE",
            )


def read_profile_names(path: Path) -> tuple[str, ...]:
    """Return the names of the profiles, sorted, without a check of their settings.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` for a file that cannot be read or is not TOML.
    """
    profiles = parse_toml(path, read_text(path) or "").get("profiles")
    return tuple(sorted(profiles)) if isinstance(profiles, dict) else ()


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return the text's tables; raises EscrowctlError `ErrorCode.BAD_CONFIG` naming the line."""
    try:
        return load_toml(text)
    except ValueError as error:
        raise bad_config(f"{path}: cannot be read as TOML: {_with_line(text, error)}.") from error


def validate_config(path: Path, tables: Mapping[str, Any]) -> "ConfigFile":
    """Return the tables as a config file; raises EscrowctlError `ErrorCode.BAD_CONFIG` for the first wrong setting."""
    from pydantic import ValidationError  # noqa: PLC0415 - see config/profiles.py

    from escrowctl.config.profiles import ConfigFile  # noqa: PLC0415

    try:
        return ConfigFile.model_validate(tables)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _invalid(path, first) from error


def _invalid(path: Path, error: Any) -> EscrowctlError:
    """Return the error for a wrong setting, with the expected value, or the known name nearest to an unknown one."""
    from escrowctl.config.profiles import describe  # noqa: PLC0415 - as above

    if error["type"] == "extra_forbidden":
        location = error["loc"]
        from escrowctl.config.profiles import SECRET_NAMES, USE_LOGIN, list_siblings, nearest  # noqa: PLC0415 - as above

        name = str(location[-1])
        where = f"{path}: {'.'.join(map(str, location))}"
        if name.lower() in SECRET_NAMES:
            return bad_config(f"{where}: an API key does not belong in config.toml.", hint=USE_LOGIN)
        return bad_config(f"{where}: there is no such setting{nearest(name, list_siblings(location))}.")
    name, expected = describe(error["loc"])
    where = f"{path}: {name}"
    match error["type"]:
        case "missing":
            return bad_config(f"{where}: it is missing; it should be {expected}.")
        case "value_error":
            return bad_config(f"{where}.{error['ctx']['error']}")
        case _:
            return bad_config(f"{where}: it should be {expected}.")


def _with_line(text: str, error: ValueError) -> str:
    message = str(error)
    if message.endswith("(at end of document)"):
        return message.replace("(at end of document)", f"(at line {len(text.splitlines())}, the end of the file)")
    return message


@contextlib.contextmanager
def locked(folder: Path, runtime: Runtime) -> Iterator[None]:
    """Lock the folder against other writers of its files (flock(2) on the folder: no file is left behind).

    Raises EscrowctlError: `ErrorCode.BUSY` after 10 s, `STATE_UNUSABLE` for a folder that does not exist.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        _wait_for(handle, folder, runtime)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked_together(*folders: Path, runtime: Runtime) -> Iterator[None]:
    """Lock several folders, each once, in a fixed order. Raises EscrowctlError `ErrorCode.BUSY` or `STATE_UNUSABLE`."""
    with contextlib.ExitStack() as holds:
        for folder in sorted({Path(os.path.realpath(folder)) for folder in folders}):
            holds.enter_context(locked(folder, runtime))
        yield


def _wait_for(handle: int, folder: Path, runtime: Runtime) -> None:
    end = runtime.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise unwritable(folder, error) from error
        else:
            return
        if runtime.monotonic() >= end:
            raise not_sent(ErrorCode.BUSY, f"another process has been writing in {folder} for {_TIMEOUT_SECONDS:g} s.")
        runtime.sleep(_POLL_SECONDS)
