"""What every storage must do, SQLite's and the one in memory alike; a further adapter is one more fixture value."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from escrowctl.contract.json import Number
from escrowctl.contract.money import Money
from escrowctl.contract.operations import CREATE_TRANSACTION, RELEASE_TRANSACTION
from escrowctl.errors import ErrorCode, EscrowctlError, Outcome
from escrowctl.journal import opening
from escrowctl.journal.accounts import Account
from escrowctl.journal.chain import EMPTY, Kind
from escrowctl.journal.duplicates import list_duplicates
from escrowctl.journal.fields import facts_of_intent, facts_of_settlement
from escrowctl.journal.fold import duplicate_keys, fingerprint_keys
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Begin, Entry, Intent, OperatorDecision, PlanRow, Selection, Settlement, State
from escrowctl.journal.signing_secrets import SigningSecrets
from escrowctl.journal.sqlite import reading
from escrowctl.journal.storage import BatchSum, Locks, Storage, Transaction, head_of
from escrowctl.journal.verification import verify
from storage import memory
from storage.file_tests import FILE_TESTS

NOW, LATER = "2026-11-21T03:12:44.000Z", "2026-11-22T00:00:00.000Z"
DONE = Settlement(Outcome.DONE, "200", 200, "tx_1", '{"id":"tx_1"}')
REFUSED = Settlement(Outcome.REFUSED, "400", 400)
UNKNOWN = Settlement(Outcome.UNKNOWN, "no answer")

Opener = Callable[[], tuple[Storage, Locks]]


@pytest.fixture(params=["sqlite", "memory"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """A function that opens the journal like another process, any number of times."""
    open_storage = opening.open_storage if request.param == "sqlite" else memory.open_storage
    opened: list[tuple[Storage, Locks]] = []

    def open_again() -> tuple[Storage, Locks]:
        opened.append(open_storage(tmp_path / "state", reading=False))
        return opened[-1]

    yield open_again
    for storage, locks in opened:
        storage.close()
        locks.close()
    memory.forget_all()


@pytest.fixture
def storage(opener: Opener) -> Storage:
    return opener()[0]


@pytest.fixture
def journal(opener: Opener, tmp_path: Path) -> Journal:
    return journal_of(opener, tmp_path)


def journal_of(opener: Opener, folder: Path) -> Journal:
    storage, locks = opener()
    now = datetime.fromisoformat(NOW).astimezone(UTC)
    return Journal(storage, locks, now=lambda: now, secrets=SigningSecrets(folder))


def create(number: int, *, key: str | None = None, reference: str | None = None, **more: Any) -> Intent:
    body = f'{{"amount":{number},"currency":"USD"}}'
    return Intent(
        operation=CREATE_TRANSACTION.name,
        service="https://escrow.example.com",
        profile="acme",
        method="POST",
        url="https://escrow.example.com/api/v1/transactions",
        body=body,
        idempotency_key=key or f"key-{number}",
        fingerprint=body,
        money=Money(Number(str(number)), "USD"),
        reference=reference,
    )._replace(**more)


def release(resource_id: str) -> Intent:
    url = f"https://escrow.example.com/api/v1/transactions/{resource_id}/release"
    operation = RELEASE_TRANSACTION.name
    return create(1)._replace(
        operation=operation, method="PUT", url=url, body=None, fingerprint=resource_id, resource_id=resource_id
    )


def append(transaction: Transaction, intent: Intent, settlement: Settlement | None = None, *, at: str = NOW) -> Entry:
    number = transaction.next_number()
    facts = facts_of_intent(intent, attempt=1, request_id=f"request-{number}")
    entry = transaction.append(number, Kind.INTENT, facts, at=at)
    if settlement is None:
        return entry
    return transaction.append(number, Kind.SETTLEMENT, facts_of_settlement(settlement), at=at)


def store(storage: Storage, *writes: tuple[Intent, Settlement | None]) -> list[Entry]:
    with storage.transaction() as transaction:
        return [append(transaction, *write) for write in writes]


# Commits and reading


def test_commit_is_seen_by_another_reader(opener: Opener) -> None:
    (first, _), (second, _) = opener(), opener()

    stored = store(first, (create(1), DONE), (create(2), None))

    assert second.journal_id == first.journal_id
    assert second.entries([2, 1, 9]) == stored
    assert [entry.state for entry in stored] == [State.DONE, State.IN_FLIGHT]
    assert [(event.state, event.detail) for event in stored[0].history] == [("in_flight", "attempt 1"), ("done", "200")]


def test_failed_block_commits_nothing(storage: Storage) -> None:
    store(storage, (create(1), DONE))

    def fail() -> None:
        with storage.transaction() as transaction:
            append(transaction, create(2))
            transaction.plan([PlanRow("b", 1, "x")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert (storage.entries([2]), storage.planned("b", limit=9), head_of(storage).sequence) == ([], [], 2)
    with storage.transaction() as transaction:
        totals = transaction.totals(CREATE_TRANSACTION.name, "USD", since="2026-11-21")
    assert [*totals.values()] == [1]


def test_stored_entry_has_every_value_of_its_intent(storage: Storage) -> None:
    intent = create(7, reference="r", reason="why", allowed_duplicates=(3, 4), operator="ops", site="https://site")

    (entry,) = store(storage, (intent, DONE._replace(may_repeat=True, verified=True)))

    assert storage.entries([1])[0].intent == intent
    assert entry.settlement == DONE._replace(may_repeat=True, verified=True)


def test_records_form_one_chain_in_order(storage: Storage) -> None:
    store(storage, (create(1), DONE), (create(2), DONE))

    links = storage.records(after=0, limit=9)

    assert [link.record.sequence for link in links] == [1, 2, 3, 4]
    heads = [EMPTY, *(link.head for link in links)]
    assert all(link.follows(head) for head, link in zip(heads, links, strict=False))
    assert storage.records(after=2, limit=1) == [links[2]]
    assert (storage.last(), head_of(storage)) == (links[-1], heads[-1])


def test_earlier_head_is_contained_and_any_other_contradicts(storage: Storage) -> None:
    store(storage, (create(1), DONE))
    earlier = head_of(storage)
    store(storage, (create(2), DONE))

    assert [storage.contradiction(head) for head in (EMPTY, earlier, head_of(storage))] == [None] * 3
    assert storage.contradiction(earlier._replace(digest="0" * 64))
    assert storage.contradiction(earlier._replace(sequence=99))
    assert storage.find_lost() is None


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
        (Selection(9, result_id="tx_1"), [1]),
        (Selection(9, origin="nowhere j1"), []),
    ],
)
def test_selection_returns_what_matches_newest_first(
    storage: Storage, selection: Selection, expected: list[int]
) -> None:
    store(storage, (create(1, reference="order-7"), DONE), (create(2, profile="other"), UNKNOWN))
    store(storage, (release("tx_1"), DONE._replace(result_id=None)))
    with storage.transaction() as transaction:
        append(transaction, create(4), at=LATER)

    assert [entry.number for entry in storage.select(selection)] == expected
    older = storage.select(selection, before=expected[0] if expected else 9)
    assert [entry.number for entry in older][: len(expected) - 1] == expected[1:]


def test_fingerprint_is_looked_for_among_what_was_sent_lately(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_STEP", 2)
    early = [create(7), create(7, key="b")]
    row = create(7, key="c", reference="A-1", batch="b1", line=2)
    late = [create(7, key="d"), create(8), create(7, key="e", reference="A-2"), row, create(9), create(10)]
    with storage.transaction() as transaction:
        for intent, at in [*((one, NOW) for one in early), *((one, LATER) for one in late)]:
            append(transaction, intent, DONE, at=at)

    found = storage.select(Selection(9, since=LATER, fingerprint=create(7).fingerprint))

    assert [entry.number for entry in found] == [5, 3]
    assert storage.select(Selection(9, since="2027-01-01T00:00:00.000Z", fingerprint=create(10).fingerprint)) == []
    assert len(storage.select(Selection(9, since=NOW, fingerprint=create(7).fingerprint))) == 4


def test_snapshot_does_not_see_later_writes(storage: Storage) -> None:
    store(storage, (create(1), DONE))

    with storage.snapshot() as frozen:
        store(storage, (create(2), DONE))
        assert (len(frozen.select(Selection(9))), frozen.find_damage()) == (1, None)
    with storage.reopened() as again:
        assert len(again.select(Selection(9))) == 2


def test_another_thread_cannot_use_a_storage(storage: Storage) -> None:
    failures: list[Exception] = []

    def read() -> None:
        try:
            storage.last()
        except Exception as error:  # noqa: BLE001 - any refusal will do
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()

    assert len(failures) == 1


# Duplicates, totals, plans


def test_open_and_released_writes_are_found_under_their_keys(storage: Storage) -> None:
    store(storage, (create(1), UNKNOWN), (create(1, key="k2"), DONE), (create(1, key="k3"), None))
    store(storage, (release("tx_1"), DONE), (create(5, reference="r"), DONE), (create(6, reference="r"), REFUSED))

    with storage.transaction() as transaction:
        transaction.check()
        identical = transaction.find_by_keys(fingerprint_keys(create(1)))
        released = transaction.find_by_keys(fingerprint_keys(release("TX_1")))
        under_reference = transaction.find_by_keys(duplicate_keys(storage.entries([5])[0]))
        nothing = transaction.find_by_keys(fingerprint_keys(create(77)))

    assert [entry.number for entry in identical] == [3, 1]
    assert [entry.number for entry in released] == [4]
    assert [entry.number for entry in under_reference] == [5]
    assert nothing == []


def test_totals_follow_what_a_write_counts_for(storage: Storage) -> None:
    store(storage, (create(1), DONE), (create(20), UNKNOWN), (create(300), REFUSED), (create(4000), None))
    store(storage, (create(5, service="https://other.example"), DONE))
    with storage.transaction() as transaction:
        append(transaction, create(60000), at=LATER)
        # A clock set back frees nothing: it counts on the later day too.
        append(transaction, create(700000), at=NOW)

    def sums(since: str) -> dict[str, Decimal]:
        with storage.transaction() as transaction:
            totals = transaction.totals(CREATE_TRANSACTION.name, "USD", since=since)
        services = {key.service for key in totals}
        return {name: sum(amount for key, amount in totals.items() if key.service == name) for name in services}  # type: ignore[misc] # Decimals

    assert sums("2026-11-21") == {"https://escrow.example.com": 764021, "https://other.example": 5}
    assert sums("2026-11-22") == {"https://escrow.example.com": 760000}
    assert sums("2026-11-23") == {}


def test_plan_row_leaves_in_the_commit_that_begins_it(journal: Journal) -> None:
    name = journal.plan(lambda name: [PlanRow(name, number, f"row {number}") for number in (0, 1, 2, 3)])
    assert (name, journal.next_batch()) == ("b1", "b2")
    assert [row.content for row in journal.storage.planned("b1", limit=9)] == ["row 1", "row 2", "row 3"]

    first = Begin(create(1), "r1", planned=("b1", 1))
    duplicate = Begin(create(1, key="another"), "r2", planned=("b1", 2))
    results = journal.begin_all([first, duplicate])

    assert [isinstance(result, Entry) for result in results] == [True, False]
    assert journal.storage.planned("b1", after=2, limit=9) == [PlanRow("b1", 3, "row 3")]
    assert [row.row for row in journal.storage.planned("b1", limit=9)] == [2, 3]


def test_batches_are_listed_in_the_order_of_their_numbers(storage: Storage) -> None:
    with storage.transaction() as transaction:
        transaction.plan([PlanRow(name, row, f"{name} {row}") for name in ("b10", "b9") for row in (0, 2)])
    store(storage, (create(1, batch="b2", line=2), DONE), (create(2, batch="b9", line=3), None))

    assert storage.batches() == [PlanRow("b2", 0, ""), PlanRow("b9", 0, "b9 0"), PlanRow("b10", 0, "b10 0")]


def test_row_of_a_plan_is_stored_anew(storage: Storage) -> None:
    with storage.transaction() as transaction:
        transaction.plan([PlanRow("b1", row, "x") for row in (0, 2)])
    with storage.transaction() as transaction:
        transaction.plan([PlanRow("b1", 0, "dropped")])

    assert storage.batches() == [PlanRow("b1", 0, "dropped")]
    assert storage.planned("b1", limit=9) == [PlanRow("b1", 2, "x")]


def test_rows_of_a_batch_are_read_by_line(storage: Storage) -> None:
    store(storage, *[(create(line, batch="b1", line=line), DONE) for line in (7, 3, 5)], (create(9), DONE))

    assert [entry.intent.line for entry in storage.in_batch("b1", limit=2)] == [3, 5]
    assert [entry.intent.line for entry in storage.in_batch("b1", after=3, limit=9)] == [5, 7]
    assert [entry.intent.line for entry in storage.select(Selection(9, batch="b1"))] == [5, 3, 7]


def test_entries_are_found_by_what_they_created(storage: Storage) -> None:
    made = [(create(number), DONE._replace(result_id=f"tx_{number}")) for number in range(1, 5)]
    store(storage, *made)

    found = {entry.settlement.result_id for entry in storage.created({"tx_2", "tx_4", "tx_9"})}

    assert found == {"tx_2", "tx_4"}


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

    found = sorted(storage.add_up("b1"), key=str)

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


def test_outcome_and_next_intent_share_a_commit(journal: Journal) -> None:
    first = journal.begin(create(1), request_id="r1")
    before = head_of(journal.storage).sequence

    (begun,), (settled,) = journal.write_all([Begin(create(2), "r2")], [(first, DONE)])

    assert (isinstance(begun, Entry), isinstance(settled, Entry)) == (True, True)
    assert head_of(journal.storage).sequence == before + 2


def test_outcome_is_recorded_although_the_next_intent_is_refused(journal: Journal) -> None:
    first = journal.begin(create(1), request_id="r1")

    (refused,), (settled,) = journal.write_all([Begin(create(2, key="key-1"), "r2")], [(first, DONE)])

    assert isinstance(refused, EscrowctlError)
    assert (isinstance(settled, Entry), journal.find(1)) == (True, settled)


def test_next_attempt_and_a_first_one_share_a_commit(journal: Journal) -> None:
    entry = journal.settle(journal.begin(create(1), request_id="r1"), Settlement(Outcome.NOT_SENT, "no"))
    changed = entry._replace(attempt=5)

    begun, stale = journal.begin_all([Begin(entry.intent, "r2", again=entry), Begin(entry.intent, "r3", again=changed)])

    assert isinstance(begun, Entry)
    assert (begun.number, begun.attempt) == (1, 2)
    assert isinstance(stale, EscrowctlError)
    assert stale.code is ErrorCode.BUSY


def test_closed_journal_refuses_every_write_and_names_its_successor(journal: Journal) -> None:
    entry = journal.begin(create(1), request_id="r1")
    with journal.storage.transaction() as transaction:
        transaction.note(Kind.CLOSING, {"successor": "next"}, at=NOW)
    writes: list[Callable[[], object]] = [
        lambda: journal.begin(create(2), request_id="r2"),
        lambda: journal.settle(entry, DONE),
        lambda: journal.plan(lambda name: [PlanRow(name, 0, "{}")]),
        lambda: journal.give_reason(OperatorDecision("anna", "desk")),
    ]

    for write in writes:
        with pytest.raises(EscrowctlError) as refused:
            write()
        assert (refused.value.code, "next" in refused.value.message) == (ErrorCode.JOURNAL_UNUSABLE, True)
    assert (len(journal.storage.entries([1])), head_of(journal.storage).sequence) == (1, 2)


def test_journal_made_from_an_export_asks_for_a_reason_once(journal: Journal) -> None:
    asked = [journal.asks_reason()]
    with journal.storage.transaction() as transaction:
        transaction.note(Kind.OPENING, {"journal_id": "old"}, at=NOW)
    asked.append(journal.asks_reason())
    journal.begin(create(1), request_id="r1")

    journal.give_reason(OperatorDecision("anna", "desk"))

    assert [*asked, journal.asks_reason()] == [False, True, False]
    assert verify(journal.storage).problem is None


# Locks


def test_lock_is_held_by_one_until_it_is_freed_or_its_holder_ends(opener: Opener) -> None:
    (_, first), (_, second) = opener(), opener()

    assert [first.hold(1), first.hold("name"), first.hold(1)] == [True, True, False]
    assert [second.hold(1), second.hold("name"), second.hold(2)] == [False, False, True]
    assert [second.is_held(1), second.is_held("name"), first.is_held(2), first.is_held(3)] == [True, True, True, False]
    first.free(1)
    assert [second.is_held(1), second.hold(1)] == [False, True]
    first.close()
    assert second.hold("name")


# The journal's rules on any storage


def test_identical_creates_in_one_commit_guard_each_other(journal: Journal) -> None:
    begins = [Begin(create(1), "r1"), Begin(create(1, key="k2"), "r2"), Begin(create(2), "r3")]

    results = journal.begin_all(begins)

    assert [getattr(result, "code", "begun") for result in results] == ["begun", ErrorCode.BUSY, "begun"]
    assert head_of(journal.storage).sequence == 2


@pytest.mark.parametrize(("run_key", "is_begun"), [("december", False), ("november", True), ("", True), (None, True)])
def test_commit_repeats_a_reference_of_another_run_only(
    journal: Journal, run_key: str | None, *, is_begun: bool
) -> None:
    row = create(1, reference="A-1", batch="b1", line=2, run_key=run_key)
    first = journal.settle(journal.begin(row, request_id="r1"), DONE)
    again = row._replace(idempotency_key="k", run_key="december", allowed_duplicates=(first.number,))

    results = journal.begin_all([Begin(again, "r2"), Begin(again._replace(idempotency_key="l", run_key=None), "r3")])

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


def test_caps_count_the_writes_of_the_same_commit(journal: Journal) -> None:
    caps = {"USD": Decimal(100)}

    results = journal.begin_all([Begin(create(amount), f"r{amount}", caps) for amount in (60, 41, 40)])

    assert [getattr(result, "code", "begun") for result in results] == ["begun", ErrorCode.CAPPED, "begun"]


def test_settle_of_an_attempt_that_is_not_current_is_refused(opener: Opener, tmp_path: Path) -> None:
    mine, theirs = journal_of(opener, tmp_path), journal_of(opener, tmp_path)
    first, second = (mine.begin(create(number), request_id=f"r{number}") for number in (1, 2))
    with theirs.storage.transaction() as transaction:
        transaction.append(first.number, Kind.SETTLEMENT, facts_of_settlement(UNKNOWN), at=NOW)

    results = mine.settle_all([(first, DONE), (second, DONE)])

    assert [getattr(result, "code", "settled") for result in results] == [ErrorCode.OUTCOME_UNKNOWN, "settled"]
    assert [entry.state for entry in mine.storage.entries([1, 2])] == [State.UNKNOWN, State.DONE]


def test_entry_whose_sender_is_gone_reads_as_unknown(opener: Opener, tmp_path: Path) -> None:
    sender, reader = journal_of(opener, tmp_path), journal_of(opener, tmp_path)
    sender.begin(create(1), request_id="r1")
    before = reader.find(1)

    sender.close()

    after = reader.find(1)
    assert (before and before.state, after and after.state) == (State.IN_FLIGHT, State.UNKNOWN)
    with pytest.raises(EscrowctlError) as refused:
        reader.begin(create(1, key="k2"), request_id="r2")
    assert refused.value.code is ErrorCode.EARLIER_UNKNOWN


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
