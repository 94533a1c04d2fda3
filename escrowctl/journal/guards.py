"""Refuse a write because of an earlier write in this journal, or because of another process."""

from collections.abc import Callable
from datetime import datetime

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, bad_value, not_sent
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys, reference_keys
from escrowctl.journal.model import DECIDED_APPLIED, Entry, Intent, Settlement, State
from escrowctl.journal.reasons import Reason
from escrowctl.runtime import describe_age


def check_duplicates(
    duplicates: list[Entry], intent: Intent, find_entry: Callable[[int], Entry | None], *, now: datetime
) -> None:
    """Refuse a write if it repeats one of `duplicates`, the entries that share a duplicate key with the write."""
    for number in intent.allowed_duplicates:
        if find_entry(number) is None:
            raise bad_value(f"there is no entry j{number} in this journal, so it cannot be an allowed duplicate.")
    if not duplicates:
        return
    keys, references = fingerprint_keys(intent), reference_keys(intent)
    check_identical(_find_identical(duplicates, intent, keys), intent, now=now)
    if intent.has_no_id:
        check_reference([entry for entry in duplicates if references & duplicate_keys(entry)], intent, now=now)


def check_identical(identical: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a write that is identical to an earlier write that may have happened.

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
                to_allow, earlier_write = [], f"the {intent.verb} of {entry.intent.resource_id}"
            raise _unknown_error(entry, earlier_write, now, to_allow=to_allow)


def _find_identical(entries: list[Entry], intent: Intent, keys: frozenset[int]) -> list[Entry]:
    """Return the entries with the same body or id. `keys` are the keys of the intent's fingerprints.

    Two creates that both have a reference are compared only by reference. A create with a reference may repeat a
    create without one: the service does not see references.
    """
    found = [entry for entry in entries if keys & duplicate_keys(entry)]
    return [entry for entry in found if intent.reference is None or entry.intent.reference is None]


def check_reference(same_reference: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a create if an earlier create has the same reference: one reference, one escrow.

    Exception: a batch with a run key may repeat an allowed duplicate that is done and belongs to another run.
    Raises EscrowctlError: `ErrorCode.EARLIER_UNKNOWN` if the earlier create is unknown, `BUSY` if it is in flight,
    `REFERENCE_REUSED` if it is done.
    """
    for entry in same_reference:
        if entry.state is State.UNKNOWN:
            earlier_write = f'the create under the reference "{intent.reference}"'
            raise _unknown_error(entry, earlier_write, now, to_allow=[])
        if entry.state is State.IN_FLIGHT:
            raise identical_in_flight(entry)
        is_other_run = bool(intent.run_key) and intent.run_key != entry.intent.run_key
        is_repeated = is_other_run and entry.number in intent.allowed_duplicates
        if entry.state is State.DONE and not is_repeated:
            escrow = entry.settlement.result_id or f"an earlier {entry.intent.verb}"
            raise refusal(
                ErrorCode.REFERENCE_REUSED,
                f'{escrow} already has the reference "{entry.intent.reference}" ({entry.name}, {entry.sent_at}).',
                entry,
                Reason.REFERENCE_REUSED,
            )


def lock_wait_expired(seconds: float) -> EscrowctlError:
    """Return the error for a write that waited too long for a lock that another process holds."""
    return _busy_error(f"escrowctl waited {seconds:g} s, but another process is still working on the same write.")


def entry_locked(number: int) -> EscrowctlError:
    """Return the error for an entry whose lock another process holds."""
    return _busy_error(f"another process is working on journal entry j{number}.")


def entry_changed(entry: Entry) -> EscrowctlError:
    """Return the error for an entry that another process changed after this command read it."""
    return refusal(ErrorCode.BUSY, f"another process changed {entry.name} since this command read it.", entry)


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
    return refusal(
        ErrorCode.BUSY, f"another process is sending the same {entry.intent.verb} now ({entry.name}).", entry
    )


def _busy_error(message: str) -> EscrowctlError:
    return not_sent(ErrorCode.BUSY, message, effect=Effect.NOTHING_SENT_NOW, reason=Reason.BUSY)


def _similar_id_error(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    typed_id, earlier_id = intent.resource_id, entry.intent.resource_id
    age = describe_age(entry.settled_at or entry.sent_at, now)
    return refusal(
        ErrorCode.CONFLICT,
        f"{earlier_id} {_was_done(entry)} {age} ({entry.name}). "
        f"{typed_id} differs only in case or Unicode form: some services treat both ids as the same escrow.",
        entry,
        Reason.ID_SPELLED_DIFFERENTLY,
        id=typed_id,
    )


def _was_done(entry: Entry) -> str:
    if entry.state is State.DONE and entry.settlement.verified:
        return f"was {entry.intent.past_participle}"
    return f"may have been {entry.intent.past_participle}"


def _already_done_error(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    imported = f", imported from journal {entry.origin}" if entry.origin else ""
    when = f"{describe_age(entry.settled_at or entry.sent_at, now)} ({entry.name}{imported})"
    typed_id, earlier_id = intent.resource_id, entry.intent.resource_id
    write = f"the {intent.verb} of {typed_id}"
    if not intent.account.is_same(entry.intent.account):
        return refusal(
            ErrorCode.CONFLICT,
            f"{typed_id} {_was_done(entry)} {when} with an API key that is unknown or not the current one: "
            "the escrow may belong to another account.",
            entry,
            Reason.ID_OF_ANOTHER_ACCOUNT,
            id=typed_id,
        )
    sentence = (
        f"escrowctl already {intent.past_participle} {typed_id} {when}."
        if entry.settlement.verified
        else f"{when} an operator recorded that {write} was applied."
        if entry.settlement.detail == DECIDED_APPLIED
        else f"the service already accepted {write} {when}, but no read has confirmed it."
    )
    alias = "" if typed_id == earlier_id else f" In {entry.name} the id is written {earlier_id}."
    reason = "" if entry.settlement.verified else Reason.NOT_VERIFIED
    return refusal(ErrorCode.ALREADY_DONE, f"{sentence}{alias}", entry, reason)


def _unknown_error(entry: Entry, earlier_write: str, now: datetime, *, to_allow: list[int]) -> EscrowctlError:
    """Return the error for a write that may repeat `entry`, an unknown one. `to_allow`: the entries to allow."""
    money = [str(entry.intent.money)] if entry.intent.money else []
    details = ", ".join([*money, describe_age(entry.sent_at, now), entry.name])
    return earlier_unknown(
        entry,
        f"{earlier_write} ({details}) still has an unknown outcome.",
        duplicates=[f"j{number}" for number in to_allow],
        verb=entry.intent.verb,
    )


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
