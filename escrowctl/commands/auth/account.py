"""The account of a login: its values, from the command line, the profile, the environment or the terminal."""

import re
import shlex
from collections.abc import Callable, Container
from typing import NamedTuple, TypeVar

from escrowctl.config.keys import KEYS
from escrowctl.config.origin import Origin, parse_base_url, refuse_prefix
from escrowctl.config.profiles import API_PREFIX, PROFILE_NAME, Profile
from escrowctl.config.settings import check_mode
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.contract.redaction import shown
from escrowctl.errors import ErrorCode, EscrowctlError, Hint, bad_value, command
from escrowctl.session import Session

_A = TypeVar("_A")
_T = TypeVar("_T")

_MAX_ANSWERS = 3
_MISTYPED = (ErrorCode.BAD_VALUE, ErrorCode.BAD_CONFIG, ErrorCode.KEY_MISSING)
_SHORT_LABEL = 3
_LONGEST_LABEL = 56


class LoginAccount(NamedTuple):
    """The account of a login: a service under a name. `mode` is test or live.

    `prefix_before`: the API prefix in the profile, which a typed one may replace; None for a new profile.
    """

    name: str
    origin: Origin
    url_source: str
    mode: str
    api_prefix: str
    prefix_before: str | None = None


class Form:
    """The values of a login. Each comes from the line, the profile, the environment or a question."""

    def __init__(self, session: Session, mode: str | None, api_prefix: str | None) -> None:
        self._session = session
        self._mode = mode
        self._api_prefix = api_prefix
        typed = session.options.profile
        self._name = typed if typed is not None else session.runtime.environ.get("ESCROWCTL_PROFILE") or None
        config = session.resolver.config
        self._profiles = config.profiles if config else {}

    def fill(self) -> LoginAccount:
        """Return the account. Raises EscrowctlError `ErrorCode.BAD_VALUE` or `BAD_CONFIG` for values that are
        missing, wrong or contradictory.
        """
        if self._name is not None:
            check_profile_name(self._name)
        if self._api_prefix is not None and not re.fullmatch(API_PREFIX, self._api_prefix):
            raise bad_value(f'--api-prefix "{self._api_prefix}" is not a path such as /api/v1.')
        known = self._profiles.get(self._name) if self._name else None
        origin, source = self._origin(known)
        mode = self._pick_mode(known)
        name = self._name or self._pick_name(origin, source, mode)
        account = self._account(name, origin, source, mode)
        require_same(account, self._profiles.get(name))
        return account

    def _account(self, name: str, origin: Origin, source: str, mode: str) -> LoginAccount:
        known = self._profiles.get(name)
        prefix = self._prefix(known)
        refuse_prefix(origin, prefix, source=source)
        return LoginAccount(name, origin, source, mode, prefix, known.api_prefix if known else None)

    def _prefix(self, known: Profile | None) -> str:
        if self._api_prefix is not None:
            return self._api_prefix
        return known.api_prefix if known else DEFAULT_API_PREFIX

    def _read_url(self, text: str, source: str, known: Profile | None) -> Origin:
        return refuse_prefix(parse_base_url(text, source=source), self._prefix(known), source=source)

    def _origin(self, known: Profile | None) -> tuple[Origin, str]:
        typed = self._session.options.base_url
        if typed is not None:
            return self._read_url(typed, "--base-url", known), "--base-url"
        if known is not None:
            source = f"profile {self._name}"
            return self._read_url(known.base_url, source, known), source
        environ = self._session.runtime.environ.get("ESCROWCTL_BASE_URL")
        if environ:
            return self._read_url(environ, "ESCROWCTL_BASE_URL", known), "ESCROWCTL_BASE_URL"
        self._require("--base-url URL")
        origin = ask_until(
            self._session,
            lambda: self._session.prompt.ask("The base URL of the service, such as https://escrow.example.com:"),
            lambda answer: self._read_url(answer, "the base URL", known),
        )
        return origin, "the typed URL"

    def _pick_mode(self, known: Profile | None) -> str:
        if self._mode is not None:
            return check_mode(self._mode, name="--mode")
        if known is not None and known.mode is not None:
            return known.mode
        if mode := self._session.runtime.environ.get("ESCROWCTL_MODE"):
            return check_mode(mode, name="ESCROWCTL_MODE")
        self._require("--mode test or --mode live")
        return ask_until(
            self._session,
            lambda: self._session.prompt.ask("Environment (test or live):"),
            lambda answer: check_mode(answer.lower(), name="the mode"),
        )

    def _pick_name(self, origin: Origin, source: str, mode: str) -> str:
        suggestion = suggest_name(origin, mode)
        if self._session.prompt.obstacle:
            return suggestion

        def read(answer: str) -> str:
            name = answer or suggestion
            check_profile_name(name)
            require_same(self._account(name, origin, source, mode), self._profiles.get(name))
            return name

        return ask_until(
            self._session,
            lambda: self._session.prompt.ask(f"Name for this profile (press Enter for {suggestion}):"),
            read,
        )

    def _require(self, what: str) -> None:
        absent = self._session.prompt.obstacle
        if absent:
            raise bad_value(
                f"{what} is missing, and escrowctl cannot ask for it: {absent}.",
                hint=command("auth login --help", bare=True),
            )


