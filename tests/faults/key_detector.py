"""A search for an API key in bytes, decoded in every order, without code of escrowctl."""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

_LAYERS = 4
_PREFIX, _WINDOW, _SHORT = 12, 12, 8
_JSON_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\}|(["\\/]))')
_PERCENT_U = re.compile(r"%u([0-9a-fA-F]{4})")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_HEX_RUN = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")


def parts_of(key: str) -> tuple[str, ...]:
    """Return what counts as the key: 12 consecutive characters beyond its prefix, 8 where there are fewer."""
    head = key[:_PREFIX]
    rest = key[head.rindex("_") + 1 :] if "_" in head else key
    size = _WINDOW if len(rest) >= _WINDOW else _SHORT
    assert len(rest) >= size, "the keys of these tests are long enough"
    return tuple(rest[start : start + size] for start in range(len(rest) - size + 1))


def find_key(key: str, data: bytes, *, layers: int = _LAYERS) -> str | None:
    """Return a decoding of `data` in which the key is, shortened; None where there is none."""
    parts = parts_of(key)
    seen = set(_texts(data))
    waiting = list(seen)
    for layer in range(layers + 1):
        for text in waiting:
            for part in parts:
                if part in text:
                    return f"{layer} layers: ...{text[max(0, text.index(part) - 60) :][:120]}"
        found = {decoded for text in waiting for decoded in _decodings(text) if decoded}
        waiting = list(found - seen)
        seen |= found
    return None


def _texts(data: bytes) -> Iterator[str]:
    yield data.decode("utf-8", errors="replace")
    if b"\0" in data:
        for offset in (0, 1):
            for encoding in ("utf-16-le", "utf-16-be"):
                yield data[offset:].decode(encoding, errors="replace")


def _decodings(text: str) -> Iterator[str]:
    """Yield what each decoder makes of a text."""
    if "\\" in text:
        yield _JSON_ESCAPE.sub(_unescaped, text)
    if "&" in text:
        yield html.unescape(text)
    if "%" in text:
        yield unquote(_PERCENT_U.sub(lambda found: chr(int(found[1], 16)), text))
    if not (text.isascii() and text.isprintable()):
        yield "".join(char for char in text if char.isprintable() and unicodedata.category(char) not in ("Mn", "So"))
    for run in _BASE64_RUN.findall(text):
        yield from _from_base64(run)
    for run in _HEX_RUN.findall(text):
        yield bytes.fromhex(run).decode("latin-1")


def _unescaped(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    return chr(min(int(digits, 16), 0x10FFFF)) if digits else found[4]


def _from_base64(run: str) -> Iterator[str]:
    standard = run.replace("-", "+").replace("_", "/")
    for offset in range(4):
        whole = standard[offset : offset + (len(standard) - offset) // 4 * 4]
        try:
            yield base64.b64decode(whole).decode("latin-1")
        except (binascii.Error, ValueError):
            continue
