"""The transaction and user operations of the interface: create, get, list, update, moves; get a user.

INTERFACE.md section 2 does not show which fields a create needs, their bounds, units and values. The
sandbox's own choice: `amount` a JSON number above 0, at most 14 digits before the point and 4 after
it, no exponent; `currency` any three capital letters; `payer` and `payee` ids of users, optional;
`expires_in` (the payer gets the money back) and `auto_release_in` durations of the sandbox's time, optional;
any other field is stored as sent, unless only the service may set it.

An `Idempotency-Key` header is accepted and has no effect, unless the variant `idempotent` is on: the published
interface promises nothing about one, so an identical create makes a second transaction.
"""

import re
import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, NoReturn

from escrowctl.sandbox.bodies import (
    BodyFlaw,
    JsonObject,
    JsonValue,
    NumberToken,
    ProblemError,
    ProblemKind,
    flawed,
    no_record,
)
from escrowctl.sandbox.clock import Clock, later
from escrowctl.sandbox.http import Call, Field, no_such_start, read_fields, read_page
from escrowctl.sandbox.idempotency import add_reply, find_reply
from escrowctl.sandbox.magic import QUEUED, UNANSWERED, find_magic, refuse_amount
from escrowctl.sandbox.moves import add_timer, carry_out, record_move
from escrowctl.sandbox.outbox import DrawId
from escrowctl.sandbox.records import (
    DEFAULT_PAYEE,
    DEFAULT_PAYER,
    RESERVED_FIELDS,
    TIMES,
    TRANSITIONS,
    Move,
    Transaction,
    add_transaction,
    find_transaction,
    find_user,
    newest_transactions,
    timestamp,
)
from escrowctl.sandbox.store import Store

AMOUNT = re.compile(r"(?=.*[1-9])(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
CURRENCY = re.compile(r"[A-Z]{3}")

DURATION = re.compile(r"[1-9][0-9]{0,3}[smhd]")
UNITS = MappingProxyType({"s": 1, "m": 60, "h": 3600, "d": 86_400})

AMOUNT_RULE = (
    "amount must be a number above 0, not a string, with at most 14 digits before the point,"
    " at most 4 after it, and no exponent."
)


def _is_amount(value: JsonValue) -> bool:
    return isinstance(value, NumberToken) and AMOUNT.fullmatch(value.text) is not None


def _is_currency(value: JsonValue) -> bool:
    return isinstance(value, str) and CURRENCY.fullmatch(value) is not None


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _is_duration(value: JsonValue) -> bool:
    return isinstance(value, str) and DURATION.fullmatch(value) is not None


def _duration(name: str) -> Field:
    return Field(_is_duration, f"{name} must be a duration, such as 90s, 10m, 2h or 7d.")


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "amount": Field(_is_amount, AMOUNT_RULE, required=True),
        "currency": Field(_is_currency, "currency must be three capital letters.", required=True),
        "payer": Field(_is_text, "payer must be the id of a user.", DEFAULT_PAYER),
        "payee": Field(_is_text, "payee must be the id of a user.", DEFAULT_PAYEE),
        **{name: _duration(name) for name in TIMES},
    }
)
"""The fields of a create."""


class Transactions:
    """Answers for transactions and their users. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, clock: Clock, draw_id: DrawId) -> None:
        self._store = store
        self._clock = clock
        self._draw_id = draw_id

    def create(self, call: Call) -> JsonObject:
        """Hold the money of a new transaction, and return its record; 400 for a flawed body."""
        requested = read_fields(call.json_object(), FIELDS, reserved=RESERVED_FIELDS)
        amount = requested["amount"].text
        refuse_amount(amount)
        with self._store.writing() as connection:
            if (earlier := find_reply(connection, call)) is not None:
                return earlier
            _require_users(connection, requested)
            at = timestamp(self._clock.read(connection))
            moments = _take_moments(requested, at=at)
            transaction = self._add(connection, {**requested, "amount": amount}, at=at)
            for one, due_at in moments.items():
                add_timer(connection, transaction.id, one, due_at=due_at)
            record_move(connection, transaction, Move.CREATE, at=at, draw_id=self._draw_id)
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
        page = read_page(call)
        with self._store.reading() as connection:
            if page.after is not None and find_transaction(connection, page.after) is None:
                raise no_such_start("transaction", page.after)
            found = newest_transactions(connection, after=page.after, count=page.rows_to_read)
        return page.envelope([record.document() for record in found])

    def update(self, call: Call) -> NoReturn:
        """Refuse every update with 400, and change nothing.

        Observed, not published: 400 is the only status seen (INTERFACE.md section 7), and the
        fields that an update accepts are not shown. The sandbox's own choice is what it checks
        first: a body must be a JSON object, and an unknown id is 404, as on a release.
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

        404 if there is no such transaction; 409 from any state but the move's own, so only one of several
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
            moved = carry_out(connection, call.resource_id, move, at=at, draw_id=self._draw_id)
            if moved is None:
                before = TRANSITIONS[move].before
                sentence = f"Transaction {found.id} is {found.status}; {move} is possible only from {before}."
                raise ProblemError(ProblemKind.MOVE_REFUSED, sentence)
            add_reply(connection, call, moved.document())
        return moved.document()

    def get_user(self, call: Call) -> JsonObject:
        """Return one user; 404 if there is none. The sandbox's own choice: any valid key may read it (section 5)."""
        with self._store.reading() as connection:
            user = find_user(connection, call.resource_id)
        if user is None:
            raise no_record("user", call.resource_id)
        return user.document()

    def _add(self, connection: sqlite3.Connection, requested: Mapping[str, Any], *, at: str) -> Transaction:
        while True:
            transaction = Transaction(
                id=self._draw_id("tx"), status=TRANSITIONS[Move.CREATE].after, created_at=at, updated_at=at, **requested
            )
            if add_transaction(connection, transaction):
                return transaction


def _take_moments(requested: dict[str, Any], *, at: str) -> Mapping[Move, str]:
    """Take the durations out of what was requested, and put the moments into its other fields."""
    moments: dict[Move, str] = {}
    for name, (field, move) in TIMES.items():
        if (duration := requested.pop(name)) is not None:
            moments[move] = later(at, timedelta(seconds=int(duration[:-1]) * UNITS[duration[-1]]))
            requested["extra"] = {**requested["extra"], field: moments[move]}
    return moments


def require_transaction(connection: sqlite3.Connection, transaction_id: str) -> Transaction:
    """Read a transaction, or the record of a magic id; 404 if there is none."""
    transaction = find_transaction(connection, transaction_id) or find_magic(transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction


def _require_users(connection: sqlite3.Connection, requested: Mapping[str, Any]) -> None:
    flaws = [
        BodyFlaw(f"#/{name}", f"{name} names no user: {requested[name]!r}.")
        for name in ("payer", "payee")
        if find_user(connection, requested[name]) is None
    ]
    if flaws:
        raise flawed(*flaws)
