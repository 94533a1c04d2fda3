"""A journal's storage and locks in memory: a second adapter, so that the rules are tested without SQLite.

"Processes" of one Python process share a journal by its folder. A transaction works on copies, which take
the place of what was there when it is committed.
"""

import contextlib
import json
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import compute_total_changes
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, ChainRecord, Head, Kind
from escrowctl.journal.fields import Facts
from escrowctl.journal.fold import StoredEntry, TotalKey, add_record, fingerprint_keys, next_record
from escrowctl.journal.model import UNSETTLED, Entry, Selection, State
from escrowctl.journal.storage import BatchSum, PlanRow
from escrowctl.runtime import Clock, timestamp


@dataclass
class Content:
    """What one journal holds."""

    journal_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    records: list[ChainRecord] = field(default_factory=list)
    folded: dict[int, StoredEntry] = field(default_factory=dict)
    totals: dict[TotalKey, Decimal] = field(default_factory=dict)
    plans: dict[tuple[str, int], str] = field(default_factory=dict)
    claims: dict[tuple[str, int], str] = field(default_factory=dict)

    def copied(self) -> "Content":
        derived = ({**self.folded}, {**self.totals}, {**self.plans}, {**self.claims})
        return Content(self.journal_id, [*self.records], *derived)

    @property
    def head(self) -> Head:
        return self.records[-1].head if self.records else EMPTY_HEAD


class Place:
    """A folder's journal, its writer's lock, and who holds which key."""

    def __init__(self) -> None:
        self.content: Content | None = None
        self.writing = threading.RLock()
        self.held: dict[str, object] = {}


_PLACES: defaultdict[Path, Place] = defaultdict(Place)


def open_storage(folder: Path, *, now: Clock, reading: bool) -> tuple["MemoryStorage", "MemoryLocks"]:
    """Take the place of `journal.opening.open_storage`."""
    place = _PLACES[folder]
    with place.writing:
        if place.content is None and not reading:
            place.content = Content()
    return MemoryStorage(folder, place, now), MemoryLocks(place)


def find_journal_id(path: Path) -> str | None:
    """Take the place of `journal.opening.find_journal_id`."""
    content = _PLACES[path.parent].content
    return content.journal_id if content is not None else None


def forget_all() -> None:
    """Remove every journal."""
    _PLACES.clear()


