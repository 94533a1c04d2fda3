"""JSON with every number token unchanged, and a strict reader of replies.

A reply must be I-JSON (RFC 7493): UTF-8 with no byte order mark, duplicate key, lone surrogate, NaN or Infinity.
Python's own reader is less strict, and raises RecursionError or ValueError for some damaged texts.
"""

import json
import re
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import NamedTuple, NoReturn, TypeAlias

_MAX_HEAD_BYTES = 4096
_MAX_EXCERPT_CHARS = 200
_HTML_START = re.compile(r"<(?:!doctype|html|head|body|title|h1|p)\b", re.IGNORECASE)
_TITLE = re.compile(r"(?is)<title\b.*?(?:</title>|$)")
_TAG = re.compile(r"(?is)<!--.*?(?:-->|$)|<(script|style)\b.*?(?:</\1>|$)|<[^>]*(?:>|$)")

MAX_NUMBER_CHARS = 128
"""Longest number token read from a reply; far beyond any amount, far below the length at which Decimal is slow."""


class Number(Decimal):
    """A JSON number token: compares as a Decimal, prints exactly as written in the JSON text.

    `Number("100.00")` equals `Decimal(100)` and prints `100.00`. It is never converted to a float.
    """

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> "Number":
        """Store the token with its value; raises `decimal.InvalidOperation` beyond Decimal's range."""
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Number({self.text!r})"


JsonValue: TypeAlias = "bool | str | Number | list[JsonValue] | dict[str, JsonValue] | None"
"""Any JSON value: `bool` for true and false, `Number` for every number."""


def encode(value: JsonValue, *, spaced: bool = False, indent: int | None = None) -> str:
    """Return `value` as ASCII JSON: on one line, or with `indent`, the depth of `value`, on one line per item.

    Without `spaced`, the text is compact, as sent (`{"amount":100}`); with `spaced`, as printed (`{"amount":
    100}`). Python's own encoder would convert a Decimal to float, or refuse it.
    """
    if isinstance(value, str):
        # DEL is the one control character that JSON and ASCII both let through.
        return encode_basestring_ascii(value).replace("\x7f", "\\u007f")
    if isinstance(value, Number):
        return value.text
    deeper = None if indent is None else indent + 1
    if isinstance(value, dict):
        colon, (opening, closing) = ": " if spaced else ":", "{}"
        items = [f"{encode(key)}{colon}{encode(item, spaced=spaced, indent=deeper)}" for key, item in value.items()]
    elif isinstance(value, list):
        opening, closing = "[]"
        items = [encode(item, spaced=spaced, indent=deeper) for item in value]
    else:
        return json.dumps(value)
    if indent is None or not items:
        return opening + (", " if spaced else ",").join(items) + closing
    margin = "  " * indent
    lines = ",\n".join(f"{margin}  {item}" for item in items)
    return f"{opening}\n{lines}\n{margin}{closing}"


def list_children(value: JsonValue) -> Collection[JsonValue]:
    """Return the values in an object or array; for any other value, nothing."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def as_json(value: object) -> JsonValue:
    """Return a Python value as JSON; a number becomes a `Number`. Raises TypeError for a type unknown to JSON."""
    match value:
        case None | bool() | str() | Number():
            return value
        case int() | float():
            return Number(f"{value:g}" if isinstance(value, float) else str(value))
        case Mapping():
            return {str(name): as_json(item) for name, item in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case _:
            raise TypeError(type(value).__name__)


def normalise(value: JsonValue) -> JsonValue:
    """Return `value` with keys sorted and numbers in their shortest form: equal values give equal texts."""
    match value:
        case Number():
            # Decimal.normalize would round to the context's precision; the tuple keeps every digit.
            sign, digits, exponent = value.as_tuple()
            text = "".join(map(str, digits))
            significant = text.rstrip("0")
            assert isinstance(exponent, int), "the reader lets no NaN or Infinity in"
            scale = exponent + len(text) - len(significant)
            return Number(f"{'-' if sign else ''}{significant}E{scale}" if significant else "0")
        case dict():
            return {key: normalise(value[key]) for key in sorted(value)}
        case list():
            return [normalise(item) for item in value]
        case _:
            return value


MAX_DEPTH = 32
"""Deepest nesting of objects and arrays that a reply may have."""


MAX_VALUES = 500_000
"""The most commas, and the most objects and arrays, in a reply. Limits memory: a value takes some hundred bytes."""


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
    DUPLICATE_KEY = "has a duplicate field in one object"
    NOT_A_NUMBER = "has NaN or Infinity, which are not JSON"
    NUMBER_TOO_LONG = "has a number with too many digits"
    TOO_DEEP = "is nested too deeply"
    TOO_MANY = f"holds more than {MAX_VALUES} values"
    LONE_SURROGATE = "has an invalid Unicode character (a lone surrogate)"


class Document(NamedTuple):
    """A readable reply: `value` is the complete JSON document, its number tokens unchanged."""

    value: JsonValue


class UnreadableReply(NamedTuple):
    """An unreadable reply: the defect, and the first characters of its text for a person to look at."""

    defect: Defect
    excerpt: str = ""


Reply = Document | UnreadableReply


class _DefectError(Exception):
    def __init__(self, defect: Defect) -> None:
        super().__init__(defect.value)
        self.defect = defect


def _parse_number(token: str) -> Number:
    if len(token) > MAX_NUMBER_CHARS:
        raise _DefectError(Defect.NUMBER_TOO_LONG)
    try:
        return Number(token)
    except InvalidOperation:
        raise _DefectError(Defect.NUMBER_TOO_LONG) from None


def _refuse_nan(_token: str) -> NoReturn:
    raise _DefectError(Defect.NOT_A_NUMBER)


def _make_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DefectError(Defect.DUPLICATE_KEY)
    return found


_DECODER = json.JSONDecoder(
    parse_int=_parse_number, parse_float=_parse_number, parse_constant=_refuse_nan, object_pairs_hook=_make_object
)
_JSON_WHITESPACE = " \t\r\n"
"""Whitespace in JSON (RFC 8259 section 2); Python strips more."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _check_depth(value: JsonValue, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise _DefectError(Defect.TOO_DEEP)
    for child in list_children(value):
        if isinstance(child, (dict, list)):
            _check_depth(child, depth + 1)


