"""Refusals of a write: because of an earlier write in this journal, another process, or a cap."""

import shlex
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from escrowctl.contract.money import Money
from escrowctl.contract.operations import CREATE_TRANSACTION, CREATE_WEBHOOK
from escrowctl.errors import (
    NOTHING_SENT_NOW,
    ErrorCode,
    EscrowctlError,
    Hint,
    Hints,
    Outcome,
    bad_value,
    command,
    not_sent,
)
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys, reference_keys
from escrowctl.journal.model import DECIDED_APPLIED, Entry, Intent, Settlement, State
from escrowctl.runtime import ago

WHAT_THIS_KEY_SHOWS = "to read it with the current API key"


def check_duplicates(
    duplicates: list[Entry], intent: Intent, find: Callable[[int], Entry | None], *, now: datetime
) -> None:
    """Refuse a write that repeats one of these entries. Each shares a duplicate key with it; `find` finds an entry."""
    for number in intent.allowed_duplicates:
        if find(number) is None:
            raise no_such_entry(number)
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
            may_repeat = not intent.is_once_only
            unknown = sorted(other.number for other in identical if may_repeat and other.state is State.UNKNOWN)
            raise _earlier_unknown(entry, _name(entry), now, needed=unknown)


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
            created, reference = entry.settlement.result_id, entry.intent.reference
            what = created or f"an earlier {entry.intent.verb}"
            raise refusal(
                ErrorCode.REFERENCE_REUSED,
                f'{what} already has the reference "{reference}" ({entry.name}, {entry.sent_at}).',
                entry,
                hint=command(f"tx get {shlex.quote(created)}", "to see that escrow")
                if created
                else command(f"journal show {entry.name}"),
            )


def require_countable(intent: Intent, caps: Mapping[str, Decimal]) -> Money:
    """Return the money that a write under caps moves. Raises `ErrorCode.CAPPED` if the caps cannot count it."""
    limited = f"the profile {intent.profile} has caps"
    if intent.money is None:
        raise _capped(
            intent, f"{limited}, and escrowctl cannot tell the amount of this {intent.verb}, so it is refused."
        )
    if intent.money.amount <= 0:
        raise _capped(
            intent, f"{limited}, but the amount of this {intent.verb} is {intent.money}: it must be above zero."
        )
    if (currency := intent.money.currency) not in caps:
        raise _capped(intent, f"{limited}, but no cap for {currency}, so {currency} is refused.")
    return intent.money


def uncountable(intent: Intent, *, day: str) -> EscrowctlError:
    """Return the refusal of a write under caps if the amount of another write of the day is not known."""
    verb = intent.verb
    return _capped(
        intent,
        f"the profile {intent.profile} has caps, and an earlier {verb} since {day} (UTC) has no known amount, so that "
        f"what {verb}s come to today is not known.",
        hint=command(f"journal list --since {day} --operation {verb}", "to see which", bare=True),
    )


def over_cap(intent: Intent, money: Money, *, cap: Decimal, spent: Decimal, day: str) -> EscrowctlError:
    """Return the refusal of a write that would bring a day's writes of its operation above the profile's cap."""
    verb, currency = intent.verb, money.currency
    this = (
        f"All rows together are {money}"
        if intent.batch is not None and intent.line is None
        else f"This {verb} is {money}"
    )
    return _capped(
        intent,
        f"the profile {intent.profile} caps {verb}s at {cap} {currency} a day (UTC). Counted since {day}: {spent} "
        f"{currency} (done or unknown, as often as it was sent). {this}.",
        hint=command(f"journal list --since {day} --operation {verb}", "to see what counts", bare=True),
    )


def no_such_entry(number: int) -> EscrowctlError:
    """Return the refusal of `--allow-duplicate` with an entry that does not exist: a typo allows nothing."""
    return bad_value(
        f"--allow-duplicate j{number}: there is no such entry in this journal.", hint=command("journal list")
    )


def busy_elsewhere(seconds: float) -> EscrowctlError:
    """Return the refusal to wait any longer for a lock that another process holds."""
    return not_sent(
        ErrorCode.BUSY,
        f"escrowctl waited {seconds:g} s for another process that works on the same write.",
        hint=command("journal list", "to see its result before you repeat the command"),
        effect=NOTHING_SENT_NOW,
    )


def taken(number: int) -> EscrowctlError:
    """Return the refusal to work on an entry whose lock another process holds."""
    return not_sent(
        ErrorCode.BUSY,
        f"another process is working on journal entry j{number}.",
        hint=command("journal list"),
        effect=NOTHING_SENT_NOW,
    )


