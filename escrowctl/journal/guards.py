"""Refuse a write because of an earlier write in this journal, or because of another process.

Also: find the result of a write that was already sent with the same idempotency key, and correct a create's outcome
if another create has the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from escrowctl.contract.operations import CREATE_TRANSACTION
from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, Reason, bad_value, not_sent
from escrowctl.journal.account import Account
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys, reference_keys
from escrowctl.journal.model import DECIDED_APPLIED, KEY_REFUSED_STATUSES, Entry, Intent, Settlement, State
from escrowctl.runtime import describe_age


def check_duplicates(
    duplicates: list[Entry], intent: Intent, find_entry: Callable[[int], Entry | None], *, now: datetime
) -> None:
    """Refuse a write if it repeats one of `duplicates`, the entries that share a duplicate key with the write."""
    for number in intent.allowed_duplicates:
        if find_entry(number) is None:
            raise bad_value(f"there is no entry j{number} in this journal, so it cannot be an allowed duplicate.")
    keys, references = fingerprint_keys(intent), reference_keys(intent)
    # Two creates that both have a reference are compared only by reference. A create with a reference may repeat a
    # create without one: the service does not see references.
    identical = [
        entry
        for entry in duplicates
        if keys & duplicate_keys(entry) and (intent.reference is None or entry.intent.reference is None)
    ]
    if intent.is_once_only or not intent.already_sent:  # identical creates may both be lost
        check_identical(identical, intent, now=now)
    if intent.has_no_id:
        check_reference([entry for entry in duplicates if references & duplicate_keys(entry)], intent, now=now)


def check_identical(identical: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a write that is identical to an earlier write that may have happened.

    All once-only writes to one record count as identical.

    Raises EscrowctlError:
        `BUSY` if the earlier write is in flight.
        `CONFLICT` if both are once-only with ids that differ only in case or Unicode form. Allowed duplicates pass.
        `ALREADY_DONE` if the earlier write is done and once-only; `CONFLICT` if its account may be a different one.
        `EARLIER_UNKNOWN` if the earlier write is unknown. An allowed duplicate passes if it is not once-only.
    A create or update may be identical to a done one: both may be intended.
    """
    for entry in identical:
        if entry.state is State.IN_FLIGHT:
            raise identical_in_flight(entry)
        if intent.is_once_only and not intent.has_same_id(entry.intent):
            if entry.number not in intent.allowed_duplicates:
                raise _similar_id_error(entry, intent, now)
        elif entry.state is State.DONE and intent.is_once_only:
            raise _already_done_error(entry, intent, now)
        elif entry.state is State.UNKNOWN and (intent.is_once_only or entry.number not in intent.allowed_duplicates):
            to_allow = sorted(other.number for other in identical if other.state is State.UNKNOWN)
            earlier_write = f"an identical {intent.verb}"
            if entry.intent.reference:
                earlier_write += f' under the reference "{entry.intent.reference}"'
            if intent.is_once_only:
                # No entry can be allowed: a once-only write is never intended twice.
                to_allow, earlier_write = [], f"the {entry.intent.verb} of {entry.intent.resource_id}"
            raise _unknown_error(entry, earlier_write, now, to_allow=to_allow)