def _find_syntax_defect(text: str, error: json.JSONDecodeError) -> Defect:
    start = text.lstrip(_JSON_WHITESPACE)
    if start.startswith("<"):
        return Defect.HTML
    is_cut = error.pos >= len(text.rstrip(_JSON_WHITESPACE)) or error.msg.startswith("Unterminated string")
    return Defect.CUT_SHORT if is_cut and start.startswith(("{", "[", '"')) else Defect.NOT_JSON


def _parse_json(body: bytes) -> JsonValue:
    # Each value follows a comma or an opening bracket, and each key precedes a value: two counts bound everything.
    # They include commas and brackets inside texts, which only makes the limit stricter.
    if body.count(b",") >= MAX_VALUES or body.count(b"{") + body.count(b"[") > MAX_VALUES:
        raise _DefectError(Defect.TOO_MANY)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise _DefectError(Defect.NOT_UTF8) from None
    if not text.strip(_JSON_WHITESPACE):
        raise _DefectError(Defect.EMPTY)
    if text[0] == "\ufeff":
        raise _DefectError(Defect.BYTE_ORDER_MARK)
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _DefectError(_find_syntax_defect(text, error)) from None
    except RecursionError:
        raise _DefectError(Defect.TOO_DEEP) from None
    _check_depth(value)
    # Only a JSON escape can write a lone surrogate: UTF-8 cannot.
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise _DefectError(Defect.LONE_SURROGATE) from None
    return value


def read_reply(body: bytes) -> Reply:
    """Return the JSON document in a body, or an `UnreadableReply` with the defect. Never raises."""
    try:
        return Document(_parse_json(body))
    except _DefectError as found:
        return UnreadableReply(found.defect, make_excerpt(body))


def read_value(text: str | None) -> JsonValue:
    """Return the JSON document in a stored text; None if there is none, or if it is unreadable."""
    reply = read_reply(text.encode()) if text else None
    return reply.value if isinstance(reply, Document) else None


@lru_cache(maxsize=64)
def fold_name(name: str) -> str:
    """Return a field's name without case and separators, because INTERFACE.md shows no spelling of names."""
    return "".join(filter(str.isalnum, name)).casefold()


def contains_text(value: JsonValue, text: str) -> bool:
    """Whether `text` is one of the values in a record, at any depth."""
    return value == text or any(contains_text(child, text) for child in list_children(value))


def make_excerpt(body: bytes) -> str:
    """Return the first characters of a body, at most 200. For HTML, return those of the text without tags.

    The result is not safe to print: pass it through `output.plain.safe` first.
    """
    text = body[:_MAX_HEAD_BYTES].decode("utf-8", errors="replace").strip()
    if _HTML_START.match(text):
        import html  # noqa: PLC0415 - slow, and only HTML needs it

        # A title usually repeats the text.
        bare = _TAG.sub(" ", _TITLE.sub(" ", text))
        text = " ".join(html.unescape(bare if bare.strip() else _TAG.sub(" ", text)).split())
    return text[:_MAX_EXCERPT_CHARS]
