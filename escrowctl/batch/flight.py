"""A row on its way: what is sent for it, and what is recorded before that."""

from collections.abc import Callable, Iterable

from escrowctl.batch.plan import Batch, Todo
from escrowctl.batch.rows import RowContent, expectations_of, request_row
from escrowctl.config.service import Service
from escrowctl.contract.record import Located
from escrowctl.errors import Outcome
from escrowctl.journal.accounts import account_of
from escrowctl.journal.model import NO_CAPS, Begin, Entry, Settlement, State
from escrowctl.writes.create import is_beside
from escrowctl.writes.intents import make_intent, operator_name
from escrowctl.writes.requests import RecordOptions, WriteRequest, request_again


class Row:
    """A row on its way, and what is known of it by now."""

    def __init__(self, todo: Todo, request: WriteRequest, options: RecordOptions) -> None:
        self.line = todo.line
        self.content: RowContent | None = todo.row
        self.request = request
        self.options = options
        self.entry: Entry | None = todo.again
        self.before: Located | None = None
        self.unsettled = todo.again is not None and todo.again.state is State.UNKNOWN
        self.attempts = 0
        self.waits = 0
        self.is_sent = False
        self.goes_again = False
        self.was_first = False
        self.sent_at = 0.0
        self.locks: list[str] = []

    @property
    def sent(self) -> Entry:
        """The entry of a row that was sent."""
        assert self.entry is not None, "it was sent"
        return self.entry

    def __lt__(self, other: "Row") -> bool:
        return self.line < other.line


class Requests:
    """Makes the rows of one batch, and their intents."""

    def __init__(self, batch: Batch, service: Service, new_uuid: Callable[[], str]) -> None:
        self._batch = batch
        self._service = service
        self._new_uuid = new_uuid
        self._account = account_of(service)
        self._operator = operator_name()

    def make_row(self, todo: Todo) -> Row:
        """Return a row to send."""
        if todo.again is not None:
            request = request_again(todo.again)
            assert request is not None, "a batch stores no secrets"
            money = todo.again.intent.money
            expected = RecordOptions(None, money.amount, money.currency) if money else RecordOptions()
            return Row(todo, request, expected)
        assert todo.row is not None, "it is one or the other"
        return Row(todo, self._request(todo.line, todo.row, None), expectations_of(todo.row))

    def _request(self, line: int, content: RowContent, found: Located | None) -> WriteRequest:
        name = f"{self._batch.name}-{line}"
        return request_row(self._batch.kind, content, self._service, name=name, found=found)

    def begin(self, row: Row) -> Begin:
        """Return what is recorded before a row is sent; its request is that of the record that was read."""
        caps, request_id = self._service.caps if row.request.is_capped else NO_CAPS, self._new_uuid()
        if row.entry is not None:
            return Begin(row.entry.intent._replace(account=self._account), request_id, caps, again=row.entry)
        content = row.content
        assert content is not None, "it comes from the plan"
        if row.before is not None:
            row.request = self._request(row.line, content, row.before)
        key = self._new_uuid()
        intent = make_intent(self._service, row.request, key, operator=self._operator)._replace(
            account=self._account, batch=self._batch.name, line=row.line, columns=content.columns
        )
        return Begin(intent, request_id, caps, planned=(self._batch.name, row.line))


def compare_ids(entry: Entry, settlement: Settlement, others: Iterable[Entry]) -> Settlement:
    """Return the outcome of a create with what it means where another one, of `others`, got the same id.

    A reply that names the id says that something was created, and not what; a reading of the record proves nothing.
    """
    made = settlement.result_id
    if settlement.state is not State.DONE or made is None or not entry.intent.has_no_id:
        return settlement
    other = next((one for one in others if one.settlement.result_id == made and is_beside(entry, one)), None)
    if other is None:
        return settlement
    if settlement.verified:
        why = f"{settlement.http_status}, but {made} is also the id of {other.name}"
        return Settlement(Outcome.UNKNOWN, why, settlement.http_status)
    return settlement._replace(remark=" and ".join(filter(None, (settlement.remark, f"{other.name} has the same id"))))
