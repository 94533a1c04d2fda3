"""Status words in what is about to be sent: what sets one that means released is a release without its guards."""

import unicodedata

from escrowctl.contract.number import JsonValue

_USUAL_WORDS = frozenset({"released", "release"})


def find_release(body: JsonValue, words: frozenset[str]) -> str | None:
    """Return the text in a body, at any depth, that would release what it is about; None where there is none.

    `words` are those that mean released to the profile, case-folded; the usual ones count as well.
    Which field is the status is not shown (interface.md), so none is exempt; neither is a field
    named like such a word that is set to true.
    """
    return _walk(body, words | _USUAL_WORDS)


def _walk(value: JsonValue, words: frozenset[str]) -> str | None:
    match value:
        case str():
            return value if _plain(value) in words else None
        case list():
            return next((found for item in value if (found := _walk(item, words))), None)
        case dict():
            for key, item in value.items():
                if item is True and _plain(key) in words:
                    return key
                if found := _walk(item, words):
                    return found
            return None
        case _:
            return None


def _plain(text: str) -> str:
    """Return a word as a lenient service may read it: compatibility forms, case and blanks aside."""
    return unicodedata.normalize("NFKC", text).strip().casefold()
