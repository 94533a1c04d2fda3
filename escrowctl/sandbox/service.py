"""The sandbox of a folder: open it for commands or for a server, and empty it."""

import contextlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from io import FileIO
from pathlib import Path

from escrowctl.sandbox.bodies import JsonObject
from escrowctl.sandbox.faults import RehearsalApp
from escrowctl.sandbox.http import OPENAPI_PATH, Call, Router
from escrowctl.sandbox.interface import InterfaceCalls
from escrowctl.sandbox.moves import fire_due_timers
from escrowctl.sandbox.operator_calls import OperatorCalls
from escrowctl.sandbox.ownership import claim_store
from escrowctl.sandbox.sender import Sender
from escrowctl.sandbox.settings import Rehearsal
from escrowctl.sandbox.store import FILE_NAME, Store, open_store


class Sandbox:
    """An escrow service on one store: `app` is the WSGI callable, safe for several threads.

    `identity` (`sbx_...`) and `key` (`sk_sandbox_...`) belong to the store and never change. `claim` is the file that
    holds the lock on the store.
    """

    def __init__(self, store: Store, claim: FileIO) -> None:
        self.store = store
        self.claim = claim
        self.identity = store.identity
        self.key = store.key
        self.rehearsal = Rehearsal(store)
        self.sender = Sender(store)
        operator_calls = OperatorCalls(store, self.sender, self.rehearsal)
        router = Router(
            InterfaceCalls(store).handlers,
            {**operator_calls.handlers, OPENAPI_PATH: {"GET": _get_openapi_document}},
            key=store.key,
            before_call=partial(fire_due_timers, store),
        )
        self.app = RehearsalApp(router, self.rehearsal)

    def close(self) -> None:
        """Close the store and release its lock. A second call does nothing."""
        self.store.close()
        self.claim.close()


def open_sandbox(folder: Path, *, now: Callable[[], datetime], alone: bool = False) -> Sandbox:
    """Open the sandbox in a folder. Create the folder (0700) and the store (0600) if they are missing.

    `now` returns an aware datetime. Several processes may open it at once, unless one opens it `alone`; only one
    creates the store. Raises `ErrorCode.BUSY` while a server has the store, or with `alone` while any process has it;
    `ErrorCode.STATE_UNUSABLE` if folder or store cannot be used.
    """
    claim = claim_store(folder, exclusive=alone)
    if not alone and (folder / f"{FILE_NAME}-wal").exists():
        # A killed server left its write-ahead log. Commands cannot share it: open once exclusively to remove it.
        claim.close()
        open_sandbox(folder, now=now, alone=True).close()
        claim = claim_store(folder)
    try:
        return Sandbox(open_store(folder, now=now, alone=alone), claim)
    except BaseException:
        claim.close()
        raise


def reset_sandbox(folder: Path, *, now: Callable[[], datetime], seed: int | None = None) -> None:
    """Delete the store and create one with a new identity and key. A `seed` determines ids and random faults.

    Raises `ErrorCode.BUSY` while another process has the store open, `ErrorCode.STATE_UNUSABLE` if it fails.
    """
    with claim_store(folder, exclusive=True):
        for ending in ("", "-journal", "-wal", "-shm"):
            (folder / f"{FILE_NAME}{ending}").unlink(missing_ok=True)
        with contextlib.closing(open_store(folder, now=now, alone=True)) as store, store.writing() as connection:
            connection.execute("UPDATE sandbox SET seed = ?", (seed,))


def _get_openapi_document(_call: Call) -> JsonObject:
    from escrowctl.sandbox.openapi import build_openapi_document  # noqa: PLC0415 - only this call needs it

    return build_openapi_document()
