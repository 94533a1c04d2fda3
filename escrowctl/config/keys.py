"""Which API key goes where: a key is used only for the origin it was given for."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from escrowctl.config.origin import Origin
from escrowctl.config.secrets import Secret, read_key, read_key_file
from escrowctl.config.variables import KEYS
from escrowctl.errors import ErrorCode, EscrowctlError, bad_config, not_sent

if TYPE_CHECKING:
    from escrowctl.config.profiles import Profile

LINE, ENVIRONMENT, DEFAULT = "the line", "the environment", "the default profile"
"""The levels at which a service is chosen, highest first."""


class Choice(NamedTuple):
    """Which service: its origin, the option, variable or profile that names it, and the profile if there is one.

    `level` is LINE, ENVIRONMENT or DEFAULT. `environ_mode` is ESCROWCTL_MODE where it applies.
    """

    level: str
    origin: Origin
    source: str
    profile_name: str | None
    profile: "Profile | None"
    environ_mode: str | None = None

    @property
    def mode(self) -> str:
        """`live` or `test`: as the profile says, else ESCROWCTL_MODE; else live, unless the host is loopback."""
        named = (self.profile.mode if self.profile else None) or self.environ_mode
        return named or ("test" if self.origin.is_loopback else "live")


class FoundKey(NamedTuple):
    """A key, and where it was found."""

    key: Secret
    source: str


def read_environ_key(environ: Mapping[str, str]) -> FoundKey | None:
    """Return the key that the environment gives, for whatever origin; None without one.

    Raises EscrowctlError as `read_key` and `read_key_file`, and `ErrorCode.BAD_CONFIG` for two keys.
    """
    path = environ.get("ESCROWCTL_API_KEY_FILE")
    if "ESCROWCTL_API_KEY" in environ and path:
        raise bad_config("both ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE are set: keep one of them.")
    if "ESCROWCTL_API_KEY" in environ:
        return FoundKey(read_key(environ["ESCROWCTL_API_KEY"], source="ESCROWCTL_API_KEY"), "ESCROWCTL_API_KEY")
    if path:
        return FoundKey(read_key_file(Path(path), source="ESCROWCTL_API_KEY_FILE"), "ESCROWCTL_API_KEY_FILE")
    return None


def no_key(choice: Choice, environ: Mapping[str, str]) -> EscrowctlError:
    """Return that no key fits, and how to store or set one."""
    whose = f"-p {choice.profile_name}" if choice.profile_name else f"--base-url {choice.origin.base_url}"
    url = choice.origin.base_url
    unused = next((name for name in KEYS if environ.get(name)), None)
    return not_sent(
        ErrorCode.KEY_MISSING,
        f"there is no API key for {choice.origin} (from {choice.source}).",
        hint=(
            f"store one:  escrowctl auth login {whose}",
            f"{unused} is set, but not used for what the command line names; if it is for {choice.origin}:  "
            f"set ESCROWCTL_BASE_URL={url}"
            if unused
            else f"in a job:   set ESCROWCTL_BASE_URL={url} and ESCROWCTL_API_KEY",
            "a key is used only for the origin it was given for",
        ),
    )


def unbound_key(choice: Choice, *, by_profile: bool) -> EscrowctlError:
    """Return that the environment's key has no base URL; `by_profile`: ESCROWCTL_PROFILE can say it too."""
    bind = f"ESCROWCTL_BASE_URL={choice.origin.base_url}"
    if by_profile:
        bind += f" or ESCROWCTL_PROFILE={choice.profile_name}"
    return not_sent(
        ErrorCode.KEY_MISSING,
        f"the environment has an API key but no base URL for it, and {choice.source} has its own "
        f"({choice.origin}): a key is used only for the origin it was given for.",
        hint=(
            f"if the key in the environment is for it:  set {bind}",
            "for the profile's own key:                unset ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE",
        ),
    )
