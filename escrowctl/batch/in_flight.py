"""The rows in progress: each with its request and its journal entry, either at the senders or waiting."""

import heapq
from collections import Counter

from escrowctl.batch.plan import Batch, RowToSend, outcome_of
from escrowctl.batch.rows import make_request
from escrowctl.config.service import Service
from escrowctl.contract.money import Money
from escrowctl.contract.record import KnownFields
from escrowctl.errors import Outcome
from escrowctl.journal.model import NO_CAPS, AttemptRequest, Entry, Settlement, State
from escrowctl.runtime import Runtime
from escrowctl.writes.inspection import RecordOptions
from escrowctl.writes.requests import WriteRequest, account_of, make_intent, operator_name, restore_request

_NOT_RETRIED = "; the next attempt was not sent"


class PendingRow:
    """A row in progress, and its state."""

    def __init__(self, to_send: RowToSend, request: WriteRequest, money: Money | None) -> None:
        self.line = to_send.line
        self.content = to_send.row
        self.request = request
        self.options = _expect_money(money)
        self.entry: Entry | None = to_send.repeated
        self.before: KnownFields | None = None
        self.may_be_applied = to_send.repeated is not None and to_send.repeated.state is State.UNKNOWN
        """Whether an earlier attempt may have been applied."""
        self.earlier_settlement: Settlement | None = None
        """The settlement of the attempt that may have been applied, set when the next attempt begins."""
        self.retry_delay: float | None = None
        """The seconds until the row is sent again; None: the row ends with its outcome."""
        self.attempts = 0
        self.lock_waits = 0
        self.sent_at = 0.0
        self.locks: list[str] = []

    @property
    def begun_entry(self) -> Entry:
        """The journal entry of the row, which must have one."""
        assert self.entry is not None, "it was begun"
        return self.entry

    @property
    def is_begun(self) -> bool:
        """Whether the row has an entry in flight: its intent is recorded, its outcome is not."""
        return self.entry is not None and self.entry.state is State.IN_FLIGHT

    @property
    def outcome(self) -> Outcome:
        """The recorded outcome of the row; `Outcome.NOT_SENT` if the row has no entry."""
        return outcome_of(self.entry) if self.entry is not None else Outcome.NOT_SENT

    def settle_as_unsent(self) -> Settlement:
        """Return the settlement if an attempt was not sent: `NOT_SENT`, or that of an earlier unknown attempt."""
        self.attempts -= 1
        self.retry_delay = 0.0
        if self.earlier_settlement is None:
            return Settlement(Outcome.NOT_SENT, "nothing was sent: the run slowed down, or ended")
        return self.earlier_settlement._replace(
            detail=self.earlier_settlement.detail.removesuffix(_NOT_RETRIED) + _NOT_RETRIED
        )

    def __lt__(self, other: "PendingRow") -> bool:
        return self.line < other.line


class InFlight:
    """The rows that a run has taken up and not ended: at the senders, waiting, or about to be recorded."""

    def __init__(self) -> None:
        self._rows: dict[int, PendingRow] = {}
        self._waiting: list[tuple[float, PendingRow]] = []
        self.counts: Counter[Outcome] = Counter()
        """The number of ended rows by outcome."""
        self.at_senders: set[int] = set()
        """The lines of the rows that the senders have."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, line: int) -> PendingRow:
        return self._rows[line]

    @property
    def next_due(self) -> float | None:
        """When the first of the waiting rows may be sent, on the monotonic clock; None: no row waits."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, row: PendingRow) -> None:
        """Add a row."""
        self._rows[row.line] = row

    def postpone(self, row: PendingRow, due: float) -> None:
        """Let a row wait until `due`. A release is read again then: it must have the amount of its entry."""
        row.before = None
        if row.entry is not None:
            row.options = _expect_money(row.entry.intent.money)
        heapq.heappush(self._waiting, (due, row))

    def pop_due(self, now: float) -> PendingRow | None:
        """Remove and return the first waiting row that is due; None: no row is due."""
        return heapq.heappop(self._waiting)[1] if self._waiting and self._waiting[0][0] <= now else None

    def end(self, row: PendingRow) -> None:
        """Remove a row, and count it under its recorded outcome."""
        del self._rows[row.line]
        self.counts[row.outcome] += 1

    def end_waiting(self) -> None:
        """End all rows that wait to be sent."""
        for _, row in self._waiting:
            self.end(row)
        self._waiting.clear()

    def end_begun(self) -> None:
        """End all rows that have an entry: no more outcomes are recorded for them."""
        for row in [row for row in self._rows.values() if row.entry is not None]:
            self.end(row)


class RowMaker:
    """Makes the pending rows of one batch, and the intents that the journal records for them."""

    def __init__(self, batch: Batch, service: Service, runtime: Runtime) -> None:
        self._batch = batch
        self._service = service
        self._runtime = runtime
        self._account = account_of(service)
        self._operator = operator_name()

    def make_row(self, to_send: RowToSend) -> PendingRow:
        """Return a row to send as a pending row, with its request."""
        if to_send.repeated is not None:
            request = restore_request(to_send.repeated)
            assert request is not None, "a batch stores no secrets"
            return PendingRow(to_send, request, to_send.repeated.intent.money)
        return PendingRow(to_send, make_request(self._batch.kind, to_send.row, self._service), to_send.row.money)

    def make_attempt(self, row: PendingRow) -> AttemptRequest:
        """Return the attempt of a row to record before sending. If the record was read, make the request anew."""
        caps, request_id = self._service.caps if row.request.is_capped else NO_CAPS, self._runtime.new_request_id()
        run_key = self._batch.run_key or ""
        if row.entry is not None:
            intent = row.entry.intent._replace(account=self._account, run_key=run_key)
            return AttemptRequest(intent, request_id, caps, again=row.entry)
        if row.before is not None:
            row.request = make_request(self._batch.kind, row.content, self._service, found=row.before)
        key = self._runtime.new_uuid()
        intent = make_intent(self._service, row.request, key, operator=self._operator)._replace(
            account=self._account, batch=self._batch.name, line=row.line, columns=row.content.columns, run_key=run_key
        )
        return AttemptRequest(intent, request_id, caps, planned=(self._batch.name, row.line))


def _expect_money(money: Money | None) -> RecordOptions:
    """Return options that allow only a record with this amount and currency; `money` None: any record."""
    return RecordOptions(None, money.amount, money.currency) if money else RecordOptions()
