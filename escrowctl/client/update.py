"""Updating an escrow (observed, not published): read, agree, lock, read again, send once."""

from collections.abc import Callable

from escrowctl.client.failures import write_failure
from escrowctl.client.inspection import Confirm, inspect, require_unchanged
from escrowctl.client.orders import Order
from escrowctl.client.reading import Reader
from escrowctl.client.records import Made
from escrowctl.client.writing import Writer, Written
from escrowctl.config.service import Service
from escrowctl.contract.record import Located
from escrowctl.journal.entries import State

OrderFor = Callable[[Located | None], Order]
"""Makes the order from the record as it was read (None: not readable)."""


class Update:
    """Updates escrows at one service."""

    def __init__(self, service: Service, *, reader: Reader, writer: Writer, confirm: Confirm, invocation: str) -> None:
        self._service = service
        self._reader = reader
        self._writer = writer
        self._confirm = confirm
        self._invocation = invocation

    def update(self, resource_id: str, order_for: OrderFor, *, unread: bool) -> Made:
        """Update one escrow once; call inside `signals.held()`.

        Raises EscrowctlError: 3 where consent fails or the record changed meanwhile, 12 where the
        outcome is or was unknown, and the refusal's own code otherwise.
        """
        sent_before = self._writer.refuse_known(order_for(None))
        if sent_before is not None:
            return self._conclude(sent_before)
        before = inspect(self._reader, resource_id, unread=unread, verb="update")
        asked = self._confirm(resource_id, before)
        order = order_for(before)
        with self._writer.alone(order) as waited:
            if asked or waited:
                now = inspect(self._reader, resource_id, unread=unread, verb="update")
                require_unchanged(resource_id, before, now)
            return self._conclude(self._writer.perform(order))

    def _conclude(self, written: Written) -> Made:
        if written.entry.state is not State.DONE:
            raise write_failure(
                self._service, written.entry, written.code, invocation=self._invocation, replayed=written.replayed
            )
        return Made(written.entry, written.record, written.replayed)
