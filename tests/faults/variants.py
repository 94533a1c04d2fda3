"""escrowctl broken on purpose for a complete process; only tests of harnesses use it.

Variants that break the reading of a reply are in `faults.reply_variants`; `apply` takes the name of either.
"""

import os
import sqlite3
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from escrowctl.client.http import Answer
from escrowctl.journal.entries import Entry, State, Verdict
from escrowctl.journal.journal import Begun, Journal
from escrowctl.journal.locks import LockFile
from escrowctl.journal.spending import NO_CAPS
from escrowctl.journal.store import Store
from escrowctl.surroundings import timestamp
from escrowctl.writes.requests import WriteRequest
from escrowctl.writes.writer import Writer


def leave_mark() -> None:
    """Prove that what was broken is what ran."""
    Path(os.environ["BROKEN_MARK"]).touch()


def apply(name: str) -> None:
    """Break this process as the function of that name does, here or in `faults.reply_variants`."""
    if name in globals():
        globals()[name]()
        return
    import pytest

    from faults import reply_variants

    getattr(reply_variants, name)(pytest.MonkeyPatch(), leave_mark)


def intent_after_sending() -> None:
    """Record the intent only when the outcome is known."""
    begin, settle = Journal.begin, Journal.settle

    def late_begin(self: Any, intent: Any, *, request_id: str, **_caps: Any) -> Begun:
        leave_mark()
        entry = Entry(0, intent, Verdict(State.IN_FLIGHT, ""), 1, request_id, timestamp(self._now()))
        return Begun(entry, replayed=False)

    def late_settle(self: Any, entry: Entry, verdict: Verdict) -> Entry:
        return settle(self, begin(self, entry.intent, request_id=entry.request_id).entry, verdict)

    Journal.begin = late_begin  # type: ignore[method-assign] # broken on purpose
    Journal.settle = late_settle  # type: ignore[method-assign] # as above


def forgets_what_was_in_flight() -> None:
    """Read an entry whose process is gone as not sent."""
    alive_or_unknown = Journal._alive_or_unknown

    def forgetful(self: Any, entry: Entry) -> Entry:
        found = alive_or_unknown(self, entry)
        if not (entry.state is State.IN_FLIGHT and found.state is State.UNKNOWN):
            return found
        leave_mark()
        return replace(found, verdict=Verdict(State.NOT_SENT, ""))

    Journal._alive_or_unknown = forgetful  # type: ignore[method-assign] # as above


def speaks_too_soon() -> None:
    """Print a result before there is one."""
    send = Writer._send

    def hasty(self: Any, entry: Entry, request: WriteRequest, **keywords: Any) -> Any:
        leave_mark()
        sys.stdout.write("id\ttx_soon\n")
        sys.stdout.flush()
        return send(self, entry, request, **keywords)

    Writer._send = hasty  # type: ignore[method-assign] # as above


def shows_the_key() -> None:
    """Leave the key in what the service echoes."""

    def as_it_came(self: Answer, key: str) -> Answer:
        leave_mark()
        return self

    Answer.without = as_it_came  # type: ignore[method-assign] # as above


def never_syncs() -> None:
    """Let the operating system sync the journal when it wants."""
    prepare = Store._prepare

    def unsynced(self: Any, made_at: str) -> None:
        leave_mark()
        prepare(self, made_at)
        self._db.execute("PRAGMA synchronous = OFF")

    Store._prepare = unsynced  # type: ignore[method-assign] # as above


def goes_on_after_a_failed_commit() -> None:
    """Continue after a failed commit."""

    def careless(self: Any) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error:
            leave_mark()

    Store._commit = careless  # type: ignore[method-assign] # as above


def takes_no_locks() -> None:
    """Report every lock as taken by this process."""

    def granted(self: Any, place: int) -> bool:
        leave_mark()
        return True

    LockFile.hold = granted  # type: ignore[method-assign] # as above


def checks_caps_outside_the_commit() -> None:
    """Check the cap before the transaction that reserves the amount."""
    begin = Journal.begin

    def late(self: Any, intent: Any, *, request_id: str, caps: Any = NO_CAPS, repeats_throttled: bool = False) -> Begun:
        leave_mark()
        self._check_caps(intent, caps, but=None)
        time.sleep(0.3)  # what a slow disk does
        return begin(self, intent, request_id=request_id, repeats_throttled=repeats_throttled)

    Journal.begin = late  # type: ignore[method-assign] # as above


def believes_the_file() -> None:
    """Check neither chain nor head nor seals, and trust the duplicate index."""

    def unchecked(self: Any) -> None:
        leave_mark()

    def unsealed(self: Any, row: Any) -> tuple[int, Any]:
        columns = dict(row)
        columns.pop("seal")
        return columns.pop("number"), columns

    def indexed(self: Any, tokens: frozenset[int]) -> list[Entry]:
        numbers = {number for token in tokens for number in self._guarding("guards", token)}
        return [self._entry(*one) for number in numbers for one in self._select("number = ?", (number,), limit=1)]

    Store.check_tail = unchecked  # type: ignore[method-assign] # as above
    Store._unsealed = unsealed  # type: ignore[method-assign] # as above
    Store._standing = indexed  # type: ignore[method-assign] # as above


# Not broken enough: with these the harness must not be content.


def never_starts() -> None:
    """End before anything is done."""
    sys.exit(0)


def is_never_reached() -> None:
    """Break what no command calls, and let every run violate something else all the same."""
    speaks_too_soon()
    Writer.never_called = leave_mark  # type: ignore[attr-defined] # as above
    globals()["leave_mark"] = lambda: None
