"""The account of a login: its values, from the command line, the profile, the environment or the terminal."""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import typer

from escrowctl.config.keys import KEYS
from escrowctl.config.origin import Origin, parse_base_url, refuse_prefix
from escrowctl.config.profiles import API_PREFIX, PROFILE_NAME, Profile
from escrowctl.config.settings import check_mode
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.redaction import shown
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_value, command
from escrowctl.session import Session, session_of

_T = TypeVar("_T")

_MAX_ANSWERS = 3
_CORRECTABLE = (ErrorCode.BAD_VALUE, ErrorCode.BAD_CONFIG, ErrorCode.KEY_MISSING, ErrorCode.NOT_AUTHENTICATED)
_SHORT_LABEL = 3
_LONGEST_LABEL = 56


class LoginAccount(NamedTuple):
    """The account of a login: a service under a name. `mode` is test or live."""

    name: str
    origin: Origin
    url_source: str
    mode: str
    api_prefix: str


class Form:
    """The values of a login. Each comes from the line, the profile, the environment or a question."""

    def __init__(self, session: Session, mode: str | None, api_prefix: str | None) -> None:
        self._session = session
        self._environ = session.runtime.environ
        self._mode = mode
        self._api_prefix = api_prefix
        self._profiles = session.resolver.profiles

    def fill(self) -> LoginAccount:
        """Return the account. Raises EscrowctlError `ErrorCode.BAD_VALUE` or `BAD_CONFIG` for values that are
        missing, wrong or contradictory.
        """
        typed = self._session.options.profile
        name = typed if typed is not None else self._environ.get("ESCROWCTL_PROFILE") or None
        if name is not None:
            check_profile_name(name)
        if self._api_prefix is not None and not re.fullmatch(API_PREFIX, self._api_prefix):
            raise bad_value(f'--api-prefix "{self._api_prefix}" is not a path such as /api/v1.')
        known = self._profiles.get(name) if name else None
        origin, source = self._pick_origin(known)
        mode = self._pick_mode(known)
        if name is not None:
            return self._account(name, origin, source, mode)
        suggestion = suggest_name(origin, mode)
        if self._session.prompt.obstacle:
            return self._account(suggestion, origin, source, mode)
        return self._ask(
            "-p NAME",
            f"Name for this profile (press Enter for {suggestion}):",
            lambda answer: self._account(answer or suggestion, origin, source, mode),
        )

    def _account(self, name: str, origin: Origin, source: str, mode: str) -> LoginAccount:
        check_profile_name(name)
        known = self._profiles.get(name)
        prefix = self._pick_prefix(known)
        account = LoginAccount(name, refuse_prefix(origin, prefix, source=source), source, mode, prefix)
        require_same(account, known)
        return account

    def _pick_prefix(self, known: Profile | None) -> str:
        if self._api_prefix is not None:
            return self._api_prefix
        return known.api_prefix if known else DEFAULT_API_PREFIX

    def _pick_origin(self, known: Profile | None) -> tuple[Origin, str]:
        prefix = self._pick_prefix(known)

        def read(text: str, source: str) -> tuple[Origin, str]:
            return refuse_prefix(parse_base_url(text, source=source), prefix, source=source), source

        if (typed := self._session.options.base_url) is not None:
            return read(typed, "--base-url")
        if known is not None:
            return read(known.base_url, "the profile's base_url")
        if url := self._environ.get("ESCROWCTL_BASE_URL"):
            return read(url, "ESCROWCTL_BASE_URL")
        question = "The base URL of the service, such as https://escrow.example.com:"
        return self._ask("--base-url URL", question, lambda answer: read(answer, "the base URL"))

    def _pick_mode(self, known: Profile | None) -> str:
        if self._mode is not None:
            return check_mode(self._mode, name="--mode")
        if known is not None and known.mode is not None:
            return known.mode
        if mode := self._environ.get("ESCROWCTL_MODE"):
            return check_mode(mode, name="ESCROWCTL_MODE")
        question = "Environment (test or live):"
        return self._ask("--mode MODE", question, lambda answer: check_mode(answer.lower(), name="the mode"))

    def _ask(self, option: str, question: str, read: Callable[[str], _T]) -> _T:
        require_prompt(self._session, option)
        return ask_until(self._session, lambda: self._session.prompt.ask(question), read)


def auth_session(context: typer.Context) -> Session:
    """Return the session of an `auth` command. Raises `BAD_VALUE` with `--sandbox`, which has no keys to manage."""
    session = session_of(context)
    if session.options.sandbox:
        raise bad_value("auth manages the API keys of real services: leave --sandbox out.")
    return session


def require_prompt(session: Session, what: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE`, naming what is missing, if escrowctl cannot ask for it."""
    if absent := session.prompt.obstacle:
        why = f"{what} is missing, and escrowctl cannot ask for it: {absent}."
        raise bad_value(why, hint=command("auth login --help", bare=True))


def require_same(account: LoginAccount, profile: Profile | None) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` if a login would turn a profile into another account."""
    if profile is None:
        return
    name, url, mode = account.name, profile.origin.base_url, profile.mode or account.mode
    if (url, mode) != (account.origin.base_url, account.mode):
        raise bad_value(
            f"profile {name} is for {url} ({mode}): use another name for {account.origin.base_url} ({account.mode}).",
            hint=Hint(f"repeat the command with -p {name}-2", "to use another name"),
        )
    if profile.api_key_file is not None:
        raise bad_value(
            f"profile {name} takes its key from the file {profile.api_key_file}: a stored key would not be used.",
            hint=command(f"config unset profiles.{name}.api_key_file", bare=True),
        )


def ask_until(session: Session, ask: Callable[[], str], read: Callable[[str], _T]) -> _T:
    """Return the answer, parsed by `read`. If the answer can be corrected, ask again, up to three times."""
    for _ in range(_MAX_ANSWERS - 1):
        try:
            return read(ask())
        except EscrowctlError as error:
            if error.code not in _CORRECTABLE:
                raise
            # The next question follows: the message is enough.
            session.console.error(EscrowctlError(error.code, error.message), session.invocation)
    return read(ask())


def check_profile_name(name: str) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` for a name that a profile cannot have."""
    if not re.fullmatch(PROFILE_NAME, name):
        raise bad_value(
            f'"{shown(name)}" cannot be a profile name: write 1 to 64 letters, digits, hyphens and underscores.'
        )


def suggest_name(origin: Origin, mode: str) -> str:
    """Return a profile name, such as `acme-test` for https://api.acme.com: a guess at the registered label."""
    if origin.is_loopback:
        return f"local-{mode}"
    long = [label for label in origin.host.split(".")[:-1] if len(label) > _SHORT_LABEL]
    return f"{long[-1][:_LONGEST_LABEL] if long else 'service'}-{mode}"


def note_variables(session: Session) -> None:
    """Report which variables outrank the default profile, or its key."""
    names = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *KEYS)
    if found := [name for name in names if session.runtime.environ.get(name)]:
        session.console.note("outranked", f"the environment overrides the default profile: {', '.join(found)}")
