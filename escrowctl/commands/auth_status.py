"""`escrowctl auth status`: what is known here of each account, and whether its key is still taken."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from escrowctl.commands.key_check import try_key
from escrowctl.commands.login import refuse_sandbox
from escrowctl.config.keys import ENVIRONMENT, Choice, FoundKey
from escrowctl.config.settings import LineValues, Resolver
from escrowctl.config.variables import KEYS
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STORED, _SET, _TAKEN = "stored", "set", "taken by the service"
"""What is known of a key that can be used: where it is kept, or set in the environment; or that it was tried."""

_NONE = "-"
_COLUMNS = ("profile", "default", "base_url", "mode", "key", "state")
_SHOWN = ("base_url", "mode", "key_source", "state")


@dataclass(frozen=True, slots=True)
class _Row:
    """One account as it stands: where its key is, whether that can be used, and what the service said to it."""

    name: str
    default: bool = False
    base_url: str | None = None
    mode: str | None = None
    key_source: str | None = None
    state: str = _STORED
    choice: Choice | None = None
    found: FoundKey | None = None


def status(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Ask each service whether it takes the key.")] = False,
) -> None:
    """List the accounts, and where each key is.

    No key is ever shown. One that is there is called stored, in the environment set: whether the
    service takes it, only --check asks. A key that cannot be used says why.

    \b
    Examples:
      escrowctl auth status
      escrowctl -p acme-test auth status --check
    """
    session = session_of(context)
    refuse_sandbox(session)
    rows = list(_rows(session))
    if not rows:
        raise not_sent(
            ErrorCode.NOT_CONFIGURED,
            "nothing is configured: no profile, no API key, no base URL.",
            hint=f"{session.program} auth login",
        )
    if check:
        rows = [_checked(session, row) for row in rows]
    session.learn_stored_keys()
    session.console.show_listing(Listing(_COLUMNS, tuple(_view(session, row) for row in rows)))
    failed = [row.name for row in rows if row.state != _TAKEN]
    if check and failed:
        raise EscrowctlError(ErrorCode.CHECK_FAILED, f"{', '.join(failed)}: this cannot be used as it is.")


def _rows(session: Session) -> "Iterator[_Row]":
    """Yield the environment's account, the profiles, and the stored keys that no profile uses."""
    config, only = session.resolver.config, session.options.profile
    if only is not None:
        yield _row_of(session, only)
        return
    environ = session.surroundings.environ
    if any(environ.get(variable) for variable in ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", *KEYS)):
        yield _row_of_environment(session)
    profiles = config.profiles if config else {}
    for name in profiles:
        yield _row_of(session, name)
    for name in _stored_names(session):
        if name not in profiles:
            yield _unused(session, name)


def _row_of(session: Session, name: str) -> _Row:
    resolver = session.resolver
    default = resolver.config is not None and resolver.config.default_profile == name
    row = _Row(name, default=default)

    def look() -> _Row:
        choice = resolver.choose_profile(name)
        known = _chosen(row, choice)
        return _or_why_not(known, lambda: look_for_key(known, choice))

    def look_for_key(known: _Row, choice: Choice) -> _Row:
        found = resolver.keys.stored(choice)
        if found is not None:
            return _with_key(known, found)
        stored = resolver.credentials.find(name)
        elsewhere = f"the stored key is for {stored.origin}, and not used here" if stored else "no key"
        return replace(known, state=elsewhere)

    if resolver.config is None or name not in resolver.config.profiles:
        # A name that is not there is a mistake, not a state.
        resolver.choose_profile(name)
    return _or_why_not(row, look)


def _row_of_environment(session: Session) -> _Row:
    around = session.surroundings
    resolver = Resolver(LineValues(config=session.options.config), around.environ, session.folders)
    row = _Row("(environment)")

    def look() -> _Row:
        choice = resolver.choose()
        if choice.level != ENVIRONMENT:
            return replace(row, state="a key without a base URL: set ESCROWCTL_BASE_URL")
        known = _chosen(row, choice)
        return _or_why_not(known, lambda: _with_key(known, resolver.keys.find(choice)))

    return _or_why_not(row, look)


def _chosen(row: _Row, choice: Choice) -> _Row:
    return replace(row, base_url=choice.origin.base_url, mode=choice.mode, choice=choice)


def _with_key(row: _Row, found: FoundKey) -> _Row:
    state = _SET if found.source in KEYS else _STORED
    return replace(row, key_source=found.source, found=found, state=state)


def _unused(session: Session, name: str) -> _Row:
    stored = session.resolver.credentials.find(name)
    return _Row(
        name,
        base_url=stored.origin if stored else None,
        key_source=str(session.resolver.credentials.path),
        state=f"there is no such profile: {session.program} auth logout -p {name}",
    )


def _stored_names(session: Session) -> tuple[str, ...]:
    try:
        return session.resolver.credentials.names()
    except EscrowctlError as error:
        # Each profile's row says so too, if there are profiles.
        session.console.note("keys_unusable", _reason(error), word="warning", important=True)
        return ()


def _or_why_not(row: _Row, look: "Callable[[], _Row]") -> _Row:
    """Return what is found, or the row with what is wrong: a list of accounts is to be seen whole."""
    try:
        return look()
    except EscrowctlError as error:
        return replace(row, state=_reason(error))


def _checked(session: Session, row: _Row) -> _Row:
    if row.choice is None or row.found is None:
        return row
    profile = row.choice.profile
    try:
        try_key(
            session,
            row.found.key,
            name=row.name,
            origin=row.choice.origin,
            api_prefix=profile.api_prefix if profile else DEFAULT_API_PREFIX,
            live=row.choice.mode == "live",
            source=row.choice.source,
            profile=profile,
        )
    except EscrowctlError as error:
        return replace(row, state=_reason(error))
    return replace(row, state=_TAKEN)


def _view(session: Session, row: _Row) -> View:
    # A key may be in any of it by mistake.
    star = session.keys.star
    document: dict[str, JsonValue] = {
        "profile": star(row.name),
        "default": row.default,
        "base_url": star(row.base_url),
        "mode": row.mode,
        "key_source": star(row.key_source),
        "state": star(row.state),
    }
    cells = [document["profile"], "*" if row.default else "", *(document[name] or _NONE for name in _SHOWN)]
    return View(document, row.name, named=dict(zip(_COLUMNS, cells, strict=True)))


def _reason(error: EscrowctlError) -> str:
    return error.message.removesuffix(".")
