"""API keys: where they are read from, and a wrapper that no output shows."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from escrowctl.contract.key_search import shown
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending, bad_config

_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
_LOOSE = stat.S_IRWXG | stat.S_IRWXO
MIN_KEY_CHARS = 8
"""Shorter ones could not be told from other words, and so not be kept out of what is shown."""

MAX_KEY_CHARS = 4096
_MAX_FILE_BYTES = MAX_KEY_CHARS * 64


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """An API key that prints as stars; `reveal` is for the Authorization header alone."""

    _text: str

    def reveal(self) -> str:
        """Return the key itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"


def read_key(text: str, *, source: str) -> Secret:
    """Return the key that `source` holds, one trailing newline taken off.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` for an empty one (that is how a CI secret goes missing),
    `ErrorCode.BAD_CONFIG` for characters that cannot be in a header, and for fewer than 8. Never quotes the key.
    """
    key = text.removesuffix("\n").removesuffix("\r")
    if not key:
        raise EscrowctlError(
            ErrorCode.KEY_MISSING,
            f"{source} is empty: it should hold the API key. {NOTHING_SENT}",
            hint="in CI, check that the secret is passed to this job",
            sending=Sending.NOT_SENT,
        )
    if not _KEY.fullmatch(key) or len(key) > MAX_KEY_CHARS:
        raise bad_config(
            f"the API key in {source} has spaces, line breaks or control characters in it: "
            "a key is one word of visible ASCII characters."
        )
    if len(key) < MIN_KEY_CHARS:
        raise bad_config(f"the API key in {source} has fewer than {MIN_KEY_CHARS} characters: it was cut or mistyped.")
    return Secret(key)


def read_key_file(path: Path, *, source: str) -> Secret:
    """Return the key in a file that only its owner can read.

    Raises EscrowctlError (exit 2) for a missing, foreign-owned or loose (group or others) file.
    """
    return read_key(read_private_text(path, source=source), source=f"{source} ({path})")


def read_private_text(path: Path, *, source: str) -> str:
    """Return the text of a file, refusing one that others than its owner can read or change.

    The mode is asked of the opened file, so that it cannot be exchanged in between. A pipe that
    nobody writes to would be waited for at the opening itself: O_NONBLOCK.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid not in (os.geteuid(), 0):
                raise bad_config(f"{source}: {path} belongs to another user.")
            if not stat.S_ISREG(status.st_mode):
                raise bad_config(f"{source}: {path} is not a regular file.")
            if status.st_mode & _LOOSE:
                mode = stat.S_IMODE(status.st_mode)
                raise bad_config(
                    f"{source}: {path} can be read or changed by others (mode {mode:04o}).", hint=f"chmod 600 {path}"
                )
            text = file.read(_MAX_FILE_BYTES + 1)
        if len(text) > _MAX_FILE_BYTES:
            raise bad_config(f"{source}: {path} is larger than {_MAX_FILE_BYTES} bytes.")
        return text.decode("utf-8")
    except FileNotFoundError as error:
        raise bad_config(f"{source}: there is no file {shown(str(path))}.") from error
    except UnicodeDecodeError as error:
        raise bad_config(f"{source}: {path} is not text.") from error
    except OSError as error:
        raise bad_config(f"{source}: {path}: {error.strerror or error}.") from error
