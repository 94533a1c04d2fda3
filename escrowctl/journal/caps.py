"""Caps on the sum of writes of one operation and currency in a UTC day, stored as running totals.

With a cap of 100 EUR, a create of 60 EUR that is done and one of 30 EUR that is unknown leave 10 EUR; when the
second turns out to be refused, 40 EUR.

Every commit that changes the counted amount of a write changes its total too, so that a check costs
the same in a journal of any size.
"""

from decimal import ROUND_UP, Decimal, localcontext

from escrowctl.contract.money import sum_exactly
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.journal.fold import Folded
from escrowctl.journal.model import POSSIBLE_STATES, Caps, Entry, Intent
from escrowctl.journal.reasons import Reason
from escrowctl.journal.storage import TotalKey, Transaction

_CAPPED = (CREATE_TRANSACTION.name, RELEASE_TRANSACTION.name)
_NO_CURRENCY = ""
"""The currency of the total that counts writes without a known amount."""

_DIGITS = 100
_MOST = Decimal(10) ** 40
_PLACES = 20


def check_caps(
    transaction: Transaction, intent: Intent, caps: Caps, *, earlier: Entry | None, now: str, is_resend: bool = False
) -> None:
    """Raise `ErrorCode.CAPPED` if a write would bring its day above a cap.

    Call it inside the commit that records the write, so that two processes cannot use the same remaining amount.
    `earlier` is the entry whose next attempt this is: it counts as often as it may have been applied.
    `is_resend`: this attempt is an operator's decision, which is recorded after this check.
    """
    money, today, verb = intent.money, now[:10], intent.verb
    limited = f"the profile {intent.profile} has caps"
    if money is None:
        raise _capped(intent, f"{limited}, and escrowctl cannot tell the amount of this {verb}, so it is refused.")
    if money.amount <= 0:
        raise _capped(intent, f"{limited}, but the amount of this {verb} is {money}: it must be above zero.")
    if (currency := money.currency) not in caps:
        raise _capped(intent, f"{limited}, but no cap for {currency}, so {currency} is refused.")

    def counts(currency: str) -> list[Decimal]:
        totals = transaction.totals(intent.operation, currency, since=today)
        return [amount for key, amount in totals.items() if {*intent.names} & {key.service, key.site}]

    spent, unknown = counts(currency), counts(_NO_CURRENCY)
    if earlier is not None and earlier.counted_on >= today:
        (unknown if earlier.intent.money is None else spent).append(-weigh(earlier))
    if sum_exactly(unknown):
        raise _capped(
            intent,
            f"{limited}, and an earlier {verb} since {today} (UTC) has no known amount, so that what {verb}s come to "
            "today is not known.",
            day=today,
        )
    if earlier is not None and earlier.is_open:
        spent += [money.amount] * (earlier.resends + is_resend)
    cap, before = caps[currency], sum_exactly(spent)
    if sum_exactly((before, money.amount)) > cap:
        is_sum = intent.batch is not None and intent.line is None
        this = f"All rows together are {money}" if is_sum else f"This {verb} is {money}"
        raise _capped(
            intent,
            f"the profile {intent.profile} caps {verb}s at {cap} {currency} a day (UTC). Counted since {today}: "
            f"{before} {currency} (done or unknown, as often as it was sent). {this}.",
            day=today,
        )


def _capped(intent: Intent, sentence: str, *, day: str | None = None) -> EscrowctlError:
    facts = {"profile": intent.profile, "operation": intent.verb, "day": day}
    return not_sent(ErrorCode.CAPPED, sentence, facts=facts, reason=Reason.CAPPED)


def counted(entry: Entry) -> Decimal:
    """Return the amount that an entry counts: once, and once more for each of its `resends`; 0 if it moved nothing."""
    if entry.intent.money is None or entry.state not in POSSIBLE_STATES:
        return Decimal(0)
    amount = _bounded(entry.intent.money.amount)
    return sum_exactly([amount] * (1 + entry.resends)) if entry.attempt > 1 else amount


def weigh(entry: Entry) -> Decimal:
    """Return the amount that an entry adds to its total, or 1 if the amount that caps would count is not known."""
    if entry.intent.money is None and entry.intent.operation in _CAPPED:
        return Decimal(entry.state in POSSIBLE_STATES)
    return counted(entry)


def change_totals(before: Folded | None, after: Folded) -> dict[TotalKey, Decimal]:
    """Return how the totals change when one more record changes an entry from `before` to `after`."""
    was, now = (weigh(folded.entry) if folded else Decimal(0) for folded in (before, after))
    key = total_key(after.entry)
    if before is None or (old := total_key(before.entry)) == key:
        return {key: sum_exactly((now, -was))} if now != was else {}
    return {name: change for name, change in ((old, -was), (key, now)) if change}


def total_key(entry: Entry) -> TotalKey:
    """Return the total that an entry counts in."""
    intent = entry.intent
    currency = intent.money.currency if intent.money else _NO_CURRENCY
    return TotalKey(intent.operation, currency, entry.counted_on, intent.service, intent.site or intent.service)


def _bounded(amount: Decimal) -> Decimal:
    """Return an amount as caps count it, so that sums are exact: imports and records may contain any number.

    Negative amounts count as 0.
    """
    exponent = amount.as_tuple().exponent
    if amount <= 0 or not isinstance(exponent, int):
        return Decimal(0)
    if amount > _MOST:
        return _MOST
    if exponent >= -_PLACES:
        return amount
    with localcontext(prec=_DIGITS):
        return amount.quantize(Decimal(1).scaleb(-_PLACES), ROUND_UP)
