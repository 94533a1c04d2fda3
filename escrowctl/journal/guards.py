"""Refusals of a write: because of an earlier write in this journal, or another process."""

from collections.abc import Callable
from datetime import datetime

from escrowctl.errors import Effect, ErrorCode, EscrowctlError, Outcome, bad_value, not_sent
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys, reference_keys
from escrowctl.journal.model import DECIDED_APPLIED, Entry, Intent, Settlement, State
from escrowctl.journal.reasons import Reason
from escrowctl.runtime import ago


def check_duplicates(
    duplicates: list[Entry], intent: Intent, find: Callable[[int], Entry | None], *, now: datetime
) -> None:
    """Refuse a write that repeats one of these entries. Each shares a duplicate key with it; `find` finds an entry."""
    for number in intent.allowed_duplicates:
        if find(number) is None:
            raise bad_value(f"there is no entry j{number} in this journal, so it cannot be an allowed duplicate.")
    if not duplicates:
        return
    keys, references = fingerprint_keys(intent), reference_keys(intent)
    check_identical(_find_identical(duplicates, intent, keys), intent, now=now)
    if intent.has_no_id:
        check_reference([entry for entry in duplicates if references & duplicate_keys(entry)], intent, now=now)


def check_identical(identical: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a write that is identical to an earlier write that may have happened.

    Raises EscrowctlError: `ErrorCode.BUSY` if the earlier write is in flight elsewhere; `EARLIER_UNKNOWN` if it is
    unknown and not an allowed duplicate (a once-only write cannot be allowed); `ALREADY_DONE` if it is done and
    once-only (`CONFLICT` if it may belong to another account); `CONFLICT` if both are once-only, their ids differ
    only in case or Unicode form, and it is not an allowed duplicate. Any other write may be identical to a done
    write: the same amount twice is legitimate.
    """
    for entry in identical:
        if entry.state is State.IN_FLIGHT:
            raise busy(entry)
        if intent.is_once_only and not intent.has_same_id(entry.intent):
            if entry.number not in intent.allowed_duplicates:
                raise _confusable(entry, intent, now)
        elif entry.state is State.DONE and intent.is_once_only:
            raise _already_done(entry, intent, now)
        elif entry.state is State.UNKNOWN and (intent.is_once_only or entry.number not in intent.allowed_duplicates):
            needed = sorted(other.number for other in identical if other.state is State.UNKNOWN)
            like = f"an identical {intent.verb}"
            if entry.intent.reference:
                like += f' under the reference "{entry.intent.reference}"'
            if intent.is_once_only:
                # It is never intended twice.
                needed, like = [], f"the {intent.verb} of {entry.intent.resource_id}"
            raise _earlier_unknown(entry, like, now, needed=needed)


def _find_identical(entries: list[Entry], intent: Intent, keys: frozenset[int]) -> list[Entry]:
    """Return the entries with the same body or id. Two creates that both have a reference are compared only by it.

    A reference does not leave this machine: a create with a reference may repeat a create without one.
    """
    found = [entry for entry in entries if keys & duplicate_keys(entry)]
    return [entry for entry in found if intent.reference is None or entry.intent.reference is None]


def check_reference(under_reference: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a create whose reference an earlier create has: one reference, one escrow.

    Only a batch with a run key may repeat a done create, if that is an allowed duplicate of another run.
    Raises EscrowctlError `ErrorCode.EARLIER_UNKNOWN`, `BUSY` or `REFERENCE_REUSED`, by the earlier state.
    """
    for entry in under_reference:
        if entry.state is State.UNKNOWN:
            like = f'the create under the reference "{intent.reference}"'
            raise _earlier_unknown(entry, like, now, needed=[])
        if entry.state is State.IN_FLIGHT:
            raise busy(entry)
        is_other_run = bool(intent.run_key) and intent.run_key != entry.intent.run_key
        is_repeated = is_other_run and entry.number in intent.allowed_duplicates
        if entry.state is State.DONE and not is_repeated:
            what = entry.settlement.result_id or f"an earlier {entry.intent.verb}"
            raise refusal(
                ErrorCode.REFERENCE_REUSED,
                f'{what} already has the reference "{entry.intent.reference}" ({entry.name}, {entry.sent_at}).',
                entry,
                Reason.REFERENCE_REUSED,
            )


def busy_elsewhere(seconds: float) -> EscrowctlError:
    """Return the refusal to wait any longer for a lock that another process holds."""
    return _busy(f"escrowctl waited {seconds:g} s for another process that works on the same write.")


def taken(number: int) -> EscrowctlError:
    """Return the refusal to work on an entry whose lock another process holds."""
    return _busy(f"another process is working on journal entry j{number}.")


def changed(entry: Entry) -> EscrowctlError:
    """Return the refusal to continue with an entry that another process has changed meanwhile."""
    return refusal(ErrorCode.BUSY, f"another process changed {entry.name} since this command read it.", entry)


def taken_over(entry: Entry, settlement: Settlement) -> EscrowctlError:
    """Return the error of an attempt whose entry another process took over while it was being sent."""
    verb = entry.intent.verb
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the {verb} of this command is {settlement.described}, but another process changed {entry.name} meanwhile and "
        f"may have sent the same {verb}. Do not repeat the command.",
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": settlement.http_status, "result_id": settlement.result_id},
        reason=Reason.TAKEN_OVER,
    )


