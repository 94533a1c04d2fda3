"""Moves of a transaction, each with its ledger entries and its event, and those that happen by themselves.

A move with a timer has the time of its moment, and is carried out when that has come: before the next call,
at once in `sandbox serve`, and in the order of their moments when the clock is advanced.
"""

import sqlite3
from typing import NamedTuple

from escrowctl.sandbox import ledger
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.outbox import KINDS, add_event
from escrowctl.sandbox.records import EventKind, Move, Transaction, move_transaction, timestamp
from escrowctl.sandbox.store import Store


class Timer(NamedTuple):
    """A move that happens by itself, if it is still possible then."""

    position: int
    due_at: str
    transaction_id: str
    move: Move


FIRST_TIMER = "SELECT position, due_at, transaction_id, move FROM timers ORDER BY due_at, position LIMIT 1"


def carry_out(connection: sqlite3.Connection, transaction_id: str, move: Move, *, at: str) -> Transaction | None:
    """Move the money of a transaction and return it; None if the move is not possible from the state it is in."""
    moved = move_transaction(connection, transaction_id, move=move, at=at)
    if moved is not None:
        record_move(connection, moved, move, at=at)
    return moved


def record_move(connection: sqlite3.Connection, transaction: Transaction, move: Move, *, at: str) -> None:
    """Write the ledger entries and the event of a move that the record shows already."""
    ledger.post(connection, transaction, move=move, at=at)
    kind = KINDS.get(move, EventKind.TRANSACTION_UPDATED)
    add_event(connection, kind, transaction, at=at)


def add_timer(connection: sqlite3.Connection, transaction_id: str, move: Move, *, due_at: str) -> None:
    """Let a move happen by itself at a moment."""
    insert = "INSERT INTO timers (due_at, transaction_id, move) VALUES (?, ?, ?)"
    connection.execute(insert, (due_at, transaction_id, move))


def first_timer(connection: sqlite3.Connection) -> Timer | None:
    """Return the timer with the earliest moment, or None."""
    row = connection.execute(FIRST_TIMER).fetchone()
    return Timer(*row)._replace(move=Move(row["move"])) if row else None


def fire(connection: sqlite3.Connection, timer: Timer) -> None:
    """Carry out a move at the moment of its timer; nothing happens if it is not possible any more."""
    connection.execute("DELETE FROM timers WHERE position = ?", (timer.position,))
    carry_out(connection, timer.transaction_id, timer.move, at=timer.due_at)


def fire_due(store: Store, clock: Clock) -> None:
    """Carry out, in order, every move whose moment has come."""
    with store.reading() as connection:
        if (timer := first_timer(connection)) is None or timer.due_at > timestamp(clock.read(connection)):
            return
    with store.writing() as connection:
        now = timestamp(clock.read(connection))
        while (timer := first_timer(connection)) is not None and timer.due_at <= now:
            fire(connection, timer)
