"""The transaction and user operations of the interface: create, get, list, update, moves; get a user.

An `Idempotency-Key` header has no effect unless the variant `idempotent` is on: the published interface
promises nothing about one. So an identical create makes a second transaction.
"""

import sqlite3
from datetime import timedelta
from types import MappingProxyType
from typing import NoReturn

from escrowctl.sandbox.bodies import JsonObject, ProblemError, ProblemKind, no_record
from escrowctl.sandbox.clock import Clock, later
from escrowctl.sandbox.http import Call, read_page
from escrowctl.sandbox.idempotency import add_reply, find_reply
from escrowctl.sandbox.magic import QUEUED, UNANSWERED, find_magic, refuse_amount
from escrowctl.sandbox.moves import add_timer, carry_out, record_move
from escrowctl.sandbox.records import (
    TIMES,
    TRANSITIONS,
    Move,
    Transaction,
    UserId,
    add_transaction,
    find_transaction,
    read_transaction,
    timestamp,
)
from escrowctl.sandbox.requests import NewTransaction, read_body
from escrowctl.sandbox.seed import draw_id
from escrowctl.sandbox.store import Store

UNITS = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86_400})


class Transactions:
    """Answers for transactions and their users. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, call: Call) -> JsonObject:
        """Hold the money of a new transaction, and return its record; 400 for a flawed body."""
        body = read_body(call, NewTransaction)
        amount = body.amount.text
        refuse_amount(amount)
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            at = timestamp(self._clock.read(connection))
            moments = _find_moments(body, at=at)
            transaction = self._add(connection, body, moments, at=at)
            for field, move in TIMES.values():
                if field in moments:
                    add_timer(connection, transaction.id, move, due_at=moments[field])
            record_move(connection, transaction, Move.CREATE, at=at)
            add_reply(connection, call, transaction.document())
        if amount == UNANSWERED:
            raise ConnectionAbortedError(f"the amount {amount} is never answered")
        return transaction.document()

    def get(self, call: Call) -> JsonObject:
        """Return one record; 404 if there is none."""
        with self._store.reading() as connection:
            return require_transaction(connection, call.resource_id).document()

    def list_newest(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first. Observed, not published."""
        with self._store.reading() as connection:
            rows, has_more = read_page(connection, call, "transactions", "transaction")
        return {"data": [read_transaction(row).document() for row in rows], "has_more": has_more}

    def update(self, call: Call) -> NoReturn:
        """Refuse every update with 400, and change nothing.

        Observed, not published: 400 is the only status seen (INTERFACE.md section 7), and the
        fields of an update are not shown. The checks before it are the sandbox's own choice: a body
        must be a JSON object, and an unknown id is 404, as on a release.
        """
        call.ignore_body()
        with self._store.reading() as connection:
            require_transaction(connection, call.resource_id)
        raise ProblemError(
            ProblemKind.UPDATE_NOT_SHOWN,
            f"Transaction {call.resource_id} was not changed: the published interface shows no update.",
        )

    def move(self, call: Call, move: Move) -> JsonObject:
        """Move the held money, such as to the payee by a release, and return the record.

        404 if there is no such transaction; 409 if its state does not allow the move, so only one of several
        callers gets 200. The interface shows no body for this call: a JSON object has no effect.
        """
        call.ignore_body()
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            found = require_transaction(connection, call.resource_id)
            if move is Move.RELEASE and found.amount == QUEUED:
                move = Move.QUEUE
            at = timestamp(self._clock.read(connection))
            moved = carry_out(connection, call.resource_id, move, at=at)
            if moved is None:
                before = TRANSITIONS[move].before
                sentence = f"Transaction {found.id} is {found.status}; {move} is possible only from {before}."
                raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
            add_reply(connection, call, moved.document())
        return moved.document()

    def get_user(self, call: Call) -> JsonObject:
        """Return one user; 404 if there is none. The sandbox's own choice: any valid key may read it (section 5)."""
        if call.resource_id not in set(UserId):
            raise no_record("user", call.resource_id)
        user = UserId(call.resource_id)
        with self._store.reading() as connection:
            (created_at,) = connection.execute("SELECT created_at FROM sandbox").fetchone()
        name = user.name.lower()
        return {
            "id": user,
            "name": f"Sandbox {name}",
            "email": f"{name}@example.com",
            "status": "active",
            "created_at": created_at,
        }

    def _add(
        self, connection: sqlite3.Connection, body: NewTransaction, moments: dict[str, str], *, at: str
    ) -> Transaction:
        while True:
            transaction = Transaction(
                id=draw_id(connection, "tx"),
                status=TRANSITIONS[Move.CREATE].after,
                amount=body.amount.text,
                currency=body.currency,
                payer=body.payer,
                payee=body.payee,
                extra={**body.extra, **moments},
                created_at=at,
                updated_at=at,
            )
            if add_transaction(connection, transaction):
                return transaction


def _find_moments(body: NewTransaction, *, at: str) -> dict[str, str]:
    """Return the moments for the record, by field: the durations of a create, added to `at`."""
    durations = {field: getattr(body, name) for name, (field, _) in TIMES.items()}
    return {
        field: later(at, timedelta(seconds=int(text[:-1]) * UNITS[text[-1]]))
        for field, text in durations.items()
        if text is not None
    }


def require_transaction(connection: sqlite3.Connection, transaction_id: str) -> Transaction:
    """Read a transaction, or the record of a magic id; 404 if there is none."""
    transaction = find_transaction(connection, transaction_id) or find_magic(transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction
