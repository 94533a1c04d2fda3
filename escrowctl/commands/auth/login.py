"""`escrowctl auth login`: with questions at a terminal, or with the key on stdin and options."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from escrowctl.commands.auth.account import Account, Form, ask_until, require_same
from escrowctl.commands.auth.key_check import check_key, explain_refusal, not_stored, note_variables, refuse_sandbox
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
        str | None, typer.Option(metavar="PATH", help="The path of the API below the base URL, such as /v1.")
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without a check.")] = False,
    keyring: Annotated[
        bool, typer.Option("--keyring", help="Store the key in the system's keyring, not in a file (0600).")
    ] = False,
) -> None:
    """Store an API key, and its service as a profile.

    On a terminal it asks. Otherwise the key is read from stdin. It is checked with GET /webhooks, and
    stored only if the service accepts it. It is used only for the origin it was stored for.

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
    _check_writable(session, account)
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
            raise not_stored(error) from error
    _report(session, account, store=store, checked=not no_check, made_default=made_default)


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
            f"the key is missing, and escrowctl cannot ask for it: {absent}.",
            hint='pass it through a pipe: printf %s "$KEY" | escrowctl auth login ...',
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
        check_key(
            session,
            key,
            name=account.name,
            origin=account.origin,
            api_prefix=account.api_prefix,
            mode=account.mode,
            source=account.url_source,
            profile=config.profiles.get(account.name) if config else None,
        )
    except EscrowctlError as error:
        again = (
            f"{session.program} auth login --base-url {account.origin.base_url} --mode {account.mode} -p {account.name}"
        )
        raise explain_refusal(error, origin=account.origin, api_prefix=account.api_prefix, again=again) from error


def _check_writable(session: Session, account: Account) -> None:
    """Raise what is wrong with the files before a key is typed or a request is sent."""
    require_trusted(session.resolver.config_path)
    session.resolver.credentials.check_writable()
    profile = _Profile(session, account)
    profile.editor.check(profile.decide)


def _store(session: Session, account: Account, key: Secret, *, keyring: bool) -> tuple[str, bool]:
    """Store key and profile, both or neither; return where the key is, and whether the profile is the default now.

    One lock is held while the files are read and both are written: of two logins under one name, the
    second reads what the first wrote, and is refused if it is for another account.
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
        session.console.note("key_replaced", f"the earlier key of {account.name}, for {replaced.origin}, was removed.")
    return "the keyring" if in_keyring else str(credentials.path), profile.made_default


def _take_back(session: Session, account: Account, before: Mapping[str, Any], *, in_keyring: bool) -> None:
    """Undo what was stored of a login that then failed, as far as possible."""
    credentials = session.resolver.credentials
    if credentials.read() != before:
        credentials.restore(before)
    if in_keyring and "store" not in before.get(account.name, {}):
        from escrowctl.config import keyrings  # noqa: PLC0415 - for those who chose it

        with contextlib.suppress(EscrowctlError):
            keyrings.remove(account.name, str(account.origin), session.surroundings.environ)


def _put_in_keyring(session: Session, account: Account, key: Secret) -> bool:
    """Put the key into the keyring; where it cannot be used, print a warning and return False."""
    from escrowctl.config import keyrings  # noqa: PLC0415 - as above

    try:
        keyrings.store(account.name, str(account.origin), key, session.surroundings.environ)
    except keyrings.KeyringError as error:
        session.console.note(
            "keyring_unusable",
            f"the keyring cannot be used: {error}. The key is stored in {session.resolver.credentials.path} instead, "
            "which only you can read.",
            word="warning",
            important=True,
        )
        return False
    return True


class _Profile:
    """The profile to write; it becomes the default where there is none: `made_default` is set by `decide`."""

    def __init__(self, session: Session, account: Account) -> None:
        from escrowctl.config.editing import ConfigEditor  # noqa: PLC0415 - for those who write

        self._session = session
        self._account = account
        self.editor = ConfigEditor(session.resolver.config_path, session.surroundings)
        self.made_default = False

    def decide(self, tables: dict[str, Any]) -> "list[tuple[Sequence[str], Value | None]]":
        """Return the changes to the current file; raises EscrowctlError as `require_same`."""
        from escrowctl.config.editing import find  # noqa: PLC0415 - as above
        from escrowctl.config.file import validate_config  # noqa: PLC0415

        account = self._account
        profile = validate_config(self._session.resolver.config_path, tables).profiles.get(account.name)
        require_same(self._session, account, profile)
        wanted = {"base_url": account.origin.base_url, "mode": account.mode}
        if account.api_prefix != (profile.api_prefix if profile else DEFAULT_API_PREFIX):
            wanted["api_prefix"] = account.api_prefix
        path = ("profiles", account.name)
        changes: list[tuple[Sequence[str], Value | None]] = [
            ((*path, name), value) for name, value in wanted.items() if find(tables, (*path, name)) != value
        ]
        self.made_default = "default_profile" not in tables
        if self.made_default:
            changes.append((("default_profile",), account.name))
        return changes


def _report(session: Session, account: Account, *, store: str, checked: bool, made_default: bool) -> None:
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
        ("key", f"stored in {store}, {'accepted by the service' if checked else 'not checked'}"),
    )
    session.show(View(document, account.name, fields))
    if made_default:
        session.console.note("default", f"{account.name} is now the default profile: it needs no -p")
    note_variables(session)
    session.console.note(
        "next", f"{session.program} -p {account.name} tx create --amount 100 --currency USD --dry-run", word="next"
    )
