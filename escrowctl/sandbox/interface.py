"""The handlers of the interface's operations: transactions, users and webhook endpoints.

The published interface does not show the header `Idempotency-Key`. So the header has no effect, and an identical
create creates a second transaction, unless the variant `idempotent` is on. Then a repeated request gets the first
reply and changes nothing. A different request with the same key gets 422, as in the expired IETF draft
draft-ietf-httpapi-idempotency-key-header-07. A refused request changed nothing, so its reply is not stored.

INTERFACE.md sections 2, 4 and 6 show no fields of an endpoint, no body that creates one and no kinds of events:
they are the sandbox's own choice.
"""

import base64
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import NoReturn

from escrowctl.contract.operations import OPERATIONS, Operation
from escrowctl.sandbox import records
from escrowctl.sandbox.bodies import JsonObject, ProblemError, ProblemKind, invalid, no_record, parse_object, write_json
from escrowctl.sandbox.http import Call, Handler
from escrowctl.sandbox.magic import QUEUED_AMOUNT, REFUSED_AMOUNTS, UNANSWERED_AMOUNT, find_magic_record
from escrowctl.sandbox.moves import perform_move, record_move
from escrowctl.sandbox.requests import NewTransaction, NewWebhook, PageQuery, read_body, read_query
from escrowctl.sandbox.seed import draw_id
from escrowctl.sandbox.sender import SIGNING_PREFIX
from escrowctl.sandbox.store import Store

SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_ADD_TRANSACTION = "INSERT INTO transactions (id, document) VALUES (?, ?)"
_ADD_ENDPOINT = "INSERT INTO webhook_endpoints (id, secret, document) VALUES (?, ?, ?)"
_FIND_REPLY = "SELECT request, reply FROM replies WHERE key = ?"
_ADD_REPLY = "INSERT INTO replies (key, request, reply) VALUES (?, ?, ?)"

_Write = Callable[[sqlite3.Connection, str], JsonObject]


