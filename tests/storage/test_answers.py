"""A database that is slow, stopped or waits for a standby, and one that has no statistics."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from escrowctl.errors import ErrorCode, EscrowctlError
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, OperatorDecision, State
from escrowctl.journal.postgres import connection
from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.postgres.storage import PostgresStorage
from escrowctl.journal.storage import PlanRow
from storage.postgres import ClockedPlace
from storage.test_postgres import journal
from storage.writes import DONE, create, store

__all__ = ["journal"]

pytestmark = pytest.mark.slow  # a server has to be started


def test_begin_is_taken_back_if_no_standby_confirms_it_in_time(
    journal: Journal, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = journal.begin(AttemptRequest(create(1), "r1"))
    monkeypatch.setattr(connection, "_ANSWER_SECONDS", 0.2)
    database.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    database.execute("ALTER SYSTEM SET client_min_messages = 'error'")
    database.execute("SELECT pg_reload_conf()")
    while database.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
        pass
    database.execute("CHECKPOINT")  # the checkpointer tells the others that commits wait
    try:
        with pytest.raises(EscrowctlError) as failed:
            journal.begin(AttemptRequest(create(2), "r2"))
        assert journal.settle(sent, DONE).state is State.DONE
        with pytest.raises(EscrowctlError):
            journal.open_for_creates(OperatorDecision("operator", "an import is such a commit too"))
    finally:
        database.execute("ALTER SYSTEM RESET ALL")
        database.execute("SELECT pg_reload_conf()")

    assert failed.value.code is ErrorCode.JOURNAL_UNUSABLE
    assert [one.state for one in journal.storage.read_entries([1, 2])] == [State.DONE, State.NOT_SENT]


@pytest.fixture
def stop_server(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Stop the process of the server that serves this journal. The journal waits only briefly for an answer."""
    monkeypatch.setattr(connection, "_CANCEL_SECONDS", 0.2)
    monkeypatch.setattr(connection, "_ANSWER_SECONDS", 0.2)
    assert isinstance(journal.storage, PostgresStorage)
    database = journal.storage._db  # noqa: SLF001 - what is stopped
    ((pid,),) = database.execute("SELECT pg_backend_pid()").fetchall()
    database._connection.answer_seconds = 0.2  # noqa: SLF001 - of a reading outside a transaction
    yield lambda: os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGCONT)


def test_server_that_does_not_answer_is_given_up(journal: Journal, stop_server: Callable[[], None]) -> None:
    stop_server()
    with pytest.raises(EscrowctlError, match="does not answer") as failed:
        journal.begin(AttemptRequest(create(1), "r1"))

    assert failed.value.code is ErrorCode.JOURNAL_UNUSABLE
    assert journal.begin(AttemptRequest(create(1), "r1")).number == 1


def test_plan_is_not_waited_for_if_the_server_does_not_answer(
    journal: Journal, stop_server: Callable[[], None]
) -> None:
    stop_server()
    with pytest.raises(EscrowctlError, match="does not answer"):
        journal.storage.read_plan("b1", limit=1)


def test_commit_is_given_up_if_the_server_stops_after_a_read(journal: Journal, stop_server: Callable[[], None]) -> None:
    with pytest.raises(EscrowctlError, match="does not answer"), journal.checked_commit() as commit:  # noqa: PT012
        journal.storage.read_plan("b1", limit=1)
        stop_server()
        commit.view.read_totals("create_transaction", "USD", since="2020")


def test_claim_is_given_up_if_the_server_stops_in_between(journal: Journal, stop_server: Callable[[], None]) -> None:
    def stop_and_answer(_sender: str) -> bool:
        stop_server()
        return False

    journal.hold("first")
    journal.store_plan_rows([PlanRow("b1", 1, "")])
    journal.storage.claim("b1", "ended", 1, lambda _sender: False)
    with pytest.raises(EscrowctlError, match="does not answer"):
        journal.storage.claim("b1", "next", 1, stop_and_answer)


def test_sums_of_a_batch_read_each_record_about_once_without_statistics(
    journal: Journal, place: ClockedPlace, database: psycopg.Connection
) -> None:
    assert isinstance(journal.storage, PostgresStorage)
    store(journal.storage, *((create(line, batch="b1", line=line), DONE) for line in range(2, 1002)))
    read = f"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{place.url.name}'"
    counts = list[int]()
    for _ in range(2):
        journal.storage._db.execute("SELECT pg_stat_force_next_flush()")  # noqa: SLF001 - of this connection
        counts += [count for (count,) in database.execute(read.encode())]
        journal.storage.sum_batch("b1")
    assert counts[1] - counts[0] < 10_000


def test_locks_of_threads_that_wait_share_a_round_trip(place: ClockedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = list[int](), Leases._ask  # noqa: SLF001 - what is counted

    def count(locks: Leases, *statements: tuple[str, Sequence[object]]) -> list[object]:
        asked.append(len(statements))
        return ask(locks, *statements)

    with contextlib.closing(Leases(place.url)) as locks, ThreadPoolExecutor(9) as threads:
        monkeypatch.setattr(Leases, "_ask", count)
        with locks._mutex:  # noqa: SLF001 - all wait
            calls = [threads.submit(locks.hold, f"name {number % 8}") for number in range(9)]
            while len(locks._calls) < 9:  # noqa: SLF001
                threading.Event().wait(0.001)
        found = [call.result() for call in calls]

        assert (sorted(found), len(asked)) == ([False, *[True] * 8], 1)
