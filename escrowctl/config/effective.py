"""List every setting that applies to a command, each with its source."""

from typing import NamedTuple

from escrowctl.config.editing import find_value
from escrowctl.config.origin import find_network, find_proxy_variable, hide_userinfo
from escrowctl.config.profiles import SETTINGS, Profile, find_default
from escrowctl.config.service import READ_TIMEOUT, RELEASED_ENV, WRITE_TIMEOUT
from escrowctl.config.settings import ServiceChoice, ServiceResolver, check_timeout
from escrowctl.contract.json import JsonValue, as_json
from escrowctl.contract.redaction import STARS
from escrowctl.errors import EscrowctlError

BUILT_IN = "built in"
_SETTING_NAMES = dict.fromkeys(
    ("profile", "base_url", "api_key", "mode", "timeout", *SETTINGS, "ca_bundle", "proxy", "default_profile")
)
"""Every setting once, in the order of the list."""

_FoundSettings = dict[str, tuple[JsonValue, str]]
"""Name of a setting -> its value and its source."""


class Setting(NamedTuple):
    """A setting's name; its value (None: not set; stars: an API key); its origin, the source of the value."""

    setting: str
    value: JsonValue
    origin: str


def list_settings(resolver: ServiceResolver) -> list[Setting]:
    """Return all settings, including those that are not set. The first is the name of the profile.

    Raises EscrowctlError `ErrorCode.BAD_CONFIG` for an unusable config file, and for contradictory settings.
    """
    options, environ = resolver.options, resolver.environ
    choice, file = resolver.choose_if_configured(), str(resolver.config_path)
    profile = choice.profile if choice else None
    in_file = f"profile {choice.profile_name if choice else ''} in {file}"
    in_profile = {name: read_setting(profile, name) for name in SETTINGS}
    found: _FoundSettings = {name: (value, in_file) for name, (value, is_set) in in_profile.items() if is_set}
    if choice is not None:
        found |= _find_service_settings(resolver, choice, in_file)
        if choice.profile_name is not None:
            unnamed = "ESCROWCTL_PROFILE" if environ.get("ESCROWCTL_PROFILE") else f"default_profile in {file}"
            found["profile"] = choice.profile_name, "--profile" if options.profile is not None else unnamed
        network = find_network(choice.origin, environ)
        if network.ca_bundle:
            found["ca_bundle"] = str(network.ca_bundle), "ESCROWCTL_CA_BUNDLE"
        if network.proxy:
            found["proxy"] = hide_userinfo(network.proxy), find_proxy_variable(environ) or ""
    timeout_source = "--timeout" if options.timeout is not None else in_file if "timeout" in found else BUILT_IN
    found["timeout"] = _encode_timeouts(resolver.find_timeouts(profile)), timeout_source
    if resolver.config is not None and resolver.config.default_profile:
        found["default_profile"] = resolver.config.default_profile, file
    for name, variable in (("journal_id", "ESCROWCTL_JOURNAL_ID"), ("journal", "ESCROWCTL_JOURNAL")):
        if value := environ.get(variable):
            found[name] = value, variable
    return _add_defaults(found)


def list_sandbox_settings(timeout: float | None) -> list[Setting]:
    """Return the settings of the built-in sandbox. `timeout` is from `--timeout`; all other settings are fixed."""
    timeouts = check_timeout(timeout) or READ_TIMEOUT, timeout or WRITE_TIMEOUT
    found: _FoundSettings = {
        "base_url": ("(in this process)", "--sandbox"),
        "api_key": (STARS, "the sandbox's own store"),
        "mode": ("test", BUILT_IN),
        "timeout": (_encode_timeouts(timeouts), "--timeout" if timeout else BUILT_IN),
        "status.released": (["released"], BUILT_IN),
        "retry_throttled": (True, BUILT_IN),
    }
    return _add_defaults(found)


def _add_defaults(found: _FoundSettings) -> list[Setting]:
    return [Setting(name, *found.get(name, (as_json(find_default(name)), BUILT_IN))) for name in _SETTING_NAMES]


def _find_service_settings(resolver: ServiceResolver, choice: ServiceChoice, in_file: str) -> _FoundSettings:
    by_url = choice.source in ("--base-url", "ESCROWCTL_BASE_URL")
    found: _FoundSettings = {"base_url": (choice.origin.base_url, choice.source if by_url else in_file)}
    try:
        found["api_key"] = STARS, resolver.find_key(choice).source
    except EscrowctlError as error:
        found["api_key"] = None, error.message
    if choice.profile is None or choice.profile.mode is None:
        default_source = BUILT_IN if choice.mode == "live" else f"{BUILT_IN}, for loopback"
        found["mode"] = choice.mode, default_source if choice.environ_mode is None else "ESCROWCTL_MODE"
    if choice.environ_released:
        found["status.released"] = as_json(choice.environ_released), RELEASED_ENV
    return found


def read_setting(profile: Profile | None, name: str) -> tuple[JsonValue, bool]:
    """Return a setting's value, from the profile or built in, and whether the profile sets the setting."""
    value = find_value(profile.model_dump(exclude_unset=True), name.split(".")) if profile else None
    return (as_json(find_default(name)), False) if value is None else (as_json(value), True)


def _encode_timeouts(timeouts: tuple[float, float]) -> JsonValue:
    read, write = timeouts
    return as_json(read) if read == write else {"read": as_json(read), "write": as_json(write)}
