"""The local refusals: what this journal knows that makes sending a write wrong."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from escrowctl.contract.identifiers import fold_reference
from escrowctl.contract.money import Money
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
from escrowctl.journal.entries import APPLIED_ON_WORD, Entry, Intent, State, Verdict
from escrowctl.journal.spending import Ahead
from escrowctl.surroundings import ago


def check_key(earlier: Entry, intent: Intent) -> None:
    """Refuse (7) an idempotency key that stood for another request."""
    then = (earlier.intent.method, earlier.intent.url, earlier.intent.body)
    if then != (intent.method, intent.url, intent.body):
        raise _refusal(
            ErrorCode.KEY_REUSED,
            f"the idempotency key {intent.idempotency_key} was used for another request ({earlier.name}, "
            f"{earlier.sent_at}).",
            earlier,
            hint="a new request needs a new key; leave --idempotency-key out to get one",
        )


def check_account(earlier: Entry, intent: Intent) -> None:
    """Refuse (7) to report an earlier write as this one's result unless both were certainly made under one account."""
    if intent.account.is_same(earlier.intent.account):
        return
    resource_id = earlier.verdict.result_id or earlier.intent.resource_id
    raise _refusal(
        ErrorCode.KEY_REUSED,
        f"the idempotency key {intent.idempotency_key} was used with another API key ({earlier.name}, "
        f"{earlier.sent_at}): this may be another account.",
        earlier,
        hint=(
            *([command(f"tx get {shlex.quote(resource_id)}", "what this account has")] if resource_id else []),
            Hint("use another --idempotency-key", "for a new request"),
        ),
    )


