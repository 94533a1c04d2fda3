"""What only a journal in a database must do: leases, commits without an answer, and rights that the database keeps."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import psycopg
import pytest

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.fields import QUERIED_FIELDS
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, OperatorDecision, Selection, Settlement, State
from escrowctl.journal.opening import open_journal
from escrowctl.journal.postgres import leases
from escrowctl.journal.postgres.leases import Leases
from escrowctl.journal.postgres.place import PostgresPlace
from escrowctl.journal.postgres.storage import PostgresStorage
from escrowctl.journal.storage import PlanRow
from escrowctl.journal_url import JournalUrl, parse_journal_url
from storage.postgres import ClockedPlace, Server, execute, lapse_all, new_name
from storage.writes import DONE, Clock, create

pytestmark = pytest.mark.slow  # a server has to be started


@pytest.fixture
def journal(place: ClockedPlace, clock: Clock) -> Iterator[Journal]:
    with contextlib.closing(open_journal(place, now=clock)) as opened:
        yield opened


def cut_at_commit(storage: PostgresStorage, moment: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Cut the connection of a storage before or after its next commit; "error": the server fails after it."""
    database = storage._db  # noqa: SLF001 - the connection that is cut
    send, pipeline = database.send, database.pipeline

    def send_or_cut(statement: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        return cut() if statement == "COMMIT" and moment == "before" else send(statement, values)

    @contextlib.contextmanager
    def wait_and_cut() -> Iterator[None]:
        with pipeline():
            yield
        if moment == "error":
            raise psycopg.errors.IoError("could not flush")
        cut()

    def cut() -> NoReturn:
        meanwhile()
        database.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    database.send = send_or_cut  # type: ignore[method-assign] # on purpose
    database.pipeline = wait_and_cut  # type: ignore[method-assign] # on purpose


@pytest.mark.parametrize("moment", ["before", "after", "error"])
def test_intent_whose_commit_did_not_answer_is_not_sent(journal: Journal, moment: str) -> None:
    assert isinstance(journal.storage, PostgresStorage)
    cut_at_commit(journal.storage, moment)

    with pytest.raises(EscrowctlError) as failed:
        journal.begin(AttemptRequest(create(1), "r1"))

    assert failed.value.code is ErrorCode.JOURNAL_UNUSABLE
    states = [one.state for one in journal.storage.read_entries([1])]
    assert states == ([] if moment == "before" else [State.NOT_SENT])
    # The storage has connected again, and goes on.
    assert journal.begin(AttemptRequest(create(2), "r2")).number == len(states) + 1


@pytest.mark.parametrize("moment", ["before", "after", "error"])
def test_outcome_whose_commit_did_not_answer_is_recorded_once(journal: Journal, moment: str) -> None:
    assert isinstance(journal.storage, PostgresStorage)
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    cut_at_commit(journal.storage, moment)

    assert journal.settle(entry, DONE).state is State.DONE
    assert [one.kind for one in journal.storage.read_records(after=0, limit=9)] == ["intent", "verdict"]


def test_commit_that_a_crash_undid_is_not_taken_for_a_later_one(journal: Journal, postgres: Server) -> None:
    """After a crash, the server gives the id of a transaction that left no trace to another transaction."""
    assert isinstance(journal.storage, PostgresStorage)

    def crash() -> None:
        postgres.stop("immediate")
        postgres.start()
        with psycopg.connect(postgres.url, autocommit=True) as others:
            for _ in range(5):
                others.execute("SELECT pg_current_xact_id()")

    cut_at_commit(journal.storage, "before", crash)
    with pytest.raises(EscrowctlError) as failed:
        journal.begin(AttemptRequest(create(1), "r1"))

    assert failed.value.code is ErrorCode.JOURNAL_UNUSABLE
    assert journal.storage.read_entries([1]) == []


def test_sender_whose_lease_has_lapsed_settles_and_begins_nothing(
    journal: Journal, place: ClockedPlace, clock: Clock, database: psycopg.Connection
) -> None:
    entry = journal.begin(AttemptRequest(create(1), "run-1"))
    assert journal.locks.may_send()
    lapse_all(database, place)

    other = open_journal(place, now=clock)
    assert [one.state for one in other.select_all(Selection(9))] == [State.UNKNOWN]
    with pytest.raises(EscrowctlError) as refused:
        journal.begin(AttemptRequest(create(2), "run-2"))
    assert (refused.value.code, "lapsed" in refused.value.message) == (ErrorCode.JOURNAL_UNUSABLE, True)
    assert not journal.locks.hold("another")
    assert journal.settle(entry, DONE).state is State.DONE
    assert [one.state for one in other.storage.read_entries([1, 2])] == [State.DONE]
    other.close()


def test_outcome_is_fenced_when_somebody_has_decided_meanwhile(
    journal: Journal, place: ClockedPlace, clock: Clock, database: psycopg.Connection
) -> None:
    entry = journal.begin(AttemptRequest(create(1), "run-1"))
    lapse_all(database, place)
    with contextlib.closing(open_journal(place, now=clock)) as other:
        (lost,) = other.select_all(Selection(9))
        other.settle_later(lost, DONE._replace(result_id="tx_2"))

    with pytest.raises(EscrowctlError) as fenced:
        journal.settle(entry, DONE)

    assert fenced.value.code is ErrorCode.OUTCOME_UNKNOWN
    assert journal.storage.read_entries([1])[0].settlement.result_id == "tx_2"


def test_lost_write_is_decided_when_nothing_of_it_can_arrive_any_more(
    journal: Journal, place: ClockedPlace, clock: Clock, database: psycopg.Connection
) -> None:
    journal.begin(AttemptRequest(create(1)._replace(host="laptop", process=7), "run-1"))
    lapse_all(database, place)
    word = OperatorDecision("ops", "asked the service")
    not_applied = Settlement(Outcome.UNKNOWN, "not applied", not_applied=True)
    with contextlib.closing(open_journal(place, now=clock)) as other:
        (lost,) = other.select_all(Selection(9))
        with pytest.raises(EscrowctlError) as decided:
            other.decide(lost, not_applied, word)
        with pytest.raises(EscrowctlError) as resent:
            other.begin(AttemptRequest(lost.intent, "run-2", again=lost, decision=word))
        for early in (decided.value, resent.value):
            assert (early.code, "process 7 on laptop" in early.message) == (ErrorCode.BUSY, True)
        execute(database, place, "UPDATE main.senders SET attempt_seconds = 0")

        assert other.decide(lost, not_applied, word).state is State.NOT_APPLIED


def test_nothing_is_sent_by_a_clock_that_counts_sleep(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert journal.locks.hold("name")
    now = leases._now()  # noqa: SLF001 - the clock that is moved
    answers = []
    for seconds in (24, 26, 31, 0):
        monkeypatch.setattr(leases, "_now", lambda seconds=seconds: now + seconds)
        answers.append(journal.locks.may_send())

    # After the lease has lapsed, it has lapsed for good.
    assert answers == [True, False, False, False]


def test_lease_is_renewed_until_it_ends(place: ClockedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_RENEW_SECONDS", 0.01)
    locks, other = Leases(place.url), Leases(place.url)
    assert locks.hold("name")
    first = locks._renewed_at  # noqa: SLF001 - when it was renewed
    while locks._renewed_at == first:  # noqa: SLF001
        time.sleep(0.01)

    assert (locks.may_send(), other.is_held("name")) == (True, True)
    locks.close()
    assert not other.is_held("name")
    other.close()


def test_transaction_has_time_limits_and_waits_for_the_disk(journal: Journal) -> None:
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "synchronous_commit")
    with journal.storage.transaction():
        database = journal.storage._db  # type: ignore[attr-defined] # noqa: SLF001 - what is set for this transaction
        found = [database.execute(f"SHOW {name}").fetchone()[0] for name in names]
    assert found == ["10s", "15s", "5s", "on"]


def test_no_commit_ends_while_another_process_reads(
    journal: Journal, place: ClockedPlace, database: psycopg.Connection
) -> None:
    lock = f"SELECT pg_try_advisory_xact_lock(hashtextextended('\"{place.url.name}\".journal', 0))".encode()
    with journal.storage.reading():
        assert database.execute(lock).fetchone() == (False,)
    with journal.storage.snapshot():
        assert database.execute(lock).fetchone() == (True,)


def test_claim_waits_neither_for_a_commit_nor_for_another_claim(
    journal: Journal, place: ClockedPlace, clock: Clock, database: psycopg.Connection
) -> None:
    journal.store_plan_rows([PlanRow("b1", row, "") for row in (1, 2)])
    with contextlib.closing(open_journal(place, now=clock)) as other:
        row_1 = f"{place.url.name}.plans WHERE row = 1"
        with journal.checked_commit(), database.transaction():
            database.execute(f"SELECT FROM {row_1} FOR UPDATE".encode())
            assert [one.row for one in other.claim("b1", sender="s", limit=2)] == [2]
        assert [one.row for one in other.claim("b1", sender="s", limit=2)] == [1]


def test_process_whose_lease_has_lapsed_puts_no_row_back(
    journal: Journal, place: ClockedPlace, database: psycopg.Connection
) -> None:
    journal.hold("late")
    journal.store_plan_rows([PlanRow("b1", 1, "")])
    (claimed,) = journal.claim("b1", sender="late", limit=1)
    lapse_all(database, place)

    with pytest.raises(EscrowctlError):
        journal.store_plan_rows([claimed])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE main.records SET facts = ''",
        "DELETE FROM main.records",
        "TRUNCATE main.records",
        "INSERT INTO main.records SELECT * FROM main.records ON CONFLICT (sequence) DO UPDATE SET facts = ''",
        "ALTER TABLE main.records DISABLE TRIGGER ALL",
        "DROP TABLE main.records",
    ],
)
def test_writer_cannot_change_a_record(
    postgres: Server, tmp_path: Path, clock: Clock, database: psycopg.Connection, statement: str
) -> None:
    url = set_up_with_roles(postgres, tmp_path, database)
    with contextlib.closing(open_journal(PostgresPlace(url, tmp_path), now=clock)) as journal:
        journal.settle(journal.begin(AttemptRequest(create(1), "r1")), DONE)

        with psycopg.connect(url.url, autocommit=True) as writer, pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute(statement.replace("main.", f"{url.name}.").encode())

        assert journal.storage.find_damage() is None


