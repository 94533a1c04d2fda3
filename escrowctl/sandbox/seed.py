"""Random draws, from a seed if there is one: `sandbox reset --seed N` makes ids and chances repeat in order."""

import secrets
import sqlite3
from hashlib import sha256

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U, so that an id can be read aloud."""

ID_LENGTH = 8

_NEXT = "UPDATE seed SET draws = draws + 1 RETURNING seed, draws"


def draw_id(connection: sqlite3.Connection, prefix: str) -> str:
    """Return `prefix_` and eight letters or digits, in a write transaction; the caller checks for duplicates."""
    number = draw_below(connection, len(ID_ALPHABET) ** ID_LENGTH)
    letters = (number // len(ID_ALPHABET) ** place % len(ID_ALPHABET) for place in range(ID_LENGTH))
    return f"{prefix}_" + "".join(ID_ALPHABET[letter] for letter in letters)


def plant(connection: sqlite3.Connection, seed: int) -> None:
    """Make the next draws come from a seed."""
    connection.execute("INSERT INTO seed (only_row, seed) VALUES (1, ?)", (seed,))


def draw_below(connection: sqlite3.Connection, limit: int) -> int:
    """Return the next number from 0 to below `limit`, in a write transaction; a random one without a seed."""
    row = connection.execute(_NEXT).fetchone()
    if row is None:
        return secrets.randbelow(limit)
    return int.from_bytes(sha256(f"{row['seed']}:{row['draws']}".encode()).digest()) % limit
