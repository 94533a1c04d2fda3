"""The intent that the journal stores before a write is sent, and checks that may forbid to send it from here."""

import os
import pwd

from escrowctl.config.service import Service
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION, Operation
from escrowctl.errors import ErrorCode, not_sent
from escrowctl.journal.accounts import Account
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import POSSIBLE_STATES, Intent, Selection
from escrowctl.journal.reasons import Reason
from escrowctl.writes.requests import WriteRequest

_LIVE_WRITES = Selection(100, states=POSSIBLE_STATES, operations=(CREATE_TRANSACTION.name, RELEASE_TRANSACTION.name))
"""Writes that moved money, or may have: a journal with one of them has a history."""

_USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""As getpass.getuser() has them, in its order; importing getpass would import termios."""


def account_of(service: Service) -> Account:
    """Return the account that this run reads and writes under."""
    return Account(service.account, key=service.key)


def make_intent(service: Service, request: WriteRequest, idempotency_key: str, *, operator: str) -> Intent:
    """Return the intent that the journal stores for a request. `operator` is the name of the user who runs this."""
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


def require_writable(service: Service) -> None:
    """Raise EscrowctlError `READ_ONLY` if the profile forbids writes."""
    if service.read_only:
        raise not_sent(ErrorCode.READ_ONLY, f"the profile {service.name} is read-only.")


def require_history(service: Service, journal: Journal) -> None:
    """Raise EscrowctlError `JOURNAL_UNUSABLE` if the journal has no create or release at the service: for live CI jobs.

    A runner that starts with an empty disk has lost the guards: it would repeat earlier payments.
    """
    if any(entry.intent.is_known_as(service.names) for entry in journal.all(_LIVE_WRITES)):
        return
    raise not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"CI is set, and the journal in {journal.storage.where} has no earlier write to {service.origin}: "
        "it cannot know what was sent before.",
        reason=Reason.NO_HISTORY,
    )


def is_reason_needed(service: Service, operation: Operation, journal: Journal) -> bool:
    """Whether this is the first live create since the journal was made from an export, which may miss writes."""
    return service.live and operation is CREATE_TRANSACTION and journal.asks_reason()


def require_reason(service: Service, operation: Operation, journal: Journal, reason: str | None) -> None:
    """Raise EscrowctlError `ErrorCode.CONFIRMATION_NEEDED` if this create needs a reason and has none."""
    if reason is None and is_reason_needed(service, operation, journal):
        raise not_sent(
            ErrorCode.CONFIRMATION_NEEDED,
            "this journal was made from an export, which may miss creates that were sent after it.",
            reason=Reason.NEEDS_REASON,
        )


def operator_name() -> str:
    """Return the name of the user who runs this, or `uid=N` if the machine has no name for the uid."""
    try:
        name = next(filter(None, map(os.environ.get, _USER_VARIABLES)), None) or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid={os.geteuid()}"
    # A name may come from the environment as bytes that are no text.
    return name.encode("utf-8", "replace").decode()
