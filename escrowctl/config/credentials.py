"""credentials.toml: the keys that `auth login` stores, each with its origin.

    [acme-test]
    origin = "https://test.escrow.example.com"
    key = "..."               or, if the key is in the system's keyring:   store = "keyring"

Only escrowctl writes the file, and only its owner has access (0600); a file that others can read or
change is refused.

The system's keyring is an extra (`escrowctl[keyring]`): used only if it was chosen, never in CI. It is
another program behind a bus, which may be locked, missing or hang. Each call has a time limit (gh and
stripe-cli limit theirs too), and each failure has a message.
"""

import shlex
import threading
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from escrowctl.config.file import locked
from escrowctl.config.keys import read_key, read_private_text
from escrowctl.contract.redaction import Secret
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_config, bad_value, command, not_sent
from escrowctl.files import NotRegularError, check_regular, replace_durably
from escrowctl.runtime import Runtime

FILE_NAME = "credentials.toml"
_KEYRING_SECONDS = 20.0
_RECOMMENDED = 1
"""The threshold of `keyring.core.recommended`: backends below it are plain-text files or none."""
_HEAD = "# Written by escrowctl auth login. Whoever can read this can use the keys.\n"


class StoredKey(NamedTuple):
    """The stored origin and key of a profile. The key is None if it is in the keyring."""

    profile: str
    origin: str
    key: Secret | None

    @property
    def in_keyring(self) -> bool:
        """Whether the key is in the system's keyring."""
        return self.key is None


