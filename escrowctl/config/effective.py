"""Every setting that applies to this command, and where each comes from."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from escrowctl.config.keys import Choice
from escrowctl.config.origin import find_network, find_proxy_name
from escrowctl.config.profiles import SETTINGS, find_default
from escrowctl.config.settings import LineValues, Resolver
from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.key_search import STARS
from escrowctl.errors import ErrorCode, EscrowctlError

if TYPE_CHECKING:
    from escrowctl.config.profiles import Profile

BUILT_IN = "built in"
_ELSEWHERE = frozenset({"base_url", "mode", "timeout", "journal_id"})
"""Settings of a profile that something else can outrank."""


class Setting(NamedTuple):
    """One setting: its value (None: not set), and where it comes from. The value of a key is stars."""

    name: str
    value: JsonValue
    origin: str


def list_settings(resolver: Resolver, line: LineValues, environ: Mapping[str, str]) -> list[Setting]:
    """Return the settings, the profile first; also those that are not set.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` for a config file that cannot be used, and for contradictions.
    """
    return list(_Effective(resolver, line, environ).settings())


def list_sandbox_settings(timeout: float | None) -> list[Setting]:
    """Return the settings of the built-in sandbox; no file and no variable changes them."""
    fixed: dict[str, JsonValue] = {"mode": "test", "status.released": ["released"]}
    timeouts = (timeout or 30.0, timeout or 60.0)
    return [
        Setting("profile", None, BUILT_IN),
        Setting("base_url", "(in this process)", "--sandbox"),
        Setting("api_key", STARS, "the sandbox's own store"),
        Setting("timeout", _seconds(timeouts), "--timeout" if timeout else BUILT_IN),
        *(
            Setting(name, fixed.get(name, as_json(find_default(name))), BUILT_IN)
            for name in SETTINGS
            if name not in ("base_url", "timeout")
        ),
        *(Setting(name, None, BUILT_IN) for name in ("ca_bundle", "proxy", "default_profile")),
    ]


class _Effective:
    def __init__(self, resolver: Resolver, line: LineValues, environ: Mapping[str, str]) -> None:
        self._resolver = resolver
        self._line = line
        self._environ = environ
        self._file = resolver.config_path
        self._choice = _choose(resolver)
        self._profile = self._choice.profile if self._choice else None

    def settings(self) -> Iterator[Setting]:
        """Yield them in the order in which they are shown."""
        config = self._resolver.config
        yield Setting("profile", self._choice.profile_name if self._choice else None, self._profile_origin())
        yield self._base_url()
        yield self._api_key()
        yield self._mode()
        yield self._timeout()
        for name in SETTINGS:
            if name not in _ELSEWHERE:
                yield self._of_profile(name)
        yield from self._journal_ids()
        yield from self._network()
        default = config.default_profile if config else None
        yield Setting("default_profile", default, str(self._file) if default else BUILT_IN)

    def _profile_origin(self) -> str:
        if self._choice is None or self._choice.profile_name is None:
            return BUILT_IN
        if self._line.profile is not None:
            return "--profile"
        return "ESCROWCTL_PROFILE" if self._environ.get("ESCROWCTL_PROFILE") else f"default_profile in {self._file}"

    def _base_url(self) -> Setting:
        choice = self._choice
        if choice is None:
            return Setting("base_url", None, BUILT_IN)
        by_url = choice.source in ("--base-url", "ESCROWCTL_BASE_URL")
        return Setting("base_url", choice.origin.base_url, choice.source if by_url else self._in_file())

    def _api_key(self) -> Setting:
        if self._choice is None:
            return Setting("api_key", None, BUILT_IN)
        try:
            return Setting("api_key", STARS, self._resolver.keys.find(self._choice).source)
        except EscrowctlError as error:
            return Setting("api_key", None, error.message)

    def _mode(self) -> Setting:
        if self._choice is None:
            return Setting("mode", None, BUILT_IN)
        mode = self._choice.mode
        if self._profile is not None and self._profile.mode is not None:
            return Setting("mode", mode, self._in_file())
        if self._choice.environ_mode is not None:
            return Setting("mode", mode, "ESCROWCTL_MODE")
        return Setting("mode", mode, BUILT_IN if mode == "live" else f"{BUILT_IN}, for loopback")

    def _timeout(self) -> Setting:
        value = _seconds(self._resolver.timeouts(self._profile))
        if self._line.timeout is not None:
            origin = "--timeout"
        else:
            origin = self._in_file() if self._profile is not None and self._profile.timeout else BUILT_IN
        return Setting("timeout", value, origin)

    def _of_profile(self, name: str) -> Setting:
        value, is_set = read_setting(self._profile, name)
        return Setting(name, value, self._in_file() if is_set else BUILT_IN)

    def _journal_ids(self) -> Iterator[Setting]:
        if environ := self._environ.get("ESCROWCTL_JOURNAL_ID"):
            yield Setting("journal_id", environ, "ESCROWCTL_JOURNAL_ID")
        own = self._of_profile("journal_id")
        if own.value is not None or not environ:
            yield own

    def _network(self) -> Iterator[Setting]:
        network = find_network(self._choice.origin, self._environ) if self._choice else None
        bundle = str(network.ca_bundle) if network and network.ca_bundle else None
        yield Setting("ca_bundle", bundle, "ESCROWCTL_CA_BUNDLE" if bundle else BUILT_IN)
        proxy = _without_password(network.proxy) if network and network.proxy else None
        yield Setting("proxy", proxy, (find_proxy_name(self._environ) or "") if proxy else BUILT_IN)

    def _in_file(self) -> str:
        return f"profile {self._choice.profile_name if self._choice else ''} in {self._file}"


def read_setting(profile: "Profile | None", name: str) -> tuple[JsonValue, bool]:
    """Return the value of a profile's setting, else the built-in one; and whether the profile sets it."""
    value: Any = profile
    is_set = profile is not None
    for part in name.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif value is not None:
            is_set = is_set and part in value.model_fields_set
            value = getattr(value, part)
    return (as_json(value), True) if is_set and value is not None else (as_json(find_default(name)), False)


def as_json(value: Any) -> JsonValue:
    """Return a setting's value as `--json` prints it."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return Number(f"{value:g}" if isinstance(value, float) else str(value))
        case Mapping():
            return {str(name): as_json(item) for name, item in value.items()}
        case _:
            return [as_json(item) for item in value]


def _choose(resolver: Resolver) -> Choice | None:
    try:
        return resolver.choose()
    except EscrowctlError as error:
        if error.code is ErrorCode.NOT_CONFIGURED:
            return None
        raise


def _seconds(timeouts: tuple[float, float]) -> JsonValue:
    read, write = timeouts
    return as_json(read) if read == write else {"read": as_json(read), "write": as_json(write)}


def _without_password(proxy: str) -> str:
    parts = urlsplit(proxy)
    return f"{parts.scheme}://{f'{STARS}@' if '@' in parts.netloc else ''}{parts.netloc.rpartition('@')[2]}"