def busy(entry: Entry) -> EscrowctlError:
    """Return the refusal of a write while another process sends an identical one."""
    return refusal(
        ErrorCode.BUSY, f"another process is sending the same {entry.intent.verb} now ({entry.name}).", entry
    )


def _busy(message: str) -> EscrowctlError:
    return not_sent(ErrorCode.BUSY, message, effect=Effect.NOTHING_SENT_NOW, reason=Reason.BUSY)


def _confusable(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    typed, then = intent.resource_id, entry.intent.resource_id
    return refusal(
        ErrorCode.CONFLICT,
        f"{then} {_how_done(entry)} {ago(entry.settled_at or entry.sent_at, now)} ({entry.name}). "
        f"{typed} differs only in case or Unicode form: some services treat both as the same escrow.",
        entry,
        Reason.ID_WRITTEN_OTHERWISE,
        id=typed,
    )


def _how_done(entry: Entry) -> str:
    if entry.state is State.DONE and entry.settlement.verified:
        return f"was {entry.intent.done}"
    return f"may have been {entry.intent.done}"


def _already_done(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    imported = f", imported from journal {entry.origin}" if entry.origin else ""
    when = f"{ago(entry.settled_at or entry.sent_at, now)} ({entry.name}{imported})"
    typed, then, what = intent.resource_id, entry.intent.resource_id, f"the {intent.verb} of {intent.resource_id}"
    if not intent.account.is_same(entry.intent.account):
        return refusal(
            ErrorCode.CONFLICT,
            f"{typed} {_how_done(entry)} {when}, with another API key, or the journal does not know which: that "
            "escrow may belong to another account.",
            entry,
            Reason.ID_OF_ANOTHER_ACCOUNT,
            id=typed,
        )
    sentence = (
        f"escrowctl already {intent.done} {typed} {when}."
        if entry.settlement.verified
        else f"{when} an operator recorded that {what} was applied."
        if entry.settlement.detail == DECIDED_APPLIED
        else f"the service already accepted {what} {when}; the journal has it as accepted, not as confirmed."
    )
    alias = "" if typed == then else f" In {entry.name} the id is written {then}."
    reason = "" if entry.settlement.verified else Reason.NOT_VERIFIED
    return refusal(ErrorCode.ALREADY_DONE, f"{sentence}{alias}", entry, reason)


def _earlier_unknown(entry: Entry, like: str, now: datetime, *, needed: list[int]) -> EscrowctlError:
    """Return the refusal of a write like an unknown one. `needed`: it passes if it may repeat these entries."""
    facts = [str(entry.intent.money)] if entry.intent.money else []
    facts += [ago(entry.sent_at, now), entry.name]
    return unknown(
        entry,
        f"{like} ({', '.join(facts)}) still has an unknown outcome.",
        duplicates=[f"j{number}" for number in needed],
        verb=entry.intent.verb,
    )


def unknown(entry: Entry, sentence: str, **facts: object) -> EscrowctlError:
    """Return the refusal of a write because of an earlier one with an unknown outcome."""
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN,
        sentence,
        effect=Effect.NOTHING_SENT_NOW,
        outcome=Outcome.UNKNOWN,
        facts=entry.facts | facts,
        reason=Reason.EARLIER_UNKNOWN,
    )


def refusal(code: ErrorCode, sentence: str, entry: Entry, reason: str = "", **facts: object) -> EscrowctlError:
    """Return the refusal of a write because of an earlier one."""
    return not_sent(code, sentence, effect=Effect.NOTHING_SENT_NOW, facts=entry.facts | facts, reason=reason)
