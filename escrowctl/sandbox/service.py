"""The sandbox of a folder: open it for commands or for a server, empty it, describe it in numbers."""

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from escrowctl.contract.operations import (
    CREATE_TRANSACTION,
    CREATE_WEBHOOK,
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    UPDATE_TRANSACTION,
)
from escrowctl.errors import EscrowctlError
from escrowctl.sandbox.bodies import JsonObject
from escrowctl.sandbox.clock import Clock
from escrowctl.sandbox.endpoints import EndpointRoutes
from escrowctl.sandbox.faults import Rehearsed
from escrowctl.sandbox.http import OPENAPI_PATH, Call, Handler, build_app
from escrowctl.sandbox.ledger import check_ledger, write_amount
from escrowctl.sandbox.moves import fire_due
from escrowctl.sandbox.operator_calls import OperatorCalls
from escrowctl.sandbox.ownership import Claim, claim_store
from escrowctl.sandbox.records import Move, UserId
from escrowctl.sandbox.rehearsal import Rehearsal
from escrowctl.sandbox.seed import plant
from escrowctl.sandbox.sender import Sender
from escrowctl.sandbox.store import FILE_NAME, Store, has_write_ahead_log, open_store
from escrowctl.sandbox.transactions import Transactions

_Key = TypeVar("_Key")

_COMMAND_SECONDS = 1.0
"""At the end of a command: the time to wait for the turn, to start attempts, and for one attempt."""

_BY_STATE = "SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state"
_BY_STATUS = "SELECT status, count(*) FROM transactions GROUP BY status ORDER BY status"


class Sandbox:
    """An escrow service on one store: `app` is the WSGI callable, safe for several threads.

    `identity` (`sbx_...`) and `key` (`sk_sandbox_...`) belong to the store and never change. `claim`
    is the lock on its folder, None if the caller needs none.
    """

    def __init__(self, store: Store, *, now: Callable[[], datetime], claim: Claim | None = None) -> None:
        self.clock = clock = Clock(now)
        self.rehearsal = Rehearsal(store)
        transactions = Transactions(store, clock=clock)
        webhooks = EndpointRoutes(store, clock=clock)
        handlers = {
            CREATE_TRANSACTION: transactions.create,
            GET_TRANSACTION: transactions.get,
            RELEASE_TRANSACTION: lambda call: transactions.move(call, Move.RELEASE),
            LIST_TRANSACTIONS: transactions.list_newest,
            UPDATE_TRANSACTION: transactions.update,
            GET_USER: transactions.get_user,
            CREATE_WEBHOOK: webhooks.create,
            LIST_WEBHOOKS: webhooks.list_newest,
        }
        self.store = store
        self.claim = claim
        self.identity = store.identity
        self.key = store.key
        self._sender = Sender(store, clock)
        calls: dict[str, Mapping[str, Handler]] = {
            "/sandbox/status": {"GET": lambda _call: self.describe()},
            **OperatorCalls(store, clock, self._sender, self.rehearsal, arrive=self._arrive).handlers,
        }
        more = {path: self._after_what_is_due(by_method) for path, by_method in calls.items()}
        more[OPENAPI_PATH] = {"GET": _openapi_document}
        app = build_app(self._after_what_is_due(handlers), more, key=store.key, log=_quiet_log())
        self.app = Rehearsed(app, self.rehearsal)

    def describe(self) -> JsonObject:
        """Return `{"identity", "settings", "transactions": {status: count}, "users", "webhooks",
        "deliveries": {state: count}, "ledger": [...]}`.

        A line of the ledger is `{"currency", "held", "balanced"}`: `held` in the currency's main unit,
        `balanced` whether its entries sum to zero and agree with the records.
        """
        settings = self.rehearsal.current().texts()
        with self.store.reading() as connection:
            return {"identity": self.identity, "settings": settings, **_statistics(connection)}

    def _after_what_is_due(self, handlers: Mapping[_Key, Handler]) -> dict[_Key, Handler]:
        """Return handlers that first carry out the due moves, so that no call sees them outstanding."""

        def answer(handler: Handler, call: Call) -> JsonObject:
            fire_due(self.store, self.clock)
            return handler(call)

        return {key: partial(answer, handler) for key, handler in handlers.items()}

    def deliver(self) -> None:
        """Deliver due events for about a second; the others stay in the store.

        A process with the store to itself uses `delivering` instead. Raises the unexpected error of an attempt.
        """
        with contextlib.suppress(sqlite3.Error, EscrowctlError):
            if not self._sender.has_work():
                return
            with self._turn() as is_ours:
                if is_ours:
                    self._sender.work(seconds=_COMMAND_SECONDS, attempt_seconds=_COMMAND_SECONDS)
        if self._sender.defects:
            raise self._sender.defects.popleft()

    def _turn(self) -> AbstractContextManager[bool]:
        """Wait for the turn to deliver, and yield whether it came. Without a claim the turn is free."""
        return (
            contextlib.nullcontext(enter_result=True) if self.claim is None else self.claim.delivering(_COMMAND_SECONDS)
        )

    def _arrive(self) -> None:
        try:
            with self._turn() as is_ours:
                # Events that another process is delivering are not sent a second time.
                if is_ours:
                    self._sender.work()
        finally:
            # After Ctrl-C the next call must not continue the advance.
            self._sender.target = None

    def delivering(self) -> AbstractContextManager[None]:
        """Deliver events in the background for the length of the block."""
        return self._sender.working()

    def check_delivery(self, report: Callable[[Exception], None]) -> None:
        """Report unexpected errors of attempts; raise the error that ended the delivery in the background."""
        while self._sender.defects:
            report(self._sender.defects.popleft())
        self._sender.require_working()

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        self.store.close()
        if self.claim is not None:
            self.claim.release()


