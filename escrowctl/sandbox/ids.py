"""Identifiers, the key and signing secrets, drawn at random."""

import base64
import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that an id survives being read aloud."""

LENGTH = 8

SECRET_BYTES = 32


def draw_id(prefix: str) -> str:
    """Return `prefix_` and eight letters or digits; 40 random bits, so the caller checks for twins."""
    return f"{prefix}_" + "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def draw_key() -> str:
    """Return a new API key: `sk_sandbox_` and 128 random bits in hexadecimal."""
    return "sk_sandbox_" + secrets.token_hex(16)


def draw_secret() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64.

    Standard Webhooks: base64 of 24 to 64 random bytes, after the prefix.
    """
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
