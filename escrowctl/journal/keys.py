"""Check earlier uses of a write's idempotency key: a repeated write is not sent, a different write is refused."""

from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.fold import idempotency_keys
from escrowctl.journal.guards import earlier_unknown, identical_in_flight, refusal
from escrowctl.journal.model import KEY_REFUSED_STATUSES, Entry, Intent, State
from escrowctl.journal.reasons import Reason


def find_by_key(
    duplicates: list[Entry], intent: Intent, *, resend_throttled: bool
) -> tuple[Entry | None, Entry | None]:
    """Return (the entry already sent with an intent's key, the entry to send again). At least one is None.

    The outcome of an entry that was already sent is also the intent's. Several entries have one key only if one was
    imported, or if two accounts used the key. Raises EscrowctlError: `ErrorCode.KEY_REUSED` if the key was used
    for a different request, reference or batch, or with a different API key. `EARLIER_UNKNOWN` if the API key
    differs and the outcome is unknown. `BUSY` if the entry is in flight.
    """
    if not duplicates:
        return None, None
    keys = idempotency_keys(intent)
    found = [entry for entry in duplicates if keys & idempotency_keys(entry.intent)]
    for earlier in found:
        _check_request(earlier, intent)
        if earlier.state is State.IN_FLIGHT:
            raise identical_in_flight(earlier)
        if not _may_be_sent_again(earlier, resend_throttled=resend_throttled):
            _check_account(earlier, intent)
            return earlier, None
        _check_purpose(earlier, intent)
    return None, found[0] if found else None


def _may_be_sent_again(entry: Entry, *, resend_throttled: bool) -> bool:
    settlement = entry.settlement
    refused_for_now = settlement.http_status in KEY_REFUSED_STATUSES or (resend_throttled and settlement.may_repeat)
    return entry.state in (State.NOT_SENT, State.NOT_APPLIED) or (entry.state is State.REFUSED and refused_for_now)


def _check_request(earlier: Entry, intent: Intent) -> None:
    """Refuse a key that was used for a different request, or without the reference that the intent has."""
    then = (earlier.intent.method, earlier.intent.url, earlier.intent.body)
    if then != (intent.method, intent.url, intent.body):
        raise _reuse_error(earlier, "for a different request", Reason.KEY_OF_ANOTHER_REQUEST)
    reference, earlier_reference = intent.reference, earlier.intent.reference
    if reference is not None and reference != earlier_reference:
        # The current reference would not be recorded, so it would not prevent duplicates.
        used = f'the reference "{earlier_reference}"' if earlier_reference else "no reference"
        raise _reuse_error(earlier, f'with {used}, not with "{reference}"', Reason.KEY_OF_ANOTHER_REQUEST)


def _check_purpose(earlier: Entry, intent: Intent) -> None:
    """Refuse to send a write again if the recorded batch or reference differs: both prevent duplicates."""
    batch, reference = earlier.intent.batch, earlier.intent.reference
    if batch is not None and intent.batch != batch:
        facts = {} if earlier.origin else {"batch": batch}
        raise _reuse_error(earlier, f"for a row of batch {batch}", Reason.KEY_OF_BATCH, **facts)
    if intent.reference != reference:
        raise _reuse_error(earlier, f'with the reference "{reference}"', Reason.KEY_OF_REFERENCE, reference=reference)


def _check_account(earlier: Entry, intent: Intent) -> None:
    """Refuse to use an earlier write as an intent's result, unless both certainly belong to one account.

    Raises `ErrorCode.EARLIER_UNKNOWN` if the earlier outcome is unknown, otherwise `ErrorCode.KEY_REUSED`.
    """
    if intent.account.is_same(earlier.intent.account):
        return
    how = "with an API key that is unknown or not the current one"
    if earlier.state is State.UNKNOWN:
        raise earlier_unknown(earlier, f"{_describe_use(earlier, how)} The outcome of {earlier.name} is unknown.")
    raise _reuse_error(earlier, how, Reason.KEY_OF_ANOTHER_ACCOUNT)


def _reuse_error(earlier: Entry, how: str, reason: str, **facts: object) -> EscrowctlError:
    return refusal(ErrorCode.KEY_REUSED, _describe_use(earlier, how), earlier, reason, **facts)


def _describe_use(earlier: Entry, how: str) -> str:
    return f"{earlier.name} ({earlier.sent_at}) used the idempotency key {earlier.intent.idempotency_key} {how}."
