"""Check ids before they go into URL paths (percent-encoding leaves `..` unchanged). Fold texts for comparison."""

import re
import unicodedata

from escrowctl.characters import is_visible
from escrowctl.errors import bad_value

UUID_PATTERN = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ALLOWED_ID = r"[A-Za-z0-9_-]{1,128}"

LOST_VALUE_WORDS = frozenset({"null", "none", "nan", "undefined", "nil"})
"""Words that a script writes in place of a missing value."""


def parse_id(text: str, *, noun: str = "transaction") -> str:
    """Return `text` if it is safe as a part of a URL path: 1 to 128 letters, digits, `_` and `-`.

    Raises EscrowctlError `BAD_VALUE` for any other text, and for `LOST_VALUE_WORDS`. `noun` names the record in
    messages.
    """
    if not text.strip() or text.casefold() in LOST_VALUE_WORDS:
        raise bad_value(f'"{text}" is not a {noun} id: a script seems to have lost the id.')
    if (length := len(text)) > 128:
        raise bad_value(f'{noun} id "{text[:20]}..." has {length} characters: the limit is 128.')
    if not re.fullmatch(_ALLOWED_ID, text):
        bad_char = next(char for char in text if not re.fullmatch(_ALLOWED_ID, char))
        raise bad_value(f'{noun} id "{text}" contains "{bad_char}": use only letters, digits, "_" and "-".')
    return text


def refuse_repeated_ids(ids: list[str]) -> None:
    """Raise EscrowctlError `BAD_VALUE` if an id is repeated, or two ids differ only in case or Unicode form."""
    seen: dict[str, str] = {}
    for resource_id in ids:
        folded = fold_id(resource_id)
        first_id = seen.get(folded)
        if first_id == resource_id:
            raise bad_value(f"transaction id {resource_id} is given twice: give it once.")
        if first_id is not None:
            raise bad_value(
                f"transaction ids {first_id} and {resource_id} differ only in case: "
                "some services treat them as the same id.",
                hint="if they are different transactions: use one command for each",
            )
        seen[folded] = resource_id


def fold_id(text: str) -> str:
    """Return an id for comparison, without case and Unicode form (UAX 15): a service may ignore both."""
    return unicodedata.normalize("NFKC", text).casefold()


def fold_reference(text: str) -> str:
    """Return a reference as a person sees it: composed (UAX 15, NFC), trimmed, without invisible characters."""
    if text.isascii():
        return text.strip()
    # Invisible characters go first: between two characters, they prevent composition.
    return unicodedata.normalize("NFC", "".join(filter(is_visible, text))).strip()