def check_reference(same_reference: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a create if an earlier create has the same reference: one reference, one escrow.

    Exception: a batch with a run key may repeat an allowed duplicate that is done and belongs to another run.
    Raises EscrowctlError: `ErrorCode.EARLIER_UNKNOWN` if the earlier create is unknown, `BUSY` if it is in flight,
    `REFERENCE_REUSED` if it is done.
    """
    for entry in same_reference:
        if entry.state is State.UNKNOWN:
            raise _unknown_error(entry, f'the create under the reference "{intent.reference}"', now, to_allow=[])
        if entry.state is State.IN_FLIGHT:
            raise identical_in_flight(entry)
        is_other_run = bool(intent.run_key) and intent.run_key != entry.intent.run_key
        if entry.state is State.DONE and not (is_other_run and entry.number in intent.allowed_duplicates):
            escrow = entry.settlement.result_id or f"an earlier {entry.intent.verb}"
            message = f'{escrow} already has the reference "{entry.intent.reference}" ({entry.name}, {entry.sent_at}).'
            raise refusal(ErrorCode.REFERENCE_REUSED, message, entry, Reason.REFERENCE_REUSED)


def find_by_key(
    duplicates: list[Entry], intent: Intent, *, resend_throttled: bool
) -> tuple[Entry | None, Entry | None]:
    """Return (the entry already sent with an intent's key, the entry to send again). At least one is None.

    The outcome of an entry that was already sent is also the intent's. Several entries have one key only if one was
    imported, or if two accounts used the key. Raises EscrowctlError: `ErrorCode.KEY_REUSED` if the key was used
    for a different request, reference or batch, or with a different API key. `EARLIER_UNKNOWN` if the API key
    differs and the outcome is unknown. `BUSY` if the entry is in flight.
    """
    found = [
        entry
        for entry in duplicates
        if entry.intent.idempotency_key == intent.idempotency_key
        # What was recorded by mistake, and never sent, does not use up its key.
        and not (entry.intent.already_sent and entry.state is State.NOT_APPLIED)
    ]
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
    if (earlier.intent.method, earlier.intent.url, earlier.intent.body) != (intent.method, intent.url, intent.body):
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


def is_other_done(entry: Entry, other: Entry, account: Account | None = None) -> bool:
    """Whether `other` is not `entry`, is done, has the same operation and service, and may have the same account.

    If `account` is given, it is compared in place of the account of `entry`.
    """
    mine, theirs = entry.intent, other.intent
    return (
        (other.state, theirs.operation) == (State.DONE, mine.operation)
        and other.number != entry.number
        and mine.shares_service(theirs)
        and not (account or mine.account).is_other(theirs.account)
    )


def correct_shared_id(entry: Entry, settlement: Settlement, others: Iterable[Entry]) -> Settlement:
    """Return the settlement of a create, corrected if one of the entries in `others` created the same id.

    If the create was proven by its reply, it stays done and gets a remark. If it was proven only by a read, it
    becomes unknown. Webhooks are not compared: a service may return an existing endpoint again.
    """
    created_id = settlement.result_id
    if settlement.state is not State.DONE or created_id is None or entry.intent.operation != CREATE_TRANSACTION.name:
        return settlement
    other = next((one for one in others if one.settlement.result_id == created_id and is_other_done(entry, one)), None)
    if other is None:
        return settlement
    if settlement.verified:
        detail = f"{settlement.http_status}, but {created_id} is also the id of {other.name}"
        return settlement._replace(outcome=Outcome.UNKNOWN, detail=detail, result_id=None, verified=False, remark=None)
    return settlement._replace(remark=" and ".join(filter(None, (settlement.remark, f"{other.name} has the same id"))))


def entry_taken_over(entry: Entry, settlement: Settlement) -> EscrowctlError:
    """Return the error for an attempt if another process changed its entry while the attempt was being sent."""
    verb = entry.intent.verb
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the {verb} of this command is {settlement.description}, but another process changed {entry.name} meanwhile "
        f"and may have sent the same {verb}. Do not repeat the command.",
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": settlement.http_status, "result_id": settlement.result_id},
        reason=Reason.TAKEN_OVER,
    )


def identical_in_flight(entry: Entry) -> EscrowctlError:
    """Return the error for a write while another process sends an identical write, recorded as `entry`."""
    intent = entry.intent
    return refusal(ErrorCode.BUSY, f"{intent.sender} is sending the same {intent.verb} now ({entry.name}).", entry)


def _similar_id_error(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    typed_id, earlier_id = intent.resource_id, entry.intent.resource_id
    age = describe_age(entry.settled_at or entry.sent_at, now)
    message = (
        f"{earlier_id} {_was_done(entry)} {age} ({entry.name}). "
        f"{typed_id} differs only in case or Unicode form: some services treat both ids as the same escrow."
    )
    return refusal(ErrorCode.CONFLICT, message, entry, Reason.ID_SPELLED_DIFFERENTLY, id=typed_id)


def _was_done(entry: Entry) -> str:
    if entry.state is State.DONE and entry.settlement.verified:
        return f"was {entry.intent.past_participle}"
    return f"may have been {entry.intent.past_participle}"


def _already_done_error(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    imported = f", imported from journal {entry.origin}" if entry.origin else ""
    when = f"{describe_age(entry.settled_at or entry.sent_at, now)} ({entry.name}{imported})"
    typed_id, earlier_id = intent.resource_id, entry.intent.resource_id
    write = f"the {entry.intent.verb} of {typed_id}"
    if not intent.account.is_same(entry.intent.account):
        message = (
            f"{typed_id} {_was_done(entry)} {when} with an API key that is unknown or not the current one: "
            "the escrow may belong to another account."
        )
        return refusal(ErrorCode.CONFLICT, message, entry, Reason.ID_OF_ANOTHER_ACCOUNT, id=typed_id)
    if entry.settlement.detail == DECIDED_APPLIED:
        sentence = f"{when} an operator recorded that {write} was applied."
    elif entry.settlement.verified:
        sentence = f"escrowctl already {entry.intent.past_participle} {typed_id} {when}."
    else:
        sentence = f"the service already accepted {write} {when}, but no read has confirmed it."
    alias = "" if typed_id == earlier_id else f" In {entry.name} the id is written {earlier_id}."
    reason = "" if entry.settlement.verified else Reason.NOT_VERIFIED
    # Another kind of write is not what was asked for: it cannot be skipped as done.
    code = ErrorCode.ALREADY_DONE if entry.intent.operation == intent.operation else ErrorCode.CONFLICT
    return refusal(code, f"{sentence}{alias}", entry, reason)


def _unknown_error(entry: Entry, earlier_write: str, now: datetime, *, to_allow: list[int]) -> EscrowctlError:
    """Return the error for a write that may repeat `entry`, an unknown one. `to_allow`: the entries to allow."""
    money = [str(entry.intent.money)] if entry.intent.money else []
    details = ", ".join([*money, describe_age(entry.sent_at, now), entry.name])
    message = f"{earlier_write} ({details}) still has an unknown outcome."
    return earlier_unknown(entry, message, duplicates=[f"j{number}" for number in to_allow], verb=entry.intent.verb)


def earlier_unknown(entry: Entry, sentence: str, **facts: object) -> EscrowctlError:
    """Return the error for a write that is refused because the outcome of an earlier one is unknown."""
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN,
        sentence,
        effect=Effect.NOTHING_SENT_NOW,
        outcome=Outcome.UNKNOWN,
        facts=entry.facts | facts,
        reason=Reason.EARLIER_UNKNOWN,
    )


def refusal(code: ErrorCode, sentence: str, entry: Entry, reason: str = "", **facts: object) -> EscrowctlError:
    """Return the error for a write that is refused because of an earlier entry. The error has the entry's facts."""
    return not_sent(code, sentence, effect=Effect.NOTHING_SENT_NOW, facts=entry.facts | facts, reason=reason)
