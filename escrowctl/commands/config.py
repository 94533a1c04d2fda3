"""`escrowctl config`: show every setting with its origin, and change config.toml."""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Annotated

import typer

from escrowctl.config.credentials import CREDENTIALS_NAME
from escrowctl.config.editing import ConfigEditor, find_value
from escrowctl.config.effective import BUILT_IN, Setting, list_sandbox_settings, list_settings, read_setting
from escrowctl.config.profiles import SettingValue, is_setting, parse_setting_name, parse_setting_value
from escrowctl.contract.json import JsonValue, as_json, encode
from escrowctl.errors import ErrorCode, EscrowctlError, bad_value, command
from escrowctl.output.plain import safe
from escrowctl.output.view import Listing, View, format_cell
from escrowctl.session import Session, session_of

_KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as mode or profiles.NAME.mode.")]


def path(context: typer.Context) -> None:
    """Print where config, keys, journal and cache are.

    \b
    Examples:
      escrowctl config path
      escrowctl config path --json | jq -r .journal
    """
    session = session_of(context)
    paths = find_paths(session)
    journal_id = None
    if not session.options.sandbox:
        try:
            if session.journals.place.is_shared or os.path.lexists(paths["journal"]):
                with closing(session.journals.open(reading=True, check_required_ids=False)) as opened:
                    journal_id = opened.place.find_id()
        except EscrowctlError as error:
            session.console.note("journal_unusable", error.message, important=True)
    shown = {**paths, "journal_id": journal_id}
    texts: JsonValue = {name: _as_text(value) for name, value in shown.items()}
    session.show(View(dict(shown), paths["config"], texts))


def find_paths(session: Session) -> dict[str, str]:
    """Return the paths of config, credentials, state, cache and journal, with stars for any API key in a path."""
    from escrowctl.journal.opening import find_place  # noqa: PLC0415 - help does not pay for the journal

    folders, journal = session.folders, find_place(session.folders.state)
    with suppress(EscrowctlError):  # an unusable config file names no journal
        journal = session.journals.shared_place or journal
    found = {
        "config": session.resolver.config_path,
        "credentials": folders.config / CREDENTIALS_NAME,
        "state": folders.state,
        "cache": folders.cache,
        "journal": journal.location,
    }
    session.learn_stored_keys()
    return {name: format_cell(session.keys.star(str(path))) for name, path in found.items()}


def list_all(context: typer.Context) -> None:
    """List every setting and where it comes from.

    A command with the same options, such as -p, uses these settings.

    \b
    Examples:
      escrowctl config list
      escrowctl -p acme-test config list --json
    """
    session = session_of(context)
    views = tuple(
        View(setting._asdict(), setting.setting, named=setting._replace(value=_as_text(setting.value))._asdict())
        for setting in _list_effective_settings(session)
    )
    session.console.show_listing(Listing(Setting._fields, views))


def get(context: typer.Context, key: _KeyArgument) -> None:
    """Print the value of one setting.

    For a short KEY, such as mode, print the value that a command with the same options uses. For
    a full KEY, such as profiles.NAME.mode, print the value in that profile.

    \b
    Examples:
      escrowctl -p acme-test config get base_url
      escrowctl config get profiles.acme-test.status.released
    """
    session = session_of(context)
    if key.rpartition(".")[2] == "api_key":
        hint = command("config list", "to see where the key comes from")
        raise bad_value("escrowctl never prints an API key.", hint=hint)
    setting = _find_setting(session, key)
    if setting.value in (None, [], {}):
        raise EscrowctlError(ErrorCode.NOT_FOUND, f"{key} is not set.", hint=command("config list"))
    if session.options.json:
        session.console.write_json(setting._asdict())
    else:
        session.console.write_data(safe(_as_text(setting.value)))


def set_value(
    context: typer.Context,
    key: _KeyArgument,
    values: Annotated[
        list[str], typer.Argument(metavar="VALUE...", help="The value, as text or TOML; commas separate list items.")
    ],
) -> None:
    """Set a setting in config.toml.

    Comments and the order of the file stay. A change that would make the file invalid is refused.
    API keys are not settings: escrowctl auth login asks for them.

    \b
    Examples:
      escrowctl config set profiles.acme-test.base_url https://escrow.example.com
      escrowctl -p acme-test config set status.released released,paid_out
    """
    session = session_of(context)
    path = _parse_key(session, key)
    report_saved(session, path, open_editor(session).set(path, parse_setting_value(path, values)))


