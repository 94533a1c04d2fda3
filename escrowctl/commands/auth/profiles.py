"""`escrowctl auth status`, `switch` and `logout`: list the accounts, choose the default, and remove keys."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer

from escrowctl.commands.auth import account
from escrowctl.config.editing import ConfigEditor
from escrowctl.config.keys import KEY_VARIABLES, FoundKey
from escrowctl.config.settings import ENVIRONMENT, ServiceChoice, ServiceOptions, ServiceResolver
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import LIST_WEBHOOKS
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command, not_sent
from escrowctl.output.view import Listing, View
from escrowctl.session import Session

_ACCEPTED = "accepted by the service"
_COLUMNS = ("profile", "default", "base_url", "mode", "key", "state")


class _AccountRow(NamedTuple):
    """A row of `auth status`. `state`: whether the key is stored, set or accepted, or why the key is unusable."""

    name: str
    state: str
    default: bool = False
    base_url: str | None = None
    mode: str | None = None
    key_source: str | None = None
    choice: ServiceChoice | None = None
    found: FoundKey | None = None


def status(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Ask each service whether it accepts the key.")] = False,
) -> None:
    """List the accounts, and where each key is.

    Only the last four characters of a key are shown. The column STATE says stored, set (in the
    environment), or why the key cannot be used. Only --check asks the service.

    \b
    Examples:
      escrowctl auth status
      escrowctl -p acme-test auth status --check
    """
    session = account.auth_session(context)
    rows = list(_list_rows(session))
    if not rows:
        message = "nothing is configured: no profile, no API key, no base URL."
        raise not_sent(ErrorCode.NOT_CONFIGURED, message, hint=command("auth login", bare=True))
    if check:
        rows = [_check_row(session, row) for row in rows]
    session.learn_stored_keys()
    star, views = session.keys.star, []
    for row in rows:
        # Each value may contain a key by mistake.
        document: dict[str, JsonValue] = {
            "profile": star(row.name),
            "default": row.default,
            "base_url": star(row.base_url),
            "mode": row.mode,
            "key_source": star(row.key_source),
            "key_end": row.found.key.last_four if row.found else None,
            "state": star(row.state),
        }
        key = f"...{document['key_end']} in {document['key_source']}" if document["key_end"] else document["key_source"]
        cells = {name: document.get(name) or "-" for name in _COLUMNS}
        named: dict[str, JsonValue] = {**cells, "default": "*" if row.default else "", "key": key or "-"}
        views.append(View(document, row.name, named=named))
    session.console.show_listing(Listing(_COLUMNS, tuple(views)))
    failed = [row.name for row in rows if row.state != _ACCEPTED]
    if check and failed:
        message = f"profiles with problems: {', '.join(failed)}. The column state says why."
        raise EscrowctlError(ErrorCode.CHECK_FAILED, message)


def logout(
    context: typer.Context,
    all_profiles: Annotated[bool, typer.Option("--all", help="Remove the keys of all profiles.")] = False,
) -> None:
    """Remove a stored key; the profile remains.

    \b
    Examples:
      escrowctl auth logout -p acme-test
      escrowctl auth logout --all
    """
    session = account.auth_session(context)
    resolver = session.resolver
    if all_profiles:
        names = sorted(resolver.credentials.read())
        if session.options.profile is not None:
            raise bad_value("--all removes the keys of all profiles: leave out -p.")
        if not names:
            session.console.note("no_key", "no key is stored, so none was removed")
    else:
        name = resolver.find_profile_name()
        if name is None:
            raise bad_value("no profile is chosen: name one with -p NAME.", hint=command("auth status", bare=True))
        names = [name]
    for name in names:
        stored = resolver.credentials.find(name)
        profile = resolver.profiles.get(name)
        if stored is None and profile is None:
            resolver.choose_profile(name)
        if stored is None:
            session.console.note("no_key", f"no key is stored for profile {name}, so none was removed")
        else:
            resolver.credentials.remove(stored, session.runtime)
            where = "the keyring" if stored.key is None else resolver.credentials.path
            removed = f"the key of profile {name} for {stored.origin}, from {where}"
            session.console.note("removed", removed, label="removed")
        if profile is not None and profile.api_key_file is not None:
            session.console.note("key_left", f"profile {name} still reads its key from {profile.api_key_file}")
    if left := [variable for variable in KEY_VARIABLES if variable in session.runtime.environ]:
        session.console.note("key_left", f"a key is still set in the environment: {', '.join(left)}")


def switch(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The profile to use without -p.")] = None,
) -> None:
    """Make a profile the default.

    \b
    Examples:
      escrowctl auth switch acme-test
      escrowctl auth switch
    """
    session = account.auth_session(context)
    resolver = session.resolver
    wanted = name if name is not None else session.options.profile
    if wanted is None:
        if not resolver.profiles:
            raise bad_value("there is no profile to switch to.", hint=command("auth login", bare=True))
        account.require_prompt(session, "the name of a profile")
        choices = [resolver.choose_profile(name) for name in resolver.profiles]
        lines = [f"  {choice.profile_name}   {choice.mode}   {choice.origin}" for choice in choices]
        wanted = session.prompt.ask(*lines, "Type the name of the profile to use:")
    choice = resolver.choose_profile(wanted)
    ConfigEditor(resolver.config_path, session.runtime).set(("default_profile",), wanted)
    session.remember_profiles(default=wanted)
    message = f"the default profile is now {wanted} ({choice.mode}, {choice.origin})"
    session.console.note("saved", message, label="saved")
    account.note_environment_overrides(session)


def _list_rows(session: Session) -> Iterator[_AccountRow]:
    """Yield rows for the environment, the profiles, and keys without profile. With -p, only that profile's row."""
    profiles, chosen, credentials = session.resolver.profiles, session.options.profile, session.resolver.credentials
    if chosen is not None:
        yield _make_row(session, chosen)
        return
    if any(session.runtime.environ.get(name) for name in account.OVERRIDING_VARIABLES):
        yield _make_environment_row(session)
    for name in profiles:
        yield _make_row(session, name)
    try:
        orphans = [name for name in sorted(credentials.read()) if name not in profiles]
    except EscrowctlError as error:
        # The row of each profile says the same.
        session.console.warn("keys_unusable", error.message)
        return
    for name in orphans:
        stored = credentials.find(name)
        remove = f"to remove the key: {session.invocation.program} auth logout -p {name}"
        yield _AccountRow(
            name,
            f"a key is stored, but there is no such profile; {remove}",
            base_url=stored.origin if stored else None,
            key_source=str(credentials.path),
        )


