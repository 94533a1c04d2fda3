"""Earlier uses of a write's idempotency key: for the same write, which is not sent twice, or for another write."""

from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.fold import idempotency_keys
from escrowctl.journal.guards import busy, refusal, unknown
from escrowctl.journal.model import KEY_REFUSED, Entry, Intent, State
from escrowctl.journal.reasons import Reason


def find_by_key(
    duplicates: list[Entry], intent: Intent, *, resend_throttled: bool
) -> tuple[Entry | None, Entry | None]:
    """Return the entry that used an intent's key: (its result, None), (None, an entry to send again) or (None, None).

    Several entries have the key only if one was imported, or another account used it. Raises EscrowctlError:
    `ErrorCode.KEY_REUSED` if the key was used for another request or purpose, or with another API key
    (EARLIER_UNKNOWN if that outcome is unknown); `ErrorCode.BUSY` if it is in flight elsewhere.
    """
    if not duplicates:
        return None, None
    keys = idempotency_keys(intent)
    found = [entry for entry in duplicates if keys & idempotency_keys(entry.intent)]
    for earlier in found:
        _check_request(earlier, intent)
        if earlier.state is State.IN_FLIGHT:
            raise busy(earlier)
        if not _may_be_sent_again(earlier, resend_throttled=resend_throttled):
            _check_account(earlier, intent)
            return earlier, None
        _check_purpose(earlier, intent)
    return None, found[0] if found else None


def _may_be_sent_again(entry: Entry, *, resend_throttled: bool) -> bool:
    settlement = entry.settlement
    refused_for_now = settlement.http_status in KEY_REFUSED or (resend_throttled and settlement.may_repeat)
    return entry.state in (State.NOT_SENT, State.NOT_APPLIED) or (entry.state is State.REFUSED and refused_for_now)


def _check_request(earlier: Entry, intent: Intent) -> None:
    """Refuse a key that was used for another request, or for this request without its current reference."""
    then = (earlier.intent.method, earlier.intent.url, earlier.intent.body)
    if then != (intent.method, intent.url, intent.body):
        raise _reused(earlier, "for a different request", Reason.KEY_OF_ANOTHER_REQUEST)
    reference, now = earlier.intent.reference, intent.reference
    if now is not None and now != reference:
        # The current reference would not be recorded, so it would guard nothing.
        how = f'the reference "{reference}"' if reference else "no reference"
        raise _reused(earlier, f'with {how}, not with "{now}"', Reason.KEY_OF_ANOTHER_REQUEST)


def _check_purpose(earlier: Entry, intent: Intent) -> None:
    """Refuse to send a write again without its recorded reference or batch: both guard against duplicates."""
    batch, reference = earlier.intent.batch, earlier.intent.reference
    if batch is not None and intent.batch != batch:
        own = {} if earlier.origin else {"batch": batch}
        raise _reused(earlier, f"for a row of {batch}", Reason.KEY_OF_BATCH, **own)
    if intent.reference != reference:
        raise _reused(earlier, f'with the reference "{reference}"', Reason.KEY_OF_REFERENCE, reference=reference)


def _check_account(earlier: Entry, intent: Intent) -> None:
    """Refuse an earlier write as this one's result, unless both were certainly sent under one account.

    Raises `ErrorCode.EARLIER_UNKNOWN` if the earlier outcome is unknown, otherwise `ErrorCode.KEY_REUSED`.
    """
    if intent.account.is_same(earlier.intent.account):
        return
    how = "with another API key, or the journal does not know which"
    if earlier.state is State.UNKNOWN:
        raise unknown(earlier, f"{_used(earlier, how)} Its outcome is unknown.")
    raise _reused(earlier, how, Reason.KEY_OF_ANOTHER_ACCOUNT)


def _reused(earlier: Entry, how: str, reason: str, **facts: object) -> EscrowctlError:
    return refusal(ErrorCode.KEY_REUSED, _used(earlier, how), earlier, reason, **facts)


def _used(earlier: Entry, how: str) -> str:
    return f"{earlier.name} ({earlier.sent_at}) used the idempotency key {earlier.intent.idempotency_key} {how}."
