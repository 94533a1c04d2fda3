"""What a create asks for, checked.

interface.md section 2: required-ness, bounds, units and allowed values are not shown. The sandbox's
own choice: `amount` a JSON number above 0, at most 14 digits before the point and 4 after it, no
exponent; `currency` three capital letters, whichever; `payer` and `payee` ids of users, optional;
any other field is kept as sent, but for the names that the service itself sets.
"""

import re
from dataclasses import dataclass

from escrowctl.sandbox.body import JsonObject, NumberToken
from escrowctl.sandbox.problems import Flaw, flawed
from escrowctl.sandbox.records import DEFAULT_PAYEE, DEFAULT_PAYER, RESERVED_FIELDS

AMOUNT = re.compile(r"(?=.*[1-9])(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
CURRENCY = re.compile(r"[A-Z]{3}")

AMOUNT_RULE = (
    "amount must be a number above 0, not a string, with at most 14 digits before the point,"
    " at most 4 after it, and no exponent."
)

OWN_FIELDS = frozenset({"amount", "currency", "payer", "payee"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A transaction before it has an id; `amount` is the number token that was sent."""

    amount: str
    currency: str
    payer: str
    payee: str
    extra: JsonObject


def read_draft(body: JsonObject) -> Draft:
    """Check the fields of a create; 400 with every flaw at once. Whether the users exist is not looked up."""
    flaws = [Flaw(f"#/{name}", f"{name} is set by the service.") for name in sorted(RESERVED_FIELDS & body.keys())]
    draft = Draft(
        amount=_amount(body, flaws),
        currency=_currency(body, flaws),
        payer=_user_id(body, flaws, name="payer", default=DEFAULT_PAYER),
        payee=_user_id(body, flaws, name="payee", default=DEFAULT_PAYEE),
        extra={name: value for name, value in body.items() if name not in OWN_FIELDS},
    )
    if flaws:
        raise flawed(*flaws)
    return draft


def _amount(body: JsonObject, flaws: list[Flaw]) -> str:
    value = body.get("amount")
    if isinstance(value, NumberToken) and AMOUNT.fullmatch(value.text):
        return value.text
    flaws.append(Flaw("#/amount", AMOUNT_RULE))
    return ""


def _currency(body: JsonObject, flaws: list[Flaw]) -> str:
    value = body.get("currency")
    if isinstance(value, str) and CURRENCY.fullmatch(value):
        return value
    flaws.append(Flaw("#/currency", "currency must be three capital letters."))
    return ""


def _user_id(body: JsonObject, flaws: list[Flaw], *, name: str, default: str) -> str:
    value = body.get(name, default)
    if isinstance(value, str):
        return value
    flaws.append(Flaw(f"#/{name}", f"{name} must be the id of a user."))
    return ""
