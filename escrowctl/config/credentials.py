"""credentials.toml: the keys that `auth login` stores, each with the origin that it was given for.

    [acme-test]
    origin = "https://test.escrow.example.com"
    key = "..."               or, where the key is in the system's keyring:   store = "keyring"

Only escrowctl writes the file, and only its owner has access (0600); a file that others can read or
change is refused.
"""

import contextlib
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from escrowctl.config.folders import make_private_folder
from escrowctl.config.replacing import drafted, locked, replace_file
from escrowctl.config.secrets import Secret, read_key, read_private_text
from escrowctl.errors import ErrorCode, bad_config, not_sent
from escrowctl.files import NotRegularError, check_regular
from escrowctl.surroundings import Surroundings

FILE_NAME = "credentials.toml"
_HEAD = "# Written by escrowctl auth login. Whoever can read this can use the keys.\n"


class StoredKey(NamedTuple):
    """What is stored for a profile: the origin, and the key; None where the keyring has it."""

    profile: str
    origin: str
    key: Secret | None

    @property
    def in_keyring(self) -> bool:
        """Whether the key is in the system's keyring."""
        return self.key is None


class Credentials:
    """The stored keys of one config folder.

    Every method may raise EscrowctlError: `ErrorCode.BAD_CONFIG` for a file that others can read or change,
    or with other content, `STATE_UNUSABLE` for anything that is not a regular file, `KEY_MISSING` for an
    empty key.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.path = folder / FILE_NAME
        self._environ = environ

    def names(self) -> tuple[str, ...]:
        """Return the profiles that a key is stored for, sorted."""
        return tuple(sorted(self.read()))

    def find(self, profile: str) -> StoredKey | None:
        """Return what is stored for a profile, without asking the keyring."""
        match self.read().get(profile):
            case None:
                return None
            case {"origin": str(origin), "store": "keyring"}:
                return StoredKey(profile, origin, None)
            case {"origin": str(origin), "key": str(key)}:
                return StoredKey(profile, origin, Secret(key))
            case _:
                raise bad_config(f"{self.path}: [{profile}] needs two texts, origin and key.")

    def reveal(self, stored: StoredKey) -> Secret:
        """Return the key, from the keyring where that has it; raises EscrowctlError as `read_key`."""
        if stored.key is not None:
            return read_key(stored.key.reveal(), source=f"{self.path} [{stored.profile}]")
        from escrowctl.config import keyrings  # noqa: PLC0415 - for those who chose it

        return keyrings.read(stored.profile, stored.origin, self._environ)

    @contextlib.contextmanager
    def drafted(self, stored: StoredKey) -> Iterator[Callable[[], None]]:
        """Yield the function that stores a key for its profile; call while `make_folder` is locked.

        It may be called once; `restore` undoes it inside the block.
        """
        entry: dict[str, str] = {"origin": stored.origin}
        entry |= {"key": stored.key.reveal()} if stored.key else {"store": "keyring"}
        tables = self.read()
        tables.pop(stored.profile, None)
        tables[stored.profile] = entry
        with drafted(self.path, _render(self.path, tables), private=True) as put:
            yield put

    def restore(self, before: Mapping[str, Any]) -> None:
        """Write back what `read` returned; call while `make_folder` is locked."""
        if before:
            replace_file(self.path, _render(self.path, before), private=True)
        else:
            self.path.unlink(missing_ok=True)

    def make_folder(self) -> Path:
        """Return the folder to lock, created where it is missing."""
        if not self.path.parent.exists():
            make_private_folder(self.path.parent)
        return self.path.parent

    def remove(self, stored: StoredKey, around: Surroundings) -> None:
        """Remove what is stored for a profile, from the keyring too.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE` where the keyring cannot be used; the entry then stays.
        """
        if stored.in_keyring:
            from escrowctl.config import keyrings  # noqa: PLC0415 - as above

            keyrings.remove(stored.profile, stored.origin, self._environ)
        with locked(self.make_folder(), around):
            tables = self.read()
            tables.pop(stored.profile, None)
            replace_file(self.path, _render(self.path, tables), private=True)

    def read(self) -> dict[str, Any]:
        """Return the entries by profile; none where there is no such file."""
        try:
            check_regular(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except NotRegularError as error:
            # A link could lead to any file of this user, and writing keys would overwrite it.
            raise not_sent(
                ErrorCode.STATE_UNUSABLE,
                f"{self.path} {error.strerror}: keys are stored in a regular file.",
                hint=f"look at it, then remove it: ls -l {shlex.quote(str(self.path))}",
            ) from error
        except OSError as error:
            raise bad_config(f"{self.path}: {error.strerror or error}.") from error
        try:
            return tomllib.loads(read_private_text(self.path, source="stored keys"))
        except tomllib.TOMLDecodeError:
            # The parser's message could quote a key.
            raise bad_config(f"{self.path}: not TOML.") from None


def _render(path: Path, tables: Mapping[str, Any]) -> str:
    """Return the file's text."""
    parts = [_HEAD]
    for name, entry in tables.items():
        if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
            raise bad_config(f"{path}: [{name}] needs two texts, origin and key.")
        lines = [f"{_name(key)} = {_quoted(value)}\n" for key, value in entry.items()]
        parts.append(f"\n[{_name(name)}]\n{''.join(lines)}")
    return "".join(parts)


def _name(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text, re.ASCII) else _quoted(text)


def _quoted(text: str) -> str:
    """Return a TOML basic string: JSON's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