def test_examination_says_whether_a_write_would_be_refused(
    postgres: Server, tmp_path: Path, clock: Clock, database: psycopg.Connection
) -> None:
    url = set_up_with_roles(postgres, tmp_path, database)
    place = PostgresPlace(url, tmp_path)
    may_add = [place.examine(clock).may_add]

    writer = url.url.partition("://")[2].partition("@")[0]
    database.execute(f"REVOKE INSERT ON {url.name}.records FROM {writer}".encode())
    may_add.append(place.examine(clock).may_add)

    assert may_add == [True, False]  # and a role that exists, perhaps with members, is not taken over
    with psycopg.connect(postgres.url) as admin, pytest.raises(psycopg.errors.DuplicateObject):
        admin.execute(place.plan(with_roles=True)[1].script.encode())


def test_journal_that_several_create_at_once_is_created_once(postgres: Server, tmp_path: Path) -> None:
    place = PostgresPlace(parse_journal_url(f"{postgres.url}?journal={new_name()}"), tmp_path)

    with ThreadPoolExecutor(4) as pool:
        ids = {*pool.map(lambda one: one.create(None), [place.with_name(place.url.name) for _ in range(4)])}

    assert ids == {place.find_id()}


def test_owner_is_stopped_by_triggers(place: ClockedPlace, journal: Journal, database: psycopg.Connection) -> None:
    journal.begin(AttemptRequest(create(1), "r1"))

    for statement in ("UPDATE main.records SET facts = ''", "DELETE FROM main.records", "TRUNCATE main.records"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(database, place, statement)


def set_up_with_roles(server: Server, folder: Path, database: psycopg.Connection) -> JournalUrl:
    """Create a journal with an owner and a writer, and return its URL for the writer."""
    name = new_name()
    database.execute(f"CREATE ROLE {name}_app LOGIN".encode())
    url = parse_journal_url(server.url.replace("postgres@", f"{name}_app@") + f"?journal={name}")
    with psycopg.connect(server.url) as admin:
        for step in PostgresPlace(url, folder).plan(with_roles=True):
            admin.execute(step.script.encode())
    return url


def test_edit_past_the_triggers_is_found(
    place: ClockedPlace, journal: Journal, clock: Clock, database: psycopg.Connection
) -> None:
    journal.settle(journal.begin(AttemptRequest(create(1), "r1")), DONE)
    execute(database, place, "UPDATE main.entries SET state = 'refused'")
    with pytest.raises(EscrowctlError):
        journal.storage.read_entries([1])
    execute(database, place, "UPDATE main.entries SET state = 'done'")
    database.execute("SET session_replication_role = replica")
    execute(database, place, "DELETE FROM main.records WHERE sequence = 2")
    execute(database, place, "DELETE FROM main.entries")

    with pytest.raises(EscrowctlError) as refused, contextlib.closing(open_journal(place, now=clock)) as again:
        again.begin(AttemptRequest(create(2), "r2"))
    assert refused.value.code is ErrorCode.JOURNAL_UNUSABLE


def test_tables_of_another_version_are_refused(place: ClockedPlace, clock: Clock, database: psycopg.Connection) -> None:
    execute(database, place, "UPDATE main.journal SET version = 2")

    with pytest.raises(EscrowctlError) as refused:
        open_journal(place, now=clock)
    assert "version 2" in refused.value.message


def test_columns_are_those_of_the_fields(place: ClockedPlace, database: psycopg.Connection) -> None:
    found = database.execute(f"SELECT * FROM {place.url.name}.entries".encode()).description or ()
    assert [one.name for one in found] == ["number", *QUERIED_FIELDS, "records", "counted_on", "latest"]


def test_server_that_stopped_is_used_again(
    postgres: Server, place: ClockedPlace, journal: Journal, clock: Clock
) -> None:
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    postgres.stop("immediate")
    with pytest.raises(EscrowctlError):
        journal.begin(AttemptRequest(create(2), "r2"))
    postgres.start()

    assert journal.settle(entry, DONE).state is State.DONE
    assert [one.state for one in journal.storage.read_entries([1, 2])] == [State.DONE]


@pytest.mark.parametrize(
    ("text", "url", "name"),
    [
        (
            "postgresql://db.example.com/pay?journal=payouts",
            "postgresql://db.example.com/pay?sslmode=verify-full",
            "payouts",
        ),
        ("postgres://db.example.com/pay?sslmode=require", "postgres://db.example.com/pay?sslmode=require", "escrowctl"),
        ("postgresql://localhost/pay", "postgresql://localhost/pay", "escrowctl"),
        ("postgresql:///pay?host=/run/postgresql", "postgresql:///pay?host=%2Frun%2Fpostgresql", "escrowctl"),
        (
            "postgresql://localhost:5432,db.example.com:5433/pay",
            "postgresql://localhost:5432,db.example.com:5433/pay?sslmode=verify-full&target_session_attrs=read-write",
            "escrowctl",
        ),
        (
            "postgresql://[::1]:1,localhost/pay",
            "postgresql://[::1]:1,localhost/pay?target_session_attrs=read-write",
            "escrowctl",
        ),
        (
            "postgresql:///pay?host=/run/postgresql,db.example.com",
            "postgresql:///pay?host=%2Frun%2Fpostgresql%2Cdb.example.com&sslmode=verify-full&target_session_attrs=read-write",
            "escrowctl",
        ),
        ("postgresql://localhost/pay?user=a+b", "postgresql://localhost/pay?user=a%2Bb", "escrowctl"),
        ("mysql://db/pay", None, None),
        ("postgresql://u:secret@db/pay", None, None),
        ("postgresql://db/pay?password=secret", None, None),
        ("postgresql://db/pay?journal=A-1", None, None),
    ],
)
def test_url_names_a_journal_and_has_no_password(text: str, url: str | None, name: str | None) -> None:
    with (
        contextlib.nullcontext() if url is not None else pytest.raises(ValueError, match=r"^(is|has|names) ") as failed
    ):
        assert parse_journal_url(text) == (url, name)
    assert failed is None or "secret" not in str(failed.value)


def test_records_of_another_host_cost_no_round_trip(
    journal: Journal, place: ClockedPlace, clock: Clock, tmp_path: Path
) -> None:
    wait, counts = psycopg.Connection.wait, list[int]()
    with contextlib.closing(open_journal(ClockedPlace(place.url, tmp_path / "other"), now=clock)) as other:
        for number, writer in enumerate((journal, other, journal, journal, other, journal)):
            with mock.patch.object(psycopg.Connection, "wait", autospec=True, side_effect=wait) as waiting:
                writer.begin(AttemptRequest(create(number), f"r{number}"))
            counts.append(waiting.call_count)
    assert counts[3] == counts[5], counts
