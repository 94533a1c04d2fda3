"""Decide which parts of texts and documents may be shown, stored and traced: they may contain a secret.

The API key is known, and found in a text in any encoding. Services echo keys as their encoders spell them (`\\u002B`,
`\\/`, `&#43;`, `%2b`), gateways quote such replies in other texts, and bodies break off. So a text is decoded as far as
possible before it is searched. It costs little on ordinary replies: some 0.3 s for 64 MB, 10 us for one record.

A signing secret is recognised only by its prefix or by its field's name, and INTERFACE.md does not show that name. So
of a webhook's record only texts known as harmless are stored, and hashes of the rest.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from escrowctl.contract.json import JsonValue, Number, plain_name

STARS = "***"

_PREFIX_CHARS = 12
_WINDOW, _SHORT_WINDOW = 12, 8
_BLOCK = 6
"""Each window of 12 holds a block of 6 that begins at a multiple of 6: these few blocks are searched first."""

_PIECE, _OVERLAP = 1 << 20, 1 << 13
"""Bytes. No encoding of a key is longer than the overlap of two pieces."""


_SHORT = 64
"""Characters: the result for a text of at most this length is cached."""

_MOST_LAYERS = 12
"""A text that is still encoded after so many decodings counts as a text with the key."""

_BLANKS = b" \t\r\n"
_UNSEEN_BYTES = bytes(byte for byte in range(256) if not 0x21 <= byte <= 0x7E and byte not in _BLANKS)
_DROPPED = _BLANKS + b"\\"
_HEX = rb"[0-9A-Fa-f]"
_SEEN = rb"(?:2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])"
_COULD_BE_A_KEY = r"(?=.*[0-9])(?=.*[A-Za-z])[\x21-\x2d\x30-\x7d][\x21-\x7e]{15,}"
_HOST = r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?/?"
# Each begins with a literal character: this makes the search fast. `re` caches the compiled patterns.
_ESCAPES = (
    (
        b"\\",
        rb"\\(?<!\\\\)u(?!00%b)%b{4}" % (_SEEN, _HEX),
        rb"\\(?:(?P<backslash>\\)|u\{0*(%b{1,6})\}|u(%b{4})|U(%b{8})|x(%b{2}))" % (_HEX, _HEX, _HEX, _HEX),
    ),
    (b"%", rb"%%(?!%b)%b{2}" % (_SEEN, _HEX), rb"%%(?:u(%b{4})|(%b{2}))" % (_HEX, _HEX)),
)
"""The start of an escape in JSON or in a URL, the escapes of invisible characters, and all escapes."""

_ENTITY = rb"&(?:#[xX]0*(%b{1,6});?|#0*(?P<decimal>[0-9]{1,7});?|(?P<name>[A-Za-z]{2,32});)" % _HEX

_HARMLESS = frozenset(
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
_STANDARD_PREFIX = "whsec_"
"""Standard Webhooks, "Signature scheme": a symmetric secret is serialised with this prefix."""


_PRIVATE_NAMES = (
    *("secret", "password", "passwd", "passphrase", "credential", "whsec", "api key", "private key", "signing key"),
    *("access key", "access token", "refresh token", "auth token", "api token", "bearer token", "session token"),
    *("id token", "verification token"),
)
"""Parts of the names of secrets. Not `token` alone: with some services that is an id, which the journal needs."""

# `re` compiles these at their first use, and caches them: a text that cannot match is not tried. Each is linear, for a
# reply may have 1 MiB and is not stored before it is covered: a name is tried at its beginning alone, and in one piece.
_NAME = r"[\w-]++"
_IS_PRIVATE = rf"(?<![\w-])(?=[\w-]*?(?:{'|'.join(_PRIVATE_NAMES).replace(' ', '[_-]?')}))"
_SIGNING = r"whsec(?:_|%5[Ff]|&#95;|&#[xX]5[Ff];|&lowbar;|\\u005[Ff])[^\s\"'<>]+"
_NAMED_VALUE = rf"""(?i){_IS_PRIVATE}(?:({_NAME}\\*["']\s*:\s*\\*["'])(?:[^"'\\]|\\[^"'])++|({_NAME}=)[^\s"'<>&;]++)"""
_USERINFO = r"://[^\s/@\"'<>]+@"
_QUERY_VALUE = r"([?&][\w.~%\[\]-]+=)[^\s\"'<>&#]+"


class Secret:
    """An API key that prints as stars; `reveal` is for the Authorization header alone."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the key itself."""
        return self._text

    @property
    def end(self) -> str | None:
        """The last four characters, to tell keys apart; None for a key with fewer than 16."""
        return self._text[-4:] if len(self._text) >= 16 else None

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def holds_key(text: str | bytes, key: str) -> bool:
    """Whether a text or a body holds an API key, in any encoding.

    It holds the key if it holds 12 consecutive characters of the key after its prefix, which ends at the last `_`
    within its first 12 characters; 8 if fewer than 12 remain, and the complete key if fewer than 8 do. They are found
    behind escapes of JSON, JavaScript, HTML and URLs in up to 12 layers, between invisible characters and in UTF-16; in
    base64 and hexadecimal by their beginning.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if key.encode() in data:
        return True
    needles = _needles(key)
    # In pieces, because decoding a text takes several times its memory.
    pieces = (data[start : start + _PIECE + _OVERLAP] for start in range(0, len(data), _PIECE))
    return any(needles.are_in(piece) for piece in pieces)


def star(text: str, key: str) -> str:
    """Return a text with stars in place of the API key, or of the complete text if the key in it is encoded."""
    return _star_short(text, key) if len(text) <= _SHORT else _star(text, key)


def _star(text: str, key: str) -> str:
    text = text.replace(key, STARS)
    return STARS if holds_key(text, key) else text


_star_short = lru_cache(maxsize=256)(_star)
"""Names and values of headers are the same with each reply."""


def shown(value: str) -> str:
    """Return a typed value as a message may quote it: stars in place of a value that could be an API key.

    A key typed in the wrong place is not known. A word of 16 characters or more could be one, if it is no path or host.
    """
    return STARS if re.fullmatch(_COULD_BE_A_KEY, value) and not re.fullmatch(_HOST, value) else value


class _Needles:
    """The texts to search for in a decoded text to find one key."""

    def __init__(self, key: str) -> None:
        rest = key[key[:_PREFIX_CHARS].rfind("_") + 1 :]
        size = _WINDOW if len(rest) >= _WINDOW else _SHORT_WINDOW
        windows = _cut(rest, size, 1) or [key]
        self.windows = _decode_all(windows)
        self.blocks = _decode_all(_cut(rest, _BLOCK, _BLOCK)) if size == _WINDOW else self.windows
        self.coded = _encode(windows[0].encode())

    def are_in(self, data: bytes) -> bool:
        """Whether a text holds one of them, in any layer."""
        for layer, text in enumerate(_layers(data)):
            bare = text.translate(None, _DROPPED)
            if layer == _MOST_LAYERS or any(coded in bare for coded in self.coded):
                return True
            if any(block in bare for block in self.blocks) and any(part in bare for part in self.windows):
                return True
        return False


_needles = lru_cache(maxsize=16)(_Needles)


def _cut(text: str, size: int, step: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text) - size + 1, step)]


def _decode_all(texts: list[str]) -> frozenset[bytes]:
    """Return the last layer of each text, which is searched for; if nothing is left of it, the text itself."""
    return frozenset([*_layers(text.encode())][-1].translate(None, _DROPPED) or text.encode() for text in texts)


def _encode(start: bytes) -> frozenset[bytes]:
    """Return a key's beginning in hexadecimal, and in base64 at each of the three offsets in a group."""
    from base64 import b64encode  # noqa: PLC0415 - for those who have a key

    found = {start.hex().encode(), start.hex().upper().encode()}
    for skipped in range(3):
        whole = start[skipped:]
        coded = b64encode(whole[: len(whole) // 3 * 3])
        found |= {coded, coded.replace(b"+", b"-").replace(b"/", b"_")}
    return frozenset(found)


def _layers(data: bytes) -> Iterator[bytes]:
    """Yield a text in visible ASCII and blanks, then the result of each of up to 12 decodings, until none changes it.

    Invisible characters are dropped, and with them the zeros of UTF-16 and a byte order mark.
    """
    data = data.translate(None, _UNSEEN_BYTES)
    yield data
    for _ in range(_MOST_LAYERS):
        before = data
        for mark, unseen, escape in _ESCAPES:
            if mark in data:
                data = re.sub(escape, _character, re.sub(unseen, b"", data))
        if data == before and b"&" in data:
            # Last, because an entity may end without its semicolon: encodings inside it come first.
            data = re.sub(_ENTITY, _character, data)
        if data == before:
            return
        yield data


def _character(escape: re.Match[bytes]) -> bytes:
    digits, kind = escape[escape.lastindex or 0], escape.lastgroup
    if kind == "backslash":
        return digits
    if kind == "name":
        return _entities().get(digits, escape[0])
    code = int(digits, 10 if kind == "decimal" else 16)
    return bytes((code,)) if 0x21 <= code <= 0x7E else b""


@lru_cache(maxsize=1)
def _entities() -> dict[bytes, bytes]:
    from html.entities import html5  # noqa: PLC0415 - for texts that name one

    return {
        name.removesuffix(";").encode(): text.encode("ascii", "ignore").translate(None, _UNSEEN_BYTES)
        for name, text in html5.items()
    }


def star_value(value: JsonValue, key: str) -> JsonValue:
    """Return a document with stars for an API key in each of its texts, names and numbers."""
    match value:
        case str():
            return star(value, key)
        case Number():
            return STARS if holds_key(value.text, key) else value
        case dict():
            return {star(name, key): star_value(item, key) for name, item in value.items()}
        case list():
            return [star_value(item, key) for item in value]
        case _:
            return value


def hide_secrets(text: str) -> str:
    """Return a short text with stars for signing secrets, and for values under names like those of secrets."""
    text = re.sub(_SIGNING, STARS, text) if "whsec" in text else text
    # Without one of these there is nothing to find: most texts of most replies.
    return re.sub(_NAMED_VALUE, rf"\1\2{STARS}", text) if any(mark in text for mark in "=\"'") else text


def hide_in_text(text: str) -> str:
    """Return a text with stars for everything that may be secret in it: everything that `hide_secrets` hides, and the
    user, the password and the values of the query in URLs.
    """
    text = hide_secrets(text)
    text = re.sub(_QUERY_VALUE, rf"\1{STARS}", text) if "=" in text else text
    return re.sub(_USERINFO, f"://{STARS}@", text) if "://" in text else text


def hide_values(value: JsonValue) -> JsonValue:
    """Return a document with stars for values under names like those of secrets.

    In any text, signing secrets and the values in the queries of URLs become stars.
    """
    return _cover(
        value,
        "",
        lambda name, leaf: STARS if is_private(name) else hide_in_text(leaf) if isinstance(leaf, str) else leaf,
    )


def hash_values(value: JsonValue) -> JsonValue:
    """Return a document with hashes, as `redact` makes them, of the values under names like those of secrets.

    Without such names it is the document itself; hashes are hashed again.
    """
    return _cover(value, "", lambda name, leaf: _hash(leaf) if is_private(name) else leaf)


def _cover(value: JsonValue, name: str, cover: Callable[[str, str | Number], JsonValue]) -> JsonValue:
    """Return a document with `cover` of each text and number, and of its field's name, in their place."""
    match value:
        case dict():
            return {key: _cover(item, key, cover) for key, item in value.items()}
        case list():
            return [_cover(item, name, cover) for item in value]
        case str() | Number():
            return cover(name, value)
        case _:
            return value


@lru_cache(maxsize=256)
def is_private(name: str) -> bool:
    """Whether a field is named like a secret."""
    bare = plain_name(name)
    return any(word.replace(" ", "") in bare for word in _PRIVATE_NAMES)


def redact(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> JsonValue:
    """Return a document with every text but the harmless ones as `sha256:` and 32 hexadecimal digits.

    Names, numbers, true, false and null stay: equal documents stay equal, different ones different.
    `harmless` adds names to the list.
    """
    known = _HARMLESS | {name.casefold() for name in harmless}
    return _cover(value, "", lambda name, leaf: _hash(leaf) if _is_unknown(name, leaf, known) else leaf)


def hide_unknown(value: JsonValue) -> JsonValue:
    """Return a document with stars for every text but the harmless ones."""
    return _cover(value, "", lambda name, leaf: STARS if _is_unknown(name, leaf, _HARMLESS) else leaf)


def may_hold_secret(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> bool:
    """Whether a webhook's record has a text that is not known to be harmless."""
    return redact(value, harmless=harmless) != value


def find_secret(value: JsonValue) -> str | None:
    """Return the signing secret in a webhook's record, by its usual names or Standard Webhooks' prefix."""
    if isinstance(value, dict):
        for name, item in value.items():
            is_named = plain_name(name) in _SIGNING_NAMES
            if isinstance(item, str) and item and (is_named or item.startswith(_STANDARD_PREFIX)):
                return item
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for child in children if (found := find_secret(child))), None)


def _is_unknown(name: str, value: str | Number, harmless: frozenset[str]) -> bool:
    return isinstance(value, str) and (name.casefold() not in harmless or bool(re.search(_SIGNING, value)))


def _hash(value: str | Number) -> str:
    return f"sha256:{hashlib.sha256(str(value).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