def open_sandbox(folder: Path, *, now: Callable[[], datetime]) -> Sandbox:
    """Open the sandbox in a folder; folder (0700) and store (0600) are created if missing.

    `now` returns an aware datetime. Several processes may open the same folder at once; if several
    find it missing, one creates it. Raises `ErrorCode.BUSY` while a server has the store, and
    `ErrorCode.STATE_UNUSABLE` if the folder or the store cannot be used.
    """
    claim = claim_store(folder)
    if has_write_ahead_log(folder):
        # A server was killed. Its commits are moved into the store itself: commands cannot share the log.
        claim.release()
        open_sandbox_alone(folder, now=now).close()
        claim = claim_store(folder)
    return _open(folder, claim, now=now)


def open_sandbox_alone(folder: Path, *, now: Callable[[], datetime]) -> Sandbox:
    """Open the sandbox for a server, which has it alone until `close`. Raises `ErrorCode.BUSY` or `STATE_UNUSABLE`."""
    return _open(folder, claim_store(folder, alone=True), now=now, alone=True)


def empty_sandbox(folder: Path, *, now: Callable[[], datetime], seed: int | None = None) -> None:
    """Replace the store by a new one, with another identity and key. A `seed` determines ids and chances.

    Raises `ErrorCode.BUSY` while another process has it.
    """
    claim = claim_store(folder, alone=True)
    try:
        for ending in ("", "-journal", "-wal", "-shm"):
            (folder / f"{FILE_NAME}{ending}").unlink(missing_ok=True)
    except BaseException:
        claim.release()
        raise
    with (
        contextlib.closing(_open(folder, claim, now=now, alone=True)) as sandbox,
        sandbox.store.writing() as connection,
    ):
        if seed is not None:
            plant(connection, seed)


def _open(folder: Path, claim: Claim, *, now: Callable[[], datetime], alone: bool = False) -> Sandbox:
    try:
        return Sandbox(open_store(folder, now=now, alone=alone), now=now, claim=claim)
    except BaseException:
        claim.release()
        raise


def _statistics(connection: sqlite3.Connection) -> JsonObject:
    (webhooks,) = connection.execute("SELECT count(*) FROM webhook_endpoints").fetchone()
    return {
        "transactions": dict(connection.execute(_BY_STATUS).fetchall()),
        "users": len(UserId),
        "webhooks": webhooks,
        "deliveries": dict(connection.execute(_BY_STATE).fetchall()),
        "ledger": [
            {"currency": balance.currency, "held": write_amount(balance.held).text, "balanced": balance.consistent}
            for balance in check_ledger(connection)
        ],
    }


def _openapi_document(_call: Call) -> JsonObject:
    from escrowctl.sandbox.openapi import openapi_document  # noqa: PLC0415 - for who asks for it

    return openapi_document()


def _quiet_log() -> logging.Logger:
    # Without its own handler the log would reach stderr, which is for the command line only.
    log = logging.getLogger(__name__)
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return log
