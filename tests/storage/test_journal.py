"""What the journal does with every storage: commits, fencing, succession, duplicates of one commit."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal.account import Account
from escrowctl.journal.chain import Head, Kind
from escrowctl.journal.duplicates import list_duplicates
from escrowctl.journal.fields import facts_of_settlement
from escrowctl.journal.fold import StoredEntry
from escrowctl.journal.journal import Journal, WriteGroup
from escrowctl.journal.model import AttemptRequest, Entry, Intent, OperatorDecision, Settlement, State
from escrowctl.journal.opening import open_journal
from escrowctl.journal.served import ServedJournal, _Task
from escrowctl.journal.sqlite.place import SqlitePlace
from escrowctl.journal.storage import PlanRow, head_of
from escrowctl.journal.tables.database import Database
from escrowctl.journal.tables.reading import read_entries
from escrowctl.journal.verification import verify
from storage.conftest import Opener
from storage.writes import DONE, REFUSED, UNKNOWN, Clock, create, store


def test_intent_that_comes_while_an_outcome_is_recorded_shares_its_commit(journal: Journal, opener: Opener) -> None:
    first = journal.begin(AttemptRequest(create(1), "r1"))
    seen = list[State]()

    def come() -> Iterator[WriteGroup]:
        yield (), [(first, DONE)]
        seen.extend(entry.state for entry in opener().storage.read_entries([1]))
        yield [AttemptRequest(create(2), "r2"), AttemptRequest(create(3, key="key-1"), "r3")], ()

    (_, (settled,)), ((begun, refused), _) = journal.write_groups(come(), ())

    assert seen == [State.IN_FLIGHT]
    assert [journal.find(1), journal.find(2)] == [settled, begun]
    assert isinstance(refused, EscrowctlError)


def test_older_copy_takes_an_outcome_and_not_the_intent_that_comes_meanwhile(journal: Journal, opener: Opener) -> None:
    first = journal.begin(AttemptRequest(create(1), "r1"))
    journal.witness.update(journal.storage.journal_id, Head(99, "0" * 64))
    groups: list[WriteGroup] = [((), [(first, DONE)]), ([AttemptRequest(create(2), "r2")], ())]

    (_, (settled,)), ((refused,), _) = opener().write_groups(groups, ())

    assert isinstance(refused, EscrowctlError)
    assert (refused.code, opener().storage.read_entries([1, 2])) == (ErrorCode.JOURNAL_UNUSABLE, [settled])


def test_outcome_is_recorded_although_the_next_intent_is_refused(journal: Journal) -> None:
    first = journal.begin(AttemptRequest(create(1), "r1"))

    (refused,), (settled,) = journal.write_all([AttemptRequest(create(2, key="key-1"), "r2")], [(first, DONE)])

    assert isinstance(refused, EscrowctlError)
    assert (isinstance(settled, Entry), journal.find(1)) == (True, settled)


def test_next_attempt_and_a_first_one_share_a_commit(journal: Journal) -> None:
    entry = journal.settle(journal.begin(AttemptRequest(create(1), "r1")), Settlement(Outcome.NOT_SENT, "no"))
    changed = entry._replace(attempt=5)

    attempts = [AttemptRequest(entry.intent, "r2", again=entry), AttemptRequest(entry.intent, "r3", again=changed)]
    begun, stale = journal.write_all(attempts, ())[0]

    assert isinstance(begun, Entry)
    assert (begun.number, begun.attempt) == (1, 2)
    assert isinstance(stale, EscrowctlError)
    assert stale.code is ErrorCode.BUSY


def test_calls_of_threads_that_all_wait_share_a_commit(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("escrowctl.journal.served._GATHERING_SECONDS", 20.0)  # as long as the machine needs
    commits = list[None]()
    opened = open_journal(SqlitePlace(tmp_path), now=clock)
    with closing(ServedJournal(opened, lambda: commits.append(None))) as journal, ThreadPoolExecutor(4) as pool:
        attempts = [AttemptRequest(create(number), f"r{number}") for number in range(1, 5)]
        begun = [pool.submit(journal.begin, attempts[0])]
        threading.Timer(0.05, lambda: begun.extend(pool.submit(journal.begin, one) for one in attempts[1:])).start()
        while len(begun) < 4 or not all(one.done() for one in begun):
            journal.serve(0.05, callers=4)
        assert (sorted(one.result().number for one in begun), len(commits)) == ([1, 2, 3, 4], 1)


def test_write_that_waits_behind_a_question_wakes_the_owner(tmp_path: Path, clock: Clock) -> None:
    with (
        closing(ServedJournal(open_journal(SqlitePlace(tmp_path), now=clock))) as journal,
        ThreadPoolExecutor(2) as pool,
    ):
        journal.serve(0, callers=3)
        journal.add(asked := _Task(function=list))
        begun = pool.submit(journal.begin, AttemptRequest(create(1), "r1"))
        while len(journal._tasks) < 2:  # noqa: SLF001 - it has come
            pass
        journal._signals.get()  # noqa: SLF001 - of the question, which is answered here
        assert journal._take(are_writes=False) == [asked]  # noqa: SLF001
        is_woken = not journal._signals.empty()  # noqa: SLF001 - else the write would wait
        journal.serve(0, callers=3)
        assert (is_woken, begun.result().number) == (True, 1)


def test_only_entries_that_another_process_changed_are_read_again_and_at_once(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (open_journal(SqlitePlace(tmp_path), now=clock) for _ in range(2))
    begun, _ = mine.write_all([AttemptRequest(create(number), f"r{number}") for number in range(1, 9)], ())
    outcomes = [(one, DONE._replace(result_id=f"tx_{one.number}")) for one in begun if isinstance(one, Entry)]
    other.write_all([AttemptRequest(create(9), "r9")], outcomes[:2])
    reads: list[list[int]] = []

    def read(database: Database, numbers: list[int]) -> dict[int, StoredEntry]:
        reads.append(numbers)
        return read_entries(database, numbers)

    monkeypatch.setattr("escrowctl.journal.tables.transaction.read_entries", read)
    _, settled = mine.write_all((), outcomes)
    mine.close()
    other.close()

    assert reads == [[1, 2]]
    assert [isinstance(one, Entry) for one in settled] == [False] * 2 + [True] * 6


def test_closed_journal_refuses_every_write_and_names_its_successor(journal: Journal) -> None:
    entry = journal.begin(AttemptRequest(create(1), "r1"))
    with journal.storage.transaction() as transaction:
        transaction.append_journal_record(Kind.CLOSING, {"successor": "next"})
    writes: list[Callable[[], object]] = [
        lambda: journal.begin(AttemptRequest(create(2), "r2")),
        lambda: journal.settle(entry, DONE),
        lambda: journal.store_new_batch(lambda name: [PlanRow(name, 0, "{}")]),
        lambda: journal.open_for_creates(OperatorDecision("anna", "desk")),
    ]

    for write in writes:
        with pytest.raises(EscrowctlError) as refused:
            write()
        assert (refused.value.code, "next" in refused.value.message) == (ErrorCode.JOURNAL_UNUSABLE, True)
    assert (len(journal.storage.read_entries([1])), head_of(journal.storage).sequence) == (1, 2)


def test_journal_made_from_an_export_asks_for_a_reason_once(journal: Journal) -> None:
    asked = [journal.is_unopened()]
    with journal.storage.transaction() as transaction:
        transaction.append_journal_record(Kind.OPENING, {"journal_id": "old"})
    asked.append(journal.is_unopened())
    journal.begin(AttemptRequest(create(1), "r1"))

    journal.open_for_creates(OperatorDecision("anna", "desk"))

    assert [*asked, journal.is_unopened()] == [False, True, False]
    assert verify(journal.storage, journal.witness).problem is None


def test_identical_creates_in_one_commit_guard_each_other(journal: Journal) -> None:
    begins = [
        AttemptRequest(create(1), "r1"),
        AttemptRequest(create(1, key="k2"), "r2"),
        AttemptRequest(create(2), "r3"),
    ]

    results = journal.write_all(begins, ())[0]

    assert [getattr(result, "code", "begun") for result in results] == ["begun", ErrorCode.BUSY, "begun"]
    assert head_of(journal.storage).sequence == 2


@pytest.mark.parametrize(("run_key", "is_begun"), [("december", False), ("november", True), ("", True), (None, True)])
def test_commit_repeats_a_reference_of_another_run_only(
    journal: Journal, run_key: str | None, *, is_begun: bool
) -> None:
    row = create(1, reference="A-1", batch="b1", line=2, run_key=run_key)
    first = journal.settle(journal.begin(AttemptRequest(row, "r1")), DONE)
    again = row._replace(idempotency_key="k", run_key="december", allowed_duplicates=(first.number,))

    other = AttemptRequest(again._replace(idempotency_key="l", run_key=None), "r3")
    results = journal.write_all([AttemptRequest(again, "r2"), other], ())[0]

    assert [isinstance(result, Entry) for result in results] == [is_begun, False]


FIRST = create(1, key="k", reference="A-1", account=Account("one"))
NO_DUPLICATES = {
    "allowed": FIRST._replace(allowed_duplicates=(1,)),
    "another account": FIRST._replace(account=Account("two")),
    "another service": FIRST._replace(service="https://other.example.com"),
    "nothing shared": FIRST._replace(idempotency_key="l", reference="A-2"),
}


@pytest.mark.parametrize("second", NO_DUPLICATES.values(), ids=NO_DUPLICATES)
def test_writes_that_may_both_be_meant_are_no_duplicates(journal: Journal, second: Intent) -> None:
    other = DONE._replace(result_id="tx_2")
    store(journal.storage, (FIRST, DONE), (second, other))
    found = list_duplicates(journal)
    store(journal.storage, (FIRST, UNKNOWN), (FIRST, other))

    assert (found, [pair.second.number for pair in list_duplicates(journal)][:1]) == ([], [4])


def test_caps_count_the_writes_and_outcomes_of_the_same_commit(journal: Journal) -> None:
    requests = [AttemptRequest(create(amount), f"r{amount}", {"USD": Decimal(100)}) for amount in (60, 41, 40, 50, 11)]

    first = journal.write_all(requests[:3], ())[0]
    second = journal.write_all(requests[3:], [(one, REFUSED) for one in first[:1] if isinstance(one, Entry)])[0]

    results = [getattr(result, "code", "begun") for result in (*first, *second)]
    assert results == ["begun", ErrorCode.CAPPED, "begun", "begun", ErrorCode.CAPPED]


def test_caps_count_the_writes_of_earlier_groups_of_a_commit(journal: Journal) -> None:
    earlier = journal.begin(AttemptRequest(create(10), "r10"))
    first, second = (AttemptRequest(create(amount), f"r{amount}", {"USD": Decimal(100)}) for amount in (60, 31))

    # The outcome has an id: to look for another create with this id stores what is pending.
    results = journal.write_groups([([first], ()), ([second], [(earlier, DONE)])], ())

    assert [getattr(begun[0], "code", "begun") for begun, _ in results] == ["begun", ErrorCode.CAPPED]


def test_settle_of_an_attempt_that_is_not_current_is_refused(opener: Opener, tmp_path: Path) -> None:
    mine, theirs = opener(), opener()
    first, second = (mine.begin(AttemptRequest(create(number), f"r{number}")) for number in (1, 2))
    with theirs.storage.transaction() as transaction:
        transaction.append(first.number, Kind.SETTLEMENT, facts_of_settlement(UNKNOWN))

    results = mine.write_all((), [(first, DONE), (second, DONE)])[1]

    assert [getattr(result, "code", "settled") for result in results] == [ErrorCode.OUTCOME_UNKNOWN, "settled"]
    assert [entry.state for entry in mine.storage.read_entries([1, 2])] == [State.UNKNOWN, State.DONE]


def test_entry_whose_sender_is_gone_reads_as_unknown(opener: Opener, tmp_path: Path) -> None:
    sender, reader = opener(), opener()
    sender.begin(AttemptRequest(create(1), "r1"))
    before = reader.find(1)

    sender.close()

    after = reader.find(1)
    assert (before and before.state, after and after.state) == (State.IN_FLIGHT, State.UNKNOWN)
    with pytest.raises(EscrowctlError) as refused:
        reader.begin(AttemptRequest(create(1, key="k2"), "r2"))
    assert refused.value.code is ErrorCode.EARLIER_UNKNOWN
