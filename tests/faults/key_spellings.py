"""How services, frameworks and gateways spell a key that they echo: 26 reply bodies."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NAMES = {
    "+": "plus", "/": "sol", "=": "equals", '"': "quot", "\\": "bsol", "&": "amp", "<": "lt", ">": "gt",
    "%": "percnt", "'": "apos", "_": "lowbar", ":": "colon", "*": "ast", "#": "num", "!": "excl",
}  # fmt: skip

Spell = Callable[[str], bytes]


def _json(text: str) -> bytes:
    return json.dumps({"error": {"message": f"Invalid API key {text}"}}).encode()


def _raw_json(spelled: str) -> bytes:
    return f'{{"error":{{"message":"Invalid API key {spelled}"}}}}'.encode()


def _page(spelled: str) -> bytes:
    return f"<html><body><h1>401</h1>Authorization: Bearer {spelled}</body></html>".encode()


def _each(key: str, spell: Callable[[str], str], *, all_of_it: bool = True) -> str:
    return "".join(spell(char) if all_of_it or not char.isalnum() else char for char in key)


def _in_json(key: str) -> str:
    return json.dumps(key)[1:-1]


def _dot_net(key: str) -> str:
    """As System.Text.Json spells what it holds to be unsafe: `\\u002B`."""
    return _each(key, lambda char: f"\\u{ord(char):04X}", all_of_it=False)


def _named(char: str) -> str:
    return f"&{_NAMES[char]};" if char in _NAMES else html.escape(char)


SPELLINGS: dict[str, Spell] = {
    "JSON escapes behind a byte order mark": lambda key: BYTE_ORDER_MARK + _raw_json(_dot_net(key)),
    "every character a JSON escape behind a byte order mark": lambda key: (
        BYTE_ORDER_MARK + _raw_json(_each(key, lambda char: f"\\u{ord(char):04x}"))
    ),
    "escaped slashes behind a byte order mark": lambda key: (
        BYTE_ORDER_MARK + _raw_json(_in_json(key).replace("/", "\\/"))
    ),
    "JSON in a page": lambda key: _page('{"key":"' + _in_json(key).replace("/", "\\/") + '"}'),
    "decimal entities": lambda key: _page(_each(key, lambda char: f"&#{ord(char)};", all_of_it=False)),
    "decimal entities with zeros": lambda key: _page(_each(key, lambda char: f"&#{ord(char):05d};")),
    "hexadecimal entities": lambda key: _page(_each(key, lambda char: f"&#x{ord(char):X};", all_of_it=False)),
    "named entities": lambda key: _page(_each(key, _named)),
    "entities in JSON": lambda key: _json(_each(key, lambda char: f"&#x{ord(char):x};", all_of_it=False)),
    "entities twice": lambda key: _json(html.escape(_each(key, lambda char: f"&#{ord(char)};", all_of_it=False))),
    "lower-case percent-encoding": lambda key: _json(
        "https://login.example/?key=" + _each(key, lambda char: f"%{ord(char):02x}", all_of_it=False)
    ),
    "upper-case percent-encoding": lambda key: _page(quote(key, safe="")),
    "every character percent-encoded": lambda key: _json(_each(key, lambda char: f"%{ord(char):02X}")),
    "percent-encoding twice": lambda key: _json(quote(_each(key, lambda char: f"%{ord(char):02x}"), safe="")),
    "percent-encoding with u": lambda key: _page(_each(key, lambda char: f"%u{ord(char):04x}")),
    "JSON in JSON": lambda key: _json('{"message":"Invalid key ' + _dot_net(key) + '"}'),
    "JSON in JSON in JSON that breaks off": lambda key: _json(json.dumps({"message": json.dumps({"key": key})}))[:-2],
    "UTF-16": lambda key: _json(key).decode().encode("utf-16"),
    "UTF-16 the other way round": lambda key: _raw_json(_dot_net(key)).decode().encode("utf-16-be"),
    "cut one character short": lambda key: _raw_json(key.replace("\\", "\\\\").replace('"', '\\"')[:-1])[:-3],
    "cut short among escapes": lambda key: _raw_json(_each(key[:-1], lambda char: f"\\u{ord(char):04x}"))[:-4],
    "zero-width spaces between": lambda key: _page("\u200b".join(key)),
    "escaped soft hyphens between": lambda key: _raw_json("\\u00ad".join(_in_json(char) for char in key)),
    "base64": lambda key: _json("Basic " + base64.b64encode(f"{key}:".encode()).decode()),
    "base64 for URLs": lambda key: _page(base64.urlsafe_b64encode(f'{{"k":"{key}"}}'.encode()).decode()),
    "hexadecimal in C escapes": lambda key: _page(_each(key, lambda char: f"\\x{ord(char):02x}")),
}

KEYS = ("sk_live_Ab+9/Cd7Q==kx3VnW8tZr", "4f1c8a7f2b10d5b4e6a90c3d7f5e2a18", "acct_\"q\\x/7Zr+Lm'4&t<Kp>9%41Wd")
"""Like base64 behind a prefix, hexadecimal without one, and with all that encoders touch."""
