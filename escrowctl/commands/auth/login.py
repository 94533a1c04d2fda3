"""`escrowctl auth login`: with questions at a terminal, or with the key on stdin and options."""

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from escrowctl.commands.auth.account import Form, LoginAccount, ask_until, note_variables, refuse_sandbox, require_same
from escrowctl.config.credentials import KeyringError, StoredKey, remove_from_keyring, store_in_keyring
from escrowctl.config.editing import Change, ConfigEditor, find
from escrowctl.config.file import locked_together, require_trusted, validate_config
from escrowctl.config.keys import MAX_KEY_CHARS, FoundKey, read_key, refuse_in_base_url
from escrowctl.config.origin import ends_in
from escrowctl.config.settings import LINE, Choice
from escrowctl.contract.json import JsonValue
from escrowctl.contract.operations import DEFAULT_API_PREFIX, LIST_WEBHOOKS
from escrowctl.contract.redaction import Secret, holds_key
from escrowctl.errors import NOTHING_STORED, ErrorCode, EscrowctlError, Hints, bad_value, command
from escrowctl.output.view import View
from escrowctl.session import Session, session_of

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

    On a terminal it asks. Otherwise it reads the key from stdin. The key is stored if the service
    accepts it (GET /webhooks), and used for the origin it was stored for only.

    \b
    Examples:
      escrowctl auth login
      printf %s "$KEY" | escrowctl auth login -p acme --base-url URL --mode test
    """
    session = session_of(context)
    refuse_sandbox(session)
    session.learn_stored_keys()
    session.keys.refuse_misplaced()
    account = Form(session, mode, api_prefix).fill()
    require_trusted(session.resolver.config_path)
    session.resolver.credentials.read()
    editor = _editor(session)
    editor.check(_plan(session, account, editor.read()))
    key = _take_key(session, account, check=not no_check)
    with session.signals.held():
        try:
            store, made_default = _store(session, account, key, keyring=keyring)
        except EscrowctlError as error:
            # The effect says only that nothing was stored: the check may have sent a request.
            raise EscrowctlError(
                error.code, error.message, hint=error.hints, effect=NOTHING_STORED, facts=error.facts
            ) from error
    _report(session, account, store=store, checked=not no_check, made_default=made_default)


def _take_key(session: Session, account: LoginAccount, *, check: bool) -> Secret:
    """Return a key that can be stored. At a terminal, ask again if the service refuses one."""

    def accept(key: Secret) -> Secret:
        session.keys.keep(key)
        refuse_in_base_url(account.origin.base_url, key.reveal(), source=account.url_source)
        if any(holds_key(text, key.reveal()) for text in (account.name, account.api_prefix)):
            raise bad_value("the profile name or the API prefix contains the API key: choose another name or prefix.")
        if account.mode == "live":
            session.console.note("live", f"{account.name}, {account.origin}", word="live", important=True)
        if check:
            config = session.resolver.config
            known = config.profiles.get(account.name) if config else None
            choice = Choice(LINE, account.origin, account.url_source, account.name, known, account.mode)
            service = session.resolver.build_service(choice, FoundKey(key, account.url_source))
            try:
                with session.connector.open_reader(service._replace(api_prefix=account.api_prefix)) as reader:
                    reader.probe(LIST_WEBHOOKS)
            except EscrowctlError as error:
                raise _explain_refusal(error, account) from error
        return key

    if not session.runtime.stdin.isatty():
        try:
            text = session.runtime.stdin.read(MAX_KEY_CHARS + 3)
        except UnicodeDecodeError:
            text = "\x00"
        return accept(read_key(text, source="standard input"))
    return ask_until(session, lambda: _ask_for_key(session, account), accept, again=(ErrorCode.NOT_AUTHENTICATED,))


def _ask_for_key(session: Session, account: LoginAccount) -> Secret:
    absent = session.prompt.obstacle
    if absent:
        raise bad_value(
            f"the key is missing, and escrowctl cannot ask for it: {absent}.",
            hint=f'pass it through a pipe: printf %s "$KEY" | {session.invocation.program} auth login ...',
        )
    whose = f"{account.name} ({account.mode}), {account.origin}"
    return ask_until(
        session,
        lambda: session.prompt.ask_secret(f"Profile {whose}:", "API key (not shown while you type):"),
        lambda answer: read_key(answer, source="the answer"),
    )


def _explain_refusal(error: EscrowctlError, account: LoginAccount) -> EscrowctlError:
    """Return the error for a key that was not stored, with hints."""
    origin, api_prefix = account.origin, account.api_prefix
    reason = error.message.removesuffix(".")
    unchecked = "to store the key without a check: repeat the command with --no-check"
    code, message = error.code, reason
    hint: Hints = (*error.hints, unchecked)
    if error.code is ErrorCode.NOT_AUTHENTICATED:
        message, hint = f"{origin} does not accept this key ({reason})", ()
    elif error.code is ErrorCode.FORBIDDEN:
        code = ErrorCode.NOT_AUTHENTICATED
        message = f"{origin} does not accept this key for GET {LIST_WEBHOOKS.path} ({reason})"
        hint = ("if the key has no permission to list webhooks: repeat the command with --no-check",)
    elif error.code is ErrorCode.NOT_FOUND:
        other = "/v1" if api_prefix == DEFAULT_API_PREFIX else DEFAULT_API_PREFIX
        if ends_in(origin, other):
            # The base URL already contains it.
            other = "''"
        again = f"auth login --base-url {origin.base_url} --mode {account.mode} -p {account.name} --api-prefix {other}"
        message = f"{origin} has no GET {api_prefix}{LIST_WEBHOOKS.path} ({reason}): the API may have another prefix"
        hint = (command(again, "with another prefix", bare=True), unchecked)
    return EscrowctlError(
        code, f"{message}.", hint=hint, outcome=error.outcome, effect=NOTHING_STORED, facts=error.facts
    )


def _store(session: Session, account: LoginAccount, key: Secret, *, keyring: bool) -> tuple[str, bool]:
    """Store key and profile, both or neither. Return the place of the key, and whether the profile became the default.

    One lock is held while the files are read and both are written. So of two logins under one name, the
    second reads the profile of the first, and is refused if it is for another account.
    """
    credentials, editor = session.resolver.credentials, _editor(session)
    origin = str(account.origin)
    with locked_together(credentials.make_folder(), editor.make_folder(), runtime=session.runtime):
        changes = _plan(session, account, editor.read())
        with editor.drafted(changes) as put_profile:
            before, replaced = credentials.read(), credentials.find(account.name)
            try:
                if keyring:
                    store_in_keyring(account.name, origin, key, session.runtime.environ)
                with credentials.drafted(StoredKey(account.name, origin, None if keyring else key)) as put_key:
                    put_key()
                    put_profile()
            except KeyringError as error:
                _take_back(session, account, before, in_keyring=True)
                hint = f"without --keyring the key is stored in {credentials.path}, which only you can read"
                raise bad_value(f"--keyring: the keyring cannot be used: {error}.", hint=hint) from error
            except EscrowctlError:
                _take_back(session, account, before, in_keyring=keyring)
                raise
    if replaced is not None and replaced.key != key:
        _note_replaced(session, account.name, replaced.origin)
    store = "the keyring" if keyring else str(credentials.path)
    return store, (_DEFAULT_PROFILE, account.name) in changes


def _note_replaced(session: Session, profile: str, origin: str) -> None:
    """Note that a profile's earlier key is replaced, and the effect on idempotency keys."""
    is_named = find(_editor(session).read(), ("profiles", profile, "account")) is not None
    hint = command(f"config set profiles.{profile}.account NAME", "to name the account of this key", bare=True)
    session.console.note(
        "key_replaced",
        f"this key replaces the earlier key of profile {profile} for {origin}. An idempotency key that was used with "
        'the earlier key is refused (7), unless the profile had the same "account" then',
        hints=() if is_named else (hint,),
        invocation=session.invocation,
    )


