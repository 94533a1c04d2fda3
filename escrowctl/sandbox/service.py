"""The front door: one folder, one sandbox."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

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
from escrowctl.sandbox.app import App, build_app
from escrowctl.sandbox.body import JsonObject
from escrowctl.sandbox.ids import draw_id
from escrowctl.sandbox.inventory import describe
from escrowctl.sandbox.ledger import Balance, check_ledger
from escrowctl.sandbox.ownership import Claim, busy, claim_alone, claim_shared
from escrowctl.sandbox.store import FILE_NAME, Store, has_write_ahead_log, open_store
from escrowctl.sandbox.transactions import Transactions
from escrowctl.sandbox.users import Users
from escrowctl.sandbox.webhooks import Webhooks


class Sandbox:
    """An escrow service on one store: `app` is the WSGI callable, safe for several threads.

    `identity` (`sbx_...`) and `key` (`sk_sandbox_...`) belong to the store and stay as long as it does.
    """

    app: App
    identity: str
    key: str

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], datetime],
        claim: Claim | None = None,
        draw_id: Callable[[str], str] = draw_id,
    ) -> None:
        transactions = Transactions(store, now=now, draw_id=draw_id)
        users = Users(store)
        webhooks = Webhooks(store, now=now, draw_id=draw_id)
        handlers = {
            CREATE_TRANSACTION: transactions.create,
            GET_TRANSACTION: transactions.get,
            RELEASE_TRANSACTION: transactions.release,
            LIST_TRANSACTIONS: transactions.list_newest,
            UPDATE_TRANSACTION: transactions.update,
            GET_USER: users.get,
            CREATE_WEBHOOK: webhooks.create,
            LIST_WEBHOOKS: webhooks.list_newest,
        }
        self._store = store
        self._claim = claim
        self.identity = store.identity
        self.key = store.key
        self.app = build_app(handlers, describe=self.describe, key=store.key, log=_quiet_log())

    def check_ledger(self) -> tuple[Balance, ...]:
        """Add up the ledger, per currency, at one moment; see `ledger.Balance`."""
        with self._store.reading() as connection:
            return check_ledger(connection)

    def describe(self) -> JsonObject:
        """Return what stands in the store: its identity, how many records of each kind, the ledger by currency."""
        with self._store.reading() as connection:
            return {"identity": self.identity, **describe(connection)}

    def together(self) -> AbstractContextManager[None]:
        """Answer several requests inside, and one commit makes them all durable; see `commits.Commits`."""
        return self._store.together()

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        self._store.close()
        if self._claim is not None:
            self._claim.release()


def open_sandbox(folder: Path, *, now: Callable[[], datetime]) -> Sandbox:
    """Open the sandbox in a folder; folder (0700) and store (0600) are made if missing.

    `now` returns an aware datetime. Several processes may open the same folder at once; of several
    that make it, one does. Raise EscrowctlError: BUSY (7) while a server has the store,
    STATE_UNUSABLE (17) as `store.open_store` says.
    """
    claim = claim_shared(folder)
    if isinstance(claim, Claim) and has_write_ahead_log(folder):
        claim.release()
        _put_log_away(folder, now=now)
        claim = claim_shared(folder)
    if not isinstance(claim, Claim):
        raise busy(f"the sandbox is being served at {claim.base_url} (process {claim.pid})")
    return _open(folder, claim, now=now)


def open_sandbox_alone(folder: Path, *, now: Callable[[], datetime]) -> Sandbox:
    """Open the sandbox for a server: no other process has it until `close`; raises as `open_sandbox` does."""
    return _open(folder, claim_alone(folder), now=now, alone=True)


def empty_sandbox(folder: Path) -> None:
    """Remove the store; the next to open it makes another, with an identity and a key of its own.

    Raise EscrowctlError BUSY (7) while somebody has it.
    """
    claim = claim_alone(folder)
    try:
        for ending in ("", "-journal", "-wal", "-shm"):
            (folder / f"{FILE_NAME}{ending}").unlink(missing_ok=True)
    finally:
        claim.release()


def _open(folder: Path, claim: Claim, *, now: Callable[[], datetime], alone: bool = False) -> Sandbox:
    try:
        return Sandbox(open_store(folder, now=now, alone=alone), now=now, claim=claim)
    except BaseException:
        claim.release()
        raise


def _put_log_away(folder: Path, *, now: Callable[[], datetime]) -> None:
    """Bring what a killed server committed into the store itself."""
    open_sandbox_alone(folder, now=now).close()


def _quiet_log() -> logging.Logger:
    # Without a handler of its own the log would reach stderr, where the command line has its say.
    log = logging.getLogger(__name__)
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return log
