"""A journal's storage and locks in memory: a second adapter, so that the rules are tested without SQLite.

"Processes" of one Python process share a journal by its folder. A transaction works on copies, which take
the place of what was there when it is committed. It can do what a server far away does: lose a commit before or after
it happened, let locks lapse, and have a clock of its own.
"""

import contextlib
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from escrowctl.contract.money import sum_exactly
from escrowctl.journal.caps import compute_total_changes
from escrowctl.journal.chain import EMPTY_HEAD, NO_ENTRY, ChainRecord, Head, Kind
from escrowctl.journal.fields import Facts
from escrowctl.journal.fold import StoredEntry, TotalKey, add_record, fingerprint_keys, next_record
from escrowctl.journal.model import UNSETTLED, Entry, Selection, State
from escrowctl.journal.storage import BatchSum, Closing, CommitUnknownError, PlanRow, unusable
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


class Server:
    """A folder's journal, its writer's lock, who holds which lock, its own clock (None: the caller's), its faults."""

    def __init__(self) -> None:
        self.content: Content | None = None
        self.writing = threading.RLock()
        self.held: dict[str, object] = {}
        self.clock: Clock | None = None
        self.loses_commit: Literal["before", "after"] | None = None
        self.is_gone = False


_SERVERS: defaultdict[Path, Server] = defaultdict(Server)


def forget_all() -> None:
    """Remove every journal."""
    _SERVERS.clear()


class MemoryPlace:
    """See `storage.JournalPlace`."""

    is_shared = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head_path = folder / "journal.head"
        self.server = _SERVERS[folder]

    @property
    def location(self) -> str:
        return f"memory:{self.folder}/journal"

    @property
    def exists(self) -> bool:
        return self.server.content is not None

    def find_id(self) -> str | None:
        return self.server.content.journal_id if self.server.content is not None else None

    def open(self, *, now: Clock, reading: bool) -> tuple["MemoryStorage", "MemoryLocks"]:
        with self.server.writing:
            if self.server.content is None and not reading:
                self.folder.mkdir(parents=True, exist_ok=True)
                self.server.content = Content()
        return MemoryStorage(self, self.server, now), MemoryLocks(self.server)

    def warn_of_locks(self) -> str | None:
        return None


