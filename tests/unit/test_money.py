"""Amounts and currencies: what could be read two ways is refused with a spelling that can be typed instead."""

import re
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from escrowctl.contract.money import make_money, parse_amount, parse_currency
from escrowctl.errors import ErrorCode, EscrowctlError

PLAIN = "write digits and at most one point, such as 100 or 99.95"
COMMA = "has a comma: write digits and one point, such as 1250.00"
FOREIGN = "has characters other than ASCII digits"

WRONG_AMOUNTS = (
    ("1,000.50", "has a thousands separator: write 1000.50"),
    ("1_000", "has an underscore: write 1000"),
    ("1 000", "has a thousands separator: write 1000"),
    ("1'000", "has a thousands separator: write 1000"),
    ("1,00", COMMA),
    ("1.250,00", COMMA),
    ("1e3", "is in exponent form: write 1000"),
    ("1e-2", "is in exponent form: write 0.01"),
    ("+5", "has a plus sign: write 5"),
    ("-5", "is negative: write an amount above zero"),
    ("-0", "is negative: write an amount above zero"),
    ("5.", "ends in a point: write 5"),
    (".5", "starts with a point: write 0.5"),
    ("007", "has a leading zero: write 7"),
    ("0", "is zero: write an amount above zero"),
    ("0.00", "is zero: write an amount above zero"),
    (" 5", "has spaces around it: write 5"),
    ("5\n", "has spaces around it: write 5"),
    ("", f"is empty: {PLAIN}"),
    ("\uff11\uff10\uff10", f"{FOREIGN}: write 100"),
    ("\u0661\u0662\u0663", f"{FOREIGN}: write 123"),
    ("\u22125", f"{FOREIGN}: {PLAIN}"),
    ("\u20ac5", f"{FOREIGN}: {PLAIN}"),
    ("NaN", f"is not a number: {PLAIN}"),
    ("100USD", f"is not a number: {PLAIN}"),
    ("0x10", f"is not a number: {PLAIN}"),
    ("1.2.3", f"is not a number: {PLAIN}"),
)


@pytest.mark.parametrize(("text", "advice"), WRONG_AMOUNTS)
def test_wrong_numeral_is_refused_with_problem_and_fix(text: str, advice: str) -> None:
    with pytest.raises(EscrowctlError) as refused:
        parse_amount(text, name="--amount")

    assert refused.value.message == f'--amount "{text}" {advice}.'
    assert refused.value.code is ErrorCode.BAD_VALUE


def test_amount_of_more_than_forty_characters_is_refused() -> None:
    assert parse_amount("9" * 40, name="--amount").text == "9" * 40
    with pytest.raises(EscrowctlError) as refused:
        parse_amount("9" * 41, name="--amount")

    assert refused.value.message == (f'--amount "{"9" * 20}..." has 41 characters: {PLAIN}.')


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.text("0123456789.,_ '+-eE", min_size=1, max_size=12))
@example("00")
@example("+0")
@example("0e5")
@example("1e40")
@example("1e99")
@example("1e-99")
def test_proposed_amount_is_valid_and_equal_to_the_input(text: str) -> None:
    """A fix that needs a fix is no help, and one that is another amount is a wrong payment."""
    try:
        parse_amount(text, name="--amount")
    except EscrowctlError as refused:
        proposed = re.search(r": write ([0-9.]+)\. Nothing", refused.message)
        if proposed is None:
            return
        amount = parse_amount(proposed[1], name="--amount")
        assert amount == Decimal(re.sub(r"[ _,']", "", text))


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.from_regex(r"\A([1-9][0-9]{0,29})(\.[0-9]{1,9})?\Z"))
def test_accepted_spelling_is_unchanged(text: str) -> None:
    amount = parse_amount(text, name="--amount")

    assert (amount.text, str(amount), amount) == (text, text, Decimal(text))


WRONG_CURRENCIES = (
    ("usd", "is not written as a currency code: write USD"),
    (" EUR", "is not written as a currency code: write EUR"),
    ("EUR\n", "is not written as a currency code: write EUR"),
    ("", "is not a currency code: write three capital letters, such as EUR"),
    ("EURO", "is not a currency code: write three capital letters, such as EUR"),
    ("\uff35\uff33\uff24", "is not a currency code: write three capital letters, such as EUR"),
    ("null", "is not a currency code: write three capital letters, such as EUR"),
)


@pytest.mark.parametrize(("text", "advice"), WRONG_CURRENCIES)
def test_a_wrong_currency_is_refused_with_how_to_write_it(text: str, advice: str) -> None:
    with pytest.raises(EscrowctlError) as refused:
        parse_currency(text, name="--currency")

    assert refused.value.message == f'--currency "{text}" {advice}.'


@pytest.mark.parametrize("code", ["XAU", "XXX", "XTS", "ZZZ", "BTC"])
def test_currency_without_a_minor_unit_is_refused_unless_listed(code: str) -> None:
    with pytest.raises(EscrowctlError) as refused:
        parse_currency(code, name="--currency")

    assert refused.value.message == (
        f"--currency {code} is not an ISO 4217 currency that escrowctl knows: check the code."
    )
    assert [hint.text for hint in refused.value.hints] == [f"config set currencies {code}"]
    assert parse_currency(code, listed=frozenset({code}), name="--currency") == code


@pytest.mark.parametrize(
    ("amount", "currency", "advice"),
    [
        ("1.001", "USD", "has too many decimals: USD has at most 2"),
        ("1.000", "USD", "has too many decimals: USD has at most 2"),
        ("1.0", "JPY", "has too many decimals: JPY has none: write a whole number"),
        ("1.0001", "KWD", "has too many decimals: KWD has at most 3"),
        ("1.00001", "CLF", "has too many decimals: CLF has at most 4"),
    ],
)
def test_more_decimals_than_iso_4217_gives_the_currency_are_refused(amount: str, currency: str, advice: str) -> None:
    with pytest.raises(EscrowctlError) as refused:
        make_money(parse_amount(amount, name="--amount"), currency, name="--amount")

    assert refused.value.message == f'--amount "{amount}" {advice}.'


@pytest.mark.parametrize(
    ("amount", "currency"), [("1.01", "USD"), ("1", "JPY"), ("1.001", "KWD"), ("1.0001", "CLF"), ("1.123456789", "BTC")]
)
def test_decimals_up_to_the_currency_minor_unit_are_accepted(amount: str, currency: str) -> None:
    assert str(make_money(parse_amount(amount, name="--amount"), currency, name="--amount")) == f"{amount} {currency}"
