"""API keys: where they are read from, and a wrapper that no output shows."""

import re
from dataclasses import dataclass
from pathlib import Path

from escrowctl.contract.key_search import shown
from escrowctl.errors import ErrorCode, bad_config, not_sent
from escrowctl.files import OTHERS_ACCESS, NotRegularError, TooLargeError, find_flaw, read_regular

_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
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
        raise not_sent(
            ErrorCode.KEY_MISSING,
            f"{source} is empty: it should hold the API key.",
            hint="in CI, check that the secret is passed to this job",
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

    The mode is asked of the opened file, so that it cannot be exchanged in between.
    """
    try:
        content, status = read_regular(path, limit=_MAX_FILE_BYTES)
        if flaw := find_flaw(status, path, refused=OTHERS_ACCESS):
            raise bad_config(f"{source}: {path} {flaw.reason}.", hint=flaw.fix)
        return content.decode("utf-8")
    except FileNotFoundError as error:
        raise bad_config(f"{source}: there is no file {shown(str(path))}.") from error
    except UnicodeDecodeError as error:
        raise bad_config(f"{source}: {path} is not text.") from error
    except (NotRegularError, TooLargeError) as error:
        raise bad_config(f"{source}: {path} {error.strerror}.") from error
    except OSError as error:
        raise bad_config(f"{source}: {path}: {error.strerror or error}.") from error