class MemoryLocks:
    """See `storage.Locks`: `close` is what the end of a process would do."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def hold(self, name: str) -> bool:
        with self._place.writing:
            is_free = name not in self._place.held
            if is_free:
                self._place.held[name] = self
            return is_free

    def free(self, name: str) -> None:
        with self._place.writing:
            if self._place.held.get(name) is self:
                del self._place.held[name]

    def is_held(self, name: str) -> bool:
        return name in self._place.held

    def close(self) -> None:
        for name in list(self._place.held):
            self.free(name)


class MemoryTransaction:
    """See `storage.Transaction`."""

    def __init__(self, content: Content, now: Clock) -> None:
        self.content = content
        self.now = now

    @property
    def head(self) -> Head:
        return self.content.head

    def check(self) -> None:
        """Nothing in memory is damaged."""

    def find(self, number: int) -> Entry | None:
        found = self.content.folded.get(number)
        return found.entry if found else None

    def expect_keys(self, keys: Collection[int]) -> None:
        pass

    def find_by_keys(self, keys: Collection[int]) -> list[Entry]:
        wanted = set(keys)
        found = [folded.entry for folded in self.content.folded.values() if wanted & folded.keys]
        return sorted(found, key=lambda entry: entry.number, reverse=True)

    def read_totals(self, operation: str, currency: str, *, since: str) -> dict[TotalKey, Decimal]:
        return {
            key: amount
            for key, amount in self.content.totals.items()
            if key[:2] == (operation, currency) and key[2] >= since
        }

    def next_number(self) -> int:
        return max(self.content.folded, default=0) + 1

    def append(self, number: int, kind: str, facts: Facts) -> Entry:
        return self._add(next_record(self.head, number, kind, facts, at=timestamp(self.now()))).entry

    @property
    def successor_id(self) -> str | None:
        last = self.content.records[-1] if self.content.records else None
        return json.loads(last.facts)["successor"] if last is not None and last.kind == Kind.CLOSING else None

    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        self.content.records.append(next_record(self.head, NO_ENTRY, kind, dict(facts), at=timestamp(self.now())))

    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        self.content.plans |= {(row.batch, row.row): row.content for row in rows}

    def remove_plan_row(self, batch: str, row: int) -> None:
        self.content.plans.pop((batch, row), None)
        self.content.claims.pop((batch, row), None)

    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        claims = self.content.claims
        for taken, other in list(claims.items()):
            if taken[0] == batch and other != sender and not is_alive(other):
                del claims[taken]
        free = sorted(key for key in self.content.plans if key[0] == batch and key[1] > 0 and key not in claims)[:limit]
        claims |= dict.fromkeys(free, sender)
        return [PlanRow(*key, self.content.plans[key]) for key in free]

    def _add(self, record: ChainRecord) -> StoredEntry:
        number = record.entry
        before = self.content.folded.get(number)
        after = add_record(before, record, latest=max((one.at for one in self.content.records), default=""))
        for key, change in compute_total_changes(before, after).items():
            self.content.totals[key] = sum_exactly((self.content.totals.get(key, Decimal(0)), change))
        self.content.records.append(record)
        self.content.folded[number] = after
        return after


class MemoryStorage:
    """See `storage.Storage`."""

    def __init__(self, folder: Path, place: Place, now: Clock) -> None:
        self._folder = folder
        self._now = now
        self._place = place
        self._open: MemoryTransaction | None = None
        self._thread = threading.get_ident()

    @property
    def _content(self) -> Content:
        if threading.get_ident() != self._thread:
            raise RuntimeError("one thread uses a storage: the one that opened it")
        return self._open.content if self._open else self._place.content or Content("")

    @property
    def journal_id(self) -> str:
        return self._content.journal_id

    @property
    def location(self) -> str:
        return f"memory:{self._folder}"

    @property
    def exists(self) -> bool:
        return self._place.content is not None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        with self._place.writing:
            self._open = MemoryTransaction(self._content.copied(), self._now)
            try:
                yield self._open
                self._place.content = self._open.content
            finally:
                self._open = None

    def read_last(self) -> ChainRecord | None:
        return self._content.records[-1] if self._content.records else None

    def read_last_journal_kind(self) -> str | None:
        notes = [record.kind for record in self._content.records if record.entry == NO_ENTRY]
        return notes[-1] if notes else None

    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        return self._content.records[after : after + limit]

    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        return [self._content.folded[number].entry for number in sorted(numbers) if number in self._content.folded]

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        found = [
            folded.entry
            for number, folded in sorted(self._content.folded.items(), reverse=True)
            if (before is None or number < before) and _fits(folded.entry, selection)
        ]
        return found if selection.limit < 0 else found[: selection.limit]

    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        rows = sorted((row, content) for (name, row), content in self._content.plans.items() if name == batch)
        return [PlanRow(batch, row, content) for row, content in rows if row > after][:limit]

    def list_batches(self) -> list[PlanRow]:
        plans = self._content.plans
        names = {name for name, row in plans if row == 0}
        names |= {entry.intent.batch for entry in self._entries() if entry.intent.batch is not None}
        return [PlanRow(name, 0, plans.get((name, 0), "")) for name in sorted(names, key=lambda name: int(name[1:]))]

    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        found = [(entry.intent.line or 0, entry) for entry in self._entries() if entry.intent.batch == batch]
        return [entry for line, entry in sorted(found, key=lambda one: one[0]) if line > after][:limit]

    def find_created(self, result_ids: Collection[str]) -> list[Entry]:
        found = (folded.entry for folded in self._content.folded.values())
        return [entry for entry in found if entry.settlement.result_id in result_ids]

    def sum_batch(self, batch: str) -> list[BatchSum]:
        sums: defaultdict[tuple[State, str | None, int | None, bool, bool, bool], list[Decimal]] = defaultdict(list)
        for entry in self._entries():
            if entry.intent.batch == batch:
                money, settlement = entry.intent.money, entry.settlement
                refusal = settlement if entry.state is State.REFUSED else UNSETTLED
                currency, has_remark = money.currency if money else None, settlement.remark is not None
                is_unread = entry.state is State.DONE and entry.intent.is_once_only and not settlement.verified
                key = (entry.state, currency, refusal.http_status, refusal.may_repeat, has_remark, is_unread)
                sums[key].append(money.amount if money else Decimal(0))
        return [BatchSum(*key, len(amounts), sum_exactly(amounts)) for key, amounts in sums.items()]

    def _entries(self) -> list[Entry]:
        return [folded.entry for folded in self._content.folded.values() if folded.entry.origin is None]

    @contextlib.contextmanager
    def reopen(self) -> Iterator["MemoryStorage"]:
        yield MemoryStorage(self._folder, self._place, self._now)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator["MemoryStorage"]:
        place = Place()
        place.content = self._content.copied()
        yield MemoryStorage(self._folder, place, self._now)

    def find_mismatch(self, head: Head) -> str | None:
        records = self._content.records
        if head == EMPTY_HEAD or (head.sequence <= len(records) and records[head.sequence - 1].digest == head.digest):
            return None
        return f"record {head.sequence} was changed"

    def find_head_problem(self) -> str | None:
        return None

    def require_complete(self) -> None:
        """Nothing in memory is lost."""

    def find_damage(self) -> str | None:
        return None

    def close(self) -> None:
        """Nothing is open."""


def _fits(entry: Entry, selection: Selection) -> bool:
    intent, wanted = entry.intent, selection
    return (
        (not wanted.states or entry.state in wanted.states)
        and (not wanted.operations or intent.operation in wanted.operations)
        and wanted.profile in (None, intent.profile)
        and (wanted.since is None or entry.sent_at >= wanted.since)
        and (wanted.until is None or entry.sent_at < wanted.until)
        and wanted.reference in (None, intent.reference)
        and not (wanted.without_reference and intent.reference is not None)
        and wanted.resource_id in (None, intent.resource_id, entry.settlement.result_id)
        and wanted.result_id in (None, entry.settlement.result_id)
        and wanted.origin in (None, entry.origin)
        and (wanted.batch is None or (entry.origin is None and intent.batch == wanted.batch))
        and wanted.fingerprint in (None, intent.fingerprint if fingerprint_keys(intent) else "")
    )
