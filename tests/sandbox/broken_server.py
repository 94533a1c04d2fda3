"""`sandbox serve` with a fault: the first argument names the fault, the rest is the command line.

It proves that the harness of `test_serve_kills.py` reports each fault, and that the server reports what ends its
deliveries.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from escrowctl.main import main
from escrowctl.post_once import Reply
from escrowctl.sandbox import ledger, moves, sender, store
from escrowctl.sandbox.events import Delivery
from escrowctl.sandbox.records import HOLD, Move, Transaction


def answers_before_the_commit() -> None:
    """Answer at once, and commit only every fiftieth group."""
    seen = [0]

    @contextmanager
    def late(self: store.Store) -> Iterator[None]:
        self._is_grouped = True
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        yield
        seen[0] += 1
        if seen[0] % 50 == 0:
            self._connection.execute("COMMIT")

    store.Store.group = late  # type: ignore[method-assign] # that is the fault


def forgets_half_of_a_release() -> None:
    """Write only the first of a move's two entries in one move of ten."""
    post = ledger.post_entries
    seen = [0]

    def half(connection: sqlite3.Connection, transaction: Transaction, *, move: Move, at: str) -> None:
        seen[0] += 1
        if seen[0] % 10:
            post(connection, transaction, move=move, at=at)
        else:
            amount, currency = ledger.to_ten_thousandths(transaction.amount), transaction.document["currency"]
            row = (transaction.id, move, HOLD, currency, amount, at)
            connection.execute(ledger.ADD_ENTRY, row)

    ledger.post_entries = half  # that is the fault


def settles_before_it_sends() -> None:
    """Record each delivery as done, and then send it, whatever the receiver replies."""
    attempt = sender.Sender._send_once

    def early(self: sender.Sender, delivery: Delivery, *, seconds: float) -> Reply:
        attempt(self, delivery, seconds=seconds)
        return Reply(200, 0.0)

    sender.Sender._send_once = early  # type: ignore[method-assign] # that is the fault


def forgets_an_event() -> None:
    """Write no event for one change in ten."""
    add = vars(moves)["add_event"]
    seen = [0]

    def forget(*arguments: Any, **keywords: Any) -> str:
        seen[0] += 1
        return str(add(*arguments, **keywords)) if seen[0] % 10 else ""

    vars(moves)["add_event"] = forget  # that is the fault


def cannot_settle() -> None:
    """Raise what nobody expects when an attempt was made."""

    def fail(*_arguments: Any, **_keywords: Any) -> None:
        raise RuntimeError("nobody expected this")

    vars(sender)["record_attempt"] = fail  # that is the fault


FAULTS: dict[str, Callable[[], None]] = {
    "answers before the commit": answers_before_the_commit,
    "forgets half of a release": forgets_half_of_a_release,
    "settles before it sends": settles_before_it_sends,
    "forgets an event": forgets_an_event,
    "cannot settle": cannot_settle,
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
