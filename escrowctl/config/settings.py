"""Find the one service that the command line, the environment and the config file name.

The command line and its profile come first, then the environment, then the default profile. A key is used only
for the origin that it was given for.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from escrowctl.config.file import CONFIG_NAME, parse_toml, read_text, require_trusted, validate_config
from escrowctl.config.folders import Folders
from escrowctl.config.keys import KEY_VARIABLES, FoundKey, read_environ_key, read_key_file, refuse_key_in_url
from escrowctl.config.origin import Origin, find_network, parse_base_url, refuse_double_prefix
from escrowctl.config.service import MAX_TIMEOUT, READ_TIMEOUT, WRITE_TIMEOUT, Service, WebhookSettings, read_released
from escrowctl.contract.json import Number
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.record import Pointers
from escrowctl.contract.redaction import star_possible_key
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_config, bad_value, command, not_sent

if TYPE_CHECKING:
    from escrowctl.config.credentials import Credentials
    from escrowctl.config.profiles import ConfigFile, Profile
    from escrowctl.journal_url import JournalUrl

MODES = ("test", "live")
COMMAND_LINE, ENVIRONMENT, DEFAULT_PROFILE = "the command line", "the environment", "the default profile"
"""What can choose a service (a choice's `level`), the strongest first."""


class ServiceChoice(NamedTuple):
    """The chosen service. `source` is the option, variable or profile that names the service.

    `level` says what chose it: COMMAND_LINE, ENVIRONMENT or DEFAULT_PROFILE. `environ_mode` and `environ_released` are
    the values of ESCROWCTL_MODE and ESCROWCTL_STATUS_RELEASED; None if not set, or with `-p`.
    """

    level: str
    origin: Origin
    source: str
    profile_name: str | None
    profile: "Profile | None"
    environ_mode: str | None = None
    environ_released: list[str] | None = None

    @property
    def identity(self) -> str:
        """The name under which the journal records writes: the profile's `service_id`, else the origin."""
        return (self.profile.service_id if self.profile else None) or str(self.origin)

    @property
    def mode(self) -> str:
        """`live` or `test`: from the profile, else ESCROWCTL_MODE; else test for loopback, live for other hosts."""
        named = (self.profile.mode if self.profile else None) or self.environ_mode
        return named or ("test" if self.origin.is_loopback else "live")


class ServiceOptions(NamedTuple):
    """The values of the command-line options about the service; None for an option that is not given."""

    profile: str | None = None
    base_url: str | None = None
    config: str | None = None
    timeout: float | None = None


class ServiceResolver:
    """Finds the service of one run; reads config.toml at most once.

    Every method may raise EscrowctlError: `ErrorCode.NOT_CONFIGURED` if nothing is configured; `KEY_MISSING` if no
    key is found; `BAD_CONFIG` or `BAD_VALUE` for wrong or conflicting values; `STATE_UNUSABLE` for bad folders.
    """

    def __init__(self, options: ServiceOptions, environ: Mapping[str, str], folders: Folders) -> None:
        self.options = options
        self.environ = environ
        self._folders = folders

    @property
    def config_path(self) -> Path:
        """The path of config.toml: as `--config` or ESCROWCTL_CONFIG names it, else in the config folder."""
        named = self.options.config or self.environ.get("ESCROWCTL_CONFIG")
        return Path(named).absolute() if named else self._folders.config / CONFIG_NAME

    @cached_property
    def credentials(self) -> "Credentials":
        """The keys that `auth login` stored."""
        from escrowctl.config.credentials import Credentials  # noqa: PLC0415 - not needed for a key in the environment

        return Credentials(self._folders.config, self.environ)

    @cached_property
    def config(self) -> "ConfigFile | None":
        """The content of config.toml; None if there is no file."""
        text = read_text(self.config_path)
        return None if text is None else validate_config(self.config_path, parse_toml(self.config_path, text))

    @property
    def profiles(self) -> "Mapping[str, Profile]":
        """The profiles of config.toml by name; empty if there is no file."""
        return self.config.profiles if self.config else {}

    def build_service(self, choice: ServiceChoice, found: FoundKey) -> Service:
        """Return the chosen service with its settings and the key `found`."""
        profile = choice.profile
        read_timeout, write_timeout = self.find_timeouts(profile)
        service = Service(
            name=choice.profile_name or choice.origin.host,
            profile=choice.profile_name,
            origin=choice.origin,
            identity=choice.identity,
            key=found.key,
            url_source=choice.source,
            key_source=found.source,
            live=choice.mode == "live",
            read_timeout=read_timeout,
            write_timeout=write_timeout,
            network=find_network(choice.origin, self.environ),
        )
        if profile is not None:
            service = service._replace(
                api_prefix=profile.api_prefix,
                read_only=profile.read_only,
                caps={currency: Number(str(cap)) for currency, cap in profile.caps.items()},
                account=profile.account,
                currencies=frozenset(profile.currencies),
                reference_field=profile.reference_field,
                idempotency=profile.idempotency,
                retry_throttled=profile.retry_throttled,
                pointers=Pointers(**profile.reply.model_dump()),
                released=_fold_all(profile.status.released),
                failed=_fold_all(profile.status.failed),
                pending=_fold_all(profile.status.pending),
                webhooks=WebhookSettings(**profile.webhook.model_dump()),
            )
        return service._replace(released=_fold_all(choice.environ_released)) if choice.environ_released else service

    def choose(self) -> ServiceChoice:
        """Return the service that the command line, environment or default profile names, without its key."""
        choice = self._choose_by_precedence()
        if choice.level == COMMAND_LINE and choice.profile is not None:
            return choice
        released, mode = read_released(self.environ), self.environ.get("ESCROWCTL_MODE") or None
        own_mode = choice.profile.mode if choice.profile else None
        if mode is not None:
            check_mode(mode, name="ESCROWCTL_MODE")
            if own_mode not in (None, mode):
                message = f"ESCROWCTL_MODE is {mode}, but profile {choice.profile_name} has mode {own_mode}."
                raise bad_config(message, hint="unset ESCROWCTL_MODE")
        return choice._replace(environ_mode=mode, environ_released=released)

    def choose_if_configured(self) -> ServiceChoice | None:
        """Return the service without its key, as `choose` does; None if nothing is configured."""
        try:
            return self.choose()
        except EscrowctlError as error:
            if error.code is ErrorCode.NOT_CONFIGURED:
                return None
            raise

    def _choose_by_precedence(self) -> ServiceChoice:
        options, environ = self.options, self.environ
        # An empty variable is the same as none; an empty word on the command line is a mistake.
        env_profile, env_url = environ.get("ESCROWCTL_PROFILE") or None, environ.get("ESCROWCTL_BASE_URL") or None
        is_url_only = bool(options.base_url or env_url) and not (options.profile or env_profile)
        try:
            if self.config is None and (options.config or environ.get("ESCROWCTL_CONFIG")):
                raise bad_config(f"{self.config_path}: there is no such file.")
        except EscrowctlError as error:
            if not (is_url_only and error.code is ErrorCode.STATE_UNUSABLE):
                raise
        if options.base_url is not None:
            return self._choose_by_url(COMMAND_LINE, options.base_url, "--base-url", options.profile)
        if options.profile is not None:
            if env_url:
                # Raises if the URL contradicts the profile.
                self._choose_by_url(COMMAND_LINE, env_url, "ESCROWCTL_BASE_URL", options.profile)
            return self.choose_profile(options.profile)
        if env_url:
            return self._choose_by_url(ENVIRONMENT, env_url, "ESCROWCTL_BASE_URL", env_profile)
        if env_profile:
            return self.choose_profile(env_profile, level=ENVIRONMENT, source=f"ESCROWCTL_PROFILE ({env_profile})")
        if self.config is not None and self.config.default_profile:
            name = self.config.default_profile
            return self.choose_profile(name, level=DEFAULT_PROFILE, source=f"default profile {name}")
        nothing = "nothing is configured: no profile, no API key, no base URL."
        only_key = "an API key is set, but no base URL: set ESCROWCTL_BASE_URL to the URL of the key's service."
        raise not_sent(ErrorCode.NOT_CONFIGURED, only_key if environ.keys() & KEY_VARIABLES else nothing)

    def _choose_by_url(self, level: str, url: str, source: str, profile_name: str | None) -> ServiceChoice:
        profile = self._require_profile(profile_name) if profile_name is not None else None
        prefix = profile.api_prefix if profile else DEFAULT_API_PREFIX
        origin = refuse_double_prefix(parse_base_url(url, source=source), prefix, source=source)
        if profile is not None and str(profile.origin) != str(origin):
            raise bad_config(
                f"{source} points to {origin}, but profile {profile_name} has the base URL {profile.origin}: "
                "use only one of them.",
                hint=f"unset {source}" if source.startswith("ESCROWCTL") else (),
            )
        return ServiceChoice(level, origin, source, profile_name, profile)

    def find_profile_name(self) -> str | None:
        """Return the profile name in the command line, environment or config.toml. The profile may not exist."""
        if self.options.profile is not None:
            return self.options.profile
        return self.environ.get("ESCROWCTL_PROFILE") or (self.config.default_profile if self.config else None)

    def choose_profile(self, name: str, *, level: str = COMMAND_LINE, source: str = "") -> ServiceChoice:
        """Return a profile's service, named by `level` and `source`. Raises `BAD_CONFIG` for an unknown profile."""
        profile = self._require_profile(name)
        return ServiceChoice(level, profile.origin, source or f"--profile {name}", name, profile)

    def find_required_journal_ids(self) -> tuple[tuple[str, str], ...]:
        """Return each id that the journal's id must equal, with the source of the id. Empty for a test service."""
        choice = self._choose_for_journal()
        if choice is not None and choice.mode != "live":
            return ()
        # An empty id is required too: in a job, the variable with its value may be missing.
        pins = [(self.environ.get("ESCROWCTL_JOURNAL_ID"), "ESCROWCTL_JOURNAL_ID")]
        if choice is not None and choice.profile is not None:
            pins.append((choice.profile.journal_id, f"journal_id of profile {choice.profile_name}"))
        return tuple((pin, source) for pin, source in pins if pin is not None)

    def find_shared_journal(self) -> "tuple[JournalUrl, float] | None":
        """Return the URL of the shared journal, from the profile or ESCROWCTL_JOURNAL, and the seconds for a write.

        None: the journal is this machine's own. Raises `ErrorCode.BAD_VALUE` if both name one and they differ, or if
        the variable is not such a URL.
        """
        named, choice = self.environ.get("ESCROWCTL_JOURNAL"), self._choose_for_journal()
        in_profile = choice.profile.journal if choice is not None and choice.profile is not None else None
        if named is not None and in_profile not in (None, named):
            where = f"profile {choice.profile_name}" if choice is not None else "the profile"
            message = f"ESCROWCTL_JOURNAL and the journal of {where} differ: unset the variable, or make them equal."
            raise bad_value(message)
        # An empty variable is not a URL: a job whose variable is missing must not use a journal of its own.
        if (found := named if named is not None else in_profile) is None:
            if choice is not None and choice.profile is None and (name := self._find_journal_profile(choice.origin)):
                message = f"profile {name} has a shared journal for {choice.origin}, which this command would not use"
                raise bad_value(f"{message}: set ESCROWCTL_PROFILE={name}, or ESCROWCTL_JOURNAL to its URL.")
            return None
        from escrowctl.journal_url import parse_journal_url  # noqa: PLC0415 - most journals are on this machine

        try:
            return parse_journal_url(found), self.find_timeouts(choice.profile if choice is not None else None)[1]
        except ValueError as error:
            raise bad_value(f"ESCROWCTL_JOURNAL {error}.") from error

    def _find_journal_profile(self, origin: Origin) -> str | None:
        """Return the name of a profile of this service that has a shared journal, or None."""
        with suppress(EscrowctlError):  # a config file that cannot be read is not needed for a URL
            shared = (name for name, one in self.profiles.items() if one.journal is not None)
            return next((name for name in shared if str(self.profiles[name].origin) == str(origin)), None)
        return None

    def _choose_for_journal(self) -> ServiceChoice | None:
        """Return the choice of `choose_if_configured`; None also for a profile that exists in the journal alone."""
        name = self.options.profile
        return None if name is not None and name not in self.profiles else self.choose_if_configured()

    def find_key(self, choice: ServiceChoice) -> FoundKey:
        """Return the key for the chosen origin, from the environment or from the profile.

        The environment comes first. If the command line chose the service, the profile comes first.
        """
        if choice.profile is not None:
            require_trusted(self.config_path)
        environ_key = self._find_environ_key(choice)
        own_key = self.find_profile_key(choice) if environ_key is None or choice.level == COMMAND_LINE else None
        found = own_key or environ_key
        if found is None:
            url = choice.origin.base_url
            service_option = f"-p {choice.profile_name}" if choice.profile_name else f"--base-url {url}"
            use_variable = f"in a CI job: set ESCROWCTL_BASE_URL={url} and ESCROWCTL_API_KEY"
            if unused := next((name for name in KEY_VARIABLES if self.environ.get(name)), None):
                use_variable = f"if the key in {unused} is for {choice.origin}: export ESCROWCTL_BASE_URL={url}"
            stored = self.credentials.find(choice.profile_name) if choice.profile_name else None
            elsewhere = f"; the stored key is for {stored.origin}" if stored else ""
            message = f"there is no API key for {choice.origin} (the base URL from {choice.source}){elsewhere}."
            hint = (command(f"auth login {service_option}", "to store a key", bare=True), use_variable)
            raise not_sent(ErrorCode.KEY_MISSING, message, hint=hint)
        refuse_key_in_url(choice.origin.base_url, found.key.reveal(), source=choice.source)
        return found

    def find_profile_key(self, choice: ServiceChoice) -> FoundKey | None:
        """Return the chosen profile's key, from its `api_key_file` or from `auth login`; None if it has no key.

        Raises `ErrorCode.BAD_CONFIG` if other users can change config.toml: they could redirect the key.
        """
        if choice.profile_name is None or choice.profile is None:
            return None
        require_trusted(self.config_path)
        if named := choice.profile.api_key_file:
            source = f"api_key_file of profile {choice.profile_name}"
            try:
                path = self.config_path.parent / Path(named).expanduser()
            except RuntimeError:
                raise bad_config(f"{source}: the home folder in {named} is unknown.") from None
            return FoundKey(read_key_file(path, source=source), f"{source} ({path})")
        stored = self.credentials.find(choice.profile_name)
        if stored is None or stored.origin != str(choice.origin):
            return None
        source = "the keyring" if stored.key is None else str(self.credentials.path)
        return FoundKey(self.credentials.reveal(stored), source)

    def _find_environ_key(self, choice: ServiceChoice) -> FoundKey | None:
        """Return the environment's key if it is for the chosen origin; None if the environment has no key.

        For a different or unknown origin: None if the command line chose the service, else raises `KEY_MISSING`.
        """
        key = read_environ_key(self.environ)
        if key is None or self._find_environ_origin() == str(choice.origin):
            return key
        if choice.level != COMMAND_LINE:
            by_profile = self.options.config is None
            assignment = f"PROFILE={choice.profile_name}" if by_profile else f"BASE_URL={choice.origin.base_url}"
            raise not_sent(
                ErrorCode.KEY_MISSING,
                f"the environment has an API key without ESCROWCTL_BASE_URL, and {choice.source} has the base URL "
                f"{choice.origin}: escrowctl cannot tell if the key is for this URL.",
                hint=(
                    Hint(f"export ESCROWCTL_{assignment}", f"if the key in the environment is for {choice.origin}"),
                    Hint("unset ESCROWCTL_API_KEY ESCROWCTL_API_KEY_FILE", "to use the key of the profile"),
                ),
            )
        return None

    def _find_environ_origin(self) -> str | None:
        """Return the origin of ESCROWCTL_BASE_URL, else of the profile ESCROWCTL_PROFILE; None if neither is set.

        The environment's key is for this origin. The profile does not count if `--config` names its file.
        """
        if url := self.environ.get("ESCROWCTL_BASE_URL"):
            return str(parse_base_url(url, source="ESCROWCTL_BASE_URL"))
        name = self.environ.get("ESCROWCTL_PROFILE")
        return str(self._require_profile(name).origin) if name and self.options.config is None else None

    def _require_profile(self, name: str) -> "Profile":
        if name in self.profiles:
            return self.profiles[name]
        listing = f"the profiles are: {', '.join(sorted(self.profiles))}" if self.profiles else "it has no profiles"
        raise bad_config(f'there is no profile "{star_possible_key(name)}" in {self.config_path} ({listing}).')

    def find_timeouts(self, profile: "Profile | None") -> tuple[float, float]:
        """Return the seconds for one attempt of a read, and of a write."""
        timeout = check_timeout(self.options.timeout) or (profile.timeout if profile else None)
        return timeout or READ_TIMEOUT, timeout or WRITE_TIMEOUT


def check_timeout(seconds: float | None) -> float | None:
    """Return `seconds`, the value of `--timeout`. Raises `ErrorCode.BAD_VALUE` for 0 or less, or over an hour."""
    if seconds is not None and not 0 < seconds <= MAX_TIMEOUT:
        raise bad_value(f"--timeout {seconds:g} is out of range: above 0, at most {MAX_TIMEOUT:g} seconds.")
    return seconds


def check_mode(text: str, *, name: str) -> str:
    """Return `text` if it is test or live; else raise `ErrorCode.BAD_VALUE`, which quotes `name`."""
    if text not in MODES:
        raise bad_value(f'{name} "{star_possible_key(text)}" is neither test nor live.')
    return text


def _fold_all(statuses: list[str]) -> frozenset[str]:
    return frozenset(status.casefold() for status in statuses)
