"""Ids in paths: an allow-list, because percent-encoding does not keep `..` out of a route."""

import re

from escrowctl.errors import bad_value

_ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_EMPTY_WORDS = frozenset({"null", "none", "undefined", "nil"})


def parse_id(text: str, *, noun: str = "transaction") -> str:
    """Return an id that may stand in a path: 1 to 128 letters, digits, `_` and `-`.

    Raises EscrowctlError (exit 2) otherwise, and for the words that a script writes where it lost
    the id (`null`, `None`, `undefined`).
    """
    if not text.strip():
        raise bad_value(f"a {noun} id is empty: give the id that create printed.")
    if text.casefold() in _EMPTY_WORDS:
        raise bad_value(f'"{text}" is not a {noun} id: a script seems to have lost it on the way.')
    if len(text) > 128:
        raise bad_value(f'{noun} id "{text[:20]}..." has {len(text)} characters: at most 128 can be one.')
    if not _ALLOWED.fullmatch(text):
        odd = next(char for char in text if not _ALLOWED.fullmatch(char))
        raise bad_value(f'{noun} id "{text}" has the character "{odd}": an id is made of letters, digits, "_" and "-".')
    return text


def parse_ids(texts: list[str], *, noun: str = "transaction") -> list[str]:
    """Return several ids in the order given; the same id twice is refused (exit 2)."""
    ids = [parse_id(text, noun=noun) for text in texts]
    for position, resource_id in enumerate(ids):
        if resource_id in ids[:position]:
            raise bad_value(f"{noun} id {resource_id} is given twice: name it once.")
    return ids
