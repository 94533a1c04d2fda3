"""The settings of a rehearsal, in the store: read at each request, changed by commands, used up by requests.

They are in the store so that a served sandbox and one in-process behave the same.
"""

import sqlite3
from collections.abc import Mapping

from escrowctl.sandbox.seed import draw_below
from escrowctl.sandbox.settings import FAULT, Fault, Settings, read_setting, read_settings
from escrowctl.sandbox.store import Store

_ALL = "SELECT name, value FROM settings ORDER BY name"
_SET = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Rehearsal:
    """The settings of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self) -> Settings:
        """Return the current settings."""
        with self._store.reading() as connection:
            return read_settings(dict(connection.execute(_ALL).fetchall()))

    def change(self, texts: Mapping[str, str]) -> None:
        """Set each name to its value, all or none; raises EscrowctlError `ErrorCode.BAD_VALUE`."""
        found = {name: read_setting(name, value) for name, value in texts.items()}
        with self._store.writing() as connection:
            for name, value in found.items():
                _store(connection, name, value)

    def clear(self) -> None:
        """Remove every setting."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM settings")

    def use_fault(self, word: str) -> Fault | None:
        """Return the fault for a request to the operation `word`, and count it as used; None if there is none."""
        with self._store.writing() as connection:
            row = connection.execute("SELECT value FROM settings WHERE name = ?", (FAULT + word,)).fetchone()
            fault = read_setting(FAULT + word, row["value"]) if row else None
            return _use(connection, word, fault) if isinstance(fault, Fault) else None


def _use(connection: sqlite3.Connection, word: str, fault: Fault) -> Fault | None:
    if fault.percent is not None:
        return fault if draw_below(connection, 100) < fault.percent else None
    if fault.left is not None:
        _store(connection, FAULT + word, fault._replace(left=fault.left - 1) if fault.left > 1 else None)
    return fault


def _store(connection: sqlite3.Connection, name: str, value: Fault | str | None) -> None:
    if value is None:
        connection.execute("DELETE FROM settings WHERE name = ?", (name,))
    else:
        connection.execute(_SET, (name, str(value)))
