"""The client: one method per operation of interface.md section 4, in its order.

A write's intent is durable before its first byte, its outcome after, by evidence (client/writing.py).
What may be sent again, and when, only client/retry.py says. What writes need (the journal, and SQLite
with it) is imported with the first write: a read does not pay for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from escrowctl.client.exchange import Request
from escrowctl.client.orders import Circumstances, Order, Terms
from escrowctl.client.reading import Reader
from escrowctl.client.records import Made, Record, Records, Updated
from escrowctl.client.retry import Retry
from escrowctl.client.transport import Wire
from escrowctl.config.service import Service
from escrowctl.contract.number import JsonValue
from escrowctl.contract.operations import (
    GET_TRANSACTION,
    GET_USER,
    LIST_TRANSACTIONS,
    LIST_WEBHOOKS,
    RELEASE_TRANSACTION,
    Operation,
)
from escrowctl.contract.paths import Call
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

if TYPE_CHECKING:
    from escrowctl.client.inspection import Confirm
    from escrowctl.client.release import Release
    from escrowctl.client.resolution import Resolution
    from escrowctl.client.update import OrderFor
    from escrowctl.client.writing import Writer
    from escrowctl.journal.journal import Journal

MADE_WHEN_SENT = "(made when sent)"


class EscrowClient:
    """Everything that can be asked of one service. `open_journal` is called for the first write.

    `tell` is told of long waits, `note_defect` of a defect of ours that does not end the run.
    """

    def __init__(
        self,
        service: Service,
        wire: Wire,
        *,
        open_journal: "Callable[[], Journal]",
        surroundings: Surroundings,
        signals: Signals,
        tell: Callable[[str], None],
        note_defect: Callable[[BaseException], None],
    ) -> None:
        self._note_defect = note_defect
        self._service = service
        self._wire = wire
        self._open_journal = open_journal
        self._surroundings = surroundings
        self._signals = signals
        self._retry = Retry(surroundings, signals, tell)
        self._reader = Reader(service, wire, self._retry, surroundings, signals)

    def make(self, order: Order) -> Made:
        """POST /transactions, POST /webhooks, or a call that no interface knows; see `creation.make`."""
        from escrowctl.client.creation import make

        return make(order, service=self._service, reader=self._reader, writer=self._writer(), signals=self._signals)

    def get_transaction(self, resource_id: str) -> Record:
        """GET /transactions/:id; see `Reader.read` for what it raises."""
        return self._reader.read(GET_TRANSACTION, resource_id)

    def list_transactions(self) -> Records:
        """GET /transactions, observed and not published; see `Reader.read_list` for what it raises."""
        return self._reader.read_list(LIST_TRANSACTIONS)

    def get_user(self, resource_id: str) -> Record:
        """GET /users/:id; see `Reader.read` for what it raises."""
        return self._reader.read(GET_USER, resource_id)

    def list_webhooks(self) -> Records:
        """GET /webhooks; see `Reader.read_list` for what it raises."""
        return self._reader.read_list(LIST_WEBHOOKS)

    def check_key(self) -> None:
        """GET /webhooks, for its status alone; see `Reader.probe` for what it raises."""
        self._reader.probe(LIST_WEBHOOKS)

    def fetch(self, call: Call) -> "JsonValue | bytes":
        """GET any path; see `Reader.fetch` for what it raises."""
        return self._reader.fetch(call)

    def update(self, resource_id: str, order_for: "OrderFor", confirm: "Confirm", *, unread: bool) -> Updated:
        """PUT /transactions/:id, observed and not published; see `Update.update` for what it raises."""
        from escrowctl.client.update import Update

        update = Update(
            self._service, reader=self._reader, writer=self._writer(), confirm=confirm, signals=self._signals
        )
        return update.update(resource_id, order_for, unread=unread)

    def prepare_release(
        self,
        terms: Terms,
        circumstances: Circumstances,
        confirm: "Confirm",
        *,
        operation: Operation = RELEASE_TRANSACTION,
    ) -> "Release":
        """PUT /transactions/:id/release, for any number of ids on the same terms."""
        from escrowctl.client.release import Release

        return Release(
            self._service,
            reader=self._reader,
            writer=self._writer(),
            terms=terms,
            circumstances=circumstances,
            operation=operation,
            confirm=confirm,
            signals=self._signals,
            surroundings=self._surroundings,
        )

    def resolve(self, *, announce: Callable[[], None], tell: Callable[[str], None]) -> "Resolution":
        """Settling what is unknown; `announce` is called before a reading, `tell` with what it showed."""
        from escrowctl.client.resolution import Resolution

        return Resolution(
            self._service,
            reader=self._reader,
            writer=self._writer(),
            journal=self._open_journal(),
            announce=announce,
            tell=tell,
        )

    def preview(self, order: Order) -> Request:
        """Return the request that an order would send; what is made anew for each write stands in words."""
        from escrowctl.client.writing import make_intent, make_request

        self._service.refuse_key(*order.texts)
        key = order.circumstances.idempotency_key or MADE_WHEN_SENT
        intent = make_intent(self._service, order, idempotency_key=key)
        return make_request(self._service, intent, body=order.body, request_id=MADE_WHEN_SENT)

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _writer(self) -> "Writer":
        from escrowctl.client.writing import Writer

        return Writer(
            self._service,
            self._wire,
            self._open_journal(),
            retry=self._retry,
            surroundings=self._surroundings,
            signals=self._signals,
            note_defect=self._note_defect,
        )