def unset(context: typer.Context, key: _KeyArgument) -> None:
    """Remove a setting, or a complete profile, from config.toml.

    \b
    Examples:
      escrowctl config unset profiles.acme-test.read_only
      escrowctl -p acme-test config unset timeout
    """
    session = session_of(context)
    _refuse_sandbox(session)
    if key == "profiles":
        message = '"profiles" is the table of all profiles: name one, such as profiles.NAME.'
        raise bad_value(message, hint=command("auth status"))
    editor, path = open_editor(session), tuple(key.split("."))
    # Any full name in the file can be removed, even an unknown one: it may be a typo.
    if find_value(editor.read(), path) is None:
        path = _parse_key(session, key)
    editor.unset(path)
    session.console.note("saved", f"{'.'.join(path)} is no longer set in {session.resolver.config_path}", label="saved")


def _list_effective_settings(session: Session) -> list[Setting]:
    if session.options.sandbox:
        return list_sandbox_settings(session.options.timeout)
    found = list_settings(session.resolver)
    session.learn_stored_keys()
    return [_star_keys(session, setting) for setting in found]


def _star_keys(session: Session, setting: Setting) -> Setting:
    """Return a setting with `***` for each API key that its value or its origin contains by mistake."""
    return Setting(setting.setting, session.keys.star(setting.value), format_cell(session.keys.star(setting.origin)))


def _find_setting(session: Session, key: str) -> Setting:
    """Return the setting of a profile for a full name, else the setting that is in effect."""
    if key.startswith("profiles."):
        _refuse_sandbox(session)
        path = parse_setting_name(key, profile=None)
        name = ".".join(path[2:])
        if is_setting(path[2:]) or name == "caps":
            value, is_set = read_setting(session.resolver.choose_profile(path[1]).profile, name)
            session.learn_stored_keys()
            return _star_keys(session, Setting(key, value, str(session.resolver.config_path) if is_set else BUILT_IN))
    else:
        settings = {one.setting: one for one in _list_effective_settings(session)}
        if key in settings:
            return settings[key]
        parse_setting_name(key, profile="any")
        table, _, name = key.rpartition(".")
        if (found := settings.get(table)) is not None and isinstance(found.value, dict):
            return Setting(key, found.value.get(name), found.origin)
    raise bad_value(f'"{key}" is a table of settings: name one setting in it.', hint=command("config list"))


def _parse_key(session: Session, key: str) -> tuple[str, ...]:
    """Return the path in config.toml of the setting with this short or full name."""
    _refuse_sandbox(session)
    is_full_name = key.startswith("profiles.") or key == "default_profile"
    return parse_setting_name(key, profile=None if is_full_name else session.resolver.find_profile_name())


def _refuse_sandbox(session: Session) -> None:
    if session.options.sandbox:
        raise bad_value("the sandbox does not use config.toml: leave --sandbox out.")


def open_editor(session: Session) -> ConfigEditor:
    """Return the editor of config.toml. Raises `BAD_VALUE` or `BAD_CONFIG` if an API key is in a wrong place."""
    session.learn_stored_keys()
    session.keys.refuse_misplaced_keys()
    return ConfigEditor(session.resolver.config_path, session.runtime)


def report_saved(session: Session, path: Sequence[str], value: SettingValue) -> None:
    """Report the new value of the setting at `path`, such as `("profiles", "acme", "mode")`."""
    name, saved = ".".join(path), encode(as_json(value), spaced=True)
    session.console.note("saved", f"{name} = {saved} in {session.resolver.config_path}", label="saved")


def _as_text(value: JsonValue) -> str:
    """Return a value as text: `-` if it is not set, a list with commas, a table as names and values."""
    if value in (None, [], {}):
        return "-"
    if isinstance(value, list):
        return ",".join(format_cell(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_cell(item)}" for name, item in value.items())
    return format_cell(value)
