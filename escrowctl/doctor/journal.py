"""Checks of the journal: its records, its writes with an unknown outcome, and the locks of its folder."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from escrowctl.doctor.finding import Finding, Verdict
from escrowctl.errors import command
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Selection, State
from escrowctl.journal.storage import JournalPlace, describe_missing, head_of
from escrowctl.journal.verification import verify
from escrowctl.runtime import Clock

if TYPE_CHECKING:
    from escrowctl.journal.postgres.place import PostgresPlace

_MAX_SHOWN_NAMES = 5
_MAX_CHAIN_SECONDS = 0.5
"""The time limit for checking the chain of records. The data derived from them takes nine times as long."""


def check_journal(journal: Journal, monotonic: Callable[[], float]) -> Iterator[Finding]:
    """Verify the journal, then count the writes with an unknown outcome. A failed verification ends the check.

    Verifying stops after about five seconds: the later records are not verified.
    Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE` if the journal is incomplete.
    """
    closing = journal.require_complete()
    storage, place = journal.storage, journal.place
    if place.exists:
        end = monotonic() + _MAX_CHAIN_SECONDS
        found = verify(storage, journal.witness, is_time_over=lambda: monotonic() > end)
        is_incomplete = found.problem is not None or found.is_partial
        hints = (command("journal verify", "to check all records", bare=True),) if is_incomplete else ()
        if found.problem is not None:
            yield Finding("journal", Verdict.FAILED, f"{place.location}: {found.problem}", hints)
            return
        extent = f"the first {found.head.sequence} are verified" if found.is_partial else "verified"
        described = f"{place.location}: id {storage.journal_id}, {head_of(storage).sequence} records, {extent}"
        if closing is not None:
            yield Finding("journal", Verdict.FAILED, f"{described}; it is closed: {closing}")
            return
        waits = "; it was made from an export, and has to be opened (journal open)" if journal.is_unopened() else ""
        yield Finding("journal", Verdict.WARNING if waits else Verdict.OK, described + waits, hints)
    else:
        yield Finding("journal", Verdict.FAILED if place.is_shared else Verdict.SKIPPED, describe_missing(place))
    names = [entry.name for entry in journal.select_all(Selection(states=(State.UNKNOWN,)))]
    if not names:
        yield Finding("unknown", Verdict.OK, "no write has an unknown outcome")
        return
    more = ", ..." if len(names) > _MAX_SHOWN_NAMES else ""
    count = f"writes with an unknown outcome: {len(names)} ({', '.join(names[:_MAX_SHOWN_NAMES])}{more})"
    yield Finding("unknown", Verdict.WARNING, count, (command("journal list --unknown", bare=True),))


def check_database(place: "PostgresPlace", now: Clock) -> Finding:
    """Check the database of a shared journal. Raises EscrowctlError `ErrorCode.JOURNAL_UNUSABLE`."""
    health = place.examine(now)
    verdict = Verdict.FAILED if not health.may_add else Verdict.WARNING if health.concerns else Verdict.OK
    return Finding("database", verdict, "; ".join((health.description, *health.concerns)))


def check_locks(place: JournalPlace) -> Finding:
    """Check that every process and machine with access to the journal sees its locks."""
    if (reason := place.warn_of_locks()) is not None:
        return Finding("locks", Verdict.WARNING, reason)
    return Finding("locks", Verdict.OK, f"{place.folder} is on a mount with shared locks")
