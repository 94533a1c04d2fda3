"""Hide secrets in texts and documents before they are shown, stored or traced.

The API key is known, so the search can find it in any encoding. In a reply, the key may be escaped (`\\u002B`,
`\\/`, `&#43;`, `%2b`), quoted in another text, or truncated. So a text is decoded as far as possible before the
search, which takes some 0.3 s for 64 MB and 10 us for one record.

A signing secret is recognised only by its prefix or by its field's name, and INTERFACE.md does not show that name.
So in a stored webhook record, hashes replace all texts that are not known to be harmless.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from escrowctl.contract.json import JsonValue, Number, fold_name, list_children

STARS = "***"

_MAX_PREFIX_CHARS = 12
_WINDOW_CHARS, _SHORT_WINDOW_CHARS = 12, 8
_BLOCK = 6
"""Each window of 12 holds a block of 6 that begins at a multiple of 6: these few blocks are searched first."""

_PIECE_BYTES, _OVERLAP_BYTES = 1 << 20, 1 << 13
"""Bytes. No encoding of a key is longer than the overlap of two pieces."""

_MAX_LAYERS = 12
"""A text that is still encoded after so many decodings counts as a text with the key."""

_BLANKS = b" \t\r\n"
_INVISIBLE_BYTES = bytes(byte for byte in range(256) if not 0x21 <= byte <= 0x7E and byte not in _BLANKS)
_IGNORED_BYTES = _BLANKS + b"\\"
_HEX = rb"[0-9A-Fa-f]"
_VISIBLE_HEX = rb"(?:2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])"
_COULD_BE_A_KEY = r"(?=.*[0-9])(?=.*[A-Za-z])[\x21-\x2d\x30-\x7d][\x21-\x7e]{15,}"
_HOST = r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?/?"
# Each begins with a literal character: this makes the search fast. `re` caches the compiled patterns.
_ESCAPES = (
    (
        b"\\",
        rb"\\(?<!\\\\)u(?!00%b)%b{4}" % (_VISIBLE_HEX, _HEX),
        rb"\\(?:(?P<backslash>\\)|u\{0*(%b{1,6})\}|u(%b{4})|U(%b{8})|x(%b{2}))" % (_HEX, _HEX, _HEX, _HEX),
    ),
    (b"%", rb"%%(?!%b)%b{2}" % (_VISIBLE_HEX, _HEX), rb"%%(?:u(%b{4})|(%b{2}))" % (_HEX, _HEX)),
)
"""For JSON, then for URLs: how an escape begins, the pattern of invisible characters, and that of all escapes."""

_ENTITY = rb"&(?:#[xX]0*(%b{1,6});?|#0*(?P<decimal>[0-9]{1,7});?|(?P<name>[A-Za-z]{2,32});)" % _HEX

_HARMLESS_NAMES = frozenset(
    {
        *("id", "_id", "uid", "uuid", "webhook_id", "webhookid", "transaction_id", "transactionid", "object", "type"),
        *("url", "endpoint", "target", "target_url", "callback_url"),
        *("events", "event", "event_types", "enabled_events"),
        *("status", "state", "amount", "currency", "mode", "version", "api_version"),
        *("created", "created_at", "createdat", "updated", "updated_at", "updatedat"),
        *("title", "detail", "message", "error", "code", "reason"),
    }
)
_SIGNING_NAMES = frozenset({"secret", "signingsecret", "webhooksecret", "signingkey", "whsec", "sharedsecret"})

_PRIVATE_NAMES = (
    *("secret", "password", "passwd", "passphrase", "credential", "whsec", "api key", "private key", "signing key"),
    *("access key", "access token", "refresh token", "auth token", "api token", "bearer token", "session token"),
    *("id token", "verification token"),
)
"""Parts of the names of secrets. Not `token` alone: for some services it is an id, which the journal needs."""

# `re` compiles these at their first use and caches them. Each takes linear time, because a reply may have 1 MiB: a
# name is matched only from its beginning, and as one piece.
_NAME = r"[\w-]++"
_IS_PRIVATE = rf"(?<![\w-])(?=[\w-]*?(?:{'|'.join(_PRIVATE_NAMES).replace(' ', '[_-]?')}))"
_WHSEC_PATTERN = r"whsec(?:_|%5[Ff]|&#95;|&#[xX]5[Ff];|&lowbar;|\\u005[Ff])[^\s\"'<>]+"
_NAMED_VALUE = rf"""(?i){_IS_PRIVATE}(?:({_NAME}\\*["']\s*:\s*\\*["'])(?:[^"'\\]|\\[^"'])++|({_NAME}=)[^\s"'<>&;]++)"""
_USERINFO = r"://[^\s/@\"'<>]+@"
_QUERY_VALUE = r"([?&][\w.~%\[\]-]+=)[^\s\"'<>&#]+"


class Secret:
    """An API key that prints as stars. Only `reveal` returns the key itself."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the key itself."""
        return self._text

    @property
    def last_four(self) -> str | None:
        """The last four characters, to tell keys apart; None for a key with fewer than 16."""
        return self._text[-4:] if len(self._text) >= 16 else None

    def __repr__(self) -> str:
        return "Secret(***)"


def holds_key(text: str | bytes, key: str) -> bool:
    """Whether a text or a body holds an API key, in any encoding.

    A part of the key after its prefix is enough: 12 consecutive characters, or 8 if fewer than 12 follow the
    prefix. If fewer than 8 follow, the complete key is needed. The prefix ends at the last `_` within the first 12
    characters. The search ignores invisible characters and zeros of UTF-16, and decodes up to 12 layers of escapes
    of JSON, JavaScript, HTML and URLs. In base64 and hexadecimal, it finds only the part directly after the prefix.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    # Results for short texts are cached: requests and replies repeat paths, names and values of headers.
    return _holds_key_cached(data, key) if len(data) <= 64 else _holds_key_cached.__wrapped__(data, key)


@lru_cache(maxsize=256)
def _holds_key_cached(data: bytes, key: str) -> bool:
    if key.encode() in data:
        return True
    needles = _key_parts(key)
    # In pieces, because decoding a text takes several times its memory.
    pieces = (data[start : start + _PIECE_BYTES + _OVERLAP_BYTES] for start in range(0, len(data), _PIECE_BYTES))
    return any(needles.occur_in(piece) for piece in pieces)


def star(text: str, key: str) -> str:
    """Return a text with stars in place of the API key; only stars if the text has the key in an encoded form."""
    text = text.replace(key, STARS)
    return STARS if holds_key(text, key) else text


def star_possible_key(value: str) -> str:
    """Return a typed value for a message; return stars if the value could be an API key.

    A key typed in the wrong place is not known. So each value of 16 or more visible characters with letters and
    digits could be a key, unless the value begins like a path or is a host.
    """
    return STARS if re.fullmatch(_COULD_BE_A_KEY, value) and not re.fullmatch(_HOST, value) else value


class _KeyParts:
    """The parts of an API key that `holds_key` searches for."""

    def __init__(self, key: str) -> None:
        from base64 import b64encode, urlsafe_b64encode  # noqa: PLC0415 - not needed without a key

        rest = key[key[:_MAX_PREFIX_CHARS].rfind("_") + 1 :]
        size = _WINDOW_CHARS if len(rest) >= _WINDOW_CHARS else _SHORT_WINDOW_CHARS
        windows = _cut_windows(rest, size, 1) or [key]
        self.windows = _decode_fully(windows)
        self.blocks = _decode_fully(_cut_windows(rest, _BLOCK, _BLOCK)) if size == _WINDOW_CHARS else self.windows
        start = windows[0].encode()
        triples = [part[: len(part) // 3 * 3] for part in (start, start[1:], start[2:])]
        in_base64 = (encode(part) for part in triples for encode in (b64encode, urlsafe_b64encode))
        # The key's beginning in hexadecimal, and in base64 at each of the three possible offsets.
        self.coded = frozenset((start.hex().encode(), start.hex().upper().encode(), *in_base64))

    def occur_in(self, data: bytes) -> bool:
        """Whether a part of the key is in a text, as it is or after some decodings."""
        for layer, text in enumerate(_decode_layers(data)):
            bare = text.translate(None, _IGNORED_BYTES)
            if layer == _MAX_LAYERS or _contains_any(bare, self.coded):
                return True
            if _contains_any(bare, self.blocks) and _contains_any(bare, self.windows):
                return True
        return False


def _contains_any(text: bytes, parts: Iterable[bytes]) -> bool:
    for part in parts:  # noqa: SIM110 - any() takes twice the time, and each text that is sent is searched
        if part in text:
            return True
    return False


_key_parts = lru_cache(maxsize=16)(_KeyParts)


def _cut_windows(text: str, size: int, step: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text) - size + 1, step)]


def _decode_fully(texts: list[str]) -> frozenset[bytes]:
    """Return each text after its last decoding. A text that decodes to nothing is returned unchanged."""
    return frozenset(
        [*_decode_layers(text.encode())][-1].translate(None, _IGNORED_BYTES) or text.encode() for text in texts
    )


def _decode_layers(data: bytes) -> Iterator[bytes]:
    """Yield a text without its invisible bytes, then the text after each decoding, up to 12 times.

    Only visible ASCII and blanks stay, so zeros of UTF-16 and a byte order mark are dropped. The iterator ends when
    a decoding changes nothing.
    """
    data = data.translate(None, _INVISIBLE_BYTES)
    yield data
    for _ in range(_MAX_LAYERS):
        before = data
        for mark, invisible, escape in _ESCAPES:
            if mark in data:
                data = re.sub(escape, _decode_escape, re.sub(invisible, b"", data))
        if data == before and b"&" in data:
            # Last, because an entity may end without its semicolon: encodings inside it come first.
            data = re.sub(_ENTITY, _decode_escape, data)
        if data == before:
            return
        yield data


def _decode_escape(escape: re.Match[bytes]) -> bytes:
    digits, kind = escape[escape.lastindex or 0], escape.lastgroup
    if kind == "backslash":
        return digits
    if kind == "name":
        return _list_entities().get(digits, escape[0])
    code = int(digits, 10 if kind == "decimal" else 16)
    return bytes((code,)) if 0x21 <= code <= 0x7E else b""


@lru_cache(maxsize=1)
def _list_entities() -> dict[bytes, bytes]:
    from html.entities import html5  # noqa: PLC0415 - only texts with entities need it

    return {
        name.removesuffix(";").encode(): text.encode("ascii", "ignore").translate(None, _INVISIBLE_BYTES)
        for name, text in html5.items()
    }


def star_key_in_document(value: JsonValue, key: str) -> JsonValue:
    """Return a JSON document with stars in place of an API key, in texts, in names and in numbers."""
    match value:
        case str():
            return star(value, key)
        case Number():
            return STARS if holds_key(value.text, key) else value
        case dict():
            return {star(name, key): star_key_in_document(item, key) for name, item in value.items()}
        case list():
            return [star_key_in_document(item, key) for item in value]
        case _:
            return value


def hide_secrets(text: str) -> str:
    """Return a text with stars in place of signing secrets and of values with private names (`password=...`)."""
    text = re.sub(_WHSEC_PATTERN, STARS, text) if "whsec" in text else text
    # Without one of these there is nothing to find: most texts of most replies.
    return re.sub(_NAMED_VALUE, rf"\1\2{STARS}", text) if "=" in text or '"' in text or "'" in text else text


def hide_in_text(text: str) -> str:
    """Return a text after `hide_secrets`, with stars also in place of user, password and query values in URLs."""
    text = hide_secrets(text)
    text = re.sub(_QUERY_VALUE, rf"\1{STARS}", text) if "=" in text else text
    return re.sub(_USERINFO, f"://{STARS}@", text) if "://" in text else text


def hide_private_values(value: JsonValue) -> JsonValue:
    """Return a document with stars for values whose names are private. `hide_in_text` changes all other texts."""
    return _replace_leaves(
        value,
        "",
        lambda name, leaf: STARS if is_private(name) else hide_in_text(leaf) if isinstance(leaf, str) else leaf,
    )


def hash_private_values(value: JsonValue) -> JsonValue:
    """Return a document with hashes, as in `redact`, for values whose names are private (`is_private`).

    A document without such names stays equal. A value that is a hash already is hashed again.
    """
    return _replace_leaves(value, "", lambda name, leaf: _hash_value(leaf) if is_private(name) else leaf)


def _replace_leaves(value: JsonValue, name: str, replace: Callable[[str, str | Number], JsonValue]) -> JsonValue:
    """Return a document with `replace(name, leaf)` in place of texts and numbers. `name` is the name of a field."""
    match value:
        case str() | Number():
            return replace(name, value)
        case dict():
            return {key: _replace_leaves(item, key, replace) for key, item in value.items()}
        case list():
            return [_replace_leaves(item, name, replace) for item in value]
        case _:
            return value


@lru_cache(maxsize=64)
def is_private(name: str) -> bool:
    """Whether the name of a field says that its value is a secret, such as `password` or `api_key`."""
    bare = fold_name(name)
    return any(word.replace(" ", "") in bare for word in _PRIVATE_NAMES)


def redact(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> JsonValue:
    """Return a document with a hash (`sha256:` and 32 hexadecimal digits) for each text not known to be harmless.

    Names, numbers, true, false and null stay. Equal documents stay equal, and different ones stay different.
    `harmless` has further names of fields whose texts are harmless.
    """
    known = _HARMLESS_NAMES | {name.casefold() for name in harmless}
    return _replace_leaves(value, "", lambda name, leaf: _hash_value(leaf) if _is_suspect(name, leaf, known) else leaf)


def hide_unknown_texts(value: JsonValue) -> JsonValue:
    """Return a document with stars for each text that is not known to be harmless."""
    return _replace_leaves(value, "", lambda name, leaf: STARS if _is_suspect(name, leaf, _HARMLESS_NAMES) else leaf)


def may_hold_secret(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> bool:
    """Whether a webhook's record has a text that is not known to be harmless."""
    return redact(value, harmless=harmless) != value


def find_signing_secret(value: JsonValue) -> str | None:
    """Return the signing secret in a webhook's record, by a usual name or by the prefix `whsec_`; else None."""
    if isinstance(value, dict):
        # Standard Webhooks, "Signature scheme": a symmetric secret is serialised with the prefix `whsec_`.
        for name, item in value.items():
            is_named = fold_name(name) in _SIGNING_NAMES
            if isinstance(item, str) and item and (is_named or item.startswith("whsec_")):
                return item
    return next(filter(None, map(find_signing_secret, list_children(value))), None)


def _is_suspect(name: str, value: str | Number, harmless: frozenset[str]) -> bool:
    return isinstance(value, str) and (name.casefold() not in harmless or bool(re.search(_WHSEC_PATTERN, value)))


def _hash_value(value: str | Number) -> str:
    return f"sha256:{hashlib.sha256(str(value).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
