"""The received events: one SQLite file next to the journal.

An event is stored before its sender gets a 200. The row of an event never changes: the count of its arrivals and
its targets are in separate tables. Old events are removed. A forwarded unverified event is removed earlier if its
space is needed. Every commit is synced. The receiver and the forwarder have separate connections.
"""

import contextlib
import hashlib
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from escrowctl.errors import ErrorCode, EscrowctlError, Hint, Hints, not_sent
from escrowctl.files import OTHERS_ACCESS, check_regular, create_empty_file, find_flaw, make_private_folder
from escrowctl.sqlite import connect, create_tables_once, run_script, sync_every_commit, transaction
from escrowctl.webhooks.event import Event
from escrowctl.webhooks.signing import Delivery

MAX_UNVERIFIED = 1000
MAX_UNVERIFIED_BYTES = 64 * 1024 * 1024
"""Limits for the stored unverified events of one service: their number and their total size."""
_VERSION = 2
_BUSY_SECONDS = 5.0
_LOCAL_NAME = re.compile(r"e([1-9][0-9]{0,17})", re.ASCII)
_TABLES = """
CREATE TABLE events (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  service TEXT NOT NULL,
  id TEXT,
  verified INTEGER NOT NULL,
  received_at TEXT NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL,
  digest BLOB NOT NULL,
  size INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_id ON events (service, id);
CREATE INDEX events_by_digest ON events (service, digest);
CREATE INDEX unverified_events ON events (service, number, size) WHERE verified = 0;
CREATE TABLE arrivals (event INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
CREATE TABLE forwards (
  event INTEGER NOT NULL,
  target TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  refusals INTEGER NOT NULL,
  PRIMARY KEY (event, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX forwards_by_state ON forwards (target, state, event);
"""
_SELECT_EVENTS = """
SELECT number, id, headers, body, verified, received_at, coalesce(count, 1), EXISTS (
  SELECT 1 FROM events AS other
  WHERE other.service = events.service AND other.id = events.id AND other.digest <> events.digest
)
FROM events LEFT JOIN arrivals ON arrivals.event = number
"""
_WAITING = "FROM forwards JOIN events ON number = event WHERE target = ? AND state = ? AND service = ?"
_FIND_OLD = """
SELECT number FROM events WHERE received_at < ?
  AND NOT EXISTS (SELECT 1 FROM forwards WHERE event = number AND state <> ?)
"""
_FIND_FORWARDED = """
SELECT number, size FROM events WHERE service = ? AND verified = 0
  AND (SELECT min(state = ?) FROM forwards WHERE event = number) ORDER BY number
"""


