"""`escrowctl auth login`: as a conversation, or with the key on stdin and the rest on the line."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escrowctl.commands.account import Account, Form, agree, ask_until
from escrowctl.commands.key_check import not_stored, say_not_stored, try_key
from escrowctl.config import keyrings
from escrowctl.config.credentials import StoredKey
from escrowctl.config.file import require_trusted
from escrowctl.config.replacing import locked_together
from escrowctl.config.secrets import MAX_KEY_CHARS, Secret, read_key, refuse_in_base_url
from escrowctl.contract.key_search import holds_key
from escrowctl.contract.operations import DEFAULT_API_PREFIX
from escrowctl.errors import EscrowctlError, bad_value
from escrowctl.output.view import View
from escrowctl.session import Session, session_of

if TYPE_CHECKING:
    from escrowctl.config.profiles import Value
    from escrowctl.contract.number import JsonValue


def login(
    context: typer.Context,
    mode: Annotated[str | None, typer.Option(metavar="MODE", help="test or live.")] = None,
    api_prefix: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the API stands under the base URL, such as /v1.")
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without trying it.")] = False,
    keyring: Annotated[
        bool, typer.Option("--keyring", help="Store the key in the system's keyring, not in a file (0600).")
    ] = False,
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
    session.learn_stored_keys()
    session.keys.refuse_misplaced()
    account = Form(session, mode, api_prefix).fill()
    _rehearse(session, account)
    key = _read_key(session, account)
    session.keep_secret(key)
    refuse_in_base_url(account.origin.base_url, key.reveal(), source=account.url_source)
    if any(holds_key(text, key.reveal()) for text in (account.name, account.api_prefix)):
        raise bad_value("the name or the prefix of the profile holds the API key: choose another.")
    if account.mode == "live":
        session.console.note("live", f"{account.name}, {account.origin}", word="live", important=True)
    if not no_check:
        _check(session, account, key)
    with session.signals.held():
        try:
            store, made_default = _store(session, account, key, keyring=keyring)
        except EscrowctlError as error:
            raise say_not_stored(error) from error
    _tell(session, account, store=store, checked=not no_check, made_default=made_default)


def refuse_sandbox(session: Session) -> None:
    """Raise EscrowctlError (exit 2) where `--sandbox` is asked about keys: it has none to manage."""
    if session.options.sandbox:
        raise bad_value("the sandbox needs no account and no key: leave --sandbox out.")


def _read_key(session: Session, account: Account) -> Secret:
    stdin = session.surroundings.stdin
    if not stdin.isatty():
        try:
            text = stdin.read(MAX_KEY_CHARS + 3)
        except UnicodeDecodeError:
            text = "\x00"
        return read_key(text, source="standard input")
    absent = session.dialogue.nobody_to_ask
    if absent:
        raise bad_value(
            f"the key is missing, and {absent}.", hint='give it by a pipe: printf %s "$KEY" | escrowctl auth login ...'
        )
    whose = f"{account.name}, {account.mode}, {account.origin}"
    return ask_until(
        session,
        lambda: session.dialogue.ask_secret(f"For {whose}:", "The API key (it is not shown):"),
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


def _rehearse(session: Session, account: Account) -> None:
    """Raise what is wrong with the files before a key is asked for, and before the service is."""
    require_trusted(session.resolver.config_path)
    session.resolver.credentials.check_writable()
    profile = _Profile(session, account)
    profile.editor.rehearse(profile.decide)


def _store(session: Session, account: Account, key: Secret, *, keyring: bool) -> tuple[str, bool]:
    """Store key and profile, both or neither; return where the key is, and whether the profile is the default now.

    One lock is held over looking at what is there and writing both: of two logins under one name at
    once, the second sees what the first has written, and is refused if it is for another account.
    """
    credentials, around = session.resolver.credentials, session.surroundings
    profile = _Profile(session, account)
    origin = str(account.origin)
    folders = credentials.make_folder(), profile.editor.make_folder()
    with locked_together(*folders, around=around), profile.editor.drafted(profile.decide) as put_profile:
        before, replaced = credentials.read(), credentials.find(account.name)
        in_keyring = keyring and _put_in_keyring(session, account, key)
        try:
            with credentials.drafted(StoredKey(account.name, origin, None if in_keyring else key)) as put_key:
                put_key()
                put_profile()
        except EscrowctlError:
            _take_back(session, account, before, in_keyring=in_keyring)
            raise
    if replaced is not None and replaced.origin != origin:
        session.console.note(
            "key_replaced", f"the key stored under {account.name} before was for {replaced.origin}; it is gone."
        )
    return "the keyring" if in_keyring else str(credentials.path), profile.made_default


def _take_back(session: Session, account: Account, before: Mapping[str, Any], *, in_keyring: bool) -> None:
    """Undo what was stored of a login that failed after all, as far as that goes."""
    credentials = session.resolver.credentials
    if credentials.read() != before:
        credentials.restore(before)
    if in_keyring and "store" not in before.get(account.name, {}):
        with contextlib.suppress(EscrowctlError):
            keyrings.remove(account.name, str(account.origin), session.surroundings.environ)


def _put_in_keyring(session: Session, account: Account, key: Secret) -> bool:
    """Put the key into the keyring; where it cannot be used, print a warning and return False."""
    try:
        keyrings.store(account.name, str(account.origin), key, session.surroundings.environ)
    except keyrings.KeyringError as error:
        session.console.note(
            "keyring_unusable",
            f"the keyring cannot be used: {error}. The key is kept in {session.resolver.credentials.path} instead, "
            "which only you can read.",
            word="warning",
            important=True,
        )
        return False
    return True


class _Profile:
    """The profile to be written, the default one where there is none: `made_default` says so once it is decided."""

    def __init__(self, session: Session, account: Account) -> None:
        from escrowctl.config.editing import ConfigEditor  # noqa: PLC0415 - for those who write

        self._session = session
        self._account = account
        self.editor = ConfigEditor(session.resolver.config_path, session.surroundings)
        self.made_default = False

    def decide(self, tables: dict[str, Any]) -> "list[tuple[Sequence[str], Value | None]]":
        """Return the changes to the file as it is now; raises EscrowctlError (exit 2) where that is another account."""
        from escrowctl.config.editing import find  # noqa: PLC0415 - as above
        from escrowctl.config.file import validate_config  # noqa: PLC0415

        account = self._account
        there = validate_config(self._session.resolver.config_path, tables).profiles.get(account.name)
        agree(self._session, account, there)
        wanted = {"base_url": account.origin.base_url, "mode": account.mode}
        if account.api_prefix != (there.api_prefix if there else DEFAULT_API_PREFIX):
            wanted["api_prefix"] = account.api_prefix
        place = ("profiles", account.name)
        changes: list[tuple[Sequence[str], Value | None]] = [
            ((*place, name), value) for name, value in wanted.items() if find(tables, (*place, name)) != value
        ]
        self.made_default = "default_profile" not in tables
        if self.made_default:
            changes.append((("default_profile",), account.name))
        return changes


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
