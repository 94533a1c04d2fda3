"""escrowctl broken on purpose for a complete process; only tests of harnesses use it.

Variants that break the reading of a reply are in `faults.reply_variants`; `apply` takes the name of either.
"""

import os
import sqlite3
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from escrowctl.client import transport
from escrowctl.client.http import Answer
from escrowctl.client.transport import OriginTransport
from escrowctl.errors import Outcome
from escrowctl.journal import commit, fields, journal
from escrowctl.journal.chain import Kind
from escrowctl.journal.commit import Commit
from escrowctl.journal.fold import StoredEntry, add_record, duplicate_keys
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import NO_CAPS, UNSETTLED, AttemptRequest, Entry, Settlement, State
from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.sqlite.locks import LockFile
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.tables import check, reading
from escrowctl.journal.tables.transaction import TableTransaction
from escrowctl.runtime import timestamp
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

    def late_begin(self: Any, attempt: AttemptRequest) -> Entry:
        leave_mark()
        return Entry(0, attempt.intent, UNSETTLED, 1, attempt.request_id, timestamp(datetime.now(UTC)))

    def late_settle(self: Any, entry: Entry, settlement: Settlement) -> Entry:
        return settle(self, begin(self, AttemptRequest(entry.intent, entry.request_id)), settlement)

    Journal.begin = late_begin  # type: ignore[method-assign] # broken on purpose
    Journal.settle = late_settle  # type: ignore[method-assign] # as above


def forgets_what_was_in_flight() -> None:
    """Read an entry whose process is gone as not sent."""
    read_now = commit.refresh_entry

    def forgetful(entry: Entry, *places: Any) -> Entry:
        found = read_now(entry, *places)
        if not (entry.state is State.IN_FLIGHT and found.state is State.UNKNOWN):
            return found
        leave_mark()
        return found._replace(settlement=Settlement(Outcome.NOT_SENT, ""))

    commit.refresh_entry = journal.refresh_entry = forgetful  # type: ignore[assignment,attr-defined] # broken on purpose


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

    Answer.without_key = as_it_came  # type: ignore[method-assign] # as above


def never_syncs() -> None:
    """Let the operating system sync the journal when it wants."""
    prepare = SqliteStorage._prepare

    def unsynced(self: Any) -> None:
        leave_mark()
        prepare(self)
        self._db.execute("PRAGMA synchronous = OFF")

    SqliteStorage._prepare = unsynced  # type: ignore[method-assign] # as above


def goes_on_after_a_failed_commit() -> None:
    """Continue after a failed commit."""

    def careless(self: Any, transaction: Any = None) -> None:
        try:
            if transaction is not None:
                transaction.flush()
            self._db.execute("COMMIT")
        except sqlite3.Error:
            leave_mark()

    SqliteStorage._commit = careless  # type: ignore[method-assign] # as above


def takes_no_locks() -> None:
    """Report every lock as taken by this process."""

    def granted(self: Any, *names: Any) -> bool:
        leave_mark()
        return True

    LockFile.hold = granted  # type: ignore[method-assign] # as above


def checks_caps_outside_the_commit() -> None:
    """Check the cap before the transaction that reserves the amount."""
    write_all = Journal.write_all

    def late(self: Any, attempts: Any, settlements: Any) -> Any:
        leave_mark()
        for begin in attempts:
            self.check_caps([begin.intent], begin.caps)
        time.sleep(0.3)  # what a slow disk does
        return write_all(self, [begin._replace(caps=NO_CAPS) for begin in attempts], settlements)

    Journal.write_all = late  # type: ignore[method-assign] # as above


def believes_the_file() -> None:
    """Check neither chain nor head nor records, and trust the rows and the index."""

    def unchecked(self: Any) -> None:
        leave_mark()

    def built(row: Any, records: Any) -> Any:
        found: StoredEntry | None = None
        for record, _previous in records:
            found = add_record(found, record, latest="")
        assert found is not None
        queried = dict(zip(fields.QUERIED_FIELDS, row[:-3], strict=True))
        entry = fields.entry_of(found.entry.number, found.facts | queried)
        return StoredEntry(entry, found.facts | queried, duplicate_keys(entry), *row[-3::2])

    def indexed(self: Any, keys: Any) -> list[Entry]:
        found = self._read_stored_entries({number for _, number in self._read_index(keys)})
        return [folded.entry for folded in found.values()]

    TableTransaction.check = unchecked  # type: ignore[method-assign] # as above
    TableTransaction.find_by_keys = indexed  # type: ignore[method-assign] # as above
    reading.rebuild_entry = built  # type: ignore[attr-defined] # as above


def verifies_the_chain_alone() -> None:
    """Compare nothing that is derived from the records."""

    def uncompared(_database: Any) -> None:
        leave_mark()

    check.compare_derived_tables = uncompared  # type: ignore[assignment] # as above


def writes_share_a_connection() -> None:
    """Send each write on the connection that carried the one before."""
    handle = OriginTransport.handle_request

    def kept_alive(self: Any, request: Any) -> Any:
        leave_mark()
        request.headers.pop("Connection", None)
        return handle(self, request)

    transport.READING_METHODS = frozenset({"GET", "POST", "PUT"})  # type: ignore[attr-defined] # as above
    OriginTransport.handle_request = kept_alive  # type: ignore[method-assign] # as above


def sends_after_its_lease() -> None:
    """Let a process send although its lease may have lapsed."""

    def allowed(self: Any) -> bool:
        leave_mark()
        return True

    Leases.may_send = allowed  # type: ignore[method-assign] # as above


def forgets_the_time_out() -> None:
    """Let others decide as soon as the lease of a sender has lapsed."""

    def ended(self: Any, name: str) -> float:
        leave_mark()
        return 0

    Leases.seconds_to_wait = ended  # type: ignore[method-assign] # as above


def records_over_others() -> None:
    """Record an outcome although another process has changed the entry."""

    def recorded(self: Any, entry: Entry, settlement: Settlement) -> Entry:
        leave_mark()
        stored: Entry = self.transaction.append(entry.number, Kind.SETTLEMENT, fields.facts_of_settlement(settlement))
        return stored

    Commit._settle = recorded  # type: ignore[method-assign] # as above


# Not broken enough: with these the harness must not be content.


def never_starts() -> None:
    """End before anything is done."""
    sys.exit(0)


def is_never_reached() -> None:
    """Break what no command calls, and let every run violate something else all the same."""
    speaks_too_soon()
    Writer.never_called = leave_mark  # type: ignore[attr-defined] # as above
    globals()["leave_mark"] = lambda: None
