"""What the journal stores of a write before it is sent, and whether it may be sent at all from here."""

import os
import pwd

from escrowctl.config.service import Service
from escrowctl.errors import ErrorCode, command, not_sent
from escrowctl.journal.accounts import account_of
from escrowctl.journal.model import Intent
from escrowctl.writes.requests import WriteRequest

_USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""As getpass.getuser() has them, in its order; importing getpass would import termios."""


def make_intent(service: Service, request: WriteRequest, idempotency_key: str, *, operator: str) -> Intent:
    """Return what the journal stores of a request; `operator` is who runs this."""
    options = request.options
    return Intent(
        operation=request.operation.name,
        service=service.identity,
        site=service.site,
        profile=service.name,
        method=request.operation.method,
        url=service.url(request.operation.fill(request.resource_id)),
        body=request.recorded_body,
        idempotency_key=idempotency_key,
        fingerprint=request.fingerprint,
        resource_id=request.resource_id,
        money=request.money,
        reference=options.reference,
        reason=options.reason,
        allowed_duplicates=options.allowed_duplicates,
        operator=operator,
        account=account_of(service),
    )


def require_writable(service: Service, journal_id: str) -> None:
    """Raise EscrowctlError where the profile forbids writes, or binds live ones to another journal.

    A lost journal has lost the guards.
    """
    if service.read_only:
        raise not_sent(ErrorCode.READ_ONLY, f"the profile {service.name} is read-only.")
    for pin in service.journal_pins if service.live else ():
        if pin.journal_id != journal_id:
            raise not_sent(
                ErrorCode.JOURNAL_UNUSABLE,
                f"this journal is {journal_id}, but {pin.source} requires {pin.journal_id}: "
                "this journal may lack earlier writes.",
                hint=(
                    command("config path", "to see where this journal is"),
                    f"restore journal {pin.journal_id}, or change {pin.source}",
                ),
            )


def operator_name() -> str:
    """Return who runs this, for the record: the user's name, or the uid where the machine has no name for it."""
    try:
        name = next(filter(None, map(os.environ.get, _USER_VARIABLES)), None) or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid={os.geteuid()}"
    # A name may come from the environment as bytes that are no text.
    return name.encode("utf-8", "replace").decode()
