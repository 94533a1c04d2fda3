"""Random ids and numbers. After `sandbox reset --seed N`, the same seed gives the same ids and numbers in order."""

import secrets
import sqlite3
from hashlib import sha256

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that an id can be read aloud."""

ID_LENGTH = 8

_NEXT_DRAW = "UPDATE sandbox SET draws = draws + 1 WHERE seed IS NOT NULL RETURNING seed, draws"


def draw_id(connection: sqlite3.Connection, prefix: str, *, table: str) -> str:
    """Return a new id for a table: `prefix_` and eight letters or digits. Only in a write transaction."""
    while True:
        drawn = f"{prefix}_{draw_letters(connection)}"
        taken = connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (drawn,))  # noqa: S608 - one of our tables
        if taken.fetchone() is None:
            return drawn


def draw_letters(connection: sqlite3.Connection) -> str:
    """Return eight random letters or digits. Only in a write transaction."""
    number = draw_number(connection, len(ID_ALPHABET) ** ID_LENGTH)
    return "".join(ID_ALPHABET[number // len(ID_ALPHABET) ** place % len(ID_ALPHABET)] for place in range(ID_LENGTH))


def draw_number(connection: sqlite3.Connection, limit: int) -> int:
    """Return a number from 0 to `limit` - 1: random, or the seed's next number. Only in a write transaction."""
    row = connection.execute(_NEXT_DRAW).fetchone()
    if row is None:
        return secrets.randbelow(limit)
    return int.from_bytes(sha256(f"{row['seed']}:{row['draws']}".encode()).digest()) % limit
