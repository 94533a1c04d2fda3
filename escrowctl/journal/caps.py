"""Caps on the sum of writes of one operation and currency in a UTC day, stored as running totals.

With a cap of 100 EUR, a create of 60 EUR that is done and one of 30 EUR that is unknown leave 10 EUR. If the
second one is later found to be refused, 40 EUR are left.

A commit that changes the counted amount of a write also updates the running total. So a check of the caps takes
the same time in a journal of any size.
"""

from __future__ import annotations

from decimal import ROUND_UP, Decimal, localcontext
from typing import TYPE_CHECKING

from escrowctl.contract.money import sum_exactly
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, Reason, not_sent
from escrowctl.journal.fold import StoredEntry, TotalKey
from escrowctl.journal.model import POSSIBLE_STATES, Caps, Entry, Intent
from escrowctl.runtime import timestamp

if TYPE_CHECKING:
    from escrowctl.journal.storage import Reading

_CAPPED_OPERATIONS = (CREATE_TRANSACTION.name, RELEASE_TRANSACTION.name)
_NO_CURRENCY = ""
"""The currency of the total that counts writes without a known amount."""

_PRECISION = 100
_MAX_AMOUNT = Decimal(10) ** 40
_DECIMAL_PLACES = 20


def check_caps(
    view: Reading, intent: Intent, caps: Caps, *, earlier: Entry | None = None, is_resend: bool = False
) -> None:
    """Raise `ErrorCode.CAPPED` if a write would bring the sum of its day above a cap. Without caps, allow all.

    Call it inside the commit that records the write, so that two processes cannot use the same remaining amount.
    `earlier` is the entry that gets a further attempt (None: the write is new). The entry's amount counts as often as
    it may have been applied. `is_resend`: an operator requested this attempt; the decision is not recorded yet.
    """
    if not caps:
        return
    money, today, verb, profile = intent.money, timestamp(view.now())[:10], intent.verb, intent.profile
    if money is None:
        raise _cap_error(intent, f"the profile {profile} has caps, so a {verb} without a known amount is refused.")
    if money.amount <= 0:
        raise _cap_error(intent, f"the profile {profile} has caps, so the amount must be above zero, not {money}.")
    if (currency := money.currency) not in caps:
        raise _cap_error(intent, f"the profile {profile} has caps, but no cap for {currency}: this {verb} is refused.")

    def read_day_amounts(currency: str) -> list[Decimal]:
        totals = view.read_totals(intent.operation, currency, since=today)
        return [amount for key, amount in totals.items() if {*intent.service_names} & {*key[3:]}]

    spent, unknown = read_day_amounts(currency), read_day_amounts(_NO_CURRENCY)
    if earlier is not None and earlier.counted_on >= today:
        (unknown if earlier.intent.money is None else spent).append(-_amount_in_total(earlier))
    if sum_exactly(unknown):
        raise _cap_error(
            intent,
            f"the profile {profile} has caps, but an earlier {verb} since {today} (UTC) has no known amount, so the "
            "sum since then is not known.",
            day=today,
        )
    if earlier is not None and earlier.is_open:
        spent += [money.amount] * (earlier.resends + is_resend)
    cap, counted = caps[currency], sum_exactly(spent)
    if sum_exactly((counted, money.amount)) > cap:
        is_sum = intent.batch is not None and intent.line is None
        new_amount = f"All rows together are {money}" if is_sum else f"This {verb} is {money}"
        raise _cap_error(
            intent,
            f"the profile {profile} caps {verb}s at {cap} {currency} a day (UTC). Counted since {today}: "
            f"{counted} {currency} (done or unknown {verb}s; each resend counts). {new_amount}.",
            day=today,
        )


def _cap_error(intent: Intent, sentence: str, *, day: str | None = None) -> EscrowctlError:
    facts = {"profile": intent.profile, "operation": intent.verb, "day": day}
    return not_sent(ErrorCode.CAPPED, sentence, facts=facts, reason=Reason.CAPPED)


def _amount_in_total(entry: Entry) -> Decimal:
    """Return what an entry adds to its total: its amount once, plus once per resend. 0 if the write did not happen.

    A write without a known amount adds 1 if caps apply to its operation.
    """
    if entry.state not in POSSIBLE_STATES:
        return Decimal(0)
    if entry.intent.money is None:
        return Decimal(entry.intent.operation in _CAPPED_OPERATIONS)
    amount = _limit_amount(entry.intent.money.amount)
    return sum_exactly([amount] * (1 + entry.resends)) if entry.attempt > 1 else amount


def compute_total_changes(before: StoredEntry | None, after: StoredEntry) -> dict[TotalKey, Decimal]:
    """Return total -> change, if one more record changes an entry from `before` (None: no entry) to `after`."""
    was, now = (_amount_in_total(folded.entry) if folded else Decimal(0) for folded in (before, after))
    key = _total_key(after.entry)
    if before is None or (old := _total_key(before.entry)) == key:
        return {key: sum_exactly((now, -was))} if now != was else {}
    return {name: change for name, change in ((old, -was), (key, now)) if change}


def _total_key(entry: Entry) -> TotalKey:
    """Return the key of the running total that contains an entry's amount."""
    intent = entry.intent
    currency = intent.money.currency if intent.money else _NO_CURRENCY
    return intent.operation, currency, entry.counted_on, intent.service, intent.site or intent.service


def _limit_amount(amount: Decimal) -> Decimal:
    """Return an amount as caps count it: not below 0, not above `_MAX_AMOUNT`, with at most `_DECIMAL_PLACES`.

    Imports and records may contain any number; within these limits all sums are exact.
    """
    exponent = amount.as_tuple().exponent
    if amount <= 0 or not isinstance(exponent, int):
        return Decimal(0)
    if amount > _MAX_AMOUNT:
        return _MAX_AMOUNT
    if exponent >= -_DECIMAL_PLACES:
        return amount
    with localcontext(prec=_PRECISION):
        return amount.quantize(Decimal(1).scaleb(-_DECIMAL_PLACES), ROUND_UP)
