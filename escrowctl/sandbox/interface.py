"""The operations of the interface: transactions, users and webhook endpoints.

An `Idempotency-Key` header has no effect unless the variant `idempotent` is on: the published interface
promises nothing about one. So an identical create makes a second transaction. With the variant, a repeated request
gets the first reply and changes nothing. Another request under the same key gets 422, as in the expired IETF draft
draft-ietf-httpapi-idempotency-key-header-07. Refusals are not stored: they changed nothing.

INTERFACE.md sections 2, 4 and 6 show no fields of an endpoint, no body for its creation and no kinds of event: all of
that is the sandbox's own choice.
"""

import base64
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import NoReturn

from escrowctl.contract import operations
from escrowctl.contract.operations import Operation
from escrowctl.sandbox import records
from escrowctl.sandbox.bodies import JsonObject, ProblemError, ProblemKind, flawed, no_record, read_stored, write_json
from escrowctl.sandbox.http import Call, Handler
from escrowctl.sandbox.magic import QUEUED, UNANSWERED, find_magic, refuse_amount
from escrowctl.sandbox.moves import carry_out, record_move
from escrowctl.sandbox.requests import NewTransaction, NewWebhook, PageQuery, read_body, read_query
from escrowctl.sandbox.seed import draw_id
from escrowctl.sandbox.sender import SIGNING_PREFIX
from escrowctl.sandbox.store import Store

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_ADD_TIMER = "INSERT INTO timers (due_at, transaction_id, move) VALUES (?, ?, ?)"
_ADD_ENDPOINT = "INSERT INTO webhook_endpoints (id, secret, document) VALUES (?, ?, ?)"
_FIND_REPLY = "SELECT request, reply FROM replies WHERE key = ?"
_ADD_REPLY = "INSERT INTO replies (key, request, reply) VALUES (?, ?, ?)"


class Interface:
    """Answers the operations. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def handlers(self) -> Mapping[Operation, Handler]:
        """Operation -> handler."""
        return {
            operations.CREATE_TRANSACTION: self.create,
            operations.GET_TRANSACTION: self.get,
            operations.RELEASE_TRANSACTION: self.release,
            operations.LIST_TRANSACTIONS: self.list_transactions,
            operations.UPDATE_TRANSACTION: self.update,
            operations.GET_USER: self.get_user,
            operations.CREATE_WEBHOOK: self.create_webhook,
            operations.LIST_WEBHOOKS: self.list_webhooks,
        }

    def create(self, call: Call) -> JsonObject:
        """Hold the money of a new transaction, and return its record; 400 for a flawed body."""
        body = read_body(call, NewTransaction)
        refuse_amount(body.amount.text)
        is_lost = body.amount.text == UNANSWERED
        return self._write_once(call, lambda connection, at: _add_transaction(connection, body, at=at), is_lost=is_lost)

    def get(self, call: Call) -> JsonObject:
        """Return one record; 404 if there is none."""
        with self._store.reading() as connection:
            return require_transaction(connection, call.resource_id).document()

    def list_transactions(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first. Observed, not published."""
        return self._page(call, "transactions", lambda row: records.read_transaction(row).document())

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

    def release(self, call: Call) -> JsonObject:
        """Move the held money to the payee, and return the record.

        404 if there is no such transaction; 409 if it is not held, so only one of several callers gets 200.
        The interface shows no body for this call: a JSON object has no effect.
        """
        call.ignore_body()
        return self._write_once(call, lambda connection, at: _release(connection, call.resource_id, at=at))

    def get_user(self, call: Call) -> JsonObject:
        """Return one user; 404 if there is none. The sandbox's own choice: any valid key may read it (section 5)."""
        if call.resource_id not in set(records.UserId):
            raise no_record("user", call.resource_id)
        user = records.UserId(call.resource_id)
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

    def create_webhook(self, call: Call) -> JsonObject:
        """Store a new endpoint, and return its record with the secret; 400 for a flawed body.

        The secret is only in this answer, and in the answer to the same request under a recognised key. The same
        address again makes a second endpoint: nothing in the interface forbids it.
        """
        body = read_body(call, NewWebhook)
        return self._write_once(call, lambda connection, at: _add_endpoint(connection, body, at=at))

    def list_webhooks(self, call: Call) -> JsonObject:
        """Return one page of the records, newest first, without their secrets."""
        return self._page(call, "webhook_endpoints", lambda row: read_stored(row["document"]))

    def _write_once(
        self, call: Call, write: Callable[[sqlite3.Connection, str], JsonObject], *, is_lost: bool = False
    ) -> JsonObject:
        """Carry out a write at the sandbox's time. Under a recognised key, store its reply, or return the stored one.

        Raises ProblemError 422 if another write had the key; ConnectionAbortedError if the first reply `is_lost`.
        """
        key, request = call.idempotency_key, sha256(f"{call.resource_id}\n".encode() + call.body).hexdigest()
        with self._store.writing() as connection:
            if key and (row := connection.execute(_FIND_REPLY, (key,)).fetchone()):
                if row["request"] != request:
                    detail = "This Idempotency-Key was sent with another request before."
                    raise ProblemError(ProblemKind.KEY_REUSED, detail)
                return read_stored(row["reply"])
            reply = write(connection, self._store.time(connection))
            if key:
                connection.execute(_ADD_REPLY, (key, request, write_json(reply)))
        if is_lost:
            raise ConnectionAbortedError
        return reply

    def _page(self, call: Call, table: str, document: Callable[[sqlite3.Row], JsonObject]) -> JsonObject:
        """Return the requested records of a list, newest first. Raises ProblemError: 400 for a bad parameter."""
        page = read_query(call, PageQuery)
        limit = int(page.limit)
        find = f"SELECT position FROM {table} WHERE id = ?"  # noqa: S608 - one of our tables
        select = f"SELECT * FROM {table} WHERE ?1 IS NULL OR position < ?1 ORDER BY position DESC LIMIT ?2"  # noqa: S608
        with self._store.reading() as connection:
            start = connection.execute(find, (page.after,)).fetchone()
            if page.after is not None and start is None:
                raise flawed({"parameter": "after", "detail": f"after names no record: {page.after!r}."})
            rows: Sequence[sqlite3.Row] = connection.execute(select, (start and start[0], limit + 1)).fetchall()
        return {"data": [document(row) for row in rows[:limit]], "has_more": len(rows) > limit}


