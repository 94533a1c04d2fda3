"""Identifiers and the key, drawn at random."""

import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that an id survives being read aloud."""

LENGTH = 8


def draw_id(prefix: str) -> str:
    """Return `prefix_` and eight letters or digits; 40 random bits, so the caller checks for twins."""
    return f"{prefix}_" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def draw_key() -> str:
    """Return a new API key: `sk_sandbox_` and 128 random bits in hexadecimal."""
    return "sk_sandbox_" + secrets.token_hex(16)
