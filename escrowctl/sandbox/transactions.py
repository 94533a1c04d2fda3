"""The transaction and user operations of the interface: create, get, list, update, release; get a user.

INTERFACE.md section 2 does not show which fields a create needs, their bounds, units and values. The
sandbox's own choice: `amount` a JSON number above 0, at most 14 digits before the point and 4 after
it, no exponent; `currency` any three capital letters; `payer` and `payee` ids of users, optional; any
other field is stored as sent, unless only the service may set it.

An `Idempotency-Key` header is accepted and has no effect: the published interface promises
nothing about one, so an identical create makes a second transaction.
"""

import re
import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, NoReturn

from escrowctl.sandbox import ledger
from escrowctl.sandbox.http import Call
from escrowctl.sandbox.json import JsonObject, NumberToken
from escrowctl.sandbox.pages import no_such_start, read_page
from escrowctl.sandbox.problems import Flaw, ProblemError, ProblemKind, flawed, no_record, reserved_flaws
from escrowctl.sandbox.records import (
    DEFAULT_PAYEE,
    DEFAULT_PAYER,
    FIRST_STATE,
    RESERVED_FIELDS,
    Move,
    Transaction,
    add_transaction,
    find_transaction,
    find_user,
    move_transaction,
    newest_transactions,
    timestamp,
    transitions,
)
from escrowctl.sandbox.store import Store

AMOUNT = re.compile(r"(?=.*[1-9])(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,4})?")
CURRENCY = re.compile(r"[A-Z]{3}")

AMOUNT_RULE = (
    "amount must be a number above 0, not a string, with at most 14 digits before the point,"
    " at most 4 after it, and no exponent."
)

OWN_FIELDS = frozenset({"amount", "currency", "payer", "payee"})


class Transactions:
    """Answers for transactions and their users. Every answer follows its commit; refusals are `ProblemError`s."""

    def __init__(self, store: Store, *, now: Callable[[], datetime], draw_id: Callable[[str], str]) -> None:
        self._store = store
        self._now = now
        self._draw_id = draw_id

    def create(self, call: Call) -> JsonObject:
        """Hold the money of a new transaction, and return its record; 400 for a flawed body."""
        requested = read_create_request(call.json_object())
        with self._store.writing() as connection:
            _require_users(connection, requested)
            transaction = self._add(connection, requested)
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
            _require(connection, call.resource_id)
        raise ProblemError(
            ProblemKind.UPDATE_NOT_SHOWN,
            f"Transaction {call.resource_id} was not changed: the published interface shows no update.",
        )

    def release(self, call: Call) -> JsonObject:
        """Give the held money to the payee, and return the record.

        404 if there is no such transaction; 409 from any state but held, so only one of several
        callers gets 200. The interface shows no body for this call: a JSON object has no effect.
        """
        call.ignore_body()
        with self._store.writing() as connection:
            at = timestamp(self._now())
            transaction = _move(connection, call.resource_id, move=Move.RELEASE, at=at)
            ledger.post(connection, transaction, move=Move.RELEASE, at=at)
        return transaction.document()

    def get_user(self, call: Call) -> JsonObject:
        """Return one user; 404 if there is none. The sandbox's own choice: any valid key may read it (section 5)."""
        with self._store.reading() as connection:
            user = find_user(connection, call.resource_id)
        if user is None:
            raise no_record("user", call.resource_id)
        return user.document()

    def _add(self, connection: sqlite3.Connection, requested: "CreateRequest") -> Transaction:
        at = timestamp(self._now())
        while True:
            transaction = Transaction(
                id=self._draw_id("tx"), status=FIRST_STATE, created_at=at, updated_at=at, **requested._asdict()
            )
            if add_transaction(connection, transaction):
                return transaction


class CreateRequest(NamedTuple):
    """The checked body of a create; `amount` is the number token of the request."""

    amount: str
    currency: str
    payer: str
    payee: str
    extra: JsonObject


def read_create_request(body: JsonObject) -> CreateRequest:
    """Check the fields of a create; 400 with all flaws at once. It does not look up the users."""
    flaws = reserved_flaws(body, RESERVED_FIELDS)
    requested = CreateRequest(
        amount=_amount(body, flaws),
        currency=_currency(body, flaws),
        payer=_user_id(body, flaws, name="payer", default=DEFAULT_PAYER),
        payee=_user_id(body, flaws, name="payee", default=DEFAULT_PAYEE),
        extra={name: value for name, value in body.items() if name not in OWN_FIELDS},
    )
    if flaws:
        raise flawed(*flaws)
    return requested


def _amount(body: JsonObject, flaws: list[Flaw]) -> str:
    value = body.get("amount")
    if isinstance(value, NumberToken) and AMOUNT.fullmatch(value.text):
        return value.text
    flaws.append(Flaw("#/amount", AMOUNT_RULE))
    return ""


def _currency(body: JsonObject, flaws: list[Flaw]) -> str:
    value = body.get("currency")
    if isinstance(value, str) and CURRENCY.fullmatch(value):
        return value
    flaws.append(Flaw("#/currency", "currency must be three capital letters."))
    return ""


def _user_id(body: JsonObject, flaws: list[Flaw], *, name: str, default: str) -> str:
    value = body.get(name, default)
    if isinstance(value, str):
        return value
    flaws.append(Flaw(f"#/{name}", f"{name} must be the id of a user."))
    return ""


def _require(connection: sqlite3.Connection, transaction_id: str) -> Transaction:
    transaction = find_transaction(connection, transaction_id)
    if transaction is None:
        raise no_record("transaction", transaction_id)
    return transaction


def _require_users(connection: sqlite3.Connection, requested: CreateRequest) -> None:
    users = {"payer": requested.payer, "payee": requested.payee}
    flaws = [
        Flaw(f"#/{name}", f"{name} names no user: {user_id!r}.")
        for name, user_id in users.items()
        if find_user(connection, user_id) is None
    ]
    if flaws:
        raise flawed(*flaws)


def _move(connection: sqlite3.Connection, transaction_id: str, *, move: Move, at: str) -> Transaction:
    for before, after in transitions(move):
        moved = move_transaction(connection, transaction_id, before=before, after=after, at=at)
        if moved is not None:
            return moved
    state = _require(connection, transaction_id).status
    allowed = " or ".join(before for before, _ in transitions(move))
    raise ProblemError(
        ProblemKind.MOVE_REFUSED, f"Transaction {transaction_id} is {state}; {move} is possible only from {allowed}."
    )