def _add_transaction(connection: sqlite3.Connection, body: NewTransaction, *, at: str) -> JsonObject:
    moments: dict[str, str] = {}
    for name, (field, _) in records.TIMES.items():
        if (text := getattr(body, name)) is not None:
            moments[field] = records.later(at, timedelta(seconds=int(text[:-1]) * UNITS[text[-1]]))
    transaction = records.Transaction(
        id=draw_id(connection, "tx", table="transactions"),
        status=records.TRANSITIONS[records.Move.CREATE].after,
        amount=body.amount.text,
        currency=body.currency,
        payer=body.payer,
        payee=body.payee,
        extra={**body.extra, **moments},
        created_at=at,
        updated_at=at,
    )
    records.add_transaction(connection, transaction)
    for field, move in records.TIMES.values():
        if field in moments:
            connection.execute(_ADD_TIMER, (moments[field], transaction.id, move))
    record_move(connection, transaction, records.Move.CREATE, at=at)
    return transaction.document()


def _release(connection: sqlite3.Connection, transaction_id: str, *, at: str) -> JsonObject:
    found = require_transaction(connection, transaction_id)
    move = records.Move.QUEUE if found.amount == QUEUED else records.Move.RELEASE
    moved = carry_out(connection, transaction_id, move, at=at)
    if moved is None:
        before = records.TRANSITIONS[move].before
        sentence = f"Transaction {found.id} is {found.status}; {move} is possible only from {before}."
        raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
    return moved.document()


def _add_endpoint(connection: sqlite3.Connection, body: NewWebhook, *, at: str) -> JsonObject:
    secret = SIGNING_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    described: JsonObject = {"description": body.description} if "description" in body.model_fields_set else {}
    document: JsonObject = {
        "id": draw_id(connection, "wh", table="webhook_endpoints"),
        "url": body.url,
        "events": body.events or list(records.EventKind),
        **described,
        **body.extra,
        "status": "enabled",
        "created_at": at,
    }
    connection.execute(_ADD_ENDPOINT, (document["id"], secret, write_json(document)))
    return {**document, "secret": secret}


def require_transaction(connection: sqlite3.Connection, transaction_id: str) -> records.Transaction:
    """Read a transaction, or the record of a magic id; 404 if there is none."""
    transaction = records.find_transaction(connection, transaction_id) or find_magic(transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction
