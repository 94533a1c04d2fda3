"""Which characters a person can see. Invisible ones in text from elsewhere may not decide or hide anything."""

_INVISIBLE = frozenset(
    {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
"""Printable for Python, but not shown by terminals: the default-ignorable marks and letters (Unicode's
DerivedCoreProperties.txt, those outside the categories of `str.isprintable`), and the blank braille cell."""


def is_visible(char: str) -> bool:
    """Whether a terminal shows a character; the space counts as visible."""
    return char.isprintable() and ord(char) not in _INVISIBLE
