"""What may be stored and traced of texts and documents that can contain a secret.

The API key is known, and found by `key_search`. A signing secret is recognised only by its prefix or by
its field's name, and INTERFACE.md does not show that name. So of a webhook's record only texts known as
harmless are stored, and hashes of the rest.
"""

import hashlib
import re
from collections.abc import Callable

from escrowctl.contract.json import JsonValue, Number
from escrowctl.contract.key_search import STARS, holds_key, star

_HARMLESS = frozenset(
    {
        *("id", "_id", "uid", "uuid", "webhook_id", "webhookid", "transaction_id", "transactionid", "object", "type"),
        *(
            "url",
            "endpoint",
            "target",
            "target_url",
            "callback_url",
            "events",
            "event",
            "event_types",
            "enabled_events",
        ),
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
"""What the names of secrets contain. Not `token` alone: with some services that is an id, which the journal needs."""

# `re` compiles these at their first use, and caches them: a text that cannot match is not tried.
_NAME = rf"[\w-]{{0,64}}?(?:{'|'.join(_PRIVATE_NAMES).replace(' ', '[_-]?')})[\w-]{{0,64}}"
_SIGNING = r"whsec(?:_|%5[Ff]|&#95;|&#[xX]5[Ff];|&lowbar;|\\u005[Ff])[^\s\"'<>]+"
_NAMED_VALUE = rf"""(?i)({_NAME}\\*["']\s*:\s*\\*["'])(?:[^"'\\]|\\[^"'])+|(\b{_NAME}=)[^\s"'<>&;]+"""
_QUERY_VALUE = r"([?&][\w.~%\[\]-]+=)[^\s\"'<>&#]+"


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
    return re.sub(_NAMED_VALUE, rf"\1\2{STARS}", _hide_signing(text))


def hide_query(text: str) -> str:
    """Return a text with stars for the values in the queries of its URLs."""
    return re.sub(_QUERY_VALUE, rf"\1{STARS}", text) if "=" in text else text


def hide_values(value: JsonValue) -> JsonValue:
    """Return a document with stars for values under names like those of secrets.

    In any text, signing secrets and the values in the queries of URLs become stars.
    """
    return _cover(value, "", lambda _text: STARS, lambda text: hide_query(_hide_signing(text)))


def hash_values(value: JsonValue) -> JsonValue:
    """Return a document with hashes, as `redact` makes them, of the values under names like those of secrets.

    Without such names it is the document itself; hashes are hashed again.
    """
    return _cover(value, "", _hash, lambda text: text)


def _hide_signing(text: str) -> str:
    return re.sub(_SIGNING, STARS, text) if "whsec" in text else text


def _cover(value: JsonValue, name: str, secret: Callable[[str], str], other: Callable[[str], str]) -> JsonValue:
    match value:
        case dict():
            return {key: _cover(item, key, secret, other) for key, item in value.items()}
        case list():
            return [_cover(item, name, secret, other) for item in value]
        case str() | Number() if _is_like_a_secret(name):
            return secret(str(value))
        case str():
            return other(value)
        case _:
            return value


def redact(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> JsonValue:
    """Return a document with every text but the harmless ones as `sha256:` and 32 hexadecimal digits.

    Names, numbers, true, false and null stay: equal documents stay equal, different ones different.
    `harmless` adds names to the list.
    """
    return _walk(value, "", _HARMLESS | {name.casefold() for name in harmless})


def may_hold_secret(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> bool:
    """Whether a webhook's record has a text that is not known to be harmless."""
    return redact(value, harmless=harmless) != value


def find_secret(value: JsonValue) -> str | None:
    """Return the signing secret in a webhook's record, by its usual names or Standard Webhooks' prefix."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str) and _is_secret(name, item):
                return item
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for child in children if (found := find_secret(child))), None)


def _is_secret(name: str, text: str) -> bool:
    return bool(text) and (_bare(name) in _SIGNING_NAMES or text.startswith(_STANDARD_PREFIX))


def _is_like_a_secret(name: str) -> bool:
    bare = _bare(name)
    return any(word.replace(" ", "") in bare for word in _PRIVATE_NAMES)


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _walk(value: JsonValue, name: str, harmless: frozenset[str]) -> JsonValue:
    match value:
        case dict():
            return {key: _walk(item, key, harmless) for key, item in value.items()}
        case list():
            return [_walk(item, name, harmless) for item in value]
        case str() if re.search(_SIGNING, value) or name.casefold() not in harmless:
            return _hash(value)
        case _:
            return value


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
