"""The API keys that are configured here: no message quotes one, and each belongs in one place only.

A key lands on the line, in another variable or in a URL by mistake. It is looked for there as soon as it is known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from escrowctl.config.secrets import MIN_KEY_CHARS, read_key_file
from escrowctl.contract.key_search import holds_key
from escrowctl.errors import EscrowctlError, bad_config, bad_value

if TYPE_CHECKING:
    from escrowctl.contract.number import JsonValue

_KEY, _KEY_FILE = "ESCROWCTL_API_KEY", "ESCROWCTL_API_KEY_FILE"
_OTHERS = frozenset(
    {
        *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
        *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"),
    }
)
"""Variables that escrowctl reads besides its own."""


class KnownKeys:
    """The keys that one run knows; `words` is its command line."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._words = words
        self._environ = environ
        self._keys: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def learn(self, keys: Iterable[str]) -> None:
        """Remember keys."""
        self._keys += [key for key in keys if key not in self._keys]

    def learn_environment(self) -> None:
        """Remember the keys that the environment gives, usable or not."""
        given, path = self._environ.get(_KEY, "").strip(), self._environ.get(_KEY_FILE)
        self.learn([given] if len(given) >= MIN_KEY_CHARS else [])
        self.learn(_in_file(Path(path)) if path else [])

    def learn_files(self, config: Path, credentials: Path) -> None:
        """Remember the keys that are stored, and those in files that profiles name, as far as they can be read."""
        for profile in _table(_read(config).get("profiles")).values():
            if named := _table(profile).get("api_key_file"):
                self.learn(_in_file(Path(str(named)), folder=config.parent))
        stored = [str(_table(entry).get("key", "")) for entry in _read(credentials).values()]
        self.learn(key for key in stored if len(key) >= MIN_KEY_CHARS)

    def refuse_misplaced(self) -> None:
        """Raise EscrowctlError where a key is on the command line (`ErrorCode.BAD_VALUE`), or in a variable that is
        not for keys (`ErrorCode.BAD_CONFIG`).
        """
        for key in self._keys:
            if any(holds_key(word, key) for word in self._words if len(word) >= MIN_KEY_CHARS):
                raise bad_value("the API key appears on the command line: ps and the shell history show what is there.")
            for name, value in self._environ.items():
                if _is_read(name) and len(value) >= MIN_KEY_CHARS and holds_key(value, key):
                    raise bad_config(f"{name} holds the API key: it belongs in {_KEY} only.", hint=f"unset {name}")

    def star(self, value: "JsonValue") -> "JsonValue":
        """Return a value without any of the keys."""
        from escrowctl.contract.redaction import star_value  # noqa: PLC0415 - errors and settings alone need it

        for key in self._keys:
            value = star_value(value, key)
        return value


def refuse_in_base_url(base_url: str, key: str, *, source: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_CONFIG` where a base URL holds the key; hosts are compared in lower case."""
    if holds_key(base_url, key) or holds_key(base_url.lower(), key.lower()):
        raise bad_config(f"the base URL from {source} holds the API key: remove it there.")


def _is_read(name: str) -> bool:
    return (name.startswith("ESCROWCTL_") and name != _KEY) or name in _OTHERS


def _in_file(path: Path, *, folder: Path = Path()) -> Iterator[str]:
    with suppress(EscrowctlError, ValueError, RuntimeError):
        yield read_key_file(folder / path.expanduser(), source="").reveal()


def _read(path: Path) -> dict[str, Any]:
    from escrowctl.config.file import parse_toml, read_text  # noqa: PLC0415 - for those who made a mistake

    with suppress(EscrowctlError, ValueError):
        return parse_toml(path, read_text(path) or "")
    return {}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
