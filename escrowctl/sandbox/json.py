"""Strict JSON in, exact JSON out: a number is stored as its text and never becomes a float."""

import json
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

MAX_DEPTH = 32


class NumberToken:
    """A JSON number in its written form: `100.00` stays `100.00`, `1e400` stays `1e400`."""

    # No tuple and no str: the code below tells lists and texts from numbers by their type.
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


JsonValue: TypeAlias = "bool | int | str | NumberToken | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""A value that can be written. Values from `read_json` contain no `int`: their numbers are `NumberToken`."""

JsonObject: TypeAlias = Mapping[str, JsonValue]


class JsonError(Exception):
    """The text is not JSON as RFC 8259 and I-JSON (RFC 7493) define it; the message gives the place or the reason."""


def read_json(raw: bytes) -> JsonValue:
    """Parse one JSON text, or raise JsonError.

    Stricter than Python's own reader: UTF-8 without a byte order mark, no NaN or Infinity, no
    duplicate names in an object, no lone surrogates, at most MAX_DEPTH levels.
    """
    try:
        value: JsonValue = json.loads(
            raw.decode("utf-8"),
            parse_int=NumberToken,
            parse_float=NumberToken,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_members,
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise JsonError("nested too deeply") from error
    _check(value, level=1)
    return value


def read_stored(text: str) -> JsonObject:
    """Read an object that `write_json` wrote."""
    value = read_json(text.encode())
    assert isinstance(value, Mapping), "only objects are stored"
    return value


def write_json(value: JsonValue) -> str:
    """Write a value as one line of ASCII JSON; a token is written digit for digit."""
    match value:
        case NumberToken():
            return value.text
        case str() | int() | None:
            return json.dumps(value)
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{write_json(item)}" for name, item in value.items()) + "}"
        case _:
            return "[" + ",".join(write_json(item) for item in value) + "]"


def _refuse_constant(constant: str) -> NoReturn:
    raise JsonError(f"{constant} is not a JSON number")


def _unique_members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonError("an object has a name twice")
    return members


def _check(value: JsonValue, *, level: int) -> None:
    if isinstance(value, str):
        # SQLite stores text as UTF-8, which has no bytes for a lone surrogate.
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise JsonError("a string holds half of a surrogate pair") from error
    elif isinstance(value, Mapping | Sequence):
        if level > MAX_DEPTH:
            raise JsonError("nested too deeply")
        inner = (*value, *value.values()) if isinstance(value, Mapping) else value
        for item in inner:
            _check(item, level=level + 1)
