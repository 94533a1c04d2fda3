"""From line, environment and config file to one service: which wins, and what never meets.

What is typed on the line (a named profile included) outranks the environment, which outranks the
default profile. A key belongs to the origin it was given for: a URL from one level never meets a
key from another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from escrowctl.config.file import read_config
from escrowctl.config.folders import Folders
from escrowctl.config.network import find_network
from escrowctl.config.origin import Origin, parse_base_url
from escrowctl.config.secrets import Secret, read_key, read_key_file, read_stored_key
from escrowctl.config.service import READ_TIMEOUT, WRITE_TIMEOUT, Service
from escrowctl.contract.record import Pointers
from escrowctl.errors import NOTHING_SENT, ErrorCode, EscrowctlError, Sending, bad_config, bad_value

if TYPE_CHECKING:
    from escrowctl.config.profiles import Profile

_LINE, _ENVIRONMENT, _DEFAULT = "the line", "the environment", "the default profile"
MAX_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class LineValues:
    """What the shared options say about the service; None where not typed."""

    profile: str | None = None
    base_url: str | None = None
    config: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    """Where to, on whose word, and under which profile."""

    level: str
    origin: Origin
    source: str
    profile_name: str | None
    profile: "Profile | None"


@dataclass(frozen=True, slots=True)
class _FoundKey:
    key: Secret
    source: str


class Resolver:
    """Resolves one run's service; reads config.toml at most once."""

    def __init__(self, line: LineValues, environ: Mapping[str, str], folders: Folders) -> None:
        self._line = line
        self._environ = environ
        self._folders = folders
        named = line.config or environ.get("ESCROWCTL_CONFIG")
        self._config_path = Path(named).absolute() if named else folders.config / "config.toml"
        self._config = read_config(self._config_path, must_exist=bool(named))

    def resolve(self) -> Service:
        """Return the service with its key.

        Raises EscrowctlError: exit 4 where nothing is configured or no key fits, exit 2 where
        values are bad or contradict each other.
        """
        choice = self._choose()
        found = self._find_key(choice)
        profile = choice.profile
        read_timeout, write_timeout = self._timeouts(profile)
        service = Service(
            name=choice.profile_name or choice.origin.host,
            profile=choice.profile_name,
            origin=choice.origin,
            identity=(profile.service_id if profile else None) or str(choice.origin),
            key=found.key,
            url_source=choice.source,
            key_source=found.source,
            live=_is_live(choice),
            read_timeout=read_timeout,
            write_timeout=write_timeout,
            network=find_network(choice.origin, self._environ),
        )
        return _with_profile(service, profile) if profile else service

    # Where to

    def _choose(self) -> _Choice:
        line, environ = self._line, self._environ
        # A variable that is set to nothing is as good as none; an empty word on the line is a mistake.
        env_profile, env_url = environ.get("ESCROWCTL_PROFILE") or None, environ.get("ESCROWCTL_BASE_URL") or None
        if line.base_url is not None:
            return self._from_url(_LINE, line.base_url, "--base-url", line.profile)
        if line.profile is not None:
            choice = self._from_profile(_LINE, line.profile, f"--profile {line.profile}")
            return self._agreeing(choice, env_url)
        if env_url:
            return self._from_url(_ENVIRONMENT, env_url, "ESCROWCTL_BASE_URL", env_profile)
        if env_profile:
            return self._from_profile(_ENVIRONMENT, env_profile, f"ESCROWCTL_PROFILE ({env_profile})")
        default = self._config.default_profile if self._config else None
        if default:
            return self._from_profile(_DEFAULT, default, f"default profile {default}")
        raise self._nothing_configured()

    def _from_url(self, level: str, url: str, source: str, profile_name: str | None) -> _Choice:
        origin = parse_base_url(url, source=source)
        if profile_name is None:
            return _Choice(level, origin, source, None, None)
        choice = self._from_profile(level, profile_name, source)
        if str(choice.origin) != str(origin):
            raise _contradiction(source, origin, profile_name, choice.origin)
        return _Choice(level, origin, source, profile_name, choice.profile)

    def _from_profile(self, level: str, name: str, source: str) -> _Choice:
        profile = self._profile(name)
        where = f"{self._config_path}: profiles.{name}.base_url"
        return _Choice(level, parse_base_url(profile.base_url, source=where), source, name, profile)

    def _agreeing(self, choice: _Choice, env_url: str | None) -> _Choice:
        if env_url:
            origin = parse_base_url(env_url, source="ESCROWCTL_BASE_URL")
            if str(origin) != str(choice.origin):
                raise _contradiction("ESCROWCTL_BASE_URL", origin, choice.profile_name or "", choice.origin)
        return choice

    def _profile(self, name: str) -> "Profile":
        known = self._config.profiles if self._config else {}
        if name in known:
            return known[name]
        listing = f"profiles there: {', '.join(sorted(known))}" if known else "it has no profiles"
        raise bad_config(f'there is no profile "{name}" in {self._config_path} ({listing}).')

    # With which key

    def _find_key(self, choice: _Choice) -> _FoundKey:
        environ_key = self._environ_key(choice)
        stored = self._stored_key(choice)
        candidates = (stored, environ_key) if choice.level == _LINE else (environ_key, stored)
        found = next((candidate for candidate in candidates if candidate is not None), None)
        if found is None:
            raise self._no_key(choice)
        return found

    def _environ_key(self, choice: _Choice) -> _FoundKey | None:
        """Return the environment's key if the environment gives it for the chosen origin."""
        key = self._read_environ_key()
        if key is None or self._environ_origin() != str(choice.origin):
            if key is not None and choice.level == _DEFAULT:
                raise self._unbound_key(choice)
            return None
        return key

    def _read_environ_key(self) -> _FoundKey | None:
        environ = self._environ
        path = environ.get("ESCROWCTL_API_KEY_FILE")
        if "ESCROWCTL_API_KEY" in environ and path:
            raise bad_config("both ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE are set: keep one of them.")
        if "ESCROWCTL_API_KEY" in environ:
            return _FoundKey(read_key(environ["ESCROWCTL_API_KEY"], source="ESCROWCTL_API_KEY"), "ESCROWCTL_API_KEY")
        if path:
            return _FoundKey(read_key_file(Path(path), source="ESCROWCTL_API_KEY_FILE"), "ESCROWCTL_API_KEY_FILE")
        return None

    def _environ_origin(self) -> str | None:
        """Return the origin that the environment's key is for: that of its URL, else of its profile."""
        if url := self._environ.get("ESCROWCTL_BASE_URL"):
            return str(parse_base_url(url, source="ESCROWCTL_BASE_URL"))
        if name := self._environ.get("ESCROWCTL_PROFILE"):
            return str(parse_base_url(self._profile(name).base_url, source=f"profile {name}"))
        return None

    def _stored_key(self, choice: _Choice) -> _FoundKey | None:
        if choice.profile_name is None or choice.profile is None:
            return None
        if choice.profile.api_key_file:
            path = self._config_path.parent / Path(choice.profile.api_key_file).expanduser()
            source = f"api_key_file of profile {choice.profile_name}"
            return _FoundKey(read_key_file(path, source=source), source)
        path = self._folders.config / "credentials.toml"
        stored = read_stored_key(path, choice.profile_name)
        if stored is None or str(parse_base_url(stored.origin, source=str(path))) != str(choice.origin):
            return None
        return _FoundKey(stored.key, str(path))

    # What is wrong

    def _nothing_configured(self) -> EscrowctlError:
        has_key = "ESCROWCTL_API_KEY" in self._environ or "ESCROWCTL_API_KEY_FILE" in self._environ
        message = (
            "an API key is set, but no base URL: ESCROWCTL_BASE_URL should say where the key belongs."
            if has_key
            else "nothing is configured: no profile, no API key, no base URL."
        )
        return EscrowctlError(ErrorCode.NOT_CONFIGURED, f"{message} {NOTHING_SENT}", sending=Sending.NOT_SENT)

    def _no_key(self, choice: _Choice) -> EscrowctlError:
        return EscrowctlError(
            ErrorCode.KEY_MISSING,
            f"there is no API key for {choice.origin} (from {choice.source}). {NOTHING_SENT}",
            hint=(
                f"set ESCROWCTL_BASE_URL={choice.origin.base_url} and ESCROWCTL_API_KEY or ESCROWCTL_API_KEY_FILE",
                "a key is used only for the origin it was given for",
            ),
            sending=Sending.NOT_SENT,
        )

    def _unbound_key(self, choice: _Choice) -> EscrowctlError:
        return EscrowctlError(
            ErrorCode.KEY_MISSING,
            f"the environment has an API key but no base URL for it, and {choice.source} has its own "
            f"({choice.origin}): a key is used only for the origin it was given for. {NOTHING_SENT}",
            hint=(
                f"for the key in the environment:  set ESCROWCTL_BASE_URL, or ESCROWCTL_PROFILE={choice.profile_name}",
                "for the profile's own key:       unset ESCROWCTL_API_KEY and ESCROWCTL_API_KEY_FILE",
            ),
            sending=Sending.NOT_SENT,
        )

    # The rest

    def _timeouts(self, profile: "Profile | None") -> tuple[float, float]:
        if self._line.timeout is not None:
            one = check_timeout(self._line.timeout, source="--timeout")
        elif text := self._environ.get("ESCROWCTL_TIMEOUT"):
            one = parse_timeout(text, source="ESCROWCTL_TIMEOUT")
        elif profile and profile.timeout:
            one = profile.timeout
        else:
            return READ_TIMEOUT, WRITE_TIMEOUT
        return one, one


