"""Find the account of a login: in options, the profile or the environment, or by questions at the terminal."""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import typer

from escrowctl.config.keys import KEY_VARIABLES
from escrowctl.config.origin import Origin, parse_base_url, refuse_double_prefix
from escrowctl.config.profiles import API_PREFIX_PATTERN, PROFILE_NAME_PATTERN, Profile
from escrowctl.config.settings import check_mode
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.redaction import star_possible_key
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_value, command
from escrowctl.session import Session, session_of

_T = TypeVar("_T")

OVERRIDING_VARIABLES = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *KEY_VARIABLES)
"""These environment variables override the default profile or its key."""

_MAX_ANSWERS = 3
_CORRECTABLE_CODES = (ErrorCode.BAD_VALUE, ErrorCode.BAD_CONFIG, ErrorCode.KEY_MISSING, ErrorCode.NOT_AUTHENTICATED)
_MAX_SHORT_LABEL_CHARS = 3
_MAX_LABEL_CHARS = 56


class LoginAccount(NamedTuple):
    """The account that a login stores as profile `name`. `url_source` names the source of the URL: `--base-url`."""

    name: str
    origin: Origin
    url_source: str
    mode: str
    api_prefix: str


class AccountFinder:
    """Finds the account of a login in options, the profile and the environment. Asks for missing values."""

    def __init__(self, session: Session, mode: str | None, api_prefix: str | None) -> None:
        self._session = session
        self._environ = session.runtime.environ
        self._mode = mode
        self._api_prefix = api_prefix
        self._profiles = session.resolver.profiles

    def find_account(self) -> LoginAccount:
        """Return the account. Raises `BAD_VALUE` or `BAD_CONFIG` for missing, invalid or contradictory values."""
        typed = self._session.options.profile
        name = typed if typed is not None else self._environ.get("ESCROWCTL_PROFILE") or None
        if name is not None:
            check_profile_name(name)
        if self._api_prefix is not None and not re.fullmatch(API_PREFIX_PATTERN, self._api_prefix):
            raise bad_value(f'--api-prefix "{self._api_prefix}" is not a path such as /api/v1.')
        profile = self._profiles.get(name) if name else None
        origin, source = self._pick_origin(profile)
        mode = self._pick_mode(profile)
        suggestion = f"local-{mode}"
        if not origin.is_loopback:
            # Such as `acme-test` for https://api.acme.com.
            long = [label for label in origin.host.split(".")[:-1] if len(label) > _MAX_SHORT_LABEL_CHARS]
            suggestion = f"{long[-1][:_MAX_LABEL_CHARS] if long else 'service'}-{mode}"
        if name is not None or self._session.prompt.obstacle:
            return self._make_account(name or suggestion, origin, source, mode)
        return self._ask_for(
            "-p NAME",
            f"Name for this profile (press Enter for {suggestion}):",
            lambda answer: self._make_account(answer or suggestion, origin, source, mode),
        )

    def _make_account(self, name: str, origin: Origin, source: str, mode: str) -> LoginAccount:
        check_profile_name(name)
        profile = self._profiles.get(name)
        prefix = self._pick_api_prefix(profile)
        account = LoginAccount(name, refuse_double_prefix(origin, prefix, source=source), source, mode, prefix)
        require_same_account(account, profile)
        return account

    def _pick_api_prefix(self, profile: Profile | None) -> str:
        if self._api_prefix is not None:
            return self._api_prefix
        return profile.api_prefix if profile else DEFAULT_API_PREFIX

    def _pick_origin(self, profile: Profile | None) -> tuple[Origin, str]:
        prefix = self._pick_api_prefix(profile)

        def parse_origin(text: str, source: str) -> tuple[Origin, str]:
            return refuse_double_prefix(parse_base_url(text, source=source), prefix, source=source), source

        if (typed := self._session.options.base_url) is not None:
            return parse_origin(typed, "--base-url")
        if profile is not None:
            return parse_origin(profile.base_url, "the profile's base_url")
        if url := self._environ.get("ESCROWCTL_BASE_URL"):
            return parse_origin(url, "ESCROWCTL_BASE_URL")
        question = "The base URL of the service, such as https://escrow.example.com:"
        return self._ask_for("--base-url URL", question, lambda answer: parse_origin(answer, "the base URL"))

    def _pick_mode(self, profile: Profile | None) -> str:
        if self._mode is not None:
            return check_mode(self._mode, name="--mode")
        if profile is not None and profile.mode is not None:
            return profile.mode
        if mode := self._environ.get("ESCROWCTL_MODE"):
            return check_mode(mode, name="ESCROWCTL_MODE")
        question = "Environment (test or live):"
        return self._ask_for("--mode MODE", question, lambda answer: check_mode(answer.lower(), name="the mode"))

    def _ask_for(self, option: str, question: str, parse: Callable[[str], _T]) -> _T:
        require_prompt(self._session, option)
        return ask_until_valid(self._session, lambda: self._session.prompt.ask(question), parse)


def auth_session(context: typer.Context) -> Session:
    """Return the session of an `auth` command. Raises `BAD_VALUE` with --sandbox: the sandbox has no keys."""
    session = session_of(context)
    if session.options.sandbox:
        raise bad_value("auth manages the API keys of real services: leave --sandbox out.")
    return session


def require_prompt(session: Session, missing: str) -> None:
    """Raise `BAD_VALUE` if escrowctl cannot ask questions. `missing` names the value that is needed."""
    if obstacle := session.prompt.obstacle:
        message = f"{missing} is missing, and escrowctl cannot ask for it: {obstacle}."
        raise bad_value(message, hint=command("auth login --help", bare=True))


def require_same_account(account: LoginAccount, profile: Profile | None) -> None:
    """Raise `BAD_VALUE` if `profile` has another URL or mode than `account`, or takes its API key from a file."""
    if profile is None:
        return
    name, url, mode = account.name, profile.origin.base_url, profile.mode or account.mode
    if (url, mode) != (account.origin.base_url, account.mode):
        raise bad_value(
            f"profile {name} is for {url} ({mode}): use another name for {account.origin.base_url} ({account.mode}).",
            hint=Hint(f"repeat the command with -p {name}-2", "to use another name"),
        )
    if profile.api_key_file is not None:
        message = f"profile {name} takes its key from the file {profile.api_key_file}: a stored key would not be used."
        raise bad_value(message, hint=command(f"config unset profiles.{name}.api_key_file", bare=True))


def ask_until_valid(session: Session, ask: Callable[[], str], parse: Callable[[str], _T]) -> _T:
    """Return the parsed answer. After an error that a new answer may fix, ask again: at most three questions."""
    for _ in range(_MAX_ANSWERS - 1):
        try:
            return parse(ask())
        except EscrowctlError as error:
            if error.code not in _CORRECTABLE_CODES:
                raise
            # The next question follows: the message is enough.
            session.console.error(EscrowctlError(error.code, error.message))
    return parse(ask())


def check_profile_name(name: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` for a name that a profile cannot have."""
    if not re.fullmatch(PROFILE_NAME_PATTERN, name):
        raise bad_value(
            f'"{star_possible_key(name)}" cannot be a profile name: '
            "write 1 to 64 letters, digits, hyphens and underscores."
        )


def note_environment_overrides(session: Session) -> None:
    """Write a note that names the `OVERRIDING_VARIABLES` that are set."""
    if found := [name for name in OVERRIDING_VARIABLES if session.runtime.environ.get(name)]:
        session.console.note("outranked", f"the environment overrides the default profile: {', '.join(found)}")
