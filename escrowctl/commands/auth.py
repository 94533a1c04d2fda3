"""`escrowctl auth`: remove a key that is stored here, and choose the profile that needs no -p."""

from typing import Annotated

import typer

from escrowctl.commands.login import note_variables, refuse_sandbox
from escrowctl.config.variables import KEYS
from escrowctl.errors import bad_value
from escrowctl.session import Session, session_of


def logout(context: typer.Context) -> None:
    """Remove a stored key; the profile stays.

    \b
    Example:
      escrowctl auth logout -p acme-test
    """
    session = session_of(context)
    refuse_sandbox(session)
    resolver = session.resolver
    name = resolver.profile_name()
    if name is None:
        raise bad_value("no profile is chosen: name one with -p NAME.", hint=f"{session.program} auth status")
    stored = resolver.credentials.find(name)
    profile = resolver.config.profiles.get(name) if resolver.config else None
    if stored is None and profile is None:
        resolver.choose_profile(name)
    if stored is None:
        session.console.note("no_key", f"no key is stored for {name}: there was nothing to remove")
    else:
        resolver.credentials.remove(stored, session.surroundings)
        where = "the keyring" if stored.in_keyring else resolver.credentials.path
        session.console.note("removed", f"the key of {name} for {stored.origin}, from {where}", word="removed")
    if profile is not None and profile.api_key_file is not None:
        session.console.note("key_left", f"{name} still takes its key from the file {profile.api_key_file}")
    left = [variable for variable in KEYS if variable in session.surroundings.environ]
    if left:
        session.console.note("key_left", f"{', '.join(left)} is still set in the environment")


def switch(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The profile to use where none is named.")] = None,
) -> None:
    """Make a profile the default one.

    \b
    Example:
      escrowctl auth switch acme-test
    """
    from escrowctl.config.editing import ConfigEditor  # noqa: PLC0415 - for those who write

    session = session_of(context)
    refuse_sandbox(session)
    resolver = session.resolver
    wanted = name if name is not None else session.options.profile
    choice = resolver.choose_profile(wanted if wanted is not None else _ask_which(session))
    assert choice.profile_name is not None, "it was chosen by name"
    ConfigEditor(resolver.config_path, session.surroundings).set(("default_profile",), choice.profile_name)
    session.console.note(
        "saved", f"{choice.profile_name} is the default profile, {choice.mode}, {choice.origin}", word="saved"
    )
    note_variables(session)


def _ask_which(session: Session) -> str:
    config = session.resolver.config
    names = sorted(config.profiles) if config else []
    if not names:
        raise bad_value("there is no profile to switch to.", hint=f"{session.program} auth login")
    absent = session.dialogue.nobody_to_ask
    if absent:
        raise bad_value(f"no profile is named, and {absent}; there are: {', '.join(names)}.")
    choices = [session.resolver.choose_profile(name) for name in names]
    width = max(len(name) for name in names)
    lines = [
        f"  {name:<{width}}   {choice.mode}   {choice.origin}" for name, choice in zip(names, choices, strict=True)
    ]
    return session.dialogue.ask(*lines, "Type the name of the profile to use:")