def _make_row(session: Session, name: str) -> _AccountRow:
    resolver = session.resolver
    choice = resolver.choose_profile(name)
    is_default = resolver.config is not None and resolver.config.default_profile == name
    row = _AccountRow(name, "stored", is_default, choice.origin.base_url, choice.mode, choice=choice)
    try:
        if found := resolver.find_profile_key(choice):
            return row._replace(key_source=found.source, found=found)
        stored = resolver.credentials.find(name)
    except EscrowctlError as error:
        # A problem with one account must not hide the others.
        return row._replace(state=error.message)
    state = f"the stored key is for {stored.origin}, not for this profile's base URL" if stored else "no key"
    return row._replace(state=state)


def _make_environment_row(session: Session) -> _AccountRow:
    resolver = ServiceResolver(ServiceOptions(config=session.options.config), session.runtime.environ, session.folders)
    row = _AccountRow("(environment)", "the key has no base URL: set ESCROWCTL_BASE_URL")
    try:
        choice = resolver.choose()
        if choice.level != ENVIRONMENT:
            return row
        row = row._replace(base_url=choice.origin.base_url, mode=choice.mode, choice=choice)
        found = resolver.find_key(choice)
    except EscrowctlError as error:
        return row._replace(state=error.message)
    state = "set" if found.source in KEY_VARIABLES else "stored"
    return row._replace(state=state, key_source=found.source, found=found)


def _check_row(session: Session, row: _AccountRow) -> _AccountRow:
    if row.choice is None or row.found is None:
        return row
    try:
        with session.connector.open_reader(session.resolver.build_service(row.choice, row.found)) as reader:
            reader.probe(LIST_WEBHOOKS)
    except EscrowctlError as error:
        return row._replace(state=error.message)
    return row._replace(state=_ACCEPTED)