def parse_timeout(text: str, *, source: str) -> float:
    """Return seconds above 0 and up to an hour; raises EscrowctlError (exit 2) naming `source`."""
    try:
        seconds = float(text)
    except ValueError:
        raise bad_value(f'{source} "{text}" is not a number of seconds, such as 30.') from None
    return check_timeout(seconds, source=source)


def check_timeout(seconds: float, *, source: str) -> float:
    """Return `seconds` if they can bound an attempt."""
    if not 0 < seconds <= MAX_TIMEOUT:
        raise bad_value(f"{source} {seconds:g} is not above 0 and at most {MAX_TIMEOUT:g} seconds.")
    return seconds


def _is_live(choice: _Choice) -> bool:
    mode = choice.profile.mode if choice.profile else None
    return mode == "live" or (mode is None and not choice.origin.is_loopback)


def _with_profile(service: Service, profile: "Profile") -> Service:
    """Return the service with those fields that only a profile can set."""
    reply = profile.reply
    return replace(
        service,
        api_prefix=profile.api_prefix,
        read_only=profile.read_only,
        currencies=frozenset(profile.currencies),
        reference_field=profile.reference_field,
        pointers=Pointers(reply.id, reply.status, reply.amount, reply.currency),
        released=frozenset(word.casefold() for word in profile.status.released),
    )


def _contradiction(source: str, origin: Origin, profile: str, profile_origin: Origin) -> EscrowctlError:
    return bad_config(
        f"{source} points to {origin}, but profile {profile} is {profile_origin}: they cannot both be meant.",
        hint=f"leave one of them out: unset {source}" if source.startswith("ESCROWCTL") else "leave one of them out",
    )