class Credentials:
    """The stored keys of one config folder.

    Every method may raise EscrowctlError: `ErrorCode.BAD_CONFIG` if others can read or change the file, or a
    key or other content is not valid; `STATE_UNUSABLE` if it is not a regular file; `KEY_MISSING` for a key
    that is empty or that the keyring does not return.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.path = folder / FILE_NAME
        self._environ = environ

    def names(self) -> tuple[str, ...]:
        """Return the profiles that a key is stored for, sorted."""
        return tuple(sorted(self.read()))

    def find(self, profile: str) -> StoredKey | None:
        """Return the stored key of a profile, or None. Does not ask the keyring."""
        match self.read().get(profile):
            case None:
                return None
            case {"origin": str(origin), "store": "keyring"}:
                return StoredKey(profile, origin, None)
            case {"origin": str(origin), "key": str(key)}:
                return StoredKey(profile, origin, Secret(key))
            case _:
                raise bad_config(f"{self.path}: [{profile}] needs two strings, origin and key.")

    def reveal(self, stored: StoredKey) -> Secret:
        """Return the key, from the keyring if it is there."""
        if stored.key is not None:
            return read_key(stored.key.reveal(), source=f"{self.path} [{stored.profile}]")
        try:
            ring = _open(self._environ)
            found = _call(lambda: ring.get_password(_service(stored.origin), stored.profile))
        except _KeyringError as error:
            raise _unavailable(
                stored.profile, f"was stored in the keyring, but the keyring cannot be used now: {error}"
            ) from error
        if found is None:
            raise _unavailable(stored.profile, "is not in the keyring")
        return read_key(str(found), source=f"the keyring, for {stored.profile}")

    def store(self, stored: StoredKey) -> None:
        """Store a key, or its place. Call it while the folder is locked."""
        place = {"key": stored.key.reveal()} if stored.key else {"store": "keyring"}
        others = {name: entry for name, entry in self.read().items() if name != stored.profile}
        self.write({**others, stored.profile: {"origin": stored.origin, **place}})

    def write(self, entries: Mapping[str, Any]) -> None:
        """Replace all entries, as `read` returns them. Call it while the folder is locked."""
        import tomlkit  # noqa: PLC0415 - for those who write

        replace_durably(self.path, f"{_HEAD}\n{tomlkit.dumps(entries)}", private=True)

    def remove(self, stored: StoredKey, runtime: Runtime) -> None:
        """Remove a stored key, from the keyring too.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE` if the keyring cannot be used; the entry then stays.
        """
        if stored.in_keyring:
            remove_from_keyring(stored.profile, stored.origin, self._environ)
        with locked(self.path.parent, runtime):
            self.write({name: entry for name, entry in self.read().items() if name != stored.profile})

    def read(self) -> dict[str, Any]:
        """Return the entries by profile; empty if there is no file."""
        try:
            check_regular(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except NotRegularError as error:
            # A link could lead to any file of this user, and writing keys would overwrite it.
            look = Hint(f"ls -l {shlex.quote(str(self.path))}", "to see what it is")
            why = f"{self.path} {error.strerror}: escrowctl does not store keys there."
            raise not_sent(ErrorCode.STATE_UNUSABLE, why, hint=look) from error
        except OSError as error:
            raise bad_config(f"{self.path}: {error.strerror or error}.") from error
        try:
            return tomllib.loads(read_private_text(self.path, source="the stored keys"))
        except (ValueError, RecursionError):
            # The parser's message could quote a key.
            aside = "move it away, then store the keys again with auth login"
            raise bad_config(f"{self.path}: cannot be read as TOML.", hint=aside) from None


class _KeyringError(Exception):
    """The keyring cannot be used; the text completes "the keyring cannot be used: ..."."""


def store_in_keyring(profile: str, origin: str, key: Secret, environ: Mapping[str, str]) -> None:
    """Store a key and read it back; raises EscrowctlError `ErrorCode.BAD_VALUE` if either fails."""
    try:
        ring = _open(environ)
        _call(lambda: ring.set_password(_service(origin), profile, key.reveal()))
        if _call(lambda: ring.get_password(_service(origin), profile)) != key.reveal():
            raise _KeyringError("it did not return the key that was stored")
    except _KeyringError as error:
        hint = f"without --keyring the key is stored in {FILE_NAME}, which only you can read"
        raise bad_value(f"--keyring: the keyring cannot be used: {error}.", hint=hint) from error


def remove_from_keyring(profile: str, origin: str, environ: Mapping[str, str]) -> None:
    """Remove the key if it exists; raises EscrowctlError `ErrorCode.STATE_UNUSABLE` if that fails."""
    try:
        ring = _open(environ)
        if _call(lambda: ring.get_password(_service(origin), profile)) is not None:
            _call(lambda: ring.delete_password(_service(origin), profile))
    except _KeyringError as error:
        raise not_sent(
            ErrorCode.STATE_UNUSABLE,
            f"escrowctl could not remove the key of profile {profile}: the keyring cannot be used ({error}). "
            "The key may still be there.",
        ) from error


def _open(environ: Mapping[str, str]) -> Any:  # the extra may not be installed, so its types may not be known
    if environ.get("CI"):
        raise _KeyringError("the variable CI is set, and CI jobs have no keyring")
    try:
        package = import_module("keyring")
    except ImportError:
        raise _KeyringError(
            "the Python package keyring is missing (with pipx: pipx inject escrowctl keyring)"
        ) from None
    ring = _call(package.get_keyring)
    if getattr(ring, "priority", 0) < _RECOMMENDED:
        raise _KeyringError(f"this system has no keyring ({type(ring).__module__.rpartition('.')[2]})")
    return ring


def _call(ask: Callable[[], Any]) -> Any:
    """Return the answer. Raises _KeyringError if there is none in time, or if the backend raises anything."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - its class is reported; its text could contain the key
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_KEYRING_SECONDS)
    if failures:
        raise _KeyringError(type(failures[0]).__name__)
    if not answers:
        raise _KeyringError(f"no reply within {_KEYRING_SECONDS:g} s")
    return answers[0]


def _service(origin: str) -> str:
    return f"escrowctl {origin}"


def _unavailable(profile: str, what: str) -> EscrowctlError:
    return not_sent(
        ErrorCode.KEY_MISSING,
        f"the key of profile {profile} {what}.",
        hint=(command(f"auth login -p {profile}", bare=True), "or set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY"),
    )