class ForwardState(StrEnum):
    """The state of an event that is forwarded to one target."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class NoRoomError(Exception):
    """There is no room for an unverified event. The text is a sentence without a full stop."""


class WaitingEvent(NamedTuple):
    """An event to forward. `refusals` is how many of its attempts got an answer other than 2xx."""

    event: Event
    attempts: int
    refusals: int


class Spool:
    """The stored events of one service, by its identity. A spool has one connection and is for one thread only."""

    def __init__(self, database: sqlite3.Connection, service: str) -> None:
        self._db = database
        self._service = service

    def transaction(self) -> AbstractContextManager[None]:
        """Commit all changes of the block at its end. If it raises sqlite3.Error, no change is stored."""
        return transaction(self._db)

    def store(self, delivery: Delivery, *, verified: bool, at: str, ignore_id: bool = False) -> Event:
        """Store a delivery received at `at`, and return its event. Of a repeated delivery only count the arrival.

        A delivery is repeated if a stored event has the same body, the same `verified`, and the same valid id. With
        `ignore_id`, the ids are not compared. Call it only inside `transaction`. Raises NoRoomError.
        """
        digest = hashlib.sha256(delivery.body).digest()
        repeated = self._db.execute(
            "SELECT number FROM events WHERE service = ? AND digest = ? AND verified = ? AND (id = ? OR ?)",
            (self._service, digest, verified, delivery.id, ignore_id),
        ).fetchone()
        if repeated:
            (number,) = repeated
        else:
            headers = json.dumps(delivery.headers)
            size = len(headers) + len(delivery.body)
            if not verified:
                self._make_unverified_room(size)
            number = self._db.execute(
                "INSERT INTO events (service, id, verified, received_at, headers, body, digest, size)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._service, delivery.id, verified, at, headers, delivery.body, digest, size),
            ).lastrowid
        count_arrival = "INSERT INTO arrivals VALUES (?, 1) ON CONFLICT (event) DO UPDATE SET count = count + 1"
        self._db.execute(count_arrival, (number,))
        return self._read_events("WHERE number = ?", number)[0]

    def queue(self, event: Event, target: str) -> bool:
        """Queue an event for a target. Return False if the event was queued before. Only inside `transaction`."""
        values = (event.number, target, ForwardState.WAITING)
        return self._db.execute("INSERT OR IGNORE INTO forwards VALUES (?, ?, ?, 0, 0)", values).rowcount == 1

    def find_next_waiting(self, target: str) -> WaitingEvent | None:
        """Return the oldest event that waits for a target, or None."""
        values = (target, ForwardState.WAITING, self._service)
        row = self._db.execute(f"SELECT event, attempts, refusals {_WAITING} ORDER BY event LIMIT 1", values).fetchone()
        return WaitingEvent(self._read_events("WHERE number = ?", row[0])[0], row[1], row[2]) if row else None

    def record_attempt(self, waiting: WaitingEvent, target: str, state: ForwardState) -> None:
        """Store durably the state of an event for a target, with the event's counts of attempts and refusals."""
        values = (waiting.event.number, target, state, waiting.attempts, waiting.refusals)
        self._db.execute("INSERT OR REPLACE INTO forwards VALUES (?, ?, ?, ?, ?)", values)

    def count_waiting(self, target: str) -> int:
        """Return how many events wait for a target."""
        found = self._db.execute(f"SELECT count(*) {_WAITING}", (target, ForwardState.WAITING, self._service))
        return int(found.fetchone()[0])

    def find_by_name(self, name: str) -> list[Event]:
        """Return the events with the id `name`, oldest first; if there are none, the one with this local name.

        If some of the events are verified, return only the verified events.
        """
        found = self._read_events("WHERE service = ? AND id = ? ORDER BY number", self._service, name)
        if not found and (local := _LOCAL_NAME.fullmatch(name)):
            found = self._read_events("WHERE service = ? AND number = ?", self._service, int(local[1]))
        return [event for event in found if event.verified] or found

    def list_since(self, moment: str) -> list[Event]:
        """Return the events that were first received at `moment` or later, oldest first."""
        return self._read_events("WHERE service = ? AND received_at >= ? ORDER BY number", self._service, moment)

    def list_undelivered(self, target: str) -> list[Event]:
        """Return the events that were queued for a target but not accepted by the target, oldest first."""
        return self._read_events(
            "JOIN forwards ON forwards.event = number WHERE service = ? AND target = ? AND state <> ? ORDER BY number",
            *(self._service, target, ForwardState.DONE),
        )

    def remove_old(self, moment: str) -> int:
        """Remove the events of all services that were received before `moment`, and return how many.

        An event stays until every target for which it was queued has accepted it.
        """
        with self.transaction():
            old = [number for (number,) in self._db.execute(_FIND_OLD, (moment, ForwardState.DONE))]
            self._remove_events(old)
        return len(old)

    def _make_unverified_room(self, size: int) -> None:
        """Remove forwarded unverified events to make room for one of `size` bytes. Raises NoRoomError."""
        unverified = "SELECT count(*), coalesce(sum(size), 0) FROM events WHERE service = ? AND verified = 0"
        count, total = self._db.execute(unverified, (self._service,)).fetchone()
        forwarded = self._db.execute(_FIND_FORWARDED, (self._service, ForwardState.DONE))
        removed: list[int] = []
        while count >= MAX_UNVERIFIED or total + size > MAX_UNVERIFIED_BYTES:
            if (row := forwarded.fetchone()) is None:
                raise NoRoomError(f"there is no room: {count} UNVERIFIED events ({total} bytes) were not forwarded")
            removed.append(row[0])
            count, total = count - 1, total - row[1]
        self._remove_events(removed)

    def _remove_events(self, numbers: list[int]) -> None:
        rows = [(number,) for number in numbers]
        self._db.executemany("DELETE FROM events WHERE number = ?", rows)
        self._db.executemany("DELETE FROM arrivals WHERE event = ?", rows)
        self._db.executemany("DELETE FROM forwards WHERE event = ?", rows)

    def _read_events(self, condition: str, *values: object) -> list[Event]:
        return [_make_event(*row) for row in self._db.execute(_SELECT_EVENTS + condition, values)]


def _make_event(
    number: int, sent_id: str | None, headers: str, body: bytes, verified: int, at: str, count: int, shared: int
) -> Event:
    """Return the event in a row of `_SELECT_EVENTS`. Raises sqlite3.DatabaseError if the row is damaged."""
    try:
        pairs = tuple((name, value) for name, value in json.loads(headers))
        # In WSGI, header values are texts in Latin-1.
        "".join(text for pair in pairs for text in pair).encode("latin-1")
        received_at = datetime.fromisoformat(at).replace(tzinfo=UTC)
    except (ValueError, TypeError, RecursionError):
        raise sqlite3.DatabaseError(f"the stored event e{number} is damaged") from None
    return Event(number, sent_id, Delivery(pairs, body), bool(verified), received_at, count, bool(shared))


@contextlib.contextmanager
def open_spool(path: Path, service: str) -> Iterator[Spool]:
    """Open the file of stored events during the block. Create the file if it is missing.

    Raises EscrowctlError `ErrorCode.STATE_UNUSABLE`, also if the file fails during the block.
    """
    try:
        make_private_folder(path.parent)
        create_empty_file(path)
        if flaw := find_flaw(check_regular(path), path, forbidden_bits=OTHERS_ACCESS):
            raise _unusable(path, f"the file {flaw.reason}")
        with contextlib.closing(connect(path, seconds=_BUSY_SECONDS)) as database:
            sync_every_commit(database)
            database.execute("PRAGMA trusted_schema = OFF")
            version = create_tables_once(database, _VERSION, lambda new: run_script(new, _TABLES))
            if version != _VERSION:
                quoted = shlex.quote(str(path))
                hint = Hint(f"mv {quoted} {quoted}.old", "to begin with a new, empty file")
                raise _unusable(path, f"its format is {version}, but this escrowctl reads format {_VERSION}", hint=hint)
            yield Spool(database, service)
    except (sqlite3.Error, OSError, OverflowError) as error:
        raise _unusable(path, error.strerror or str(error) if isinstance(error, OSError) else str(error)) from error


def _unusable(path: Path, reason: str, *, hint: Hints = ()) -> EscrowctlError:
    return not_sent(ErrorCode.STATE_UNUSABLE, f"the stored events in {path} cannot be used: {reason}.", hint=hint)
