"""Text from elsewhere made harmless for a terminal."""

_INVISIBLE = frozenset(
    {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    | {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
"""What Python calls printable and no terminal shows: the default-ignorable marks and letters (Unicode's
DerivedCoreProperties.txt, those outside the categories of `str.isprintable`), and the blank braille cell.
"""


def safe(text: str) -> str:
    """Return `text` with every character that does not print, or prints as nothing, shown as `\\u{1b}`.

    That covers C0, DEL and C1 controls, bidirectional and zero-width characters, line separators,
    lone surrogates, fillers and variation selectors: what could move the cursor, hide text, end a
    line or make two texts look the same (CVE-2021-25743, CVE-2021-42574 and kin).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _shows(char) else f"\\u{{{ord(char):x}}}" for char in text)


def _shows(char: str) -> bool:
    return char.isprintable() and ord(char) not in _INVISIBLE
