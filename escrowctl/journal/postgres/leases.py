"""Locks between processes on several hosts: rows that are worth as much as the lease of the process that took them.

A session lock of PostgreSQL would not do: two clients of a pooler may share one session and take the same lock twice,
and the session of a host that vanished may last for hours. A lease ends by the database's clock alone. The database
cannot keep a process that slept from sending: `may_send` can, by a clock that counts the sleep.

No commit here waits for the disk: an intent that is durable makes the lease and the locks durable that it needs. If a
crash of the server undoes a lock, the guards still refuse a second write.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import psycopg

from escrowctl.errors import EscrowctlError
from escrowctl.journal.postgres.connection import PostgresConnection, unusable_database
from escrowctl.journal.storage import unusable
from escrowctl.journal_url import JournalUrl

LEASE_SECONDS = 30
_RENEW_SECONDS = 5.0
_MARGIN_SECONDS = 5.0
"""The rest of a lease in which its process sends nothing: time for bytes to leave, and for clocks that differ."""

_STATEMENT_SECONDS, _CLOSE_SECONDS = 5, 1.0
"""The longest time for a statement about the lease, and the longest wait of `close` for another thread's statement."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that counts the time that the computer sleeps: on Linux, the monotonic clock does not (clock_gettime(2))."""

_IS_ALIVE = "SELECT FROM main.senders s WHERE s.id = {} AND s.expires_at > clock_timestamp()"
_EXPIRY = f"clock_timestamp() + interval '{LEASE_SECONDS} seconds'"
_RENEW = f"UPDATE main.senders SET expires_at = {_EXPIRY} WHERE id = ? AND expires_at > clock_timestamp() RETURNING id"
_BEGIN = f"INSERT INTO main.senders VALUES (?, ?, ?, ?, ?, {_EXPIRY})"
# One process after the other: a statement that waited for a row still sees the leases as they were when it began.
_TAKE_TURNS = "SELECT pg_advisory_xact_lock(hashtextextended('main.locks', 0))"
# A lock of its own that a failed `free` has left is taken again.
_HOLD = f"""
INSERT INTO main.locks SELECT name, ? FROM unnest(?::text[]) AS name
WHERE EXISTS ({_IS_ALIVE.format("?")}) ORDER BY name
ON CONFLICT (name) DO UPDATE SET sender = excluded.sender
WHERE locks.sender = excluded.sender OR NOT EXISTS ({_IS_ALIVE.format("locks.sender")})
RETURNING name"""
_FREE = "DELETE FROM main.locks WHERE name = ANY(?) AND sender = ? RETURNING name"
# No attempt takes a day: of processes that were killed before that, nothing can arrive any more.
_END = """
WITH ended AS (
  DELETE FROM main.senders WHERE id = ? OR expires_at < clock_timestamp() - interval '1 day' RETURNING id)
DELETE FROM main.locks WHERE sender IN (SELECT id FROM ended) RETURNING name"""
_SECONDS_TO_WAIT = """
SELECT extract(epoch FROM s.expires_at + s.attempt_seconds * interval '1 second' - clock_timestamp())
FROM main.locks l JOIN main.senders s ON s.id = l.sender WHERE l.name = ?"""
_IS_HELD = f"SELECT FROM main.locks l WHERE l.name = ? AND EXISTS ({_IS_ALIVE.format('l.sender')})"


