"""escrowctl broken on purpose: the first argument names how, the rest is the command line.

For each scenario that ships, one client that it must notice.
"""

import os
import sys
from pathlib import Path
from typing import Any

from escrowctl.client import connection
from escrowctl.config.service import Service
from escrowctl.journal.sqlite.transaction import SqliteTransaction
from escrowctl.main import main
from escrowctl.writes.kinds import WriteKind


def sends_again_after_silence() -> None:
    """Send a write once more where no reply came."""
    exchange = connection.Connection.exchange

    def again(self: Any, request: Any, **keywords: Any) -> Any:
        found = exchange(self, request, **keywords)
        return exchange(self, request, **keywords) if found.answer is None else found

    connection.Connection.exchange = again  # type: ignore[method-assign] # broken on purpose


def forgets_what_is_unknown() -> None:
    """Find no earlier write in the journal."""

    def find_nothing(_self: Any, _keys: Any) -> list[Any]:
        return []

    SqliteTransaction.find_by_keys = find_nothing  # type: ignore[method-assign,assignment] # as above


def gives_up_when_throttled() -> None:
    """Take a 429 for a refusal for good."""
    Service.repeats_throttled = False  # type: ignore[method-assign,assignment] # as above


def goes_on_after_a_failed_commit() -> None:
    """Send although the intent could not be written."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from faults import variants

    os.environ.setdefault("BROKEN_MARK", os.devnull)
    variants.goes_on_after_a_failed_commit()


def believes_no_reading() -> None:
    """Take no status as a proof that an escrow is released."""
    WriteKind.is_proven_by = lambda *_: False  # type: ignore[method-assign] # as above


CLIENTS = {
    "time-out": sends_again_after_silence,
    "double-release": forgets_what_is_unknown,
    "throttled-batch": gives_up_when_throttled,
    "disk-full": goes_on_after_a_failed_commit,
    "lost-webhook": believes_no_reading,
}
"""Scenario -> the client that it notices."""

if __name__ == "__main__":
    CLIENTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
