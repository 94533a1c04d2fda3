"""What a storage far away can lose: commits without an answer, locks that lapse, and the time of its clients.

Each test runs also on a variant that ignores the loss, and fails there.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cli.replies import CREATE, holding
from conftest import ServiceAndRun

from escrowctl.client.http import Evidence
from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Selection, State
from escrowctl.journal.opening import open_journal
from escrowctl.journal.postgres.storage import PostgresStorage
from escrowctl.journal.storage import Storage, unusable
from storage import memory
from storage.conftest import Opener
from storage.test_postgres import cut_at_commit
from storage.writes import DONE, LATER, NOW, UNKNOWN, Clock, create

CAPS = {"USD": Decimal(100)}


class _LosingDatabase:
    """A connection that loses its next commit, before or after it happened."""

    def __init__(self, database: sqlite3.Connection, moment: str) -> None:
        self._database = database
        self._moment: str | None = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        moment = self._moment if statement == "COMMIT" else None
        if moment is None:
            return self._database.execute(statement, *values)
        self._moment = None
        if moment == "after":
            self._database.execute(statement)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error


def lose_next_commit(journal: Journal, moment: str) -> None:
    """Lose the next commit of a journal: before or after it happened."""
    place, storage = journal.place, journal.storage
    if isinstance(place, memory.MemoryPlace):
        place.server.loses_commit = "before" if moment == "before" else "after"
    elif isinstance(storage, PostgresStorage):
        cut_at_commit(storage, moment)
        storage._find_record = lambda head: None  # type: ignore[method-assign] # noqa: ARG005, SLF001 - nobody can say
    else:
        storage._db = _LosingDatabase(storage._db, moment)  # type: ignore[attr-defined] # noqa: SLF001 - of SQLite's


def states(opener: Opener) -> list[State]:
    """Return the states of all entries as another process stores and sees them."""
    return [entry.state for entry in opener().storage.read_entries(range(1, 9))]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_intent_whose_commit_is_lost_was_not_sent(opener: Opener, moment: str) -> None:
    journal = opener()
    lose_next_commit(journal, moment)

    with pytest.raises(EscrowctlError) as lost:
        journal.begin(AttemptRequest(create(1), "r1"))

    assert lost.value.code is ErrorCode.JOURNAL_UNUSABLE
    assert states(opener) == ([] if moment == "before" else [State.NOT_SENT])
    assert opener().begin(AttemptRequest(create(1, key="again"), "r2")).state is State.IN_FLIGHT


def test_intent_is_taken_back_although_the_next_connection_is_lost_too(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opener()
    lose_next_commit(journal, "after")
    reopen, lost = journal.storage.reopen, ["the connection was lost"]

    def reopen_the_second_time() -> contextlib.AbstractContextManager[Storage]:
        if lost:
            raise unusable("the server", lost.pop())
        return reopen()

    monkeypatch.setattr(journal.storage, "reopen", reopen_the_second_time)
    with pytest.raises(EscrowctlError):
        journal.begin(AttemptRequest(create(1), "r1"))

    assert states(opener) == [State.NOT_SENT]


def test_earlier_attempt_stays_unknown_when_the_next_intent_is_lost(opener: Opener) -> None:
    journal = opener()
    entry = journal.settle(journal.begin(AttemptRequest(create(1), "r1")), UNKNOWN)
    lose_next_commit(journal, "after")

    with pytest.raises(EscrowctlError):
        journal.begin(AttemptRequest(entry.intent, "r2", again=entry))
    journal.close()

    (found,) = opener().select_all(Selection(9))
    assert (found.attempt, found.state) == (2, State.UNKNOWN)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_outcome_whose_commit_is_lost_is_looked_for(opener: Opener, moment: str) -> None:
    journal = opener()
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    lose_next_commit(journal, moment)

    with contextlib.nullcontext() if moment == "after" else pytest.raises(EscrowctlError):
        assert journal.settle(entry, DONE).state is State.DONE

    assert states(opener) == [State.DONE if moment == "after" else State.IN_FLIGHT]


def test_lost_outcome_is_looked_for_over_one_connection(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further one may wait for a server that does not answer."""
    journal = opener()
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    lose_next_commit(journal, "after")
    reopen = Mock(side_effect=journal.storage.reopen)
    monkeypatch.setattr(journal.storage, "reopen", reopen)

    journal.settle(entry, DONE)

    assert reopen.call_count == 1


