"""Text from elsewhere made harmless for a terminal."""


def safe(text: str) -> str:
    """Return `text` with every character that does not print shown as `\\u{1b}`.

    That covers C0, DEL and C1 controls, bidirectional and zero-width characters, line separators
    and lone surrogates: what could move the cursor, hide text or end a line (CVE-2021-25743 and kin).
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)
