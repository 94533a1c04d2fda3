"""A commit whose statements are sent without a wait for their answers."""

import contextlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import internals
import psycopg
import pytest

from escrowctl.errors import EscrowctlError
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Selection, State
from escrowctl.journal.opening import open_journal
from escrowctl.journal.postgres.connection import PostgresConnection
from escrowctl.journal.postgres.storage import PostgresStorage
from storage.postgres import ClockedPlace
from storage.test_postgres import journal
from storage.writes import DONE, Clock, append, create

__all__ = ["journal"]

pytestmark = pytest.mark.slow  # a server has to be started


def test_totals_and_keys_are_read_once_for_many_writes(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    statements, original = list[str](), PostgresConnection.execute

    def note(database: PostgresConnection, statement: str, *values: Sequence[object]) -> psycopg.Cursor[Any]:
        statements.append(statement)
        return original(database, statement, *values)

    monkeypatch.setattr(PostgresConnection, "execute", note)
    caps = {"USD": Decimal(10_000)}
    journal.write_all([AttemptRequest(create(number), f"r{number}", caps) for number in range(1, 101)], ())

    # Of the currency, of amounts that are not known, and of what is added to.
    assert len([one for one in statements if "SELECT * FROM main.totals" in one]) == 3, statements
    assert len([one for one in statements if "FROM main.keys WHERE key" in one]) == 1, statements


@pytest.mark.parametrize("records", [1, 41])
def test_process_that_stops_in_a_commit_loses_the_lock(
    journal: Journal, place: ClockedPlace, clock: Clock, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    idle = internals.read(internals.BEGIN).replace(f"'{internals.read(internals.IDLE_SECONDS)}s'", "'100ms'")
    monkeypatch.setattr(internals.BEGIN, idle)
    stopped = journal.storage
    with pytest.raises(EscrowctlError), stopped.transaction() as transaction:  # noqa: PT012 - it fails at its end
        for number in range(records):
            append(transaction, create(number))
        if records == 1:
            transaction.read_totals("create_transaction", "USD", since="2020")
        # In place of SIGSTOP: this process asks nothing more.
        with contextlib.closing(open_journal(place, now=clock)) as other:
            assert other.begin(AttemptRequest(create(100), "r")).number == 1

    with stopped.reopen() as storage:
        assert [entry.intent.body for entry in storage.select(Selection(9))] == [create(100).body]


def test_transaction_in_which_a_statement_failed_is_not_committed(journal: Journal) -> None:
    storage = journal.storage
    assert isinstance(storage, PostgresStorage)
    with pytest.raises(EscrowctlError), storage.transaction() as transaction:  # noqa: PT012 - it fails at its end
        append(transaction, create(1))
        transaction.flush()
        with contextlib.suppress(psycopg.Error):
            storage._db.execute("SELECT 1 / 0")  # noqa: SLF001 - a caller that goes on after an error

    assert (storage.select(Selection(9)), storage.find_damage()) == ([], None)


def test_outcome_that_cannot_be_stored_leaves_the_others_of_its_commit_as_they_were(journal: Journal) -> None:
    first, second = (journal.begin(AttemptRequest(create(number), f"r{number}")) for number in (1, 2))
    spoilt = DONE._replace(result_id="tx\0")

    with pytest.raises(EscrowctlError):
        journal.write_groups([((), [(first, spoilt)]), ((), [(second, DONE)])], ())

    assert journal.storage.find_damage() is None
    assert [entry.state for entry in journal.storage.read_entries([1, 2])] == [State.IN_FLIGHT, State.IN_FLIGHT]
    assert journal.settle(second, DONE).state is State.DONE
