"""Amounts and currencies: text as typed, Decimal beside it, never a float, never scaled.

INTERFACE.md section 2 shows an amount only as "number" and a currency as "a currency code": units
and bounds are not shown. So an amount goes out exactly as it was typed, and what could be read two
ways is refused with the spelling that cannot.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext

from escrowctl.contract.currencies import MINOR_DIGITS
from escrowctl.contract.number import Number
from escrowctl.errors import EscrowctlError, bad_value

_PLAIN = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_MAX_AMOUNT_CHARS = 40
_SUM_DIGITS = 500
_GROUPED = re.compile(r"[0-9]{1,3}([,_ '][0-9]{3})+(\.[0-9]+)?", re.ASCII)
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,2}", re.ASCII)
_SEPARATOR_NAMES = {",": "a thousands separator", "_": "an underscore", " ": "spaces", "'": "an apostrophe"}
_EXAMPLE = "write digits and at most one point, such as 100 or 99.95"


@dataclass(frozen=True, slots=True)
class Money:
    """An amount as it stands on the wire, and its currency."""

    amount: Number
    currency: str

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


def sum_exactly(amounts: Iterable[Decimal]) -> Decimal:
    """Return the sum without rounding: Decimal's own context would keep 28 digits."""
    with localcontext(prec=_SUM_DIGITS):
        return sum(amounts, Decimal(0))


def parse_amount(text: str, *, name: str = "--amount") -> Number:
    """Return the amount that `text` spells, its token untouched.

    Raises EscrowctlError (exit 2) naming `name`, the text and the way to write it: only ASCII
    digits with at most one point are an amount, above zero.
    """
    if len(text) > _MAX_AMOUNT_CHARS:
        raise bad_value(f'{name} "{text[:20]}..." has {len(text)} characters: {_EXAMPLE}.')
    if not _PLAIN.fullmatch(text):
        raise _misspelt(name, text)
    amount = Number(text)
    if amount == 0:
        raise bad_value(f'{name} "{text}" is zero: an amount is above zero.')
    return amount


def parse_currency(text: str, *, listed: frozenset[str] = frozenset(), name: str = "--currency") -> str:
    """Return a currency code of ISO 4217, or one that the profile lists.

    Raises EscrowctlError (exit 2) for anything else, lower case included.
    """
    if text in MINOR_DIGITS or text in listed:
        return text
    if text.strip().upper() in MINOR_DIGITS:
        raise bad_value(f'{name} "{text}" is not written as a currency code: write {text.strip().upper()}.')
    if not re.fullmatch(r"[A-Z]{3}", text, re.ASCII):
        raise bad_value(f'{name} "{text[:40]}" is not a currency code: write three capital letters, such as EUR.')
    raise bad_value(
        f"{name} {text} is not a currency of ISO 4217 that has a minor unit: check the code.",
        hint=f'if your service knows it, list it in the profile: currencies = ["{text}"]',
    )


def may_be_listed(text: str) -> bool:
    """Whether a profile could list this text as a currency that ISO 4217 does not have."""
    return text not in MINOR_DIGITS and re.fullmatch(r"[A-Z0-9]{3,10}", text, re.ASCII) is not None


def check_minor_digits(amount: Number, currency: str, *, name: str = "--amount") -> Money:
    """Return the money, refusing more decimals than the currency's minor digits (ISO 4217).

    A currency that only the profile lists has no known minor digits and is not checked.
    """
    decimals = len(amount.text.partition(".")[2])
    allowed = MINOR_DIGITS.get(currency, decimals)
    if decimals > allowed:
        limit = f"at most {allowed}" if allowed else "none: write a whole number"
        raise bad_value(f'{name} "{amount}" has too many decimals: {currency} has {limit}.')
    return Money(amount, currency)


def _misspelt(name: str, text: str) -> EscrowctlError:
    problem, mend = _diagnose(text)
    return bad_value(f'{name} "{text}" {problem}: {mend}.')


def _diagnose(text: str) -> tuple[str, str]:
    """Say what is wrong with a spelling, and what to write instead."""
    if not text.strip():
        return "is empty", _EXAMPLE
    if text != text.strip():
        return "has spaces around it", _write(text.strip())
    if not text.isascii():
        return "has characters other than ASCII digits", _write(_ascii_digits(text))
    if text[0] == "-":
        return "is negative", "an amount is above zero"
    if text[0] == "+":
        return "has a plus sign", _write(text[1:])
    if _GROUPED.fullmatch(text):
        separator = re.sub(r"[0-9.]", "", text)[0]
        return f"has {_SEPARATOR_NAMES[separator]}", _write(re.sub(r"[,_ ']", "", text))
    return _diagnose_form(text)


def _diagnose_form(text: str) -> tuple[str, str]:
    if _EXPONENT.fullmatch(text):
        return "is in exponent form", _write(_expanded(text))
    if "," in text:
        return "has a comma", "write digits and one point, such as 1250.00"
    if "_" in text:
        return "has an underscore", _write(text.replace("_", ""))
    if text.endswith(".") and text[:-1].isdigit():
        return "ends in a point", _write(text[:-1])
    if text.startswith(".") and text[1:].isdigit():
        return "starts with a point", _write("0" + text)
    if text.replace(".", "", 1).isdigit():
        whole, point, fraction = text.partition(".")
        mended = f"{whole.lstrip('0') or '0'}{point}{fraction}"
        return ("has a leading zero", _write(mended)) if Decimal(mended) else ("is zero", "an amount is above zero")
    return "is not a number", _EXAMPLE


def _write(candidate: str) -> str:
    """Propose a spelling, if it would be taken: the mend of a mend is no help."""
    usable = _PLAIN.fullmatch(candidate) and len(candidate) <= _MAX_AMOUNT_CHARS and Decimal(candidate) > 0
    return f"write {candidate}" if usable else _EXAMPLE


def _ascii_digits(text: str) -> str:
    return "".join(str(int(char)) if char.isdecimal() else char for char in text)


def _expanded(text: str) -> str:
    try:
        return f"{Decimal(text):f}"
    except InvalidOperation:
        return ""
