"""Moves of a transaction, each with its ledger entries and its event; and timers for automatic moves.

The time of an automatic move is the due time of its timer, even if the move is performed later. `sandbox serve`
performs a due move at once. Without a server, a due move waits for the next call. When the clock is advanced, the
moves that become due are performed in the order of their due times.
"""

import sqlite3
from typing import NamedTuple

from escrowctl.sandbox import ledger
from escrowctl.sandbox.events import add_event
from escrowctl.sandbox.records import TIMED_MOVES, TRANSITIONS, Move, Transaction, read_transaction
from escrowctl.sandbox.store import Store


class Timer(NamedTuple):
    """An automatic move of a transaction at a due time, if the move is still possible then."""

    due_at: str
    transaction_id: str
    move: Move


CHANGE_STATUS = """
    UPDATE transactions SET document = json_set(document, '$.status', ?1, '$.updated_at', ?2)
    WHERE id = ?3 AND status = ?4 RETURNING document
"""
FIRST_TIMER = """
    SELECT moves_at, document FROM transactions WHERE status = 'held' AND moves_at IS NOT NULL
    ORDER BY moves_at, position LIMIT 1
"""


def perform_move(connection: sqlite3.Connection, transaction_id: str, move: Move, *, at: str) -> Transaction | None:
    """Perform a move and return the changed transaction; None if the state before does not allow the move.

    The UPDATE itself checks the state, so only one of several callers succeeds.
    """
    transition = TRANSITIONS[move]
    rows = connection.execute(CHANGE_STATUS, (transition.after, at, transaction_id, transition.before)).fetchall()
    if not rows:
        return None
    moved = read_transaction(rows[0])
    record_move(connection, moved, move, at=at)
    return moved


def record_move(connection: sqlite3.Connection, transaction: Transaction, move: Move, *, at: str) -> None:
    """Write the ledger entries and the event of a move. `transaction` must have the state after the move."""
    ledger.post_entries(connection, transaction, move=move, at=at)
    add_event(connection, TRANSITIONS[move].event, transaction, at=at)


def find_first_timer(connection: sqlite3.Connection) -> Timer | None:
    """Return the timer with the earliest due time, or None."""
    if (row := connection.execute(FIRST_TIMER).fetchone()) is None:
        return None
    due_at, transaction = row["moves_at"], read_transaction(row)
    move = next(move for field, move in TIMED_MOVES.values() if transaction.document.get(field) == due_at)
    # Money that was disputed at that time moves once it is held again.
    return Timer(max(due_at, str(transaction.document["updated_at"])), transaction.id, move)


def fire_due_timers(store: Store) -> None:
    """Perform every automatic move that is due, in the order of due times."""
    with store.reading() as connection:
        if (timer := find_first_timer(connection)) is None or timer.due_at > store.sandbox_time(connection):
            return
    with store.writing() as connection:
        now = store.sandbox_time(connection)
        while (timer := find_first_timer(connection)) is not None and timer.due_at <= now:
            perform_move(connection, timer.transaction_id, timer.move, at=timer.due_at)
