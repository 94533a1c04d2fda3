"""Rows in progress: the request of each, the intent recorded before it, and whether it is out or waiting."""

import heapq
from collections import Counter

from escrowctl.batch.plan import Batch, Todo, outcome_of
from escrowctl.batch.rows import request_row
from escrowctl.config.service import Service
from escrowctl.contract.money import Money
from escrowctl.contract.record import Located
from escrowctl.errors import Outcome
from escrowctl.journal.model import NO_CAPS, Begin, Entry, Settlement, State
from escrowctl.runtime import Runtime
from escrowctl.writes.intents import account_of, make_intent, operator_name
from escrowctl.writes.requests import RecordOptions, WriteRequest, request_again

_NOT_AGAIN = "; the next attempt was not sent"


class PendingRow:
    """A row in progress, and its state."""

    def __init__(self, todo: Todo, request: WriteRequest, money: Money | None) -> None:
        self.line = todo.line
        self.content = todo.row
        self.request = request
        self.options = _expect(money)
        self.entry: Entry | None = todo.again
        self.before: Located | None = None
        self.unsettled = todo.again is not None and todo.again.state is State.UNKNOWN
        """Whether an earlier attempt may have been applied."""
        self.earlier: Settlement | None = None
        """The outcome of that attempt, set when the next attempt is begun."""
        self.again_after: float | None = None
        """The row is sent again after so many seconds; None: it ends with its outcome."""
        self.attempts = 0
        self.waits = 0
        self.sent_at = 0.0
        self.locks: list[str] = []

    @property
    def sent(self) -> Entry:
        """The entry of a row that was begun."""
        assert self.entry is not None, "it was begun"
        return self.entry

    @property
    def is_begun(self) -> bool:
        """Whether the journal has an intent for it without an outcome."""
        return self.entry is not None and self.entry.state is State.IN_FLIGHT

    @property
    def outcome(self) -> Outcome:
        """The outcome of the row, as far as it is recorded."""
        return outcome_of(self.entry) if self.entry is not None else Outcome.NOT_SENT

    def take_back(self) -> Settlement:
        """Return the settlement of an unsent attempt. If an earlier attempt is unknown, it stays unknown."""
        self.attempts -= 1
        self.again_after = 0.0
        if self.earlier is None:
            return Settlement(Outcome.NOT_SENT, "nothing was sent: the run slowed down, or ended")
        return self.earlier._replace(detail=self.earlier.detail.removesuffix(_NOT_AGAIN) + _NOT_AGAIN)

    def __lt__(self, other: "PendingRow") -> bool:
        return self.line < other.line


class InFlight:
    """The rows of a run that were taken up and have not ended: with the senders, waiting, or between the two."""

    def __init__(self) -> None:
        self._rows: dict[int, PendingRow] = {}
        self._later: list[tuple[float, PendingRow]] = []
        self.counts: Counter[Outcome] = Counter()
        """The number of ended rows by outcome."""
        self.out: set[int] = set()
        """The lines of the rows that the senders have."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, line: int) -> PendingRow:
        return self._rows[line]

    @property
    def due(self) -> float | None:
        """When the next of the waiting rows is due; None: none waits."""
        return self._later[0][0] if self._later else None

    def take_up(self, row: PendingRow) -> None:
        """Add a row."""
        self._rows[row.line] = row

    def put_off(self, row: PendingRow, due: float) -> None:
        """Send a row later; a release is read again then, and must be unchanged."""
        row.before = None
        if row.entry is not None:
            row.options = _expect(row.entry.intent.money)
        heapq.heappush(self._later, (due, row))

    def take_due(self, now: float) -> PendingRow | None:
        """Return the next row that has waited long enough."""
        return heapq.heappop(self._later)[1] if self._later and self._later[0][0] <= now else None

    def end(self, row: PendingRow) -> None:
        """Remove a row, and count it under its recorded outcome."""
        del self._rows[row.line]
        self.counts[row.outcome] += 1

    def end_waiting(self) -> None:
        """End the rows that wait to be sent."""
        for _, row in self._later:
            self.end(row)
        self._later.clear()

    def end_begun(self) -> None:
        """End all rows that have an entry: no more outcomes are recorded for them."""
        for row in [row for row in self._rows.values() if row.entry is not None]:
            self.end(row)


class Requests:
    """Makes the rows of one batch, and their intents."""

    def __init__(self, batch: Batch, service: Service, runtime: Runtime) -> None:
        self._batch = batch
        self._service = service
        self._runtime = runtime
        self._account = account_of(service)
        self._operator = operator_name()

    def make_row(self, todo: Todo) -> PendingRow:
        """Return a row to send."""
        if todo.again is not None:
            request = request_again(todo.again)
            assert request is not None, "a batch stores no secrets"
            return PendingRow(todo, request, todo.again.intent.money)
        return PendingRow(todo, request_row(self._batch.kind, todo.row, self._service), todo.row.money)

    def begin(self, row: PendingRow) -> Begin:
        """Return the intent to record before a row is sent. Its request uses the record that was read."""
        caps, request_id = self._service.caps if row.request.is_capped else NO_CAPS, self._runtime.new_request_id()
        run_key = self._batch.run_key or ""
        if row.entry is not None:
            intent = row.entry.intent._replace(account=self._account, run_key=run_key)
            return Begin(intent, request_id, caps, again=row.entry)
        if row.before is not None:
            row.request = request_row(self._batch.kind, row.content, self._service, found=row.before)
        key = self._runtime.new_uuid()
        intent = make_intent(self._service, row.request, key, operator=self._operator)._replace(
            account=self._account, batch=self._batch.name, line=row.line, columns=row.content.columns, run_key=run_key
        )
        return Begin(intent, request_id, caps, planned=(self._batch.name, row.line))


def _expect(money: Money | None) -> RecordOptions:
    """Return the confirmed values, which a record must still have before each attempt."""
    return RecordOptions(None, money.amount, money.currency) if money else RecordOptions()
