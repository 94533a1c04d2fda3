"""credentials.toml: the keys that `auth login` stores, each with its origin.

    [acme-test]
    origin = "https://test.escrow.example.com"
    key = "..."               or, if the key is in the system's keyring:   store = "keyring"

Only escrowctl writes the file. A file that other users can read or change is refused (its mode must be 0600).

The system's keyring needs an extra (`escrowctl[keyring]`). escrowctl uses it only for keys stored with
`auth login --keyring`, and never in CI. The keyring is another program, which may be locked, missing or
hang. So each call has a time limit, as in gh and stripe-cli, and each failure has a message.
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
from escrowctl.errors import ErrorCode, Hint, bad_config, bad_value, command, not_sent
from escrowctl.files import NotRegularError, check_regular, replace_durably
from escrowctl.runtime import Runtime

CREDENTIALS_NAME = "credentials.toml"
_KEYRING_TIMEOUT = 20.0
_FILE_HEADER = "# Written by escrowctl auth login. Whoever can read this can use the keys.\n"


class StoredKey(NamedTuple):
    """The stored origin and key of a profile. The key is None if it is in the keyring."""

    profile: str
    origin: str
    key: Secret | None


class Credentials:
    """The stored keys of one config folder, in the file credentials.toml.

    Every method may raise EscrowctlError: `ErrorCode.BAD_CONFIG` if other users can read or change the file, or its
    content is not valid; `STATE_UNUSABLE` if it is not a regular file; `KEY_MISSING` if the key is empty, or the
    keyring does not return the key.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.path = folder / CREDENTIALS_NAME
        self._environ = environ

    def find(self, profile: str) -> StoredKey | None:
        """Return the stored key of a profile; None if it has none. Does not read the keyring."""
        match self.read().get(profile):
            case None:
                return None
            case {"origin": str(origin), "store": "keyring"}:
                return StoredKey(profile, origin, None)
            case {"origin": str(origin), "key": str(key)}:
                return StoredKey(profile, origin, Secret(key))
            case _:
                raise bad_config(f"{self.path}: [{profile}] needs the strings origin and key.")

    def reveal(self, stored: StoredKey) -> Secret:
        """Return a stored key as a Secret. Reads the key from the keyring if it is there."""
        profile = stored.profile
        if stored.key is not None:
            return read_key(stored.key.reveal(), source=f"{self.path} [{profile}]")
        found, problem = None, "is not in the keyring"
        try:
            found = _ask_keyring(self._environ, "get_password", stored.origin, profile)
        except _KeyringError as error:
            problem = f"was stored in the keyring, but the keyring cannot be used now: {error}"
        if found is None:
            hint = (command(f"auth login -p {profile}", bare=True), "or set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY")
            raise not_sent(ErrorCode.KEY_MISSING, f"the key of profile {profile} {problem}.", hint=hint)
        return read_key(found, source=f"the keyring entry of profile {profile}")

    def store(self, stored: StoredKey) -> None:
        """Write a profile's origin and key, or `store = "keyring"`. The caller must hold the folder's lock."""
        location = {"key": stored.key.reveal()} if stored.key else {"store": "keyring"}
        others = {name: entry for name, entry in self.read().items() if name != stored.profile}
        self.write({**others, stored.profile: {"origin": stored.origin, **location}})

    def write(self, entries: Mapping[str, Any]) -> None:
        """Replace all tables of the file by `entries`. The caller must hold the folder's lock."""
        import tomlkit  # noqa: PLC0415 - only writers need it

        replace_durably(self.path, f"{_FILE_HEADER}\n{tomlkit.dumps(entries)}", private=True)

    def remove(self, stored: StoredKey, runtime: Runtime) -> None:
        """Remove a profile's key from the keyring, if the key is there; then remove the profile from the file.

        Raises EscrowctlError `ErrorCode.STATE_UNUSABLE` if the keyring cannot be used. The file is then unchanged.
        """
        if stored.key is None:
            remove_from_keyring(stored.profile, stored.origin, self._environ)
        with locked(self.path.parent, runtime):
            self.write({name: entry for name, entry in self.read().items() if name != stored.profile})

    def read(self) -> dict[str, Any]:
        """Return the file's tables by profile name; empty if there is no file."""
        try:
            check_regular(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except NotRegularError as error:
            # A link could lead to any file of this user, and writing keys would overwrite it.
            look = Hint(f"ls -l {shlex.quote(str(self.path))}", "to see the kind of file")
            message = f"{self.path} {error.strerror}: escrowctl does not store keys there."
            raise not_sent(ErrorCode.STATE_UNUSABLE, message, hint=look) from error
        except OSError as error:
            raise bad_config(f"{self.path}: {error.strerror or error}.") from error
        try:
            return tomllib.loads(read_private_text(self.path, source="the stored keys"))
        except (ValueError, RecursionError):
            # The parser's message could quote a key.
            restore = "move the file away, then store the keys again with auth login"
            raise bad_config(f"{self.path}: cannot be read as TOML.", hint=restore) from None


class _KeyringError(Exception):
    """The keyring cannot be used. The text is the reason: it completes "the keyring cannot be used: ..."."""


def store_in_keyring(profile: str, origin: str, key: Secret, environ: Mapping[str, str]) -> None:
    """Store a profile's key in the keyring. Raises `ErrorCode.BAD_VALUE` if the keyring cannot return the key."""
    try:
        _ask_keyring(environ, "set_password", origin, profile, key.reveal())
        if _ask_keyring(environ, "get_password", origin, profile) != key.reveal():
            raise _KeyringError("it did not return the key that was stored")
    except _KeyringError as error:
        hint = f"without --keyring the key is stored in {CREDENTIALS_NAME}, which only you can read"
        raise bad_value(f"--keyring: the keyring cannot be used: {error}.", hint=hint) from error


def remove_from_keyring(profile: str, origin: str, environ: Mapping[str, str]) -> None:
    """Remove a profile's key if the keyring has it. Raises `STATE_UNUSABLE` if the keyring cannot be used."""
    try:
        if _ask_keyring(environ, "get_password", origin, profile) is not None:
            _ask_keyring(environ, "delete_password", origin, profile)
    except _KeyringError as error:
        raise not_sent(
            ErrorCode.STATE_UNUSABLE,
            f"escrowctl could not remove the key of profile {profile}: the keyring cannot be used ({error}). "
            "The key may still be there.",
        ) from error


def _ask_keyring(environ: Mapping[str, str], method: str, origin: str, *arguments: str) -> str | None:
    """Return the result of a method of the keyring, such as `get_password`. `arguments`: the profile, and the key."""
    if environ.get("CI"):
        raise _KeyringError("the variable CI is set, and CI jobs have no keyring")
    try:
        package = import_module("keyring")
    except ImportError:
        problem = "the Python package keyring is missing (with pipx: pipx inject escrowctl keyring)"
        raise _KeyringError(problem) from None
    ring = _call_keyring(package.get_keyring)
    # As `keyring.core.recommended` does: backends below 1 use plain text or nothing.
    if getattr(ring, "priority", 0) < 1:
        raise _KeyringError(f"this system has no keyring ({type(ring).__module__.rpartition('.')[2]})")
    found: str | None = _call_keyring(lambda: getattr(ring, method)(f"escrowctl {origin}", *arguments))
    return found


def _call_keyring(call: Callable[[], Any]) -> Any:
    """Return the result of `call`, a call to the keyring. Raises _KeyringError if it fails or takes over 20 s."""
    results: list[Any] = []
    failures: list[BaseException] = []

    def run_call() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - its class is reported; its text could contain the key
            failures.append(error)

    thread = threading.Thread(target=run_call, daemon=True)
    thread.start()
    thread.join(_KEYRING_TIMEOUT)
    if failures:
        raise _KeyringError(type(failures[0]).__name__)
    if not results:
        raise _KeyringError(f"no reply within {_KEYRING_TIMEOUT:g} s")
    return results[0]