def _editor(session: Session) -> ConfigEditor:
    return ConfigEditor(session.resolver.config_path, session.runtime)


def _plan(session: Session, account: LoginAccount, tables: dict[str, Any]) -> list[Change]:
    """Return the changes to the current file. If there is no default profile, this one becomes it.

    Raises EscrowctlError: `BAD_VALUE` if the profile is of another account, `BAD_CONFIG` for an invalid file.
    """
    profile = validate_config(session.resolver.config_path, tables).profiles.get(account.name)
    require_same(account, profile)
    wanted = {"base_url": account.origin.base_url, "mode": account.mode}
    if account.api_prefix != (profile.api_prefix if profile else DEFAULT_API_PREFIX):
        wanted["api_prefix"] = account.api_prefix
    paths = {("profiles", account.name, name): value for name, value in wanted.items()}
    changes: list[Change] = [(path, value) for path, value in paths.items() if find(tables, path) != value]
    if "default_profile" not in tables:
        changes.append((_DEFAULT_PROFILE, account.name))
    return changes


def _take_back(session: Session, account: LoginAccount, before: Mapping[str, Any], *, in_keyring: bool) -> None:
    """Remove the stored parts of a failed login, as far as possible."""
    credentials = session.resolver.credentials
    if credentials.read() != before:
        credentials.restore(before)
    if in_keyring and "store" not in before.get(account.name, {}):
        with contextlib.suppress(EscrowctlError):
            remove_from_keyring(account.name, str(account.origin), session.runtime.environ)


def _report(session: Session, account: LoginAccount, *, store: str, checked: bool, made_default: bool) -> None:
    document: dict[str, JsonValue] = {
        "profile": account.name,
        "base_url": account.origin.base_url,
        "mode": account.mode,
        "key_store": store,
        "checked": checked,
    }
    key = f"stored in {store}, {'accepted by the service' if checked else 'not checked'}"
    shown = {name: document[name] for name in ("profile", "base_url", "mode")}
    session.show(View(document, account.name, {**shown, "key": key}))
    if made_default:
        session.console.note("default", f"{account.name} is now the default profile: commands without -p use it")
    note_variables(session)
    following = f"-p {account.name} tx create --amount 100 --currency USD --dry-run"
    session.console.note("next", f"{session.invocation.program} {following}", word="next")
