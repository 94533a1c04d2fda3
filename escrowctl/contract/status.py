"""Status words in what is about to be sent: what sets one that means released is a release without its guards."""

import re
import unicodedata
from decimal import Decimal

from escrowctl.contract.number import JsonValue

_USUAL_WORDS = frozenset({"released", "release"})
_BESIDE = frozenset({"is", "be", "has", "been", "do", "now", "fund", "funds", "money", "escrow", "payment"})
_YES = frozenset({"true", "yes", "y", "on", "1", "now"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def find_release(body: JsonValue, words: frozenset[str]) -> str | None:
    """Return the text in a body, at any depth, that would release what it is about; None where there is none.

    `words` are those that mean released to the profile, case-folded; the usual ones count as well,
    and so do `release_funds` and `isReleased`. Which field is the status is not shown (interface.md),
    so none is exempt; neither is a field with such a name that is set to yes.
    """
    return _walk(body, words | _USUAL_WORDS)


def _walk(value: JsonValue, words: frozenset[str]) -> str | None:
    match value:
        case str():
            return value if _means_release(value, words) else None
        case list():
            return next((found for item in value if (found := _walk(item, words))), None)
        case dict():
            for key, item in value.items():
                if _says_yes(item) and _means_release(key, words):
                    return key
                if found := _walk(item, words):
                    return found
            return None
        case _:
            return None


def _means_release(text: str, words: frozenset[str]) -> bool:
    if _plain(text) in words:
        return True
    parts = {_plain(part) for part in re.split(r"[_.:-]", _HUMP.sub("_", text))}
    return bool(parts & words) and parts <= words | _BESIDE


def _says_yes(value: JsonValue) -> bool:
    if isinstance(value, str):
        return _plain(value) in _YES
    return isinstance(value, bool | Decimal) and bool(value)


def _plain(text: str) -> str:
    """Return a word as a lenient service may read it: compatibility forms, case and blanks aside."""
    return unicodedata.normalize("NFKC", text).strip().casefold()
