"""What every storage must do, SQLite's and the one in memory alike; a further adapter is one more fixture value."""

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import Outcome
from escrowctl.journal.chain import EMPTY_HEAD
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import AttemptRequest, Entry, Selection, Settlement, State
from escrowctl.journal.storage import BatchSum, PlanRow, Storage, head_of
from escrowctl.journal.tables import reading
from escrowctl.journal.witness import find_mismatch
from storage.conftest import Opener
from storage.file_tests import FILE_TESTS
from storage.writes import DONE, LATER, NOW, REFUSED, UNKNOWN, Clock, append, create, release, store

# Commits and reading


def test_commit_is_seen_by_another_reader(opener: Opener) -> None:
    first, second = opener().storage, opener().storage

    stored = store(first, (create(1), DONE), (create(2), None))

    assert second.journal_id == first.journal_id
    assert second.read_entries([2, 1, 9]) == stored
    assert [entry.state for entry in stored] == [State.DONE, State.IN_FLIGHT]
    assert [(event.state, event.detail) for event in stored[0].history] == [("in_flight", "attempt 1"), ("done", "200")]


def test_failed_block_commits_nothing(storage: Storage) -> None:
    store(storage, (create(1), DONE))

    def fail() -> None:
        with storage.transaction() as transaction:
            append(transaction, create(2))
            transaction.store_plan_rows([PlanRow("b", 1, "x")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert (storage.read_entries([2]), storage.read_plan("b", limit=9), head_of(storage).sequence) == ([], [], 2)
    with storage.transaction() as transaction:
        totals = transaction.read_totals(CREATE_TRANSACTION.name, "USD", since="2026-11-21")
    assert [*totals.values()] == [1]


def test_stored_entry_has_every_value_of_its_intent(storage: Storage) -> None:
    intent = create(7, reference="r", reason="why", allowed_duplicates=(3, 4), operator="ops", site="https://site")

    (entry,) = store(storage, (intent, DONE._replace(may_repeat=True, verified=True)))

    assert storage.read_entries([1])[0].intent == intent
    assert entry.settlement == DONE._replace(may_repeat=True, verified=True)


def test_records_form_one_chain_in_order(storage: Storage) -> None:
    store(storage, (create(1), DONE), (create(2), DONE))

    records = storage.read_records(after=0, limit=9)

    assert [record.sequence for record in records] == [1, 2, 3, 4]
    heads = [EMPTY_HEAD, *(record.head for record in records)]
    assert all(record.follows(head) for head, record in zip(heads, records, strict=False))
    assert storage.read_records(after=2, limit=1) == [records[2]]
    assert head_of(storage) == heads[-1]


def test_earlier_head_is_contained_and_any_other_contradicts(storage: Storage) -> None:
    store(storage, (create(1), DONE))
    earlier = head_of(storage)
    store(storage, (create(2), DONE))

    last = head_of(storage)
    with storage.reading() as view:
        assert [find_mismatch(view, head, last) for head in (EMPTY_HEAD, earlier, last)] == [None] * 3
        assert find_mismatch(view, earlier._replace(digest="0" * 64), last)
        assert find_mismatch(view, earlier._replace(sequence=99), last)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(9), [4, 3, 2, 1]),
        (Selection(2), [4, 3]),
        (Selection(9, states=(State.DONE,)), [3, 1]),
        (Selection(9, states=(State.UNKNOWN, State.IN_FLIGHT)), [4, 2]),
        (Selection(9, operations=(RELEASE_TRANSACTION.name,)), [3]),
        (Selection(9, profile="other"), [2]),
        (Selection(9, since=LATER), [4]),
        (Selection(9, until=LATER), [3, 2, 1]),
        (Selection(9, reference="order-7"), [1]),
        (Selection(9, resource_id="tx_1"), [3, 1]),
        (Selection(9, result_ids=("tx_1", "tx_9")), [1]),
        (Selection(9, origin="nowhere j1"), []),
    ],
)
def test_selection_returns_what_matches_newest_first(
    storage: Storage, clock: Clock, selection: Selection, expected: list[int]
) -> None:
    store(storage, (create(1, reference="order-7"), DONE), (create(2, profile="other"), UNKNOWN))
    store(storage, (release("tx_1"), DONE._replace(result_id=None)))
    clock.set(LATER)
    store(storage, (create(4), None))

    assert [entry.number for entry in storage.select(selection)] == expected
    older = storage.select(selection, before=expected[0] if expected else 9)
    assert [entry.number for entry in older][: len(expected) - 1] == expected[1:]


