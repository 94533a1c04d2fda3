"""The private names of escrowctl that tests touch: here and in faults/variants.py, nowhere else.

A name in capitals is a path for `monkeypatch.setattr`, and `read` says what it is now.
"""

import pkgutil
from typing import Any

BEGIN = "escrowctl.journal.postgres.storage._BEGIN"
COLLECT = "escrowctl.client.connection._collect"
FIND_ITEMS = "escrowctl.contract.record.find_items"
FIND_RECORD = "escrowctl.journal.postgres.storage.PostgresStorage._find_record"
FORMULA_STARTS = "escrowctl.output.plain._FORMULA_STARTS"
IDLE_SECONDS = "escrowctl.journal.postgres.storage._IDLE_SECONDS"
JUDGE_ANSWER = "escrowctl.writes.outcome._judge_answer"
JUDGE_SUCCESS = "escrowctl.writes.outcome._judge_success"
MAX_LINES = "escrowctl.commands.read._MAX_LINES"
MOUNTINFO = "escrowctl.journal.sqlite.mounts._MOUNTINFO"
REFUSED_OTHERWISE = "escrowctl.writes.outcome._REFUSED_STATUSES"
RUN_SERVER = "escrowctl.loopback.LoopbackServer.run"
SECONDS_LEFT = "escrowctl.client.transport._Attempt.left"
GUARDING = "escrowctl.journal.tables.transaction.TableTransaction._read_index"


def read(path: str) -> Any:
    """Return the current value of a path."""
    return pkgutil.resolve_name(path)


def replace_sockets(transport: Any, connect: Any) -> None:
    """Let a transport open its connections in another way."""
    transport._connector._open = connect


def store_connection(store: Any) -> Any:
    """Return the SQLite connection of a sandbox's store."""
    return store._connection


def shorten_leases(seconds: int) -> None:
    """Let the leases of this process last so long; the times within them change in proportion."""
    from escrowctl.journal.postgres import leases

    before = leases.LEASE_SECONDS
    for name in ("_BEGIN", "_RENEW"):
        setattr(leases, name, getattr(leases, name).replace(f"{before} seconds", f"{seconds} seconds"))
    for name in ("LEASE_SECONDS", "_MARGIN_SECONDS", "_RENEW_SECONDS"):
        setattr(leases, name, getattr(leases, name) * seconds / before)
