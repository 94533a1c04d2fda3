"""Random draws, from a seed if there is one: `sandbox reset --seed N` makes ids and chances repeat in order."""

import secrets
import sqlite3
from hashlib import sha256

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that an id can be read aloud."""

ID_LENGTH = 8

_NEXT = "UPDATE seed SET draws = draws + 1 RETURNING seed, draws"


def draw_id(connection: sqlite3.Connection, prefix: str, *, table: str) -> str:
    """Return `prefix_` and eight letters or digits, in a write transaction. No row of the table has this id yet."""
    while True:
        drawn = f"{prefix}_{draw_letters(connection)}"
        taken = connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (drawn,))  # noqa: S608 - one of our tables
        if taken.fetchone() is None:
            return drawn


def draw_letters(connection: sqlite3.Connection) -> str:
    """Return eight letters or digits."""
    number = draw_below(connection, len(ID_ALPHABET) ** ID_LENGTH)
    return "".join(ID_ALPHABET[number // len(ID_ALPHABET) ** place % len(ID_ALPHABET)] for place in range(ID_LENGTH))


def draw_below(connection: sqlite3.Connection, limit: int) -> int:
    """Return the next number from 0 to below `limit`, in a write transaction; a random one without a seed."""
    row = connection.execute(_NEXT).fetchone()
    if row is None:
        return secrets.randbelow(limit)
    return int.from_bytes(sha256(f"{row['seed']}:{row['draws']}".encode()).digest()) % limit
