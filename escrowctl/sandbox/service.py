"""The front door: one folder, one sandbox."""

import logging
from collections.abc import Callable
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
from escrowctl.sandbox.ids import draw_id
from escrowctl.sandbox.ledger import Balance, check_ledger
from escrowctl.sandbox.store import Store, open_store
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

    def __init__(self, store: Store, *, now: Callable[[], datetime], draw_id: Callable[[str], str] = draw_id) -> None:
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
        self.identity = store.identity
        self.key = store.key
        self.app = build_app(handlers, key=store.key, log=_quiet_log())

    def check_ledger(self) -> tuple[Balance, ...]:
        """Add up the ledger, per currency, at one moment; see `ledger.Balance`."""
        with self._store.reading() as connection:
            return check_ledger(connection)

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        self._store.close()


def open_sandbox(folder: Path, *, now: Callable[[], datetime]) -> Sandbox:
    """Open the sandbox in a folder; folder (0700) and store (0600) are made if missing.

    `now` returns an aware datetime. Several processes may open the same folder at once; of several
    that make it, one does. Raise EscrowctlError (STATE_UNUSABLE) as `store.open_store` says.
    """
    return Sandbox(open_store(folder, now=now), now=now)


def _quiet_log() -> logging.Logger:
    # Without a handler of its own the log would reach stderr, where the command line has its say.
    log = logging.getLogger(__name__)
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    return log
