"""Moves of a transaction, each with its ledger entries and its event; and timers for automatic moves.

A timer has a due time, which becomes the time of its move. The move is carried out once it is due: before the
next call, at once in `sandbox serve`, and in the order of due times if the clock is advanced.
"""

import sqlite3
from typing import NamedTuple

from escrowctl.sandbox import ledger
from escrowctl.sandbox.events import KINDS, add_event
from escrowctl.sandbox.records import TRANSITIONS, EventKind, Move, Transaction, read_transaction
from escrowctl.sandbox.store import Store


class Timer(NamedTuple):
    """An automatic move at a due time, if it is still possible then."""

    position: int
    due_at: str
    transaction_id: str
    move: Move


MOVE = "UPDATE transactions SET status = ?, updated_at = ? WHERE id = ? AND status = ? RETURNING *"
FIRST_TIMER = "SELECT position, due_at, transaction_id, move FROM timers ORDER BY due_at, position LIMIT 1"


def carry_out(connection: sqlite3.Connection, transaction_id: str, move: Move, *, at: str) -> Transaction | None:
    """Move the money of a transaction and return it; None if its state does not allow the move.

    The condition is part of the UPDATE, so only one of several callers gets the row.
    """
    transition = TRANSITIONS[move]
    rows = connection.execute(MOVE, (transition.after, at, transaction_id, transition.before)).fetchall()
    if not rows:
        return None
    moved = read_transaction(rows[0])
    record_move(connection, moved, move, at=at)
    return moved


def record_move(connection: sqlite3.Connection, transaction: Transaction, move: Move, *, at: str) -> None:
    """Write the ledger entries and the event of a move. The record must have the new state already."""
    ledger.post(connection, transaction, move=move, at=at)
    add_event(connection, KINDS.get(move, EventKind.TRANSACTION_UPDATED), transaction, at=at)


def first_timer(connection: sqlite3.Connection) -> Timer | None:
    """Return the timer with the earliest due time, or None."""
    row = connection.execute(FIRST_TIMER).fetchone()
    return Timer(*row)._replace(move=Move(row["move"])) if row else None


def fire(connection: sqlite3.Connection, timer: Timer) -> None:
    """Carry out the move of a timer, and remove the timer. Nothing else happens if the move is no longer possible."""
    connection.execute("DELETE FROM timers WHERE position = ?", (timer.position,))
    carry_out(connection, timer.transaction_id, timer.move, at=timer.due_at)


def fire_due(store: Store) -> None:
    """Carry out every due move, in order."""
    with store.reading() as connection:
        if (timer := first_timer(connection)) is None or timer.due_at > store.time(connection):
            return
    with store.writing() as connection:
        now = store.time(connection)
        while (timer := first_timer(connection)) is not None and timer.due_at <= now:
            fire(connection, timer)