class InterfaceCalls:
    """The handlers of the operations. A handler raises ProblemError to refuse a request."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def handlers(self) -> Mapping[Operation, Handler]:
        """The handler of each operation: the method with the operation's name."""
        return {operation: getattr(self, operation.name) for operation in OPERATIONS}

    def create_transaction(self, call: Call) -> JsonObject:
        """Create a transaction that holds the payer's money, and return its record.

        Raises ProblemError: 400 for a flawed body, or the error of a magic amount. Raises ConnectionAbortedError
        after the commit if the amount is `UNANSWERED_AMOUNT`.
        """
        body = read_body(call, NewTransaction)
        amount = body.amount.text
        if kind := REFUSED_AMOUNTS.get(amount):
            raise ProblemError(kind, f"The amount {amount} is refused in every sandbox.")

        def add(connection: sqlite3.Connection, at: str) -> JsonObject:
            moments: dict[str, str] = {}
            for name, (field, _) in records.TIMED_MOVES.items():
                if (text := getattr(body, name)) is not None:
                    duration = timedelta(seconds=int(text[:-1]) * SECONDS_PER_UNIT[text[-1]])
                    moments[field] = records.add_duration(at, duration)
            document: JsonObject = {
                "id": draw_id(connection, "tx", table="transactions"),
                "status": records.State.HELD,
                "amount": body.amount,
                "currency": body.currency,
                "payer": body.payer,
                "payee": body.payee,
                **(body.model_extra or {}),
                **moments,
                "created_at": at,
                "updated_at": at,
            }
            connection.execute(_ADD_TRANSACTION, (document["id"], write_json(document)))
            record_move(connection, records.Transaction(document), records.Move.CREATE, at=at)
            return document

        return self._write_once("create", call, add, drops_reply=amount == UNANSWERED_AMOUNT)

    def get_transaction(self, call: Call) -> JsonObject:
        """Return the record of one transaction. Raises ProblemError 404 if there is none."""
        with self._store.reading() as connection:
            return require_transaction(connection, call.resource_id).document

    def list_transactions(self, call: Call) -> JsonObject:
        """Return one page of transactions, newest first. This operation is not published; it was observed."""
        return self._list_page(call, "transactions")

    def update_transaction(self, call: Call) -> NoReturn:
        """Refuse every update with 400, and change nothing.

        This operation is not published; it was observed. Its only known status is 400 (INTERFACE.md section 7). By
        its own choice the sandbox first raises ProblemError 415 or 400 for a bad body, and 404 for an unknown id.
        """
        call.check_unused_body()
        with self._store.reading() as connection:
            require_transaction(connection, call.resource_id)
        message = f"Transaction {call.resource_id} was not changed: the published interface describes no update."
        raise ProblemError(ProblemKind.UPDATE_NOT_SHOWN, message)

    def release_transaction(self, call: Call) -> JsonObject:
        """Release a held transaction, and return its record: `released`, or `releasing` if it has `QUEUED_AMOUNT`.

        The interface shows no body for this call: a JSON object is accepted without effect. Raises ProblemError:
        404 if there is no such transaction, 409 if it is not held. Of several callers, only the first gets 200.
        """
        call.check_unused_body()

        def release(connection: sqlite3.Connection, at: str) -> JsonObject:
            found = require_transaction(connection, call.resource_id)
            move = records.Move.QUEUE if found.amount == QUEUED_AMOUNT else records.Move.RELEASE
            if (moved := perform_move(connection, found.id, move, at=at)) is None:
                detail = f"Transaction {found.id} is {found.status}; only a transaction that is held can be released."
                raise ProblemError(ProblemKind.MOVE_REFUSED, detail)
            return moved.document

        return self._write_once("release", call, release)

    def get_user(self, call: Call) -> JsonObject:
        """Return one user. Raises ProblemError 404.

        Any valid key may read every user: this is the sandbox's own choice (INTERFACE.md section 5).
        """
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
        """Create an endpoint, and return its record with the secret. Raises ProblemError 400 for a flawed body.

        Only this reply shows the secret. A repeated Idempotency-Key gets the same reply. Two requests with the same
        URL create two endpoints: nothing in the interface forbids it.
        """
        body = read_body(call, NewWebhook)

        def add(connection: sqlite3.Connection, at: str) -> JsonObject:
            secret = SIGNING_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
            document: JsonObject = {
                "id": draw_id(connection, "wh", table="webhook_endpoints"),
                "url": body.url,
                "events": body.events or list(records.EventKind),
                **({"description": body.description} if "description" in body.model_fields_set else {}),
                **(body.model_extra or {}),
                "status": "enabled",
                "created_at": at,
            }
            connection.execute(_ADD_ENDPOINT, (document["id"], secret, write_json(document)))
            return {**document, "secret": secret}

        return self._write_once("register", call, add)

    def list_webhooks(self, call: Call) -> JsonObject:
        """Return one page of the endpoints, newest first, without their secrets."""
        return self._list_page(call, "webhook_endpoints")

    def _write_once(self, operation: str, call: Call, write: _Write, *, drops_reply: bool = False) -> JsonObject:
        """Call `write(connection, time)` in a database transaction, and return its reply.

        With an Idempotency-Key, the reply is stored: the same request gets it again. Raises ProblemError 422 if the
        key had a different request. If `drops_reply`, raises ConnectionAbortedError after a new write.
        """
        key = call.idempotency_key
        request = sha256(f"{operation}\n{call.resource_id}\n".encode() + call.body).hexdigest()
        with self._store.writing() as connection:
            if key and (row := connection.execute(_FIND_REPLY, (key,)).fetchone()):
                if row["request"] != request:
                    detail = "This Idempotency-Key was sent with another request before."
                    raise ProblemError(ProblemKind.KEY_REUSED, detail)
                return parse_object(row["reply"])
            reply = write(connection, self._store.sandbox_time(connection))
            if key:
                connection.execute(_ADD_REPLY, (key, request, write_json(reply)))
        if drops_reply:
            raise ConnectionAbortedError
        return reply

    def _list_page(self, call: Call, table: str) -> JsonObject:
        """Return the page of `table` that the call's query selects, newest first. Raises ProblemError 400."""
        page = read_query(call, PageQuery)
        limit = int(page.limit)
        find = f"SELECT position FROM {table} WHERE id = ?"  # noqa: S608 - one of our tables
        select = f"SELECT * FROM {table} WHERE ?1 IS NULL OR position < ?1 ORDER BY position DESC LIMIT ?2"  # noqa: S608
        with self._store.reading() as connection:
            start = connection.execute(find, (page.after,)).fetchone()
            if page.after is not None and start is None:
                raise invalid({"parameter": "after", "detail": f"after: there is no record {page.after!r}."})
            rows: Sequence[sqlite3.Row] = connection.execute(select, (start and start[0], limit + 1)).fetchall()
        return {"data": [parse_object(row["document"]) for row in rows[:limit]], "has_more": len(rows) > limit}


def require_transaction(connection: sqlite3.Connection, transaction_id: str) -> records.Transaction:
    """Return the transaction with this id, which may be a magic id. Raises ProblemError 404 if there is none."""
    transaction = records.find_transaction(connection, transaction_id) or find_magic_record(transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction
