"""Read API keys, and refuse keys in the wrong place."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from escrowctl.config.file import parse_toml, read_text
from escrowctl.config.folders import FOLDER_VARIABLES
from escrowctl.config.origin import PROXY_VARIABLES
from escrowctl.contract.identifiers import UUID_PATTERN
from escrowctl.contract.json import JsonValue
from escrowctl.contract.redaction import Secret, hide_secrets, holds_key, star_key_in_document, star_possible_key
from escrowctl.errors import ErrorCode, EscrowctlError, bad_config, bad_value, not_sent
from escrowctl.files import OTHERS_ACCESS, find_flaw, read_regular
from escrowctl.runtime import forbid_core_dumps

KEY_VARIABLES = ("ESCROWCTL_API_KEY", "ESCROWCTL_API_KEY_FILE")
"""The variables for a key, and for the path of a key file."""

MIN_KEY_CHARS = 8
"""A shorter key would also match ordinary text, so it could not be hidden."""

MAX_KEY_CHARS = 4096
_QUOTED_VARIABLES = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *PROXY_VARIABLES)
"""Variables whose values are never suspects, though they may look like keys. Messages hide secrets in them."""

_MAX_FILE_BYTES = MAX_KEY_CHARS * 64


class FoundKey(NamedTuple):
    """A key and its source."""

    key: Secret
    source: str


def read_key(text: str, *, source: str) -> Secret:
    """Return the key in `text`, without one trailing newline. Messages name `source`, and never quote the key.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` if the key is empty, as a missing CI secret is; `BAD_CONFIG` if
    it is too short or too long, or has characters other than visible ASCII.
    """
    key = text.removesuffix("\n").removesuffix("\r")
    if not key:
        hint = "in CI, check that the secret is passed to this job"
        raise not_sent(ErrorCode.KEY_MISSING, f"{source} is empty: it should hold the API key.", hint=hint)
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise bad_config(
            f"the API key in {source} has spaces, line breaks or control characters: "
            "a key has only visible ASCII characters."
        )
    if not MIN_KEY_CHARS <= len(key) <= MAX_KEY_CHARS:
        message = f"the API key in {source} is not {MIN_KEY_CHARS} to {MAX_KEY_CHARS:,} characters long: check it."
        raise bad_config(message)
    return Secret(key)


def read_key_file(path: Path, *, source: str) -> Secret:
    """Return the key in a file that only its owner can read. Raises as `read_private_text` and `read_key` do."""
    return read_key(read_private_text(path, source=source), source=f"{source} ({path})")


def read_private_text(path: Path, *, source: str) -> str:
    """Return a file's text. Raises `ErrorCode.BAD_CONFIG` if other users have access to it, or it cannot be read.

    Checks and reads the same open file, so that nobody can replace the file between the check and the read.
    """
    try:
        content, status = read_regular(path, limit=_MAX_FILE_BYTES)
        if flaw := find_flaw(status, path, forbidden_bits=OTHERS_ACCESS):
            raise bad_config(f"{source}: {path} {flaw.reason}.", hint=flaw.fix)
        return content.decode("utf-8")
    except FileNotFoundError as error:
        raise bad_config(f"{source}: there is no file {star_possible_key(str(path))}.") from error
    except UnicodeDecodeError as error:
        raise bad_config(f"{source}: {path} is not UTF-8 text.") from error
    except OSError as error:
        raise bad_config(f"{source}: {path}: {error.strerror or error}.") from error


def read_environ_key(environ: Mapping[str, str]) -> FoundKey | None:
    """Return the key in the environment, which may be for any origin; None if neither of KEY_VARIABLES is set.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` for an empty key; `BAD_CONFIG` if both variables are set, or the
    key or its file is not valid.
    """
    path = environ.get("ESCROWCTL_API_KEY_FILE")
    if "ESCROWCTL_API_KEY" in environ and path:
        raise bad_config("both ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE are set: unset one of them.")
    if "ESCROWCTL_API_KEY" in environ:
        return FoundKey(read_key(environ["ESCROWCTL_API_KEY"], source="ESCROWCTL_API_KEY"), "ESCROWCTL_API_KEY")
    if path:
        return FoundKey(read_key_file(Path(path), source="ESCROWCTL_API_KEY_FILE"), "ESCROWCTL_API_KEY_FILE")
    return None


class KnownKeys:
    """The API keys that one run knows. No message quotes them, and a key in the wrong place is refused.

    Wrong places are the command line (`arguments`) and the variables that are not for keys. The suspects are values
    of variables that are not for keys, but look like secrets.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._environ = environ
        self._keys: list[str] = []
        self._suspects = [value for name, value in environ.items() if _forbids_key(name) and _is_suspect(name, value)]

    def protect(self, key: Secret) -> None:
        """Add the key that this run uses, and forbid core dumps: they would contain the key. Raises EscrowctlError:
        `BAD_VALUE` for a known key on the command line, `BAD_CONFIG` for one in a variable that is not for keys.
        """
        forbid_core_dumps()
        self.learn([key.reveal()])
        self.refuse_misplaced_keys()

    def learn(self, keys: Iterable[str]) -> None:
        """Add keys or other secrets, except those with fewer than MIN_KEY_CHARS characters."""
        self._keys += [key for key in keys if len(key) >= MIN_KEY_CHARS and key not in self._keys]

    def learn_environment(self) -> None:
        """Add the key in ESCROWCTL_API_KEY, and the one in ESCROWCTL_API_KEY_FILE's file if it can be read."""
        key, path = self._environ.get(KEY_VARIABLES[0], "").strip(), self._environ.get(KEY_VARIABLES[1])
        self.learn([key])
        self.learn(_find_file_key(Path(path)) if path else [])

    def learn_files(self, config: Path, credentials: Path) -> None:
        """Add the keys in credentials.toml, and in the key files of profiles. Skips files that cannot be read."""
        for profile in _as_table(_read_tables(config).get("profiles")).values():
            if named := _as_table(profile).get("api_key_file"):
                self.learn(_find_file_key(Path(str(named)), folder=config.parent))
        self.learn(str(_as_table(entry).get("key", "")) for entry in _read_tables(credentials).values())

    def refuse_misplaced_keys(self) -> None:
        """Raise `BAD_VALUE` for a known key in `arguments`, `BAD_CONFIG` for one in a variable not for keys."""
        for key in self._keys:
            if any(holds_key(word, key) for word in self._arguments if len(word) >= MIN_KEY_CHARS):
                raise bad_value(
                    "the API key is on the command line, where ps and the shell history show it: "
                    "get a new key from the service."
                )
            for name, value in self._environ.items():
                if _forbids_key(name) and len(value) >= MIN_KEY_CHARS and holds_key(value, key):
                    message = f"{name} contains the API key, which belongs in {KEY_VARIABLES[0]} only."
                    raise bad_config(message, hint=f"unset {name}")

    def star(self, value: JsonValue) -> JsonValue:
        """Return the value with stars in place of each known key and each suspect."""
        for key in (*self._keys, *self._suspects):
            value = star_key_in_document(value, key)
        return value