def refuse_sandbox(session: Session) -> None:
    """Raise EscrowctlError `ErrorCode.BAD_VALUE` with `--sandbox`, which has no keys to manage."""
    if session.options.sandbox:
        raise bad_value("auth manages the API keys of real services: leave --sandbox out.")


def require_same(account: LoginAccount, profile: Profile | None) -> None:
    """Refuse to turn an existing profile into another account: its key would be lost.

    Raises EscrowctlError `ErrorCode.BAD_VALUE`, also if another process changed the profile's prefix since
    `Form.fill`.
    """
    if profile is None:
        return
    name, origin, mode = account.name, account.origin, account.mode
    other = Hint(f"repeat the command with -p {name}-2", "to use another name")
    existing = parse_base_url(profile.base_url, source=f"profiles.{name}.base_url")
    if existing.base_url != origin.base_url:
        raise bad_value(
            f"profile {name} already has the base URL {existing.base_url}: use another name for {origin.base_url}.",
            hint=(
                other,
                command(
                    f"config set profiles.{name}.base_url {shlex.quote(origin.base_url)}",
                    f"or to change profile {name}",
                    bare=True,
                ),
            ),
        )
    if profile.mode is not None and profile.mode != mode:
        raise bad_value(
            f"profile {name} is already a {profile.mode} profile: use another name for a {mode} profile.",
            hint=(other, command(f"config set profiles.{name}.mode {mode}", f"or to change profile {name}", bare=True)),
        )
    if profile.api_key_file is not None:
        raise bad_value(
            f"profile {name} takes its key from the file {profile.api_key_file}: a stored key would not be used.",
            hint=command(f"config unset profiles.{name}.api_key_file", bare=True),
        )
    if profile.api_prefix not in (account.api_prefix, account.prefix_before):
        raise bad_value(
            f"profile {name} now has the API prefix {profile.api_prefix}, but this login used {account.api_prefix}: "
            "log in again."
        )


def ask_until(
    session: Session, ask: Callable[[], _A], read: Callable[[_A], _T], *, again: Container[ErrorCode] = _MISTYPED
) -> _T:
    """Return the answer, parsed by `read`. If `read` raises a code in `again`, ask again, up to three times."""
    for _ in range(_MAX_ANSWERS - 1):
        try:
            return read(ask())
        except EscrowctlError as error:
            if error.code not in again:
                raise
            # For a typing mistake the message is enough: no hint.
            hints = () if error.code in _MISTYPED else error.hints
            session.console.error(EscrowctlError(error.code, error.message, hint=hints), session.invocation)
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
    labels = origin.host.split(".")[:-1]
    if not labels or origin.host.replace(".", "").isdigit() or ":" in origin.host:
        return f"service-{mode}"
    long = [label for label in labels if len(label) > _SHORT_LABEL]
    return f"{(long or labels)[-1][:_LONGEST_LABEL]}-{mode}"


def note_variables(session: Session) -> None:
    """Report which variables outrank the default profile, or its key."""
    names = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *KEYS)
    found = [name for name in names if session.runtime.environ.get(name)]
    if found:
        session.console.note("outranked", f"the environment overrides the default profile: {', '.join(found)}")
