"""Make the intent that the journal stores before a write is sent, and check whether the write may be sent."""

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

_MONEY_WRITES = Selection(100, states=POSSIBLE_STATES, operations=(CREATE_TRANSACTION.name, RELEASE_TRANSACTION.name))
"""Selects the creates and releases that moved money, or may have."""

_USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""The variables that getpass.getuser() reads, in its order. To import getpass would also import termios."""


def account_of(service: Service) -> Account:
    """Return the account that this run uses at the service."""
    return Account(service.account, key=service.key)


def make_intent(service: Service, request: WriteRequest, idempotency_key: str, *, operator: str) -> Intent:
    """Return the intent that the journal stores for a request. `operator` is the user who runs escrowctl."""
    options = request.options
    return Intent(
        operation=request.operation.name,
        service=service.identity,
        site=service.site,
        profile=service.name,
        method=request.operation.method,
        url=service.make_url(request.operation.fill_path(request.resource_id)),
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
    """Raise EscrowctlError `JOURNAL_UNUSABLE` if the journal has no create or release at the service.

    It is called in live CI jobs. A job that starts with an empty disk has lost the journal, and could repeat
    payments.
    """
    if any(entry.intent.goes_to_service(service.journal_names) for entry in journal.select_all(_MONEY_WRITES)):
        return
    raise not_sent(
        ErrorCode.JOURNAL_UNUSABLE,
        f"the variable CI is set, and the journal in {journal.storage.location} has no write to {service.origin}: "
        "escrowctl cannot know which payments were sent before.",
        reason=Reason.NO_HISTORY,
    )


def is_reason_needed(service: Service, operation: Operation, journal: Journal) -> bool:
    """Whether a write needs a reason: it is the first live create in a journal that was made from an export."""
    return service.live and operation is CREATE_TRANSACTION and journal.needs_reason()


def require_reason(service: Service, operation: Operation, journal: Journal, reason: str | None) -> None:
    """Raise EscrowctlError `ErrorCode.CONFIRMATION_NEEDED` if this write needs a reason and `reason` is None."""
    if reason is None and is_reason_needed(service, operation, journal):
        raise not_sent(
            ErrorCode.CONFIRMATION_NEEDED,
            "this journal was made from an export: creates that were sent after the export may be missing.",
            reason=Reason.NEEDS_REASON,
        )


def operator_name() -> str:
    """Return the name of the user who runs escrowctl, or `uid=N` if the machine has no name for the user id."""
    try:
        name = next(filter(None, map(os.environ.get, _USER_VARIABLES)), None) or pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid={os.geteuid()}"
    # The environment may have a name that is not valid text.
    return name.encode("utf-8", "replace").decode()