def check_alike(alike: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a write that is the same as one which may have happened.

    A release that is done is refused (7); one in flight elsewhere is busy (7); one that is unknown
    refuses its equal (12) until it is settled, or named in `despite` on purpose. Any other write may
    be equal to one that is done: the same amount twice is legitimate. Releases of ids that differ only
    in case or Unicode form refuse each other (7), unless named in `despite`.
    """
    for entry in alike:
        if intent.is_create and _folded_reference(entry.intent) != _folded_reference(intent):
            continue
        if entry.state is State.IN_FLIGHT:
            raise busy(entry)
        if intent.is_once_only and not intent.is_of_same_id(entry.intent):
            if entry.number not in intent.despite:
                raise _confusable(entry, intent, now)
        elif entry.state is State.DONE and intent.is_once_only:
            raise _already_done(entry, intent, now)
        elif entry.state is State.UNKNOWN and (intent.is_once_only or entry.number not in intent.despite):
            raise _earlier_unknown(entry, _like(entry), now)


def check_reference(under_reference: list[Entry], intent: Intent, *, now: datetime) -> None:
    """Refuse a create whose reference stands for an earlier one: one reference, one escrow."""
    for entry in under_reference:
        if entry.state is State.UNKNOWN and entry.number not in intent.despite:
            raise _earlier_unknown(entry, f'the create under the reference "{intent.reference}"', now)
        if entry.state is State.IN_FLIGHT:
            raise busy(entry)
        if entry.state is State.DONE:
            made = entry.verdict.result_id
            raise _refusal(
                ErrorCode.REFERENCE_REUSED,
                f'the reference "{intent.reference}" stands for {_made(entry)} ({entry.name}, {entry.sent_at}).',
                entry,
                hint=command(f"tx get {shlex.quote(made)}", "it exists")
                if made
                else command(f"journal show {entry.name}"),
            )


def require_countable(intent: Intent, caps: Mapping[str, Decimal]) -> Money:
    """Return what a write moves, under caps; refuse (5) what they cannot count."""
    limited = f"the profile {intent.profile} has caps"
    if intent.money is None:
        raise _capped(
            intent, f"{limited}, and what this {intent.verb} moves is not known, so that it cannot be counted."
        )
    if intent.money.amount <= 0:
        raise _capped(intent, f"{limited}, and this {intent.verb} moves {intent.money}, which frees nothing.")
    if intent.money.currency not in caps:
        raise _capped(intent, f"{limited}, and none for {intent.money.currency}.")
    return intent.money


def over_cap(
    intent: Intent, money: Money, *, cap: Decimal, spent: Decimal, day: str, ahead: Ahead | None
) -> EscrowctlError:
    """Return the refusal (5) of a write that would bring a day's writes of its operation above the profile's cap."""
    verb, limit = intent.verb, f"the profile {intent.profile} caps {intent.verb}s at {cap} {money.currency} a day (UTC)"
    if ahead is None:
        return _capped(
            intent,
            f"{limit}: {spent} are done or unknown since {day}, and this one is {money.amount}.",
            hint=Hint(f"escrowctl journal list --since {day} --operation {verb}", "what was counted"),
        )
    names = [f"j{number}" for number in ahead.numbers]
    dated = (
        f"{', '.join(names)}{' and others are' if ahead.more else ' is' if len(names) == 1 else ' are'} dated after now"
    )
    return _capped(
        intent,
        f"{limit}: {spent} count, and this one is {money.amount}. {ahead.amount} of them count only because "
        f"{dated} ({ahead.date}): the clock was ahead then, or is behind now.",
        hint=tuple(command(f"journal show {name}") for name in names),
    )


def no_such_entry(number: int) -> EscrowctlError:
    """Return the refusal (2) of `--allow-duplicate` with an entry that does not exist: a typing error is no consent."""
    return bad_value(
        f"--allow-duplicate j{number}: there is no such entry in this journal.", hint=command("journal list")
    )


def busy_elsewhere(seconds: float) -> EscrowctlError:
    """Return the refusal (7) to wait any longer for a lock that another process holds."""
    return not_sent(
        ErrorCode.BUSY,
        f"another process has been working on the same thing for {seconds:g} s.",
        hint=command("journal list"),
    )


def taken(number: int) -> EscrowctlError:
    """Return the refusal (7) to work on an entry that another process keeps alive."""
    return not_sent(
        ErrorCode.BUSY, f"another process is working on journal entry j{number}.", hint=command("journal list")
    )


def changed(entry: Entry) -> EscrowctlError:
    """Return the refusal (7) to go on with an entry that somebody else has worked on meanwhile."""
    return _refusal(ErrorCode.BUSY, f"another process has worked on {entry.name} meanwhile.", entry)


def overwritten(entry: Entry) -> EscrowctlError:
    """Return the refusal (7) to send an intent that another process overwrote right after its commit."""
    return _refusal(
        ErrorCode.BUSY,
        f"another process overwrote journal entry {entry.name}: the journal is reached by two paths that do not "
        "share locks.",
        entry,
        hint="use one path to the journal's folder",
    )


def taken_over(entry: Entry, verdict: Verdict) -> EscrowctlError:
    """Return the error (12) of an attempt whose entry another process took over while it was being sent."""
    made = f", id {verdict.result_id}" if verdict.result_id else ""
    return EscrowctlError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"the {entry.intent.verb} ended as {verdict.state.value} ({verdict.detail}{made}), but another process changed "
        f"{entry.name} meanwhile and may have sent it too. Do not send it again.",
        hint=(
            command("journal list", "both attempts are on record"),
            "use one path to the journal's folder: two paths may not share locks",
        ),
        outcome=Outcome.UNKNOWN,
        facts={**entry.facts, "http_status": verdict.http_status, "result_id": verdict.result_id},
    )


def busy(entry: Entry) -> EscrowctlError:
    """Return the refusal (7) of a write whose equal another process is sending now."""
    return _refusal(
        ErrorCode.BUSY, f"the same {entry.intent.verb} is being sent by another process now ({entry.name}).", entry
    )


def _confusable(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    typed, then = intent.resource_id, entry.intent.resource_id
    return _refusal(
        ErrorCode.CONFLICT,
        f"{then} {_how_released(entry)} {ago(entry.settled_at or entry.sent_at, now)} ({entry.name}). "
        f"{typed} differs from it only in case: some services take them for one escrow.",
        entry,
        hint=(
            command(f"tx get {typed}", "what the service says"),
            Hint(f"repeat the command with --allow-duplicate {entry.name}", "if they are two escrows"),
        ),
    )


def _how_released(entry: Entry) -> str:
    if entry.state is not State.DONE:
        return "may have been released"
    return "was released" if entry.verdict.verified else "was accepted for release"


def _already_done(entry: Entry, intent: Intent, now: datetime) -> EscrowctlError:
    when = f"{ago(entry.settled_at or entry.sent_at, now)} (journal {entry.name})"
    typed, then = intent.resource_id, entry.intent.resource_id
    if not intent.account.is_same(entry.intent.account):
        return _refusal(
            ErrorCode.CONFLICT,
            f"{typed} {_how_released(entry)} with another API key, {when}: this may be another account's escrow.",
            entry,
            hint=(
                command(f"tx get {typed}", "what this account has"),
                Hint("give each profile its own account, such as account = NAME", "for two accounts"),
            ),
        )
    where = f"elsewhere (imported: {entry.origin})" if entry.origin else "from here"
    sentence = (
        f"{typed} was already released {where}, {when}."
        if entry.verdict.verified
        else f"the release of {typed} is on record as applied, on an operator's word, {when}; no reading has shown it."
        if entry.verdict.detail == APPLIED_ON_WORD
        else f"the release of {typed} was already sent {where} and accepted, {when}; no reading has shown it yet."
    )
    alias = "" if typed == then else f" It was sent as {then}."
    hint = () if entry.verdict.verified else command(f"tx get {typed}", "what the service says of it")
    return _refusal(ErrorCode.ALREADY_DONE, f"{sentence}{alias}", entry, hint=hint)


def _like(entry: Entry) -> str:
    verb = entry.intent.verb
    return f"the {verb} of {entry.intent.resource_id}" if entry.intent.is_once_only else f"an equal {verb}"


def _earlier_unknown(entry: Entry, like: str, now: datetime) -> EscrowctlError:
    what = f"({entry.intent.money}) " if entry.intent.money else ""
    settle = command(f"journal resolve {entry.name}", "to settle it")
    anyway = Hint(f"repeat the command with --allow-duplicate {entry.name}", "to create a second one anyway")
    return EscrowctlError(
        ErrorCode.EARLIER_UNKNOWN,
        f"{like} {what}is unknown since {entry.sent_at}, {ago(entry.sent_at, now)} ({entry.name}).",
        effect=NOTHING_SENT_NOW,
        # A release is never meant twice, nor is a reference.
        hint=(settle, anyway) if like.startswith("an equal") else settle,
        outcome=Outcome.UNKNOWN,
        facts=entry.facts,
    )


def _capped(intent: Intent, sentence: str, *, hint: Hints = ()) -> EscrowctlError:
    return not_sent(
        ErrorCode.CAPPED,
        f"{sentence}",
        hint=hint or Hint(f"escrowctl config get profiles.{intent.profile}.caps", "the caps"),
    )


def _made(entry: Entry) -> str:
    return entry.verdict.result_id or f"a {entry.intent.verb} that is done"


def _folded_reference(intent: Intent) -> str | None:
    return None if intent.reference is None else fold_reference(intent.reference)


def _refusal(code: ErrorCode, sentence: str, entry: Entry, *, hint: Hints = ()) -> EscrowctlError:
    return not_sent(code, f"{sentence}", hint=hint, facts=entry.facts)
