"""Draws that a seed decides: after `sandbox reset --seed N`, ids and chances come in the same order again."""

import sqlite3
from hashlib import sha256

from escrowctl.sandbox.records import ID_ALPHABET, ID_LENGTH, draw_id
from escrowctl.sandbox.store import Store

_NEXT = "UPDATE seed SET draws = draws + 1 RETURNING seed, draws"


class Ids:
    """Draws the ids of one store's records: by its seed, or at random."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with store.reading() as connection:
            # A store gets its seed when it is created, or never.
            self._is_seeded = connection.execute("SELECT 1 FROM seed").fetchone() is not None

    def draw(self, prefix: str) -> str:
        """Return `prefix_` and eight letters or digits; only inside of a write transaction."""
        number = draw_below(self._store.inside(), len(ID_ALPHABET) ** ID_LENGTH) if self._is_seeded else None
        if number is None:
            return draw_id(prefix)
        letters = (number // len(ID_ALPHABET) ** place % len(ID_ALPHABET) for place in range(ID_LENGTH))
        return f"{prefix}_" + "".join(ID_ALPHABET[letter] for letter in letters)


def plant(connection: sqlite3.Connection, seed: int) -> None:
    """Begin to draw from a seed."""
    connection.execute("INSERT INTO seed (only_row, seed) VALUES (1, ?)", (seed,))


def draw_below(connection: sqlite3.Connection, limit: int) -> int | None:
    """Return the next number from 0 to below `limit`, in a write transaction; None where there is no seed."""
    row = connection.execute(_NEXT).fetchone()
    if row is None:
        return None
    return int.from_bytes(sha256(f"{row['seed']}:{row['draws']}".encode()).digest()) % limit
