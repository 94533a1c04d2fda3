"""The service that sends events: its signing scheme, its secrets and its stored events. No API key is needed."""

from pathlib import Path
from typing import Annotated

import typer

from escrowctl.config.keys import read_private_text
from escrowctl.config.service import WebhookSettings
from escrowctl.errors import ErrorCode, EscrowctlError, Hints, not_sent
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.session import Session
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import Verifier, read_secret
from escrowctl.webhooks.spool import Spool

_VARIABLE_NAME = "ESCROWCTL_WEBHOOK_SECRET"

SecretFileOption = Annotated[
    Path | None, typer.Option("--secret-file", metavar="FILE", help="A file (0600) with the signing secret.")
]
UnverifiedOption = Annotated[bool, typer.Option("--unverified", help="Also forward UNVERIFIED events.")]


class EventSource:
    """The service that sends the events, with its stored events and its known secrets.

    `identity` is empty if there is no service. `profile` is None if no profile is used.
    """

    def __init__(self, session: Session, secret_file: Path | None) -> None:
        """Find the service by the options, the environment or the default profile. There may be no service.

        Raises EscrowctlError, such as `ErrorCode.BAD_CONFIG`, if the options or the settings are invalid.
        """
        self._session = session
        self._secret_file = secret_file
        self.identity = ""
        self.profile: str | None = None
        self.webhooks = WebhookSettings()
        if session.options.sandbox:
            self.identity, self.webhooks = session.service.identity, session.service.webhooks
        elif choice := session.resolver.choose_if_configured():
            self.identity, self.profile = choice.identity, choice.profile_name
            if choice.profile is not None:
                self.webhooks = WebhookSettings(**choice.profile.webhook.model_dump())

    @property
    def spool_path(self) -> Path:
        """The path of the file with the stored events."""
        return self._session.journals.folder / "webhooks.db"

    def find_secrets(self) -> list[str]:
        """Return the secrets in `--secret-file`, else in ESCROWCTL_WEBHOOK_SECRET, else in stored replies.

        `--sandbox` ignores the variable. Raises EscrowctlError for the file or the variable: `KEY_MISSING` if it is
        empty, `BAD_CONFIG` if it is invalid.
        """
        text, source = None, "--secret-file"
        if self._secret_file is not None:
            text = read_private_text(self._secret_file, source=source)
        elif not self._session.options.sandbox:
            text, source = self._session.runtime.environ.get(_VARIABLE_NAME), _VARIABLE_NAME
        if text is not None:
            if not text.strip():
                message = f"{source} is empty: it should hold the signing secret."
                hint = "in CI, check that the secret is passed to this job"
                raise not_sent(ErrorCode.KEY_MISSING, message, hint=hint)
            return [self.check_secret(one, source=source) for one in text.split()]
        stored = []
        for text in SigningSecrets(self._session.journals.folder).list_secrets(self.identity):
            try:
                stored.append(self.check_secret(text, source="a stored reply"))
            except EscrowctlError as error:
                # A value that the scheme cannot use may be no secret.
                self._session.console.warn("secret", f"{error.message} This value is not used")
        return stored

    def require_secrets(self) -> list[str]:
        """Return the secrets of `find_secrets`. Raises `ErrorCode.KEY_MISSING` if there are none."""
        if secrets := self.find_secrets():
            return secrets
        hint: Hints = (f"set {_VARIABLE_NAME}", "or name a file with the signing secret: --secret-file FILE")
        raise not_sent(ErrorCode.KEY_MISSING, "no signing secret is known for this service.", hint=hint)

    def make_verifier(self, secrets: list[str]) -> Verifier:
        """Return a verifier with these secrets. Raises `BAD_CONFIG` if the scheme's signature header is not set."""
        return Verifier(self.webhooks, [read_secret(text, self.webhooks.scheme, source="a secret") for text in secrets])

    def check_secret(self, text: str, *, source: str) -> str:
        """Return a secret unchanged, and hide it on stderr from now on. Raises `BAD_CONFIG` if it is no secret."""
        self._session.keys.learn([text])
        read_secret(text, self.webhooks.scheme, source=source)
        return text


def find_event(spool: Spool, name: str) -> Event:
    """Return the event with this id or local name. Raises `NOT_FOUND` if there is none, `BAD_VALUE` for several."""
    if not (found := spool.find_by_name(name)):
        message = f"there is no stored event {name} of this service: webhook listen stores the events that it receives."
        raise EscrowctlError(ErrorCode.NOT_FOUND, message)
    if len(found) > 1:
        names = [event.local_name for event in found]
        listed = ", ".join(names)
        message = f"{len(found)} stored events with different bodies have the id {name}: name one of {listed}."
        raise not_sent(ErrorCode.BAD_VALUE, message, facts={"events": names})
    return found[0]
