"""escrowctl broken on purpose, patched in by the harness's own tests only."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from escrowctl.client.exchange import Fault
from escrowctl.client.orders import Order
from escrowctl.client.transport import Wire
from escrowctl.client.writing import Writer
from escrowctl.journal.entries import Entry, State, Verdict
from escrowctl.journal.journal import Begun, Journal
from escrowctl.surroundings import timestamp


def leave_mark() -> None:
    """Prove that what was broken is what ran."""
    Path(os.environ["BROKEN_MARK"]).touch()


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


def resends_when_broken_off() -> None:
    """Try once more when the connection breaks, as a naive client does."""
    exchange = Wire.exchange

    def twice(self: Any, request: Any, **keywords: Any) -> Any:
        first = exchange(self, request, **keywords)
        if first.fault is not Fault.BROKEN_OFF:
            return first
        leave_mark()
        return exchange(self, request, **keywords)

    Wire.exchange = twice  # type: ignore[method-assign] # as above


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

    def hasty(self: Any, entry: Entry, order: Order, **keywords: Any) -> Any:
        leave_mark()
        sys.stdout.write("id\ttx_soon\n")
        sys.stdout.flush()
        return send(self, entry, order, **keywords)

    Writer._send = hasty  # type: ignore[method-assign] # as above


# Not broken enough: with these the harness must not be content.


def never_starts() -> None:
    """End before anything is done."""
    sys.exit(0)


def is_never_reached() -> None:
    """Break what no command calls, and let every run violate something else all the same."""
    speaks_too_soon()
    Writer.never_called = leave_mark  # type: ignore[attr-defined] # as above
    globals()["leave_mark"] = lambda: None