def changed(entry: Entry) -> EscrowctlError:
    """Return the refusal to continue with an entry that another process has changed meanwhile."""
    return refusal(ErrorCode.BUSY, f"another process changed {entry.name} since this command read it.", entry)


def taken_over(entry: Entry, settlement: Settlement) -> EscrowctlError:
    """Return the error of an attempt whose entry another process took over while it was being sent."""
    made = f", id {settlement.result_id}" if settlement.result_id else ""
    state = settlement.state.value.replace("_", " ")
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the {entry.intent.verb} of this command is {state} ({settlement.detail}{made}), but another process changed "
        f"{entry.name} meanwhile and may have sent the same {entry.intent.verb}. Do not repeat the command.",
        hint=(
            command("journal list", "to see both attempts"),
            "always use the same path to the journal's folder: locks may not work across two paths",
        ),
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": settlement.http_status, "result_id": settlement.result_id},
    )


def busy(entry: Entry) -> EscrowctlError:
    """Return the refusal of a write while another process sends an identical one."""
    return refusal(
        ErrorCode.BUSY, f"another process is sending the same {entry.intent.verb} now ({entry.name}).", entry
    )


def _confusable(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    typed, then = intent.resource_id, entry.intent.resource_id
    return refusal(
        ErrorCode.CONFLICT,
        f"{then} {_how_done(entry)} {ago(entry.settled_at or entry.sent_at, now)} ({entry.name}). "
        f"{typed} differs only in case or Unicode form: some services treat both as the same escrow.",
        entry,
        hint=(
            command(f"tx get {typed}", "to see what the service reports"),
            Hint(f"repeat the command with --allow-duplicate {entry.name}", "if both are separate escrows"),
        ),
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
            hint=(
                command(f"tx get {typed}", WHAT_THIS_KEY_SHOWS),
                command(
                    "config set profiles.PROFILE.account NAME",
                    "if the API keys belong to two accounts, name the account of each profile",
                    bare=True,
                ),
            ),
        )
    sentence = (
        f"escrowctl already {intent.done} {typed} {when}."
        if entry.settlement.verified
        else f"{when} an operator recorded that {what} was applied."
        if entry.settlement.detail == DECIDED_APPLIED
        else f"the service already accepted {what} {when}; the journal has it as accepted, not as confirmed."
    )
    alias = "" if typed == then else f" In {entry.name} the id is written {then}."
    hint = (
        () if entry.settlement.verified else command(f"journal resolve {entry.name}", "to check again, and record it")
    )
    return refusal(ErrorCode.ALREADY_DONE, f"{sentence}{alias}", entry, hint=hint)


def _name(entry: Entry) -> str:
    intent = entry.intent
    if intent.is_once_only:
        return f"the {intent.verb} of {intent.resource_id}"
    return f"an identical {intent.verb}" + (f' under the reference "{intent.reference}"' if intent.reference else "")


def _earlier_unknown(entry: Entry, like: str, now: datetime, *, needed: list[int]) -> EscrowctlError:
    """Return the refusal of a write like an unknown one. `needed`: it passes with --allow-duplicate for these."""
    facts = [str(entry.intent.money)] if entry.intent.money else []
    facts += [ago(entry.sent_at, now), entry.name]
    settle = command(f"journal resolve {entry.name}", f"to resolve {entry.name}")
    is_create = entry.intent.operation in (CREATE_TRANSACTION.name, CREATE_WEBHOOK.name)
    goal = "to create a second one anyway" if is_create else f"to send the {entry.intent.verb} again anyway"
    anyway = Hint(f"repeat the command with {' '.join(f'--allow-duplicate j{number}' for number in needed)}", goal)
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN,
        f"{like} ({', '.join(facts)}) still has an unknown outcome.",
        effect=NOTHING_SENT_NOW,
        # A once-only write is never meant twice, nor is a reference.
        hint=(settle, anyway) if needed else settle,
        outcome=Outcome.UNKNOWN,
        facts=entry.facts,
    )


def _capped(intent: Intent, sentence: str, *, hint: Hints = ()) -> EscrowctlError:
    return not_sent(
        ErrorCode.CAPPED,
        sentence,
        hint=hint or command(f"config get profiles.{intent.profile}.caps", "to see the caps", bare=True),
    )


def refusal(code: ErrorCode, sentence: str, entry: Entry, *, hint: Hints = ()) -> EscrowctlError:
    """Return the refusal of a write because of an earlier one."""
    return not_sent(code, sentence, hint=hint, effect=NOTHING_SENT_NOW, facts=entry.facts)
