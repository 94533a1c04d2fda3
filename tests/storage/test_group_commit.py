"""Many threads, one thread that owns the storage: what shares a commit, and where errors go."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import internals
import pytest

from escrowctl.errors import ErrorCode, EscrowctlError, not_sent
from escrowctl.journal.group_commit import GroupCommit
from escrowctl.journal.journal import Journal
from escrowctl.journal.model import Begin, Begun, Entry, Selection, State
from escrowctl.journal.opening import open_journal
from escrowctl.journal.sqlite.storage import SqliteStorage
from escrowctl.journal.verification import verify
from storage.test_adapters import DONE, create


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[], Journal]:
    return lambda: open_journal(tmp_path / "state", now=lambda: datetime.now(UTC))


@pytest.fixture
def group(opened: Callable[[], Journal]) -> Iterator[GroupCommit]:
    with contextlib.closing(GroupCommit(opened)) as made:
        yield made


def count_commits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with each transaction."""
    begun: list[object] = []
    transaction = SqliteStorage.transaction

    def counted(storage: SqliteStorage) -> Any:
        begun.append(storage)
        return transaction(storage)

    monkeypatch.setattr(SqliteStorage, "transaction", counted)
    return begun


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return what each call returned or raised, all called at once."""
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        try:
            results[number] = work(number)
        except Exception as error:  # noqa: BLE001 - it is the result
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_writes_of_many_threads_are_recorded_once_each(group: GroupCommit, opened: Callable[[], Journal]) -> None:
    def work(thread: int) -> list[Entry]:
        creates = [create(100 * thread + number) for number in range(1, 21)]
        return [group.settle(group.begin(Begin(one, f"r-{one.body}")).entry, DONE) for one in creates]

    results = in_threads(8, work)
    group.close()

    numbers = sorted(entry.number for entries in results for entry in entries)
    with contextlib.closing(opened()) as journal:
        assert numbers == list(range(1, 161))
        assert {entry.state for entry in journal.select(Selection(999))} == {State.DONE}
        assert (verify(journal.storage).problem, verify(journal.storage).records) == (None, 320)


def test_identical_creates_of_many_threads_begin_once(group: GroupCommit) -> None:
    results = in_threads(8, lambda number: group.begin(Begin(create(1, key=f"k{number}"), f"r{number}")))

    codes = [result.code for result in results if isinstance(result, EscrowctlError)]
    assert codes == [ErrorCode.BUSY] * 7


def test_outcome_and_next_intent_share_a_commit(
    group: GroupCommit, opened: Callable[[], Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = group.begin(Begin(create(1), "r1")).entry
    commits = count_commits(monkeypatch)

    settled, begun = group.settle_and_begin(first, DONE, Begin(create(2), "r2"))

    assert isinstance(settled, Entry)
    assert isinstance(begun, Begun)
    assert (settled.number, settled.state, begun.entry.number, len(commits)) == (1, State.DONE, 2, 1)
    group.close()
    with contextlib.closing(opened()) as journal:
        assert [one.state for one in journal.select(Selection(9))] == [State.UNKNOWN, State.DONE]


def test_outcome_is_recorded_although_the_next_intent_is_refused(
    group: GroupCommit, opened: Callable[[], Journal]
) -> None:
    first, other = (group.begin(Begin(create(number), f"r{number}")).entry for number in (1, 2))

    settled, refused = group.settle_and_begin(first, DONE, Begin(create(2, key="k2"), "r3"))

    assert isinstance(settled, Entry)
    assert isinstance(refused, EscrowctlError)
    assert (settled.state, refused.code) == (State.DONE, ErrorCode.BUSY)
    group.settle(other, DONE)


def test_failing_commit_reaches_every_thread(group: GroupCommit, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [group.begin(Begin(create(number), f"r{number}")).entry for number in (1, 2)]

    def fail(*_words: object, **_more: object) -> None:
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, "no space left")

    monkeypatch.setattr("escrowctl.journal.sqlite.storage.SqliteStorage.transaction", fail)

    def work(number: int) -> Any:
        if number < 2:
            return group.settle(entries[number], DONE)
        return group.begin(Begin(create(number + 10), f"r{number}"))

    assert [result.code for result in in_threads(6, work)] == [ErrorCode.JOURNAL_UNUSABLE] * 6


def test_outcomes_are_recorded_although_what_begins_with_them_is_refused(
    group: GroupCommit, opened: Callable[[], Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = group.begin(Begin(create(1), "r1")).entry

    def damaged(*_words: object) -> None:
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, "it is damaged")

    monkeypatch.setattr("escrowctl.journal.sqlite.transaction.SqliteTransaction.check", damaged)

    def work(number: int) -> Any:
        return group.begin(Begin(create(2), "r2")) if number else group.settle(entry, DONE)

    settled, refused = in_threads(2, work)

    assert (settled.state, refused.code) == (State.DONE, ErrorCode.JOURNAL_UNUSABLE)
    group.close()
    with contextlib.closing(opened()) as journal:
        assert [one.state for one in journal.select(Selection(9))] == [State.DONE]


def test_closing_commits_what_was_submitted_and_takes_no_more(
    group: GroupCommit, opened: Callable[[], Journal]
) -> None:
    results = in_threads(4, lambda number: group.begin(Begin(create(number + 1), f"r{number}")))
    group.close()

    with contextlib.closing(opened()) as journal:
        assert len(journal.select(Selection(9))) == len(results) == 4
    with pytest.raises(RuntimeError):
        group.begin(Begin(create(9), "r9"))


def test_nobody_waits_for_an_owner_that_has_ended(group: GroupCommit, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_words: object) -> None:
        raise MemoryError

    monkeypatch.setattr(internals.COMMIT_GROUP, end)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    results = in_threads(3, lambda number: group.begin(Begin(create(number + 1), f"r{number}")))

    assert [type(result) for result in results] == [RuntimeError] * 3


def test_journal_that_cannot_be_opened_is_an_error_at_once() -> None:
    def fail() -> Journal:
        raise not_sent(ErrorCode.JOURNAL_UNUSABLE, "no folder")

    with pytest.raises(EscrowctlError) as refused:
        GroupCommit(fail)

    assert refused.value.code is ErrorCode.JOURNAL_UNUSABLE