class _Call(NamedTuple):
    """The locks that a thread wants to hold or, if it `frees`, to free. `is_held` is the answer."""

    names: frozenset[str]
    frees: bool
    is_held: Future[bool]


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
        self._held = set[str]()
        self._calls = deque[_Call]()
        self._ends = threading.Event()
        self.sender: str | None = None
        """The id of the lease; None before the first `hold`."""

    def hold(self, *names: str) -> bool:
        """See `storage.Locks`. What this process holds, it knows without asking the database."""
        return self._serve(names).result()

    def free(self, *names: str) -> None:
        """See `storage.Locks`. An error is ignored: the lock ends with the lease."""
        self._serve(names, frees=True)

    def is_held(self, name: str) -> bool:
        """See `storage.Locks`."""
        if name in self._held and self.may_send():
            return True
        with self._mutex:
            return bool(self._ask((_IS_HELD, (name,))))

    def seconds_to_wait(self, name: str) -> float:
        """See `storage.Locks`: after the lease, the time-out of an attempt has to pass too."""
        with self._mutex:
            return max([0, *(float(seconds) for (seconds,) in self._ask((_SECONDS_TO_WAIT, (name,))))])

    def may_send(self) -> bool:
        """See `storage.Locks`."""
        if not self._has_lapsed and _now() - self._renewed_at > LEASE_SECONDS:
            self._has_lapsed = True
        return not self._has_lapsed and _now() - self._renewed_at <= LEASE_SECONDS - _MARGIN_SECONDS

    def close(self) -> None:
        """Free all locks, and end the lease. Without a connection, it lapses by itself."""
        self._ends.set()
        # A renewal that gets no answer holds the mutex.
        if not self._mutex.acquire(timeout=_CLOSE_SECONDS):
            return
        try:
            if self._database is not None and not self._database.is_lost:
                with contextlib.suppress(EscrowctlError):
                    if self.sender is not None:
                        self._ask((_END, (self.sender,)))
                self._database.close()
        finally:
            self._mutex.release()

    def _serve(self, names: Collection[str], *, frees: bool = False) -> Future[bool]:
        """Answer a call, and those of all threads that wait meanwhile: their locks cost one round trip."""
        call = _Call(frozenset(names), frees, Future())
        self._calls.append(call)
        with self._mutex:
            if calls := [self._calls.popleft() for _ in range(len(self._calls))]:
                self._answer(calls)
        return call.is_held

    def _answer(self, calls: Sequence[_Call]) -> None:
        freed = set[str]().union(*(call.names for call in calls if call.frees))
        self._held -= freed
        wanted, holding = set[str](), list[_Call]()
        for call in calls:
            if not call.frees and call.names.isdisjoint(self._held) and call.names.isdisjoint(wanted):
                wanted |= call.names
                holding.append(call)
        try:
            taken = self._change(freed, wanted) if freed or wanted else set[str]()
        except Exception as error:  # noqa: BLE001 - the threads that wait must hear of it
            for call in calls:
                call.is_held.set_exception(error)
            return
        for call in calls:
            if is_held := call in holding and call.names <= taken:
                self._held |= call.names
            call.is_held.set_result(is_held)
        if rest := taken - self._held:
            with contextlib.suppress(EscrowctlError):
                self._change(rest, ())

    def _change(self, freed: Collection[str], wanted: Collection[str]) -> set[str]:
        """Free locks, take those of `wanted` that are free, and return them. The first time, begin the lease."""
        if not wanted:
            self._ask((_FREE, (list(freed), self.sender)))
            return set()
        if self._has_lapsed:
            raise unusable(str(self._url), "the lease of this process has lapsed", reason="")
        sender, began = self.sender or str(uuid.uuid4()), _now()
        process = (os.uname().nodename, os.getpid(), self._operator, self._attempt_seconds)
        first = (_FREE, (list(freed), sender)) if self.sender is not None else (_BEGIN, (sender, *process))
        # To free locks before its turn could wait for one that waits for them.
        taken = self._ask((_TAKE_TURNS, ()), first, (_HOLD, (sender, list(wanted), sender)))
        if self.sender is None:
            self.sender, self._renewed_at = sender, began
            # From now on, a thread renews the lease.
            threading.Thread(target=self._renew_repeatedly, name="lease", daemon=True).start()
        return {name for (name,) in taken}

    def _renew_repeatedly(self) -> None:
        while not self._ends.wait(_RENEW_SECONDS):
            began = _now()
            with self._mutex, contextlib.suppress(EscrowctlError):
                if self._ends.is_set() or self._has_lapsed:
                    return
                if self._ask((_RENEW, (self.sender,))):
                    self._renewed_at = began
                else:
                    self._has_lapsed = True

    def _ask(self, *statements: tuple[str, Sequence[object]]) -> list[Any]:
        """Return the rows of the last of these statements, in one short transaction. Connect again after an error."""
        if self._database is None or self._database.is_lost:
            self._database = PostgresConnection(self._url, any_thread=True)
        try:
            return self._database.execute_briefly(statements, seconds=_STATEMENT_SECONDS)
        except psycopg.Error as error:
            self._database.close()
            raise unusable_database(str(self._url), error) from error


def _now() -> float:
    return time.clock_gettime(_CLOCK)
