"""The service that sends events: its signing scheme, its secrets and its stored events. Needs no API key."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from escrowctl.config.keys import read_private_text
from escrowctl.config.service import WebhookSettings
from escrowctl.config.settings import find_webhook_settings
from escrowctl.errors import ErrorCode, EscrowctlError, Hints, not_sent
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.session import Session
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import Verifier, read_secret
from escrowctl.webhooks.spool import Spool, open_spool

_VARIABLE = "ESCROWCTL_WEBHOOK_SECRET"
_FILE_NAME = "webhooks.db"

SecretFileOption = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help="A file (0600) with the signing secret.")
]
UnverifiedOption = Annotated[bool, typer.Option("--unverified", help="Also forward UNVERIFIED events.")]


class Secret(NamedTuple):
    """A signing secret: its text, and the key that is decoded from it."""

    text: str
    key: bytes


class EventSource:
    """The service that sends the events, and its known secrets."""

    def __init__(self, session: Session, secret_file: Path | None) -> None:
        """Find the service by the options, the environment or the default profile. There may be none.

        Raises EscrowctlError `ErrorCode.BAD_CONFIG` and `STATE_UNUSABLE`.
        """
        self._session = session
        self._secret_file = secret_file
        self.identity, self.profile, self.webhooks = _find_service(session)

    @property
    def spool_path(self) -> Path:
        """The path of the file with the stored events."""
        return self._session.journals.folder / _FILE_NAME

    def open_spool(self) -> AbstractContextManager[Spool]:
        """Open the stored events for a `with` block. Raises `ErrorCode.STATE_UNUSABLE`, also in the block."""
        return open_spool(self.spool_path, self.identity)

    def find_secrets(self) -> list[Secret]:
        """Return the secrets in `--secret-file`, else in the variable, else in stored replies.

        Raises EscrowctlError `ErrorCode.BAD_CONFIG` and `KEY_MISSING` for a file or a variable that cannot be used.
        """
        return self._read_given() or list(self._read_stored())

    def require_secrets(self) -> list[Secret]:
        """Return the secrets of `find_secrets`. Raises `ErrorCode.KEY_MISSING` if there are none."""
        if secrets := self.find_secrets():
            return secrets
        hint: Hints = (f"set {_VARIABLE}", "or name a file that holds it: --secret-file FILE")
        raise not_sent(ErrorCode.KEY_MISSING, "no signing secret is known for this service.", hint=hint)

    def make_verifier(self, secrets: list[Secret]) -> Verifier:
        """Return a verifier of events with these secrets. Raises EscrowctlError `ErrorCode.BAD_CONFIG`."""
        return Verifier(self.webhooks, [secret.key for secret in secrets])

    def parse_secret(self, text: str, *, source: str) -> Secret:
        """Return the secret with this text, and hide the text on stderr from now on. Raises `ErrorCode.BAD_CONFIG`."""
        self._session.keys.learn([text])
        return Secret(text, read_secret(text, self.webhooks.scheme, source=source))

    def _read_stored(self) -> Iterator[Secret]:
        """Yield the secrets in stored replies. Warn about values that the scheme cannot use: they may be no secrets."""
        for text in SigningSecrets(self._session.journals.folder).list_secrets(self.identity):
            try:
                yield self.parse_secret(text, source="a stored reply")
            except EscrowctlError as error:
                self._session.console.warn("secret", f"{error.message} It is not used")

    def _read_given(self) -> list[Secret]:
        """Return the secrets in `--secret-file`, else in the variable. `--sandbox` ignores the variable."""
        text, source = None, "--secret-file"
        if self._secret_file is not None:
            text = read_private_text(self._secret_file, source=source)
        elif not self._session.options.sandbox:
            text, source = self._session.runtime.environ.get(_VARIABLE), _VARIABLE
        if text is None:
            return []
        if not text.strip():
            message = f"{source} is empty: it should hold the signing secret."
            raise not_sent(ErrorCode.KEY_MISSING, message, hint="in CI, check that the secret is passed to this job")
        return [self.parse_secret(one, source=source) for one in text.split()]


def find_event(spool: Spool, name: str) -> Event:
    """Return a stored event. Raises `NOT_FOUND` if none has this name, and `BAD_VALUE` if several have this id."""
    found = spool.find(name)
    if not found:
        message = f"there is no stored event {name} of this service: webhook listen stores the events that it receives."
        raise EscrowctlError(ErrorCode.NOT_FOUND, message)
    if len(found) > 1:
        names = [event.local_name for event in found]
        message = (
            f"{len(found)} stored events with different bodies have the id {name}: name one of {', '.join(names)}."
        )
        raise not_sent(ErrorCode.BAD_VALUE, message, facts={"events": names})
    return found[0]


def _find_service(session: Session) -> tuple[str, str | None, WebhookSettings]:
    """Return the service's identity (empty without a service), its profile or None, and its webhook settings."""
    if session.options.sandbox:
        return session.service.identity, None, session.service.webhooks
    choice = session.resolver.choose_if_configured()
    return (
        (choice.identity, choice.profile_name, find_webhook_settings(choice.profile))
        if choice
        else ("", None, WebhookSettings())
    )
