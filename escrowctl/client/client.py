"""The client: one method per operation of interface.md section 4, in its order.

Reads are sent once. A write is sent once: its intent is durable before the first byte, its outcome
by evidence after (client/writing.py); it is never sent again by itself. What writes need (the
journal, and SQLite with it) is imported with the first write: a read does not pay for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from escrowctl.client.exchange import Request
from escrowctl.client.orders import Created, NewEscrow, Order, Record, Records, Terms
from escrowctl.client.reading import Reader
from escrowctl.client.transport import Wire
from escrowctl.config.service import Service
from escrowctl.contract.operations import GET_TRANSACTION, GET_USER, LIST_TRANSACTIONS
from escrowctl.signals import Signals
from escrowctl.surroundings import Surroundings

if TYPE_CHECKING:
    from escrowctl.client.release import Confirm, Release
    from escrowctl.client.writing import Writer
    from escrowctl.journal.journal import Journal

MADE_WHEN_SENT = "(made when sent)"


class EscrowClient:
    """Everything that can be asked of one service. `open_journal` is called for the first write.

    `invocation` is how a hint starts: the program with the options that lead to this service.
    """

    def __init__(
        self,
        service: Service,
        wire: Wire,
        *,
        open_journal: "Callable[[], Journal]",
        surroundings: Surroundings,
        signals: Signals,
        invocation: str,
    ) -> None:
        self._service = service
        self._wire = wire
        self._open_journal = open_journal
        self._surroundings = surroundings
        self._signals = signals
        self._invocation = invocation
        self._reader = Reader(service, wire, surroundings, signals)

    def create_transaction(self, escrow: NewEscrow) -> Created:
        """POST /transactions; see `creation.create` for what it raises."""
        from escrowctl.client.creation import create

        return create(escrow, service=self._service, writer=self._writer(), invocation=self._invocation)

    def get_transaction(self, resource_id: str) -> Record:
        """GET /transactions/:id; see `Reader.read` for what it raises."""
        return self._reader.read(GET_TRANSACTION, resource_id)

    def list_transactions(self) -> Records:
        """GET /transactions, observed and not published; see `Reader.read_list` for what it raises."""
        return self._reader.read_list(LIST_TRANSACTIONS)

    def get_user(self, resource_id: str) -> Record:
        """GET /users/:id; see `Reader.read` for what it raises."""
        return self._reader.read(GET_USER, resource_id)

    def prepare_release(self, terms: Terms, confirm: "Confirm") -> "Release":
        """PUT /transactions/:id/release, for any number of ids on the same terms."""
        from escrowctl.client.release import Release

        return Release(
            self._service,
            reader=self._reader,
            writer=self._writer(),
            terms=terms,
            confirm=confirm,
            invocation=self._invocation,
            signals=self._signals,
            surroundings=self._surroundings,
        )

    def preview(self, order: Order) -> Request:
        """Return the request that an order would send; what is made anew for each write stands in words."""
        from escrowctl.client.writing import make_intent, make_request

        self._service.refuse_key(*order.texts)
        intent = make_intent(self._service, order, idempotency_key=order.idempotency_key or MADE_WHEN_SENT)
        return make_request(self._service, intent, request_id=MADE_WHEN_SENT)

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _writer(self) -> "Writer":
        from escrowctl.client.writing import Writer

        return Writer(self._service, self._wire, self._open_journal(), self._surroundings, self._signals)
