"""`escrowctl auth login`: with questions at a terminal, or with options and the key on stdin."""

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from escrowctl.commands.auth.account import (
    AccountFinder,
    LoginAccount,
    ask_until_valid,
    auth_session,
    note_environment_overrides,
    require_prompt,
    require_same_account,
)
from escrowctl.commands.config import open_editor
from escrowctl.config.credentials import StoredKey, remove_from_keyring, store_in_keyring
from escrowctl.config.editing import Change, ConfigEditor, find_value
from escrowctl.config.file import locked, require_trusted, validate_config
from escrowctl.config.keys import MAX_KEY_CHARS, FoundKey, read_key, refuse_key_in_url
from escrowctl.config.settings import COMMAND_LINE, ServiceChoice
from escrowctl.contract.json import as_json
from escrowctl.contract.operations import DEFAULT_API_PREFIX, LIST_WEBHOOKS
from escrowctl.contract.redaction import Secret, holds_key
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Hint, bad_value
from escrowctl.output.view import View
from escrowctl.session import Session

_DEFAULT_PROFILE = ("default_profile",)


def login(
    context: typer.Context,
    mode: Annotated[str | None, typer.Option(metavar="MODE", help="test or live.")] = None,
    api_prefix: Annotated[
        str | None, typer.Option(metavar="PATH", help="The path of the API below the base URL, such as /v1.")
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without a check.")] = False,
    keyring: Annotated[
        bool, typer.Option("--keyring", help="Store the key in the system's keyring, not in a file.")
    ] = False,
) -> None:
    """Store an API key, and its service as a profile.

    At a terminal, escrowctl asks for missing values. Otherwise it reads the key from stdin. The key is
    stored only if the service accepts it (GET /webhooks). It is sent only to the base URL's origin.

    \b
    Examples:
      escrowctl auth login
      printf %s "$KEY" | escrowctl auth login -p acme --base-url URL --mode test
    """
    session = auth_session(context)
    editor = open_editor(session)
    account = AccountFinder(session, mode, api_prefix).find_account()
    require_trusted(session.resolver.config_path)
    session.resolver.credentials.read()
    editor.render_changes(_plan_config_changes(session, account, editor.read()))
    key = _obtain_key(session, account, check=not no_check)
    with session.signals.held():
        try:
            key_store, made_default = _store_login(session, editor, account, key, keyring=keyring)
        except EscrowctlError as error:
            # Not `NOTHING_SENT`: the check may have sent a request.
            error.effect = Effect.NOTHING_STORED
            raise
    shown = {"profile": account.name, "base_url": account.origin.base_url, "mode": account.mode}
    key_state = f"stored in {key_store}, {'not checked' if no_check else 'accepted by the service'}"
    document = as_json({**shown, "key_store": key_store, "checked": not no_check})
    session.show(View(document, account.name, as_json({**shown, "key": key_state})))
    if made_default:
        session.console.note("default", f"{account.name} is now the default profile: commands without -p use it")
    note_environment_overrides(session)
    example = f"-p {account.name} tx create --amount 100 --currency USD --dry-run"
    session.console.note("next", f"{session.invocation.program} {example}", label="next")


def _obtain_key(session: Session, account: LoginAccount, *, check: bool) -> Secret:
    """Return the API key from the terminal or stdin. If `check` is set, the service must accept the key."""

    def accept(text: str) -> Secret:
        key = read_key(text, source="the answer" if session.runtime.stdin.isatty() else "standard input")
        session.keys.protect(key)
        refuse_key_in_url(account.origin.base_url, key.reveal(), source=account.url_source)
        if any(holds_key(text, key.reveal()) for text in (account.name, account.api_prefix)):
            raise bad_value("the profile name or the API prefix contains the API key: choose another name or prefix.")
        if account.mode == "live":
            session.console.note("live", f"{account.name}, {account.origin}", label="live", important=True)
        if check:
            _check_key(session, account, key)
        return key

    if not session.runtime.stdin.isatty():
        try:
            return accept(session.runtime.stdin.read(MAX_KEY_CHARS + 3))
        except UnicodeDecodeError as error:
            raise bad_value("the API key on standard input is not text.") from error
    require_prompt(session, "the key")
    profile = f"Profile {account.name} ({account.mode}), {account.origin}:"
    question = "API key (not shown while you type):"
    return ask_until_valid(session, lambda: session.prompt.ask_secret(profile, question), accept)


def _check_key(session: Session, account: LoginAccount, key: Secret) -> None:
    """Raise EscrowctlError if the service does not accept the key. The hints say how to repeat the login."""
    known = session.resolver.profiles.get(account.name)
    choice = ServiceChoice(COMMAND_LINE, account.origin, account.url_source, account.name, known, account.mode)
    service = session.resolver.build_service(choice, FoundKey(key, account.url_source))
    try:
        with session.connector.open_reader(service._replace(api_prefix=account.api_prefix)) as reader:
            reader.probe(LIST_WEBHOOKS)
    except EscrowctlError as error:
        if error.code is ErrorCode.NOT_FOUND:
            error.hints = (Hint("repeat the command with --api-prefix PATH", "if the API has another prefix"),)
        without_check = Hint("repeat the command with --no-check", "to store the key without a check")
        error.hints = () if error.code is ErrorCode.NOT_AUTHENTICATED else (*error.hints[:1], without_check)
        error.effect = Effect.NOTHING_STORED
        raise


def _store_login(
    session: Session, editor: ConfigEditor, account: LoginAccount, key: Secret, *, keyring: bool
) -> tuple[str, bool]:
    """Store the key and the profile, or neither. Return where the key is, and whether the default profile changed.

    Locks the folders of the key file and the config file. Raises `BAD_VALUE` if a simultaneous login has just
    stored the profile for another URL or mode.
    """
    credentials = session.resolver.credentials
    name, origin, environ = account.name, str(account.origin), session.runtime.environ
    folders = {Path(os.path.realpath(folder)) for folder in (credentials.path.parent, editor.folder)}
    with contextlib.ExitStack() as locks:
        for folder in sorted(folders):
            locks.enter_context(locked(folder, session.runtime))
        changes = _plan_config_changes(session, account, editor.read())
        before = credentials.read()
        try:
            if keyring:
                store_in_keyring(name, origin, key, environ)
            credentials.store(StoredKey(name, origin, None if keyring else key))
            editor.write_changes(changes)
        except EscrowctlError:
            if credentials.read() != before:
                credentials.write(before)
            if keyring and "store" not in before.get(name, {}):
                with contextlib.suppress(EscrowctlError):
                    remove_from_keyring(name, origin, environ)
            raise
    return "the keyring" if keyring else str(credentials.path), (_DEFAULT_PROFILE, name) in changes


def _plan_config_changes(session: Session, account: LoginAccount, tables: dict[str, Any]) -> list[Change]:
    """Return the changes that store the profile in the config file (`tables`), as the default if there is none.

    Raises `BAD_CONFIG` if the file is invalid, `BAD_VALUE` if its profile has another URL or mode than `account`.
    """
    profile = validate_config(session.resolver.config_path, tables).profiles.get(account.name)
    require_same_account(account, profile)
    wanted = {"base_url": account.origin.base_url, "mode": account.mode}
    if account.api_prefix != (profile.api_prefix if profile else DEFAULT_API_PREFIX):
        wanted["api_prefix"] = account.api_prefix
    paths = {("profiles", account.name, name): value for name, value in wanted.items()}
    changes: list[Change] = [(path, value) for path, value in paths.items() if find_value(tables, path) != value]
    if "default_profile" not in tables:
        changes.append((_DEFAULT_PROFILE, account.name))
    return changes