def test_fingerprint_is_looked_for_among_what_was_sent_lately(
    storage: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_SEARCH_STEP", 2)
    early = [create(7), create(7, key="b")]
    row = create(7, key="c", reference="A-1", batch="b1", line=2)
    late = [create(7, key="d"), create(8), create(7, key="e", reference="A-2"), row, create(9), create(10)]
    store(storage, *((intent, DONE) for intent in early))
    clock.set(LATER)
    store(storage, *((intent, DONE) for intent in late))

    found = storage.select(Selection(9, since=LATER, fingerprint=create(7).fingerprint))

    assert [entry.number for entry in found] == [5, 3]
    assert storage.select(Selection(9, since="2027-01-01T00:00:00.000Z", fingerprint=create(10).fingerprint)) == []
    assert len(storage.select(Selection(9, since=NOW, fingerprint=create(7).fingerprint))) == 4


def test_snapshot_does_not_see_later_writes(storage: Storage) -> None:
    store(storage, (create(1), DONE))

    with storage.snapshot() as frozen:
        store(storage, (create(2), DONE))
        assert (len(frozen.select(Selection(9))), frozen.find_damage()) == (1, None)
    with storage.reopen() as again:
        assert len(again.select(Selection(9))) == 2


def test_another_thread_cannot_use_a_storage(storage: Storage) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(head_of, storage).exception() is not None


# Duplicates, totals, plans


def test_open_and_released_writes_are_found_under_their_keys(storage: Storage) -> None:
    store(storage, (create(1), UNKNOWN), (create(1, key="k2"), DONE), (create(1, key="k3"), None))
    store(storage, (release("tx_1"), DONE), (create(5, reference="r"), DONE), (create(6, reference="r"), REFUSED))

    with storage.transaction() as transaction:
        transaction.check()
        identical = transaction.find_by_keys(fingerprint_keys(create(1)))
        released = transaction.find_by_keys(fingerprint_keys(release("TX_1")))
        under_reference = transaction.find_by_keys(duplicate_keys(storage.read_entries([5])[0]))
        nothing = transaction.find_by_keys(fingerprint_keys(create(77)))

    assert [entry.number for entry in identical] == [3, 1]
    assert [entry.number for entry in released] == [4]
    assert [entry.number for entry in under_reference] == [5]
    assert nothing == []


def test_totals_follow_what_a_write_counts_for(storage: Storage, clock: Clock) -> None:
    store(storage, (create(1), DONE), (create(20), UNKNOWN), (create(300), REFUSED), (create(4000), None))
    store(storage, (create(5, service="https://other.example"), DONE))
    clock.set(LATER)
    store(storage, (create(60000), None))
    # A clock set back frees nothing: it counts on the later day too.
    clock.set(NOW)
    store(storage, (create(700000), None))

    def sums(since: str) -> dict[str, Decimal]:
        with storage.transaction() as transaction:
            totals = transaction.read_totals(CREATE_TRANSACTION.name, "USD", since=since)
        services = {service for *_, service, _ in totals}
        return {name: sum(amount for key, amount in totals.items() if key[3] == name) for name in services}  # type: ignore[misc] # Decimals

    assert sums("2026-11-21") == {"https://escrow.example.com": 764021, "https://other.example": 5}
    assert sums("2026-11-22") == {"https://escrow.example.com": 760000}
    assert sums("2026-11-23") == {}


def test_plan_row_leaves_in_the_commit_that_begins_it(journal: Journal) -> None:
    name = journal.store_new_batch(lambda name: [PlanRow(name, number, f"row {number}") for number in (0, 1, 2, 3)])
    assert (name, journal.next_batch()) == ("b1", "b2")
    assert [row.content for row in journal.storage.read_plan("b1", limit=9)] == ["row 1", "row 2", "row 3"]

    first = AttemptRequest(create(1, batch="b1", line=1), "r1")
    duplicate = AttemptRequest(create(1, key="another", batch="b1", line=2), "r2")
    results = journal.write_all([first, duplicate], ())[0]

    assert [isinstance(result, Entry) for result in results] == [True, False]
    assert journal.storage.read_plan("b1", after=2, limit=9) == [PlanRow("b1", 3, "row 3")]
    assert [row.row for row in journal.storage.read_plan("b1", limit=9)] == [2, 3]


def test_row_of_a_plan_is_taken_by_one_sender_until_that_ends(storage: Storage) -> None:
    def claim(sender: str, *alive: str, limit: int = 9) -> list[str]:
        return [row.content for row in storage.claim("b1", sender, limit, lambda other: other in alive)]

    with storage.transaction() as transaction:
        transaction.store_plan_rows([PlanRow("b1", row, f"row {row}") for row in (-1, 0, 4, 3, 2, 1)])
        transaction.store_plan_rows([PlanRow("b2", 1, "another")])

    assert (claim("s1", limit=2), claim("s2", "s1", limit=1)) == (["row 1", "row 2"], ["row 3"])
    with storage.transaction() as transaction:
        transaction.store_plan_rows([PlanRow("b1", 2, "put back")])
        transaction.remove_plan_row("b1", 1)
    assert claim("s1", "s2") == ["put back", "row 4"]
    assert claim("s3", "s1") == ["row 3"]
    assert claim("s3", "s3") == ["put back", "row 4"]


def test_batches_are_listed_in_the_order_of_their_numbers(storage: Storage) -> None:
    with storage.transaction() as transaction:
        transaction.store_plan_rows([PlanRow(name, row, f"{name} {row}") for name in ("b10", "b9") for row in (0, 2)])
    store(storage, (create(1, batch="b2", line=2), DONE), (create(2, batch="b9", line=3), None))

    assert storage.list_batches() == [PlanRow("b2", 0, ""), PlanRow("b9", 0, "b9 0"), PlanRow("b10", 0, "b10 0")]


def test_rows_of_a_batch_are_read_by_line(storage: Storage) -> None:
    store(storage, *[(create(line, batch="b1", line=line), DONE) for line in (7, 3, 5)], (create(9), DONE))

    assert [entry.intent.line for entry in storage.read_batch("b1", limit=2)] == [3, 5]
    assert [entry.intent.line for entry in storage.read_batch("b1", after=3, limit=9)] == [5, 7]
    assert [entry.intent.line for entry in storage.select(Selection(9, batch="b1"))] == [5, 3, 7]


def test_entries_are_found_by_what_they_created(storage: Storage) -> None:
    made = [(create(number), DONE._replace(result_id=f"tx_{number}")) for number in range(1, 5)]
    store(storage, *made)

    found = [one.settlement.result_id for one in storage.select(Selection(None, result_ids=("tx_2", "tx_4", "tx_9")))]

    assert found == ["tx_4", "tx_2"]


def test_rows_of_a_batch_are_added_up_by_state_and_currency(storage: Storage) -> None:
    amounts = [("0.10", "EUR"), ("0.20", "EUR"), ("100.00", "EUR"), ("100", "USD")]
    moneys = [Money(Number(amount), currency) for amount, currency in amounts]
    writes = [(create(line, batch="b1", line=line, money=money), DONE) for line, money in enumerate(moneys, 2)]
    other = create(9, batch="b2", line=2, money=moneys[0])
    refused = Settlement(Outcome.REFUSED, "400", 400)
    throttled = Settlement(Outcome.REFUSED, "429", 429, may_repeat=True)
    otherwise = DONE._replace(remark="the amount is 1")
    writes += [
        (create(line, batch="b1", line=line, money=moneys[0]), settlement)
        for line, settlement in ((8, refused), (10, refused), (11, throttled), (12, otherwise))
    ]
    store(storage, *writes, (create(7, batch="b1", line=7, money=moneys[0]), None), (other, DONE))
    released = [release(f"tx_{line}")._replace(batch="b1", line=line, money=moneys[0]) for line in (20, 21)]
    store(storage, (released[0], DONE), (released[1], DONE._replace(verified=True)))
    plain: dict[str, Any] = {"http_status": None, "may_repeat": False, "has_remark": False, "is_unread": False}

    found = sorted(storage.sum_batch("b1"), key=str)

    assert found == sorted(
        [
            BatchSum(State.DONE, "EUR", **plain, rows=4, amount=Decimal("100.40")),
            BatchSum(State.DONE, "EUR", **plain | {"is_unread": True}, rows=1, amount=Decimal("0.10")),
            BatchSum(State.DONE, "EUR", **plain | {"has_remark": True}, rows=1, amount=Decimal("0.10")),
            BatchSum(State.DONE, "USD", **plain, rows=1, amount=Decimal(100)),
            BatchSum(State.REFUSED, "EUR", **plain | {"http_status": 400}, rows=2, amount=Decimal("0.20")),
            BatchSum(
                State.REFUSED, "EUR", **plain | {"http_status": 429, "may_repeat": True}, rows=1, amount=Decimal("0.10")
            ),
            BatchSum(State.IN_FLIGHT, "EUR", **plain, rows=1, amount=Decimal("0.10")),
        ],
        key=str,
    )


# Locks


def test_lock_is_held_by_one_until_it_is_freed_or_its_holder_ends(opener: Opener) -> None:
    first, second = opener().locks, opener().locks

    assert [first.hold("1"), first.hold("name"), first.hold("1")] == [True, True, False]
    assert [second.hold("1"), second.hold("name"), second.hold("2")] == [False, False, True]
    assert [second.is_held("1"), second.is_held("name"), first.is_held("2")] == [True, True, True]
    assert not first.is_held("3")
    # All or none.
    assert [second.hold("3", "name"), first.is_held("3"), second.hold("3", "4")] == [False, False, True]
    first.free("1")
    assert [second.is_held("1"), second.hold("1")] == [False, True]
    first.close()
    assert second.hold("name")


def test_lock_is_taken_by_one_of_two_at_once(opener: Opener) -> None:
    start = threading.Barrier(2)

    def take(journal: Journal, name: str) -> bool:
        start.wait()
        return journal.locks.hold(name)

    with ThreadPoolExecutor(2) as pool:
        for number in range(8):
            taken = pool.map(take, (opener(), opener()), [f"name-{number}"] * 2)
            assert sorted(taken) == [False, True]


# The command-line tests on the second adapter


def test_tests_that_need_the_file_exist() -> None:
    folder = Path(__file__).parents[1]
    missing = {
        f"{file}::{name}"
        for file, names in FILE_TESTS.items()
        for name in names
        if name != "*" and f"def {name}(" not in (folder / file).read_text()
    }

    assert missing == set()
