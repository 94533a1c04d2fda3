"""Amounts and currencies. An amount is its text as typed and a Decimal: never a float, never scaled.

INTERFACE.md section 2 shows an amount only as "number" and a currency as "a currency code": units and bounds are not
shown. So an amount is sent exactly as typed. If a spelling could be read in two ways, it is refused, and the message
proposes a clear spelling.

Currencies and their minor digits: ISO 4217 List One as published on 2026-01-01. Codes without a minor unit there
(precious metals, test and accounting codes such as XAU and XXX) are left out: no money is held in them. A test compares
this table with the `iso4217` package, so that a revision is noticed.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Context, Decimal, InvalidOperation
from functools import reduce
from typing import NamedTuple

from escrowctl.contract.json import Number
from escrowctl.contract.record import KnownFields
from escrowctl.errors import bad_value, command

_CODES_BY_MINOR_DIGITS = {
    0: ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF "
        "CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL "
        "MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR "
        "PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP "
        "TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
    ),
    3: ("BHD IQD JOD KWD LYD OMR TND"),
    4: ("CLF UYW"),
}

MINOR_DIGITS = {code: digits for digits, codes in _CODES_BY_MINOR_DIGITS.items() for code in codes.split()}
"""Currency code -> number of decimals of its minor unit (USD 2, JPY 0, KWD 3)."""

_MAX_AMOUNT_CHARS = 40
_EXACT_CONTEXT = Context(prec=500)
_SPELLING_ADVICE = "write digits and at most one point, such as 100 or 99.95"
_ABOVE_ZERO_ADVICE = "write an amount above zero"

_WRONG_SPELLINGS = (
    (r"\s*", "is empty", _SPELLING_ADVICE),
    (r"\s.*|.*\s", "has spaces around it", None),
    (r"-.*", "is negative", _ABOVE_ZERO_ADVICE),
    (r"\+.*", "has a plus sign", None),
    (r".*[^\x00-\x7f].*", "has characters other than ASCII digits", None),
    (r"[0-9]{1,3}([, '][0-9]{3})+(\.[0-9]+)?", "has a thousands separator", None),
    (r".*,.*", "has a comma", "write digits and one point, such as 1250.00"),
    (r".*_.*", "has an underscore", None),
    (r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,2}", "is in exponent form", None),
    (r"[0-9]+\.", "ends in a point", None),
    (r"\.[0-9]+", "starts with a point", None),
    (r"[0-9]+(\.[0-9]+)?", "has a leading zero", None),
    (r".*", "is not a number", _SPELLING_ADVICE),
)
"""Pattern of a wrong spelling, its problem, the advice. None: the advice is the amount in the right spelling. The first
pattern that matches counts."""


class Money(NamedTuple):
    """An amount, spelled as sent, and its currency."""

    amount: Number
    currency: str

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


def find_money(known: KnownFields | None) -> Money | None:
    """Return a record's amount and currency as `Money`; None if one of them is not known."""
    if known is None or known.amount is None or known.currency is None:
        return None
    return Money(known.amount, known.currency)


def sum_exactly(amounts: Iterable[Decimal]) -> Decimal:
    """Return the sum without rounding. Decimal's default context would round to 28 digits."""
    return reduce(_EXACT_CONTEXT.add, amounts, Decimal(0))


def multiply_exactly(amount: Decimal, count: int) -> Decimal:
    """Return an amount multiplied by a count, without rounding."""
    return _EXACT_CONTEXT.multiply(amount, Decimal(count))


def parse_amount(text: str, *, name: str) -> Number:
    """Return the amount in `text`, with its spelling unchanged.

    Raises EscrowctlError `BAD_VALUE` unless `text` is above zero and has only ASCII digits and at most one point.
    The message begins with `name`, such as `--amount`, and proposes a correct spelling.
    """
    if (length := len(text)) > _MAX_AMOUNT_CHARS:
        raise bad_value(f'{name} "{text[:20]}..." has {length} characters: {_SPELLING_ADVICE}.')
    whole, point, decimals = text.partition(".")
    is_number = text.isascii() and whole.isdecimal() and (decimals.isdecimal() or not point)
    if not is_number or whole != (whole.lstrip("0") or "0"):
        _, problem, advice = next(row for row in _WRONG_SPELLINGS if re.fullmatch(row[0], text, re.DOTALL))
        raise bad_value(f'{name} "{text}" {problem}: {advice or _advise_spelling(text)}.')
    amount = Number(text)
    if amount == 0:
        raise bad_value(f'{name} "{text}" is zero: {_ABOVE_ZERO_ADVICE}.')
    return amount


def parse_currency(text: str, *, listed: frozenset[str] = frozenset(), name: str) -> str:
    """Return `text` if it is a currency code of ISO 4217, or one of the profile's own codes (`listed`).

    Raises EscrowctlError `BAD_VALUE` for any other text, also for lower case. The message begins with `name`.
    """
    if text in MINOR_DIGITS or text in listed:
        return text
    if (code := text.strip().upper()) in MINOR_DIGITS:
        raise bad_value(f'{name} "{text}" is not written as a currency code: write {code}.')
    if not re.fullmatch(r"[A-Z]{3}", text, re.ASCII):
        raise bad_value(f'{name} "{text[:40]}" is not a currency code: write three capital letters, such as EUR.')
    raise bad_value(
        f"{name} {text} is not an ISO 4217 currency that escrowctl knows: check the code.",
        hint=command(f"config set currencies {','.join(sorted({*listed, text}))}", f"if your service uses {text}"),
    )


def may_be_profile_currency(text: str) -> bool:
    """Whether a profile may list `text` as its own currency: it looks like a code, but is not in ISO 4217."""
    return text not in MINOR_DIGITS and re.fullmatch(r"[A-Z0-9]{3,10}", text, re.ASCII) is not None


def make_money(amount: Number, currency: str, *, name: str) -> Money:
    """Return `Money`. Raises EscrowctlError `BAD_VALUE` if the amount has more decimals than ISO 4217 allows.

    The amount is not checked for a currency that only the profile lists. The message begins with `name`.
    """
    decimals = len(amount.text.partition(".")[2])
    allowed = MINOR_DIGITS.get(currency, decimals)
    if decimals > allowed:
        limit = f"at most {allowed}" if allowed else "none: write a whole number"
        raise bad_value(f'{name} "{amount}" has too many decimals: {currency} has {limit}.')
    return Money(amount, currency)


def _advise_spelling(text: str) -> str:
    """Return the advice `write N`, where N is the same amount spelled correctly; else general advice."""
    with suppress(InvalidOperation):
        amount = Decimal(re.sub(r"[ ,']", "", text))
        if amount.is_finite() and amount > 0 and abs(amount.adjusted()) < _MAX_AMOUNT_CHARS:
            spelled = f"{amount:f}"
            return f"write {spelled}" if len(spelled) <= _MAX_AMOUNT_CHARS else _SPELLING_ADVICE
    return _SPELLING_ADVICE
