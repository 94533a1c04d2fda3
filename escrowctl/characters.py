"""Tell visible characters from invisible ones, which could hide or disguise text from outside."""

_BLANK_CODE_POINTS = frozenset(
    {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
"""Characters that `str.isprintable` accepts but terminals do not show: marks and letters that Unicode calls
Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and the blank braille cell."""


def is_visible(char: str) -> bool:
    """Whether a terminal shows a character; the space counts as visible."""
    return char.isprintable() and ord(char) not in _BLANK_CODE_POINTS