def test_outcome_does_not_hide_that_an_older_copy_was_restored(tmp_path: Path, clock: Clock) -> None:
    place = memory.MemoryPlace(tmp_path)
    journal = open_journal(place, now=clock)
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    assert place.server.content is not None
    older = place.server.content.copied()
    journal.settle(journal.begin(AttemptRequest(create(2, reference="B-1"), "r2")), DONE)

    place.server.content = older
    journal.settle(entry, DONE)
    with pytest.raises(EscrowctlError) as refused:
        journal.begin(AttemptRequest(create(3, reference="B-1"), "r3"))
    memory.forget_all()

    assert refused.value.code is ErrorCode.JOURNAL_UNUSABLE


def test_storage_dates_records_and_its_day_decides_caps(tmp_path: Path, clock: Clock) -> None:
    place, client = memory.MemoryPlace(tmp_path), Clock()
    place.server.clock = clock
    client.set(LATER)
    journal = open_journal(place, now=client)
    try:
        entry = journal.begin(AttemptRequest(create(60), "r1", CAPS))
        assert (entry.sent_at, client() > clock()) == (NOW, True)
        with pytest.raises(EscrowctlError):
            journal.begin(AttemptRequest(create(50), "r2", CAPS))
        clock.set(LATER)
        assert journal.begin(AttemptRequest(create(50), "r3", CAPS)).sent_at == LATER
    finally:
        memory.forget_all()


def test_nothing_is_sent_once_the_locks_have_lapsed(
    service_and_run: ServiceAndRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The locks of a command lapse when its intent is recorded: another process sees it as unknown from then on."""
    seen: list[State] = []
    write_all = Journal.write_all

    def lapse_afterwards(journal: Journal, attempts: Sequence[AttemptRequest], settlements: Any) -> Any:
        results = write_all(journal, attempts, settlements)
        if attempts and isinstance(journal.locks, memory.MemoryLocks):
            journal.locks.lapse()
            other = open_journal(journal.place, now=lambda: datetime.fromisoformat(LATER), read_only=True)
            seen.extend(entry.state for entry in other.select_all(Selection(9)))
        return results

    with monkeypatch.context() as patch:
        patch.setattr("escrowctl.journal.opening.find_place", memory.MemoryPlace)
        patch.setattr(Journal, "write_all", lapse_afterwards)
        server, run = service_and_run(holding())
        result = run(*CREATE, "--json")
        listed = run("journal", "list", "--json").json
        memory.forget_all()

    assert (result.code, server.writes, seen[0]) == (11, [], State.UNKNOWN)
    assert [entry["state"] for entry in listed] == ["not_sent"]


def test_losses_are_noticed_on_a_journal_that_ignores_them(
    opener: Opener, service_and_run: ServiceAndRun, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "_take_back", lambda _journal, _begun: None)
    with pytest.raises(AssertionError):
        test_intent_whose_commit_is_lost_was_not_sent(opener, "after")
    monkeypatch.setattr(Journal, "_find_stored", lambda *_: None)
    with pytest.raises(EscrowctlError):
        test_outcome_whose_commit_is_lost_is_looked_for(opener, "after")
    monkeypatch.setattr(memory.Server, "clock", property(lambda _: None, lambda _, _clock: None), raising=False)
    with pytest.raises(AssertionError):
        test_storage_dates_records_and_its_day_decides_caps(tmp_path / "clocks", clock)
    monkeypatch.setattr(Evidence, "mark_sent", lambda evidence: setattr(evidence, "sent", True))
    with pytest.raises(AssertionError):
        test_nothing_is_sent_once_the_locks_have_lapsed(service_and_run, monkeypatch)
