"""Ids in paths: an allow-list, because percent-encoding does not keep `..` out of a route."""

import re
import unicodedata

from escrowctl.errors import bad_value

_ALLOWED = r"[A-Za-z0-9_-]{1,128}"
_INVISIBLE = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""Characters that show nothing (Unicode, Default_Ignorable_Code_Point), those of the first plane."""

_EMPTY_WORDS = frozenset({"null", "none", "undefined", "nil"})


def parse_id(text: str, *, noun: str = "transaction") -> str:
    """Return an id that may be part of a path: 1 to 128 letters, digits, `_` and `-`.

    Raises EscrowctlError (exit 2) otherwise, and for the words that a script writes where it lost
    the id (`null`, `None`, `undefined`).
    """
    if not text.strip():
        raise bad_value(f"the {noun} id is empty: a script seems to have lost the id.")
    if text.casefold() in _EMPTY_WORDS:
        raise bad_value(f'"{text}" is not a {noun} id: a script seems to have lost the id.')
    if len(text) > 128:
        raise bad_value(f'{noun} id "{text[:20]}..." has {len(text)} characters: the limit is 128.')
    if not re.fullmatch(_ALLOWED, text):
        odd = next(char for char in text if not re.fullmatch(_ALLOWED, char))
        raise bad_value(f'{noun} id "{text}" contains "{odd}": use only letters, digits, "_" and "-".')
    return text


def refuse_repeated(ids: list[str]) -> None:
    """Raise EscrowctlError (exit 2) where an id is there twice, or one that a service may take for the same."""
    seen: dict[str, str] = {}
    for resource_id in ids:
        folded = fold_id(resource_id)
        other = seen.get(folded)
        if other == resource_id:
            raise bad_value(f"transaction id {resource_id} is given twice: give it once.")
        if other is not None:
            raise bad_value(
                f"transaction ids {other} and {resource_id} differ only in case: "
                "some services treat them as the same id.",
                hint="if they are different transactions: use one command for each",
            )
        seen[folded] = resource_id


def fold_id(text: str) -> str:
    """Return an id without case and Unicode form (UAX 15): a service may take ids that share it for one."""
    return unicodedata.normalize("NFKC", text).casefold()


def fold_reference(text: str) -> str:
    """Return a reference as a person sees it: composed (UAX 15, NFC), trimmed, without invisible characters."""
    if text.isascii():
        # It is composed and has none of them; to compile the pattern costs more than all else here.
        return text.strip()
    # First without what is invisible: between two characters, it keeps them from being composed.
    return unicodedata.normalize("NFC", re.sub(_INVISIBLE, "", text)).strip()
