"""API keys: a wrapper that prints as stars, reading keys, and refusing keys in the wrong place."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from escrowctl.config.file import parse_toml, read_text
from escrowctl.config.folders import FOLDERS
from escrowctl.config.origin import PROXIES
from escrowctl.contract.identifiers import UUID
from escrowctl.contract.redaction import Secret, hide_secrets, holds_key, shown
from escrowctl.errors import ErrorCode, EscrowctlError, bad_config, bad_value, not_sent
from escrowctl.files import OTHERS_ACCESS, find_flaw, read_regular
from escrowctl.runtime import forbid_core_dumps

if TYPE_CHECKING:
    from escrowctl.contract.json import JsonValue

KEYS = ("ESCROWCTL_API_KEY", "ESCROWCTL_API_KEY_FILE")
"""The variables for a key, and for the path of a key file."""

_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
MIN_KEY_CHARS = 8
"""A shorter key would also match ordinary text, so it could not be hidden."""

MAX_KEY_CHARS = 4096
_SHOWN = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *PROXIES)
"""Variables whose values look like keys. Messages quote them by separate rules."""

_MAX_FILE_BYTES = MAX_KEY_CHARS * 64


class FoundKey(NamedTuple):
    """A key and its source."""

    key: Secret
    source: str


def read_key(text: str, *, source: str) -> Secret:
    """Return the key in `text`, without one trailing newline; `source` names the origin of the text.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` for an empty key (a missing CI secret is an empty text),
    `ErrorCode.BAD_CONFIG` for characters that a header cannot have, and for fewer than 8. Never quotes the key.
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
            f"the API key in {source} has spaces, line breaks or control characters: "
            "a key has only visible ASCII characters."
        )
    if len(key) < MIN_KEY_CHARS:
        raise bad_config(
            f"the API key in {source} has fewer than {MIN_KEY_CHARS} characters: check that it is complete."
        )
    return Secret(key)


def read_key_file(path: Path, *, source: str) -> Secret:
    """Return the key in a file that only its owner can read.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` for an empty file, `BAD_CONFIG` for a key that is not valid, and
    for a file that is missing, belongs to another user, or can be read or changed by others.
    """
    return read_key(read_private_text(path, source=source), source=f"{source} ({path})")


def read_private_text(path: Path, *, source: str) -> str:
    """Return a file's text. Raises EscrowctlError `ErrorCode.BAD_CONFIG` if others have access, or it cannot be read.

    The mode is read from the opened file, so that the file cannot be exchanged in between.
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
    except OSError as error:
        raise bad_config(f"{source}: {path}: {error.strerror or error}.") from error


def read_environ_key(environ: Mapping[str, str]) -> FoundKey | None:
    """Return the key in the environment, for any origin; None if there is none.

    Raises EscrowctlError: `ErrorCode.KEY_MISSING` for an empty key, `BAD_CONFIG` for two keys, a bad key or a bad file.
    """
    path = environ.get("ESCROWCTL_API_KEY_FILE")
    if "ESCROWCTL_API_KEY" in environ and path:
        raise bad_config("both ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE are set: keep one of them.")
    if "ESCROWCTL_API_KEY" in environ:
        return FoundKey(read_key(environ["ESCROWCTL_API_KEY"], source="ESCROWCTL_API_KEY"), "ESCROWCTL_API_KEY")
    if path:
        return FoundKey(read_key_file(Path(path), source="ESCROWCTL_API_KEY_FILE"), "ESCROWCTL_API_KEY_FILE")
    return None


class KnownKeys:
    """The API keys that one run knows. No message quotes one, and each belongs in one place only.

    `words` is the command line. A key can get into it, into another variable or into a URL by mistake, so every
    known key is searched for there. Messages do not quote variables that may hold a secret either.
    """

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._words = words
        self._environ = environ
        self._keys: list[str] = []
        self._suspects = [value for name, value in environ.items() if _is_read(name) and _is_suspect(name, value)]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._keys, *self._suspects))

    def keep(self, key: Secret) -> None:
        """Remember the key that this run uses, and forbid core dumps, which would contain it.

        Raises EscrowctlError: `BAD_VALUE` if it is on the command line, `BAD_CONFIG` if in a variable not for keys.
        """
        forbid_core_dumps()
        self.learn([key.reveal()])
        self.refuse_misplaced()

    def learn(self, keys: Iterable[str]) -> None:
        """Remember keys and secrets, except those too short to differ from ordinary text."""
        self._keys += [key for key in keys if len(key) >= MIN_KEY_CHARS and key not in self._keys]

    def learn_environment(self) -> None:
        """Remember the keys in the environment, usable or not."""
        given, path = self._environ.get(KEYS[0], "").strip(), self._environ.get(KEYS[1])
        self.learn([given])
        self.learn(_in_file(Path(path)) if path else [])

    def learn_files(self, config: Path, credentials: Path) -> None:
        """Remember the stored keys, and the keys in files that profiles name, if they can be read."""
        for profile in _table(_read(config).get("profiles")).values():
            if named := _table(profile).get("api_key_file"):
                self.learn(_in_file(Path(str(named)), folder=config.parent))
        self.learn(str(_table(entry).get("key", "")) for entry in _read(credentials).values())

    def refuse_misplaced(self) -> None:
        """Raise EscrowctlError if a key is on the command line (`ErrorCode.BAD_VALUE`), or in a variable that is
        not for keys (`ErrorCode.BAD_CONFIG`).
        """
        for key in self._keys:
            if any(holds_key(word, key) for word in self._words if len(word) >= MIN_KEY_CHARS):
                raise bad_value(
                    "the API key is on the command line, where ps and the shell history show it: "
                    "get a new key from the service."
                )
            for name, value in self._environ.items():
                if _is_read(name) and len(value) >= MIN_KEY_CHARS and holds_key(value, key):
                    raise bad_config(f"{name} holds the API key: it belongs in {KEYS[0]} only.", hint=f"unset {name}")

    def star(self, value: "JsonValue") -> "JsonValue":
        """Return a value without any of the keys."""
        from escrowctl.contract.redaction import star_value  # noqa: PLC0415 - errors and settings alone need it

        for key in self:
            value = star_value(value, key)
        return value


def refuse_in_base_url(base_url: str, key: str, *, source: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_CONFIG` if a base URL contains the key. Hosts are compared in lower case."""
    if holds_key(base_url, key) or holds_key(base_url.lower(), key.lower()):
        raise bad_config(f"the base URL from {source} holds the API key: remove it there.")


def _in_file(path: Path, *, folder: Path = Path()) -> Iterator[str]:
    with suppress(EscrowctlError, ValueError, RuntimeError):
        yield read_key_file(folder / path.expanduser(), source="").reveal()


def _read(path: Path) -> dict[str, Any]:
    with suppress(EscrowctlError):
        return parse_toml(path, read_text(path) or "")
    return {}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_read(name: str) -> bool:
    """Whether escrowctl reads the value of this variable; an API key in it would be a mistake."""
    return (name.startswith("ESCROWCTL_") and name != KEYS[0]) or name in (*PROXIES, *FOLDERS.values())


def _is_suspect(name: str, value: str) -> bool:
    """Whether a variable's value may be a secret by mistake: it looks like one, and no file has this name."""
    is_shown = name in _SHOWN or re.fullmatch(UUID, value) or len(value) < MIN_KEY_CHARS
    return not is_shown and shown(hide_secrets(value)) != value and not os.path.lexists(value)