def refuse_key_in_url(base_url: str, key: str, *, source: str) -> None:
    """Raise `ErrorCode.BAD_CONFIG`, which names `source`, if a base URL contains the key, ignoring case."""
    if holds_key(base_url, key) or holds_key(base_url.lower(), key.lower()):
        raise bad_config(f"the base URL from {source} contains the API key: remove the key.")


def _find_file_key(path: Path, *, folder: Path = Path()) -> Iterator[str]:
    """Yield the key in a file; yield nothing if the key cannot be read. `folder` is the base of a relative path."""
    with suppress(EscrowctlError, ValueError, RuntimeError):
        yield read_key_file(folder / path.expanduser(), source="").reveal()


def _read_tables(path: Path) -> dict[str, Any]:
    with suppress(EscrowctlError):
        return parse_toml(path, read_text(path) or "")
    return {}


def _as_table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _forbids_key(name: str) -> bool:
    """Whether a key in this variable is a mistake: escrowctl reads the variable, but not for an API key."""
    is_own = name.startswith("ESCROWCTL_") and name != KEY_VARIABLES[0]
    return is_own or name in (*PROXY_VARIABLES, *FOLDER_VARIABLES.values())


def _is_suspect(name: str, value: str) -> bool:
    """Whether a variable's value looks like a secret, and is not the path of an existing file."""
    if name == "ESCROWCTL_JOURNAL" and "://" in value:
        from escrowctl.journal_url import is_journal_url  # noqa: PLC0415 - most runs have no such variable

        if (is_harmless := is_journal_url(value)) or "@" in value:
            return not is_harmless
    may_be_quoted = name in _QUOTED_VARIABLES or re.fullmatch(UUID_PATTERN, value) or len(value) < MIN_KEY_CHARS
    return not may_be_quoted and star_possible_key(hide_secrets(value)) != value and not os.path.lexists(value)
