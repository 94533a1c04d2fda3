"""What may be kept and traced of bodies that can hold a secret: known harmless texts, and hashes of the rest.

A webhook's record holds a signing secret under a name that interface.md does not show, so nothing
is recognised as secret: what is not on the list is not kept.
"""

import hashlib
from urllib.parse import quote, unquote

from escrowctl.contract.number import JsonValue

STARS = "***"

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
_SECRET_NAMES = frozenset({"secret", "signingsecret", "webhooksecret", "signingkey", "whsec", "sharedsecret"})
_STANDARD_PREFIX = "whsec_"
"""Standard Webhooks, "Signature scheme": a symmetric secret is serialised with this prefix."""


def star(text: str, secret: str) -> str:
    """Return a text with a secret replaced by stars, as it stands and as JSON or a URL would spell it."""
    for spelling in spellings(secret):
        text = text.replace(spelling, STARS)
    # A URL may spell any of its characters either way: then nothing of the text is shown.
    return STARS if "%" in text and secret in unquote(text) else text


def spellings(secret: str) -> tuple[str, ...]:
    """Return how a secret of visible ASCII characters may stand in a text: plain, in JSON, in a URL."""
    in_json = secret.replace("\\", "\\\\").replace('"', '\\"')
    return tuple(dict.fromkeys((secret, in_json, quote(secret, safe=""), quote(secret))))


def redact(value: JsonValue, *, harmless: frozenset[str] = frozenset()) -> JsonValue:
    """Return a document with every text but the harmless ones as `sha256:` and 32 hexadecimal digits.

    Names, numbers, true, false and null stay: equal documents stay equal, different ones different.
    `harmless` adds names to the list.
    """
    return _walk(value, "", _HARMLESS | {name.casefold() for name in harmless})


def find_secret(value: JsonValue) -> str | None:
    """Return the signing secret in a webhook's record, by its usual names or Standard Webhooks' prefix."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str) and _is_secret(name, item):
                return item
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for child in children if (found := find_secret(child))), None)


def _is_secret(name: str, text: str) -> bool:
    bare = name.replace("_", "").replace("-", "").casefold()
    return bool(text) and (bare in _SECRET_NAMES or text.startswith(_STANDARD_PREFIX))


def _walk(value: JsonValue, name: str, harmless: frozenset[str]) -> JsonValue:
    match value:
        case dict():
            return {key: _walk(item, key, harmless) for key, item in value.items()}
        case list():
            return [_walk(item, name, harmless) for item in value]
        case str() if value.startswith(_STANDARD_PREFIX) or name.casefold() not in harmless:
            return f"sha256:{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
        case _:
            return value
