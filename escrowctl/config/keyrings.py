"""The system's keyring, an extra (`escrowctl[keyring]`): used only where it was chosen, never in CI.

A keyring is another program behind a bus, which may be locked, missing or hang: each call has a time
limit (gh and stripe-cli limit theirs too), and each failure a message.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from escrowctl.config.secrets import Secret, read_key
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent

if TYPE_CHECKING:
    from types import ModuleType

_SECONDS = 20.0
_RECOMMENDED = 1
"""The threshold of `keyring.core.recommended`: backends below it are plain-text files or none."""


class KeyringError(Exception):
    """The keyring cannot be used; the text completes "the keyring cannot be used: ..."."""


def store(profile: str, origin: str, key: Secret, environ: Mapping[str, str]) -> None:
    """Store a key and read it back; raises KeyringError where either fails."""
    ring = _open(environ)
    _call(lambda: ring.set_password(_service(origin), profile, key.reveal()))
    if _call(lambda: ring.get_password(_service(origin), profile)) != key.reveal():
        raise KeyringError("it did not return the key that was stored")


def read(profile: str, origin: str, environ: Mapping[str, str]) -> Secret:
    """Return the key stored for a profile and origin; raises EscrowctlError `ErrorCode.KEY_MISSING` without one."""
    source = f"the keyring, for {profile}"
    try:
        ring = _open(environ)
        found = _call(lambda: ring.get_password(_service(origin), profile))
    except KeyringError as error:
        raise _unavailable(profile, f"is in the keyring, but the keyring cannot be used: {error}") from error
    if found is None:
        raise _unavailable(profile, "is not in the keyring")
    return read_key(str(found), source=source)


def remove(profile: str, origin: str, environ: Mapping[str, str]) -> None:
    """Remove the key if it exists; raises EscrowctlError `ErrorCode.STATE_UNUSABLE` where that fails."""
    try:
        ring = _open(environ)
        if _call(lambda: ring.get_password(_service(origin), profile)) is not None:
            _call(lambda: ring.delete_password(_service(origin), profile))
    except KeyringError as error:
        raise not_sent(
            ErrorCode.STATE_UNUSABLE,
            f"the key of {profile} is still in the keyring, but the keyring cannot be used: {error}.",
        ) from error


def _open(environ: Mapping[str, str]) -> Any:  # the extra may not be installed, so its types may not be known
    if environ.get("CI"):
        raise KeyringError("CI is set, and CI jobs have no keyring")
    ring = _call(_import().get_keyring)
    if getattr(ring, "priority", 0) < _RECOMMENDED:
        raise KeyringError(f"this system has no keyring ({type(ring).__module__.rpartition('.')[2]})")
    return ring


def _import() -> "ModuleType":
    try:
        from importlib import import_module  # noqa: PLC0415 - for those who chose it

        return import_module("keyring")
    except ImportError:
        raise KeyringError("it is not installed: pip install 'escrowctl[keyring]'") from None


def _call(ask: Callable[[], Any]) -> Any:
    """Return the answer; raises KeyringError where none comes in time, and for anything that a backend raises."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - its class is reported; its text could contain the key
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if failures:
        raise KeyringError(type(failures[0]).__name__)
    if not answers:
        raise KeyringError(f"no reply within {_SECONDS:g} s")
    return answers[0]


def _service(origin: str) -> str:
    return f"escrowctl {origin}"


def _unavailable(profile: str, what: str) -> EscrowctlError:
    return not_sent(
        ErrorCode.KEY_MISSING,
        f"the key of {profile} {what}.",
        hint=(f"escrowctl auth login -p {profile}", "or set ESCROWCTL_BASE_URL and ESCROWCTL_API_KEY"),
    )
