"""Locks between processes on several hosts: rows that are worth as much as the lease of the process that took them.

A session lock of PostgreSQL would not do: two clients of a pooler may share one session and take the same lock twice,
and the session of a host that vanished may last for hours. A lease ends by the database's clock alone. The database
cannot keep a process that slept from sending: `may_send` can, by a clock that counts the sleep.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from typing import Any

import psycopg

from escrowctl.errors import EscrowctlError
from escrowctl.journal.postgres.connection import PostgresConnection, unusable_database
from escrowctl.journal_url import JournalUrl

LEASE_SECONDS = 30
_RENEW_SECONDS = 5.0
_MARGIN_SECONDS = 5.0
"""The rest of a lease in which its process sends nothing: time for bytes to leave, and for clocks that differ."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that counts the time that the computer sleeps: on Linux, the monotonic clock does not (clock_gettime(2))."""

_IS_ALIVE = "SELECT FROM main.senders s WHERE s.id = {} AND s.expires_at > clock_timestamp()"
_EXPIRY = f"clock_timestamp() + interval '{LEASE_SECONDS} seconds'"
_RENEW = f"UPDATE main.senders SET expires_at = {_EXPIRY} WHERE id = ? AND expires_at > clock_timestamp() RETURNING id"
_UNLESS_HELD = f"""
ON CONFLICT (name) DO UPDATE SET sender = excluded.sender WHERE NOT EXISTS ({_IS_ALIVE.format("locks.sender")})
RETURNING name"""
_HOLD = f"INSERT INTO main.locks SELECT ?, ? WHERE EXISTS ({_IS_ALIVE.format('?')}) {_UNLESS_HELD}"
_HOLD_FIRST = f"""
WITH begun AS (INSERT INTO main.senders VALUES (?, ?, ?, ?, ?, {_EXPIRY}) RETURNING id)
INSERT INTO main.locks SELECT ?, id FROM begun {_UNLESS_HELD}"""
# No attempt takes a day: of processes that were killed before that, nothing can arrive any more.
_END = """
WITH ended AS (
  DELETE FROM main.senders WHERE id = ? OR expires_at < clock_timestamp() - interval '1 day' RETURNING id)
DELETE FROM main.locks WHERE sender IN (SELECT id FROM ended) RETURNING name"""
_LATE_SENDER = """
SELECT s.process, s.host FROM main.locks l JOIN main.senders s ON s.id = l.sender
WHERE l.name = ? AND s.expires_at + s.attempt_seconds * interval '1 second' > clock_timestamp()"""
_IS_HELD = f"SELECT FROM main.locks l WHERE l.name = ? AND EXISTS ({_IS_ALIVE.format('l.sender')})"


class Leases:
    """The locks of this process in one journal; see `storage.Locks`. The first `hold` begins a lease.

    A separate connection, in a thread, renews the lease until `close`. An attempt takes at most `attempt_seconds`.
    """

    def __init__(self, url: JournalUrl, operator: str = "", attempt_seconds: float = 60) -> None:
        self._url = url
        self._operator = operator
        self._attempt_seconds = attempt_seconds
        self._mutex = threading.Lock()
        self._database: PostgresConnection | None = None
        self._renewed_at = 0.0
        self._has_lapsed = False
        self._ends = threading.Event()
        self.sender: str | None = None
        """The id of the lease; None before the first `hold`."""

    def hold(self, name: str) -> bool:
        """See `storage.Locks`."""
        with self._mutex:
            if self.sender is None:
                return self._begin(name)
            return not self._has_lapsed and self._ask(_HOLD, name, self.sender, self.sender) is not None

    def free(self, name: str) -> None:
        """See `storage.Locks`. An error is ignored: the lock ends with the lease."""
        with self._mutex, contextlib.suppress(EscrowctlError):
            self._ask("DELETE FROM main.locks WHERE name = ? AND sender = ? RETURNING name", name, self.sender)

    def is_held(self, name: str) -> bool:
        """See `storage.Locks`."""
        with self._mutex:
            return self._ask(_IS_HELD, name) is not None

    def find_late_sender(self, name: str) -> str | None:
        """See `storage.Locks`: after the lease, the time-out of an attempt has to pass too."""
        with self._mutex:
            found = self._ask(_LATE_SENDER, name)
        return f"process {found[0]} on {found[1]}" if found is not None else None

    def may_send(self) -> bool:
        """See `storage.Locks`."""
        if not self._has_lapsed and _now() - self._renewed_at > LEASE_SECONDS:
            self._has_lapsed = True
        return not self._has_lapsed and _now() - self._renewed_at <= LEASE_SECONDS - _MARGIN_SECONDS

    def close(self) -> None:
        """Free all locks, and end the lease."""
        self._ends.set()
        with self._mutex:
            with contextlib.suppress(EscrowctlError):
                if self.sender is not None:
                    self._ask(_END, self.sender)
            if self._database is not None:
                self._database.close()

    def _begin(self, name: str) -> bool:
        """Begin the lease, with its first lock, and the thread that renews it. Return whether it got the lock."""
        sender, began = str(uuid.uuid4()), _now()
        process = (socket.gethostname(), os.getpid(), self._operator, self._attempt_seconds)
        is_held = self._ask(_HOLD_FIRST, sender, *process, name) is not None
        self.sender, self._renewed_at = sender, began
        threading.Thread(target=self._renew_repeatedly, name="lease", daemon=True).start()
        return is_held

    def _renew_repeatedly(self) -> None:
        while not self._ends.wait(_RENEW_SECONDS):
            began = _now()
            with self._mutex, contextlib.suppress(EscrowctlError):
                if self._ends.is_set() or self._has_lapsed:
                    return
                if self._ask(_RENEW, self.sender) is None:
                    self._has_lapsed = True
                else:
                    self._renewed_at = began

    def _ask(self, statement: str, *values: Any) -> Any:
        """Return the first row of a statement, or None. Connect again if the connection was lost."""
        try:
            if self._database is None or self._database.is_lost:
                self._database = PostgresConnection(self._url, any_thread=True)
            return self._database.execute(statement, values).fetchone()
        except psycopg.Error as error:
            raise unusable_database(str(self._url), error) from error


def _now() -> float:
    return time.clock_gettime(_CLOCK)