class MemoryLocks:
    """See `storage.Locks`: `close` is what the end of a process would do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._have_lapsed = False

    def hold(self, *names: str) -> bool:
        with self._server.writing:
            are_free = self._server.held.keys().isdisjoint(names) and not self._have_lapsed
            if are_free:
                self._server.held |= dict.fromkeys(names, self)
            return are_free

    def free(self, *names: str) -> None:
        with self._server.writing:
            for name in names:
                if self._server.held.get(name) is self:
                    del self._server.held[name]

    def is_held(self, name: str) -> bool:
        return name in self._server.held

    def seconds_to_wait(self, name: str) -> float:
        return float("inf") if self.is_held(name) else 0

    def may_send(self) -> bool:
        return not self._have_lapsed

    def lapse(self) -> None:
        self.close()
        self._have_lapsed = True

    def close(self) -> None:
        for name in list(self._server.held):
            self.free(name)


class MemoryTransaction:
    """See `storage.Transaction`."""

    def __init__(self, content: Content, server: Server, now: Clock) -> None:
        self.content = content
        self._clock = server.clock or now
        self._server = server

    def now(self) -> datetime:
        return self._moment

    @cached_property
    def _moment(self) -> datetime:
        return self._clock()

    @property
    def head(self) -> Head:
        return self.content.head

    @property
    def closing(self) -> Closing | None:
        return Closing.from_last(self.content.records[-1] if self.content.records else None)

    def contains(self, head: Head) -> bool:
        return head in (EMPTY_HEAD, *(record.head for record in self.content.records))

    def check(self) -> None:
        """Nothing in memory is damaged."""

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

    def append(self, number: int | None, kind: str, facts: Facts) -> Entry:
        number = number or max(self.content.folded, default=0) + 1
        return self._add(next_record(self.head, number, kind, facts, at=timestamp(self.now()))).entry

    def append_journal_record(self, kind: str, facts: Mapping[str, str]) -> None:
        self.content.records.append(next_record(self.head, NO_ENTRY, kind, dict(facts), at=timestamp(self.now())))

    def store_plan_rows(self, rows: Iterable[PlanRow]) -> None:
        for row in rows:
            self.content.plans[row.batch, row.row] = row.content
            self.content.claims.pop((row.batch, row.row), None)

    def remove_plan_row(self, batch: str, row: int) -> None:
        self.content.plans.pop((batch, row), None)
        self.content.claims.pop((batch, row), None)

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

    def __init__(self, place: MemoryPlace, server: Server, now: Clock) -> None:
        self._place = place
        self._server = server
        self._now = now
        self._open: MemoryTransaction | None = None
        self._thread = threading.get_ident()
        self._has_failed = False

    @property
    def _content(self) -> Content:
        if threading.get_ident() != self._thread:
            raise RuntimeError("one thread uses a storage: the one that opened it")
        if self._server.is_gone or self._has_failed:
            raise unusable(self._place.location, "the server is gone")
        return self._open.content if self._open else self._server.content or Content("")

    @property
    def journal_id(self) -> str:
        return self._server.content.journal_id if self._server.content else ""

    @contextlib.contextmanager
    def reading(self) -> Iterator[MemoryTransaction]:
        yield self._open or MemoryTransaction(self._content.copied(), self._server, self._now)

    @contextlib.contextmanager
    def transaction(self, _keys: Collection[int] = ()) -> Iterator[MemoryTransaction]:
        server = self._server
        with server.writing:
            self._open = MemoryTransaction(self._content.copied(), server, self._now)
            try:
                yield self._open
                if server.loses_commit != "before":
                    server.content = self._open.content
                if server.loses_commit is not None:
                    server.loses_commit, self._has_failed = None, True
                    raise CommitUnknownError(unusable(self._place.location, "the connection was lost"))
            finally:
                self._open = None

    def claim(self, batch: str, sender: str, limit: int, is_alive: Callable[[str], bool]) -> list[PlanRow]:
        with self.transaction() as transaction:
            content = transaction.content
            claims, plans = content.claims, content.plans
            for taken, other in list(claims.items()):
                if taken[0] == batch and other != sender and not is_alive(other):
                    del claims[taken]
            free = sorted(key for key in plans if key[0] == batch and key[1] > 0 and key not in claims)[:limit]
            claims |= dict.fromkeys(free, sender)
            return [PlanRow(*key, plans[key]) for key in free]

    def read_last_journal_kind(self) -> str | None:
        notes = [record.kind for record in self._content.records if record.entry == NO_ENTRY]
        return notes[-1] if notes else None

    def count_records(self) -> int:
        return sum(record.kind != Kind.CLOSING for record in self._content.records)

    def read_records(self, *, after: int, limit: int) -> list[ChainRecord]:
        return self._content.records[after : after + limit]

    def read_entries(self, numbers: Collection[int]) -> list[Entry]:
        folded = self._content.folded
        return [folded[number].entry for number in sorted(numbers) if number in folded]

    def select(self, selection: Selection, *, before: int | None = None) -> list[Entry]:
        found = [
            folded.entry
            for number, folded in sorted(self._content.folded.items(), reverse=True)
            if (before is None or number < before) and _fits(folded.entry, selection)
        ]
        return found[: selection.limit]

    def read_plan(self, batch: str, *, after: int = 0, limit: int) -> list[PlanRow]:
        rows = sorted((row, content) for (name, row), content in self._content.plans.items() if name == batch)
        return [PlanRow(batch, row, content) for row, content in rows if row > after][:limit]

    def list_batches(self, *, imported: bool = False) -> list[PlanRow]:
        plans = self._content.plans
        names = {name for name, row in plans if row == 0}
        found = [one.entry for one in self._content.folded.values()] if imported else self._entries()
        names |= {entry.intent.batch for entry in found if entry.intent.batch is not None}
        return [PlanRow(name, 0, plans.get((name, 0), "")) for name in sorted(names, key=lambda name: int(name[1:]))]

    def read_batch(self, batch: str, *, after: int = 0, limit: int) -> list[Entry]:
        found = [(entry.intent.line or 0, entry) for entry in self._entries() if entry.intent.batch == batch]
        return [entry for line, entry in sorted(found, key=lambda one: one[0]) if line > after][:limit]

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
        yield MemoryStorage(self._place, self._server, self._now)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator["MemoryStorage"]:
        server = Server()
        server.content = self._content.copied()
        yield MemoryStorage(self._place, server, self._now)

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
        and (not wanted.result_ids or entry.settlement.result_id in wanted.result_ids)
        and wanted.origin in (None, entry.origin)
        and (wanted.batch is None or (entry.origin is None and intent.batch == wanted.batch))
        and wanted.fingerprint in (None, intent.fingerprint if fingerprint_keys(intent) else "")
    )
