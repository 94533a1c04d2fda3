"""JSON text from values, every number token exactly as it stands."""

import json

from escrowctl.contract.number import JsonValue, Number


def encode(value: JsonValue, *, spaced: bool = False, indent: int | None = None) -> str:
    """Return `value` as ASCII JSON, in one line unless `indent` says how deep its lines begin.

    Compact as sent on the wire (`{"amount":100}`), or `spaced` as printed (`{"amount": 100}`).
    Python's encoder would put a Decimal through float or refuse it; that is why this exists.
    """
    colon = ": " if spaced else ":"
    deeper = None if indent is None else indent + 1
    match value:
        case Number():
            return value.text
        case dict():
            members = [
                f"{_text(key)}{colon}{encode(item, spaced=spaced, indent=deeper)}" for key, item in value.items()
            ]
            return _enclose("{", members, "}", spaced=spaced, indent=indent)
        case list():
            items = [encode(item, spaced=spaced, indent=deeper) for item in value]
            return _enclose("[", items, "]", spaced=spaced, indent=indent)
        case str():
            return _text(value)
        case _:
            return json.dumps(value)


def _enclose(opening: str, parts: list[str], closing: str, *, spaced: bool, indent: int | None) -> str:
    if indent is None or not parts:
        return opening + (", " if spaced else ",").join(parts) + closing
    margin = "  " * indent
    lines = ",\n".join(f"{margin}  {part}" for part in parts)
    return f"{opening}\n{lines}\n{margin}{closing}"


def _text(value: str) -> str:
    # DEL is the one control character that JSON and ASCII both let through.
    return json.dumps(value).replace("\x7f", "\\u007f")


def normalise(value: JsonValue) -> JsonValue:
    """Return `value` with keys sorted and numbers in their shortest form: equal things, equal text."""
    match value:
        case Number():
            return _shortest(value)
        case dict():
            return {key: normalise(value[key]) for key in sorted(value)}
        case list():
            return [normalise(item) for item in value]
        case _:
            return value


def _shortest(number: Number) -> Number:
    # Decimal.normalize would round to the context's precision; the tuple keeps every digit.
    sign, digits, exponent = number.as_tuple()
    text = "".join(str(digit) for digit in digits)
    kept = text.rstrip("0")
    assert isinstance(exponent, int), "the reader lets no NaN or Infinity in"
    if not kept:
        return Number("0")
    return Number(f"{'-' if sign else ''}{kept}E{exponent + len(text) - len(kept)}")
