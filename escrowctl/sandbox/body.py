"""Strict JSON in, exact JSON out: a number is its text, and never passes through a float."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class NumberToken:
    """A JSON number as it was written: `100.00` stays `100.00`, `1e400` stays `1e400`."""

    text: str


JsonValue: TypeAlias = "bool | int | str | NumberToken | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""What can be written. What was read holds no `int`: its numbers are all `NumberToken`."""

JsonObject: TypeAlias = Mapping[str, JsonValue]


class JsonError(Exception):
    """The text is not JSON as RFC 8259 and I-JSON (RFC 7493) have it; the message says where or why."""


def read_json(raw: bytes) -> JsonValue:
    """Parse one JSON text, or raise JsonError.

    Stricter than Python's own reader: UTF-8 without a byte order mark, no NaN or Infinity, no name
    twice in one object, no half of a surrogate pair, at most MAX_DEPTH levels.
    """
    try:
        value: JsonValue = json.loads(
            raw.decode("utf-8"),
            parse_int=NumberToken,
            parse_float=NumberToken,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_without_twins,
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise JsonError("nested too deeply") from error
    _inspect(value, level=1)
    return value


def write_json(value: JsonValue) -> str:
    """Write a value as one line of ASCII JSON, each number exactly as its token or int stands."""
    match value:
        case NumberToken():
            return value.text
        case str() | int() | None:
            return json.dumps(value)
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{write_json(item)}" for name, item in value.items()) + "}"
        case _:
            return "[" + ",".join(write_json(item) for item in value) + "]"


def _refuse_constant(word: str) -> NoReturn:
    raise JsonError(f"{word} is not a JSON number")


def _object_without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonError("an object has a name twice")
    return members


def _inspect(value: JsonValue, *, level: int) -> None:
    if isinstance(value, str):
        _refuse_half_pair(value)
    elif isinstance(value, Mapping | Sequence):
        if level > MAX_DEPTH:
            raise JsonError("nested too deeply")
        inner = (*value, *value.values()) if isinstance(value, Mapping) else value
        for item in inner:
            _inspect(item, level=level + 1)


def _refuse_half_pair(text: str) -> None:
    # SQLite keeps text as UTF-8, which has no bytes for half a pair.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JsonError("a string holds half of a surrogate pair") from error
