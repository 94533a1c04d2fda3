"""`escrowctl auth login`: as a conversation, or with the key on stdin and the rest on the line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escrowctl.commands.account import Account, Form, ask_until
from escrowctl.commands.key_check import not_stored, try_key
from escrowctl.config import keyrings
from escrowctl.config.credentials import KEYRING, StoredKey
from escrowctl.config.secrets import MAX_KEY_CHARS, Secret, read_key
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.output.view import View
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from escrowctl.config.names import Value
    from escrowctl.contract.number import JsonValue


def login(
    context: typer.Context,
    mode: Annotated[str | None, typer.Option(metavar="MODE", help="test or live.")] = None,
    api_prefix: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the API stands under the base URL, such as /v1.")
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without trying it.")] = False,
    keyring: Annotated[
        bool | None,
        typer.Option("--keyring/--no-keyring", help="Store the key in the system's keyring, or in a file (0600)."),
    ] = None,
) -> None:
    """Store an API key, and its service as a profile.

    On a terminal it asks. Elsewhere the key is read from stdin. It is tried with GET /webhooks, and
    stored only if the service takes it; it is used for the origin it was stored for, and no other.

    \b
    Examples:
      escrowctl auth login
      printf %s "$KEY" | escrowctl auth login --base-url https://escrow.example.com --mode test -p acme-test
    """
    session = session_of(context)
    refuse_sandbox(session)
    account = Form(session, mode, api_prefix).fill()
    key = _read_key(session)
    session.keep_secret(key)
    if account.mode == "live":
        session.console.note("live", f"{account.name}, {account.origin}", word="live", important=True)
    if not no_check:
        _check(session, account, key)
    with session.signals.held():
        store = _store(session, account, key, keyring=keyring)
        made_default = _save_profile(session, account)
    _tell(session, account, store=store, checked=not no_check, made_default=made_default)


def refuse_sandbox(session: Session) -> None:
    """Raise EscrowctlError (exit 2) where `--sandbox` is asked about keys: it has none to manage."""
    if session.options.sandbox:
        raise bad_value("the sandbox needs no account and no key: leave --sandbox out.")


def _read_key(session: Session) -> Secret:
    stdin = session.surroundings.stdin
    if not stdin.isatty():
        try:
            text = stdin.read(MAX_KEY_CHARS + 3)
        except UnicodeDecodeError:
            text = "\x00"
        return read_key(text, source="standard input")
    absent = session.nobody_to_ask
    if absent:
        raise bad_value(
            f"the key is missing, and {absent}.", hint='give it by a pipe: printf %s "$KEY" | escrowctl auth login ...'
        )
    return ask_until(
        session,
        lambda: session.ask_secret("The API key (it is not shown):"),
        lambda answer: read_key(answer, source="the answer"),
    )


def _check(session: Session, account: Account, key: Secret) -> None:
    config = session.resolver.config
    try:
        try_key(
            session,
            key,
            name=account.name,
            origin=account.origin,
            api_prefix=account.api_prefix,
            live=account.mode == "live",
            source=account.url_source,
            profile=config.profiles.get(account.name) if config else None,
        )
    except EscrowctlError as error:
        again = (
            f"{session.program} auth login --base-url {account.origin.base_url} --mode {account.mode} -p {account.name}"
        )
        raise not_stored(error, origin=account.origin, api_prefix=account.api_prefix, again=again) from error


def _store(session: Session, account: Account, key: Secret, *, keyring: bool | None) -> str:
    """Store the key where it was chosen to be, and return where that was in the end."""
    credentials, around = session.resolver.credentials, session.surroundings
    config = session.resolver.config
    origin = str(account.origin)
    before = credentials.find(account.name)
    chosen = keyring if keyring is not None else config is not None and config.key_store == KEYRING
    if chosen:
        try:
            keyrings.store(account.name, origin, key, around.environ)
        except keyrings.KeyringError as error:
            session.console.note(
                "keyring_unusable",
                f"the keyring cannot be used: {error}. The key is kept in {credentials.path} instead, "
                "which only you can read.",
                word="warning",
                important=True,
            )
            chosen = False
    credentials.put(StoredKey(account.name, origin, None if chosen else key), around)
    if before is not None and before.origin != origin:
        session.console.note(
            "key_replaced", f"the key stored under {account.name} before was for {before.origin}; it is gone."
        )
    return "the keyring" if chosen else str(credentials.path)


def _save_profile(session: Session, account: Account) -> bool:
    """Write the profile, and make it the default where there is none; returns whether that was done."""
    from escrowctl.config.editing import ConfigEditor, find  # noqa: PLC0415 - for those who write

    made_default = False

    def decide(tables: dict[str, Any]) -> "list[tuple[Sequence[str], Value | None]]":
        nonlocal made_default
        wanted = {"base_url": account.origin.base_url, "mode": account.mode}
        if account.api_prefix != DEFAULT_API_PREFIX:
            wanted["api_prefix"] = account.api_prefix
        place = ("profiles", account.name)
        changes: list[tuple[Sequence[str], Value | None]] = [
            ((*place, name), value) for name, value in wanted.items() if find(tables, (*place, name)) != value
        ]
        made_default = "default_profile" not in tables
        if made_default:
            changes.append((("default_profile",), account.name))
        return changes

    ConfigEditor(session.resolver.config_path, session.surroundings).apply(decide)
    return made_default


def _tell(session: Session, account: Account, *, store: str, checked: bool, made_default: bool) -> None:
    document: dict[str, JsonValue] = {
        "profile": account.name,
        "base_url": account.origin.base_url,
        "mode": account.mode,
        "key_store": store,
        "checked": checked,
    }
    fields = (
        ("profile", account.name),
        ("base_url", account.origin.base_url),
        ("mode", account.mode),
        ("key", f"stored in {store}, {'taken by the service' if checked else 'not tried'}"),
    )
    session.show(View(document, account.name, fields))
    if made_default:
        session.console.note("default", f"{account.name} is the default profile now: it needs no -p")
    note_variables(session)
    session.console.note(
        "next", f"{session.program} -p {account.name} tx create --amount 100 --currency USD --dry-run", word="next"
    )


def note_variables(session: Session) -> None:
    """Say which variables outrank the default profile, or what is stored for it."""
    names = ("ESCROWCTL_BASE_URL", "ESCROWCTL_PROFILE", "ESCROWCTL_API_KEY", "ESCROWCTL_API_KEY_FILE")
    found = [name for name in names if session.surroundings.environ.get(name)]
    if found:
        session.console.note("outranked", f"{', '.join(found)} in the environment outranks the default profile")
