"""Which API key goes where: a key is used only for the origin it was given for."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from escrowctl.config.file import require_trusted
from escrowctl.config.origin import Origin, parse_base_url
from escrowctl.config.secrets import Secret, read_key, read_key_file, refuse_in_base_url
from escrowctl.config.variables import KEYS
from escrowctl.errors import ErrorCode, EscrowctlError, bad_config, not_sent

if TYPE_CHECKING:
    from escrowctl.config.credentials import Credentials
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


class KeyFinder:
    """Finds the key for a choice; `credentials` and `config_path` are called only where a profile is chosen.

    `origin_of` returns the origin of the profile that ESCROWCTL_PROFILE names; None where `--config` names
    the file: its profiles say nothing about the key in the environment.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        credentials: "Callable[[], Credentials]",
        config_path: Callable[[], Path],
        origin_of: Callable[[str], Origin] | None,
    ) -> None:
        self._environ = environ
        self._credentials = credentials
        self._config_path = config_path
        self._origin_of = origin_of

    def find(self, choice: Choice) -> FoundKey:
        """Return the key of the choice's level, else of another level that has one for this origin.

        Raises EscrowctlError: `ErrorCode.KEY_MISSING` where no key fits, `ErrorCode.BAD_CONFIG` for one that
        cannot be used.
        """
        self._require_trusted(choice)
        environ_key = self._environ_key(choice)
        own = self.stored(choice) if environ_key is None or choice.level == LINE else None
        found = own or environ_key
        if found is None:
            raise self._no_key(choice)
        refuse_in_base_url(choice.origin.base_url, found.key.reveal(), source=choice.source)
        return found

    def stored(self, choice: Choice) -> FoundKey | None:
        """Return the key of the chosen profile, from the file that it names or from `auth login`; None without one."""
        if choice.profile_name is None or choice.profile is None:
            return None
        self._require_trusted(choice)
        if choice.profile.api_key_file:
            source = f"api_key_file of profile {choice.profile_name}"
            path = self._key_file(choice.profile.api_key_file, source=source)
            return FoundKey(read_key_file(path, source=source), f"{source} ({path})")
        credentials = self._credentials()
        stored = credentials.find(choice.profile_name)
        if stored is None or str(parse_base_url(stored.origin, source=str(credentials.path))) != str(choice.origin):
            return None
        source = "the keyring" if stored.in_keyring else str(credentials.path)
        return FoundKey(credentials.reveal(stored), source)

    def _require_trusted(self, choice: Choice) -> None:
        """Refuse a profile in a config file that others control: they could say where the key goes."""
        if choice.profile is not None:
            require_trusted(self._config_path())

    def _key_file(self, named: str, *, source: str) -> Path:
        try:
            return self._config_path().parent / Path(named).expanduser()
        except RuntimeError:
            raise bad_config(f"{source}: {named} starts with an unknown home folder.") from None

    def _environ_key(self, choice: Choice) -> FoundKey | None:
        """Return the environment's key if the environment gives it for the chosen origin."""
        key = self._read_environ_key()
        if key is None or self._environ_origin() != str(choice.origin):
            if key is not None and choice.level != LINE:
                raise self._unbound_key(choice)
            return None
        return key

    def _read_environ_key(self) -> FoundKey | None:
        environ = self._environ
        path = environ.get("ESCROWCTL_API_KEY_FILE")
        if "ESCROWCTL_API_KEY" in environ and path:
            raise bad_config("both ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE are set: keep one of them.")
        if "ESCROWCTL_API_KEY" in environ:
            return FoundKey(read_key(environ["ESCROWCTL_API_KEY"], source="ESCROWCTL_API_KEY"), "ESCROWCTL_API_KEY")
        if path:
            return FoundKey(read_key_file(Path(path), source="ESCROWCTL_API_KEY_FILE"), "ESCROWCTL_API_KEY_FILE")
        return None

    def _environ_origin(self) -> str | None:
        """Return the origin that the environment's key is for: that of its URL, else of its profile."""
        if url := self._environ.get("ESCROWCTL_BASE_URL"):
            return str(parse_base_url(url, source="ESCROWCTL_BASE_URL"))
        name = self._environ.get("ESCROWCTL_PROFILE")
        if name and self._origin_of is not None:
            return str(self._origin_of(name))
        return None

    def _no_key(self, choice: Choice) -> EscrowctlError:
        whose = f"-p {choice.profile_name}" if choice.profile_name else f"--base-url {choice.origin.base_url}"
        url = choice.origin.base_url
        unused = next((name for name in KEYS if self._environ.get(name)), None)
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

    def _unbound_key(self, choice: Choice) -> EscrowctlError:
        bind = f"ESCROWCTL_BASE_URL={choice.origin.base_url}"
        if self._origin_of is not None:
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
