"""The strict reader of reply bodies: bytes in, a document or a typed defect out, nothing raised.

I-JSON (RFC 7493) is asked of a reply: UTF-8 without a byte order mark, no duplicate keys, no lone
surrogates, and besides no NaN or Infinity, which RFC 8259 does not know either. Python's own reader
accepts all of them, and answers some damage with RecursionError or ValueError.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import InvalidOperation
from enum import StrEnum
from typing import NoReturn

from escrowctl.contract.number import MAX_NUMBER_CHARS, JsonValue, Number

MAX_DEPTH = 32
"""Deepest nesting of objects and arrays that a reply may have."""


MAX_VALUES = 500_000
"""Most values in a row, and most objects and arrays, that a reply may hold: read, each takes some hundred bytes."""


class Defect(StrEnum):
    """Why a reply could not be read; the value completes "the reply ..."."""

    EMPTY = "is empty"
    OVER_LIMIT = "is larger than the limit"
    CUT_SHORT = "was truncated"
    BAD_ENCODING = "has a content encoding that cannot be decoded"
    NOT_UTF8 = "is not UTF-8"
    BYTE_ORDER_MARK = "starts with a byte order mark"
    HTML = "is HTML, not JSON"
    NOT_JSON = "is not JSON"
    DUPLICATE_KEY = "has a key twice in one object"
    NOT_A_NUMBER = "has NaN or Infinity, which are not JSON"
    NUMBER_TOO_LONG = "has a number with too many digits"
    TOO_DEEP = "is nested too deeply"
    TOO_MANY = f"holds more than {MAX_VALUES} values"
    LONE_SURROGATE = "has a lone surrogate (half a character)"


@dataclass(frozen=True, slots=True)
class Document:
    """A reply that was read: `value` is the whole JSON document, number tokens as they stood."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Broken:
    """A reply that could not be read, and its first characters for a person to look at."""

    defect: Defect
    excerpt: str = ""


Reply = Document | Broken


class _DefectError(Exception):
    def __init__(self, defect: Defect) -> None:
        super().__init__(defect.value)
        self.defect = defect


def _number(token: str) -> Number:
    if len(token) > MAX_NUMBER_CHARS:
        raise _DefectError(Defect.NUMBER_TOO_LONG)
    try:
        return Number(token)
    except InvalidOperation:
        raise _DefectError(Defect.NUMBER_TOO_LONG) from None


def _constant(_token: str) -> NoReturn:
    raise _DefectError(Defect.NOT_A_NUMBER)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DefectError(Defect.DUPLICATE_KEY)
    return found


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _children(value: JsonValue) -> Iterable[JsonValue]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _check_depth(value: JsonValue) -> None:
    waiting = [(value, 0)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _DefectError(Defect.TOO_DEEP)
        waiting.extend((child, depth + 1) for child in _children(found) if isinstance(child, dict | list))


def _check_surrogates(text: str, value: JsonValue) -> None:
    """Only an escape can bring a lone surrogate in: UTF-8 itself cannot carry one."""
    if not _SURROGATE_ESCAPE.search(text):
        return
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise _DefectError(Defect.LONE_SURROGATE) from None


def _defect_of_text(text: str, error: json.JSONDecodeError) -> Defect:
    if text.lstrip()[:1] == "<":
        return Defect.HTML
    ended = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    return Defect.CUT_SHORT if ended and text.lstrip()[:1] in '{["' else Defect.NOT_JSON


def _parse(text: str) -> JsonValue:
    if not text.strip():
        raise _DefectError(Defect.EMPTY)
    if text[0] == "\ufeff":
        raise _DefectError(Defect.BYTE_ORDER_MARK)
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _DefectError(_defect_of_text(text, error)) from None
    except RecursionError:
        raise _DefectError(Defect.TOO_DEEP) from None
    _check_depth(value)
    _check_surrogates(text, value)
    return value


def read_reply(body: bytes) -> Reply:
    """Read one reply body of any size the transport let through; never raises."""
    if _holds_too_many(body):
        return Broken(Defect.TOO_MANY, excerpt_of(body))
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return Broken(Defect.NOT_UTF8, excerpt_of(body))
    try:
        return Document(_parse(text))
    except _DefectError as found:
        return Broken(found.defect, excerpt_of(body))


def _holds_too_many(body: bytes) -> bool:
    """Whether a body may hold more than can be read in bounded memory.

    A value follows a comma or the bracket that it is in, and a key precedes a value: these two counts bound all
    three. Those in texts are counted too, which only makes the bound stricter.
    """
    return body.count(b",") >= MAX_VALUES or body.count(b"{") + body.count(b"[") > MAX_VALUES


def excerpt_of(body: bytes, limit: int = 200) -> str:
    """Return the first characters of a body, for a person; still to be made safe for printing."""
    return body[: limit * 4].decode("utf-8", errors="replace").strip()[:limit]
