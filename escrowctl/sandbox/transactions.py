"""The transaction operations of the interface: create, get, list, update, release.

An `Idempotency-Key` header is accepted and has no effect: the published interface promises
nothing about one, so an equal create makes a second transaction.
"""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from escrowctl.sandbox import ledger
from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.calls import Call
from escrowctl.sandbox.drafts import Draft, read_draft
from escrowctl.sandbox.lifecycle import FIRST_STATE, Move, steps
from escrowctl.sandbox.pages import no_such_start, read_page
from escrowctl.sandbox.problems import Flaw, ProblemError, ProblemKind, flawed, no_record
from escrowctl.sandbox.records import (
    Transaction,
    add_transaction,
    find_transaction,
    find_user,
    move_transaction,
    newest_transactions,
    timestamp,
)
from escrowctl.sandbox.store import Store


class Transactions:
    """Answers for transactions. Every answer is given after its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], draw_id: Callable[[str], str]) -> None:
        self._store = store
        self._now = now
        self._draw_id = draw_id

    def create(self, call: Call) -> JsonObject:
        """Hold the money of a new transaction, and return its record; 400 for a flawed body."""
        draft = read_draft(call.json_object())
        with self._store.writing() as connection:
            _require_users(connection, draft)
            transaction = self._add(connection, draft)
            ledger.post(connection, transaction, move=Move.CREATE, at=transaction.created_at)
        return transaction.document()

    def get(self, call: Call) -> JsonObject:
        """Return one record; 404 if there is none."""
        with self._store.reading() as connection:
            return _require(connection, call.resource_id).document()

    def list_newest(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first; see pages.py. Observed, not published."""
        page = read_page(call)
        with self._store.reading() as connection:
            if page.after is not None and find_transaction(connection, page.after) is None:
                raise no_such_start("transaction", page.after)
            found = newest_transactions(connection, after=page.after, count=page.count)
        return page.envelope([record.document() for record in found])

    def update(self, call: Call) -> NoReturn:
        """Refuse with 400 whatever is understood, and change nothing.

        Observed, not published: 400 is the one status seen (interface.md section 7), and what would
        be accepted is not shown. The sandbox's own choice is what comes before that: a body that is
        no JSON object is refused, and an id that names no transaction is 404, as on a release. No
        body at all is understood.
        """
        if call.body:
            call.json_object()
        with self._store.reading() as connection:
            _require(connection, call.resource_id)
        raise ProblemError(
            ProblemKind.UPDATE_NOT_SHOWN,
            f"Transaction {call.resource_id} was not changed: what this call accepts is not shown.",
        )

    def release(self, call: Call) -> JsonObject:
        """Give the held money to the payee, and return the record.

        404 if there is no such transaction; 409 from any state but held, so of several callers one
        is told 200. No body is stated for this call: a JSON object is let pass, and has no effect.
        """
        if call.body:
            call.json_object()
        with self._store.writing() as connection:
            at = timestamp(self._now())
            transaction = _move(connection, call.resource_id, move=Move.RELEASE, at=at)
            ledger.post(connection, transaction, move=Move.RELEASE, at=at)
        return transaction.document()

    def _add(self, connection: sqlite3.Connection, draft: Draft) -> Transaction:
        at = timestamp(self._now())
        while True:
            transaction = Transaction(
                id=self._draw_id("tx"),
                status=FIRST_STATE,
                amount=draft.amount,
                currency=draft.currency,
                payer=draft.payer,
                payee=draft.payee,
                extra=draft.extra,
                created_at=at,
                updated_at=at,
            )
            if add_transaction(connection, transaction):
                return transaction


def _require(connection: sqlite3.Connection, transaction_id: str) -> Transaction:
    transaction = find_transaction(connection, transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction


def _require_users(connection: sqlite3.Connection, draft: Draft) -> None:
    named = {"payer": draft.payer, "payee": draft.payee}
    flaws = [
        Flaw(f"#/{name}", f"{name} names no user: {user_id!r}.")
        for name, user_id in named.items()
        if find_user(connection, user_id) is None
    ]
    if flaws:
        raise flawed(*flaws)


def _move(connection: sqlite3.Connection, transaction_id: str, *, move: Move, at: str) -> Transaction:
    for before, after in steps(move):
        moved = move_transaction(connection, transaction_id, before=before, after=after, at=at)
        if moved is not None:
            return moved
    state = _require(connection, transaction_id).status
    allowed = " or ".join(before for before, _ in steps(move))
    raise ProblemError(
        ProblemKind.MOVE_REFUSED, f"Transaction {transaction_id} is {state}; {move} is possible only from {allowed}."
    )
